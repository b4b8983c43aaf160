//! The settings of Adam.

use bochner_numerics::{ArgumentError, Real, argument};
use serde::{Deserialize, Serialize};

/// The form of weight decay.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", remote = "Self")]
pub enum WeightDecay {
    /// Adds the factor times the weight to the gradient (Adam).
    L2(f64),
    /// Shrinks the weight by the learning rate times the factor; the moments do not see it (AdamW).
    Decoupled(f64),
}

bochner_numerics::checked_when_read!(WeightDecay, checked);

impl WeightDecay {
    fn validate<T: Real>(self) -> Result<(), ArgumentError> {
        let (Self::L2(factor) | Self::Decoupled(factor)) = self;
        check_factor::<T>("weight_decay", factor)
    }

    /// Checks settings when they are read: the weights may be of either type.
    fn checked(self) -> Result<(), ArgumentError> {
        self.validate::<f64>()
    }
}

/// The parameters that weight decay shrinks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[doc(alias = "no_decay")]
pub enum Decayed {
    /// All parameters, as in PyTorch where a model is one group.
    #[default]
    All,
    /// The weights of linear maps and the tables of embeddings: parameters with at least two axes whose name does not end
    /// in `bias`. Biases, the gains of norms and flat parameters, such as the spectral points of an attention, do not
    /// decay.
    Weights,
}

impl Decayed {
    /// Whether a parameter with this name and number of axes decays.
    pub fn includes(self, name: &str, axes: usize) -> bool {
        match self {
            Self::All => true,
            Self::Weights => axes >= 2 && !name.ends_with("bias"),
        }
    }
}

/// The settings of [`AdamRule`](crate::AdamRule); the defaults are PyTorch's.
///
/// The learning rate and the weight decay are at most the root of the largest number of the weights'
/// type, $1.8 \cdot 10^{19}$ in single precision, so that no product of settings overflows; `epsilon`
/// is no subnormal number there.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(
    default,
    deny_unknown_fields,
    rename_all = "kebab-case",
    remote = "Self"
)]
pub struct AdamConfig {
    /// The learning rate $\eta$, not negative; `1e-3` by default.
    #[serde(alias = "learning_rate")]
    pub learning_rate: f64,
    /// The decay rates of the two moments, at least 0 and below 1; `0.9` and `0.999` by default.
    pub betas: [f64; 2],
    /// Added to the denominator, positive; `1e-8` by default.
    pub epsilon: f64,
    /// The weight decay, not negative; none by default.
    #[serde(alias = "weight_decay")]
    pub weight_decay: WeightDecay,
    /// The parameters that decay; all by default. An [`AdamRule`](crate::AdamRule) decays what it steps, unless it is
    /// made [`without_decay`](crate::AdamRule::without_decay).
    #[serde(skip_serializing_if = "is_all")]
    pub decayed: Decayed,
}

fn is_all(decayed: &Decayed) -> bool {
    *decayed == Decayed::All
}

impl Default for AdamConfig {
    fn default() -> Self {
        Self {
            learning_rate: 1e-3,
            betas: [0.9, 0.999],
            epsilon: 1e-8,
            weight_decay: WeightDecay::L2(0.0),
            decayed: Decayed::All,
        }
    }
}

bochner_numerics::checked_when_read!(AdamConfig, checked);

impl AdamConfig {
    /// The settings of AdamW: decoupled weight decay, `1e-2` as in PyTorch.
    pub fn adamw() -> Self {
        Self {
            weight_decay: WeightDecay::Decoupled(1e-2),
            ..Self::default()
        }
    }

    /// Checks settings when they are read: the weights may be of either type.
    fn checked(&self) -> Result<(), ArgumentError> {
        self.validate::<f64>()
    }

    /// `Ok` if weights of the type `T` can be stepped with these settings.
    ///
    /// # Errors
    /// [`ArgumentError::OutOfRange`] names the first that is out of range.
    pub fn validate<T: Real>(&self) -> Result<(), ArgumentError> {
        check_factor::<T>("learning_rate", self.learning_rate)?;
        self.weight_decay.validate::<T>()?;
        argument::rate("betas[0]", self.betas[0])?;
        argument::rate("betas[1]", self.betas[1])?;
        // In single precision 1e-50 is zero, and a gradient of zero would step by zero over zero.
        let holds = self.epsilon > 0.0 && T::of(self.epsilon).is_normal();
        let allowed = "positive, and neither too small nor too large for the weights' type";
        argument::in_range(holds, "epsilon", self.epsilon, allowed)
    }
}

/// Refuses a learning rate or weight decay that is negative, or so large that products of settings overflow
/// in the type `T`.
///
/// # Errors
/// [`ArgumentError::OutOfRange`].
pub fn check_factor<T: Real>(name: &'static str, got: f64) -> Result<(), ArgumentError> {
    let most = T::max_value().sqrt().as_f64();
    if (0.0..=most).contains(&got) {
        return Ok(());
    }
    let of = T::NAME;
    let allowed = format!("at least 0 and at most {most:.1e}, the root of the largest `{of}`");
    Err(argument::out_of_range(name, got, allowed))
}
