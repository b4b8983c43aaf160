//! The settings of Adam.

use crate::{Element, Error};
use serde::{Deserialize, Serialize};

/// How weights are drawn towards zero.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WeightDecay {
    /// Adds the factor times the weight to the gradient (Adam).
    L2(f64),
    /// Shrinks the weight by the learning rate times the factor, past the moments (AdamW).
    Decoupled(f64),
}

/// The settings of [`Adam`](crate::Adam); the defaults are PyTorch's.
///
/// The learning rate and the weight decay are at most the root of the largest number of the weights'
/// type, $1.8 \cdot 10^{19}$ in single precision, so that no product of settings overflows; `epsilon`
/// is no subnormal number there.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct AdamConfig {
    /// The learning rate $\eta$, not negative; `1e-3` by default.
    pub learning_rate: f64,
    /// The decay rates of the two moments, at least 0 and below 1; `0.9` and `0.999` by default.
    pub betas: [f64; 2],
    /// Added to the denominator, positive; `1e-8` by default.
    pub epsilon: f64,
    /// The weight decay, not negative; none by default.
    pub weight_decay: WeightDecay,
}

impl Default for AdamConfig {
    fn default() -> Self {
        Self {
            learning_rate: 1e-3,
            betas: [0.9, 0.999],
            epsilon: 1e-8,
            weight_decay: WeightDecay::L2(0.0),
        }
    }
}

impl AdamConfig {
    /// The settings of AdamW: decoupled weight decay, `1e-2` as in PyTorch.
    pub fn adamw() -> Self {
        Self {
            weight_decay: WeightDecay::Decoupled(1e-2),
            ..Self::default()
        }
    }

    /// Whether weights of this type can be stepped with it.
    pub(super) fn validate<E: Element>(&self) -> Result<(), Error> {
        let (WeightDecay::L2(decay) | WeightDecay::Decoupled(decay)) = self.weight_decay;
        factor_in_range::<E>(LEARNING_RATE, self.learning_rate)?;
        factor_in_range::<E>("the weight decay", decay)?;
        let rate = "at least 0 and below 1";
        let in_range = |beta: &f64| (0.0..1.0).contains(beta);
        // In single precision 1e-50 is zero, and a gradient of zero would step by zero over zero.
        let added = self.epsilon > 0.0 && E::of(self.epsilon).is_normal();
        let normal = "positive, and neither too small nor too large for the weights' type";
        let checks = [
            ("betas[0]", self.betas[0], rate, in_range(&self.betas[0])),
            ("betas[1]", self.betas[1], rate, in_range(&self.betas[1])),
            ("epsilon", self.epsilon, normal, added),
        ];
        match checks.into_iter().find(|(.., holds)| !holds) {
            Some((what, got, requirement, _)) => Err(Error::OutOfRange {
                what,
                got,
                requirement,
            }),
            None => Ok(()),
        }
    }
}

pub(super) const LEARNING_RATE: &str = "the learning rate";

pub(super) fn factor_in_range<E: Element>(what: &'static str, got: f64) -> Result<(), Error> {
    if (0.0..=E::max_value().sqrt().as_f64()).contains(&got) {
        return Ok(());
    }
    Err(Error::OutOfRange {
        what,
        got,
        requirement: "not negative and at most the root of the largest number of the weights' type",
    })
}

#[cfg(test)]
mod tests {
    use crate::{Adam, AdamConfig, Error, WeightDecay};
    use dfdx::prelude::*;

    #[test]
    fn settings_are_checked_in_the_type_of_the_weights() {
        let (device, good) = (Cpu::default(), AdamConfig::adamw());
        for large in [1e300, 1e38, 2e19] {
            let rate = AdamConfig {
                learning_rate: large,
                ..good
            };
            let decays = [WeightDecay::L2(large), WeightDecay::Decoupled(large)];
            let decays = decays.map(|weight_decay| AdamConfig {
                weight_decay,
                ..good
            });
            for config in [rate, decays[0], decays[1]] {
                let error = Adam::<f32>::new(config).unwrap_err();
                assert!(matches!(error, Error::OutOfRange { got, .. } if got == large));
                assert_eq!(Adam::<f64>::new(config).is_ok(), large < 1e100);
            }
            let mut x: Tensor<(usize,), f32, Cpu> = device.zeros_like(&(1,));
            let mut adam = Adam::new(good).unwrap();
            let refused = adam.step_at(large, &mut x, &mut Gradients::leaky());
            assert!(matches!(refused, Err(Error::OutOfRange { .. })));
        }
        for epsilon in [1e-50, 1e-40, 1e39] {
            let config = AdamConfig { epsilon, ..good };
            assert!(Adam::<f32>::new(config).is_err());
            assert!(Adam::<f64>::new(config).is_ok());
        }
        // The outermost ones that are let through leave weights finite.
        for decay in [WeightDecay::L2, WeightDecay::Decoupled] {
            let config = AdamConfig {
                learning_rate: 1.8e19,
                betas: [0.999_999_999, 0.999_999_999],
                epsilon: 1.2e-38,
                weight_decay: decay(1.8e19),
            };
            let mut adam = Adam::new(config).unwrap();
            let mut x: Tensor<(usize,), f32, Cpu> = device.tensor_from_vec(vec![0.0, 0.5], (2,));
            adam.step(&mut x, &mut Gradients::leaky()).unwrap();
            assert!(x.as_vec().iter().all(|x| x.is_finite()), "{:?}", x.as_vec());
        }
    }
}
