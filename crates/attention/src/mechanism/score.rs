//! Mechanisms made of a score alone.

use super::{CustomMechanism, Mechanism, Pass, Streams};
use crate::{
    Card, Error, Settings,
    card::{Rows, Symmetry},
};
use bochner_engine::{Kind, MOST_PARAMETERS, Score, Scored};
use bochner_numerics::{Real, argument};
use bochner_spectral::{ParameterSpec, Size};
use ndarray::ArrayView2;
use rand::RngCore;
use serde::{Serialize, de::DeserializeOwned};

/// A [`Score`] that is a mechanism by its name: attention by the softmax of a logit, or by a weight over the sum of its
/// row.
///
/// Heads, key-value heads, masks, windows, biases, dropout, gradients, caches and settings files follow.
/// [`register`](crate::register) makes the name known to settings files.
///
/// ```
/// use bochner_attention::engine::{Kind, Number, Pair, Raw, Score};
/// use bochner_attention::{MultiHeadConfig, ScoreMechanism, register};
/// use serde::{Deserialize, Serialize};
///
/// /// $(1 + |q - k|^2 / (2 \alpha \sqrt d))^{-\alpha}$ with a learnt $\ln \alpha$ for each head.
/// #[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
/// struct RationalQuadratic {}
///
/// impl Score for RationalQuadratic {
///     const RAW: Raw = Raw::SquaredDistance;
///
///     fn kind(&self) -> Kind {
///         Kind::Weight
///     }
///
///     fn parameters(&self) -> usize {
///         1
///     }
///
///     fn uses_positions(&self) -> bool {
///         false
///     }
///
///     #[inline(always)]
///     fn score<N: Number>(&self, raw: N, pair: Pair<N>, parameters: &[N]) -> N {
///         let (alpha, root) = (parameters[0].exp(), (pair.width as f64).sqrt());
///         (N::of(1.0) + raw / (alpha * N::of(2.0 * root))).powf(-alpha)
///     }
/// }
///
/// impl ScoreMechanism for RationalQuadratic {
///     const NAME: &'static str = "mycrate/rational-quadratic";
/// }
///
/// // First in `main`: settings files may have {"mycrate/rational-quadratic": {}} now.
/// register::<RationalQuadratic>()?;
/// # #[cfg(feature = "dfdx")]
/// let config = MultiHeadConfig { variant: RationalQuadratic {}.into(), ..Default::default() };
/// # Ok::<(), bochner_attention::Error>(())
/// ```
pub trait ScoreMechanism: Score + Serialize + DeserializeOwned + Default + PartialEq {
    /// The name of the mechanism, `mycrate/name`.
    const NAME: &'static str;

    /// Checks the settings, where they are read and before each pass. Defaults to no check.
    ///
    /// # Errors
    /// [`Error::Argument`] naming the setting.
    fn validate(&self) -> Result<(), Error> {
        Ok(())
    }

    /// Returns the initial values of the learnt numbers of a head, one of `heads`. Defaults to zeros.
    fn initial_parameters(&self, _head: usize, _heads: usize) -> Vec<f64> {
        vec![0.0; Score::parameters(self)]
    }

    /// Changes the settings of each pass: another normaliser, a fixed sink, a weight of keys. Defaults to no change.
    fn with_settings<T: Real>(&self, settings: Settings<T>) -> Settings<T> {
        settings
    }
}

impl<S: ScoreMechanism> CustomMechanism for S {
    const NAME: &'static str = S::NAME;
}

impl<S: ScoreMechanism, T: Real> Mechanism<T> for S {
    fn card(&self) -> Card {
        Card {
            name: S::NAME,
            title: "a score of pairs",
            rows: match self.kind() {
                Kind::Logit => Rows::One,
                Kind::Weight => Rows::Free,
            },
            symmetry: match self.uses_positions() {
                true => Symmetry::None,
                false => Symmetry::Permutations,
            },
            ..Card::SCORE
        }
    }

    fn validate(&self) -> Result<(), Error> {
        let count = Score::parameters(self);
        let few = count <= MOST_PARAMETERS;
        argument::in_range(few, "parameters", count as f64, "at most 8 numbers a head")?;
        ScoreMechanism::validate(self)
    }

    fn parameters(&self, size: Size) -> Vec<ParameterSpec> {
        let numbers = Score::parameters(self);
        let spec = || ParameterSpec::new("score", &[size.heads, numbers]);
        (numbers > 0).then(spec).into_iter().collect()
    }

    fn initial(&self, size: Size, _: &mut dyn RngCore) -> Result<Vec<T>, Error> {
        Mechanism::<T>::validate(self)?;
        let (count, mut all) = (Score::parameters(self), Vec::new());
        for head in 0..size.heads {
            let own = self.initial_parameters(head, size.heads);
            argument::shape("initial_parameters", &[count], &[own.len()])?;
            all.extend(own.into_iter().map(T::of));
        }
        Ok(all)
    }

    fn kernel(
        &self,
        inputs: &Streams<T>,
        parameters: &[T],
        _: &Pass,
    ) -> Result<Settings<T>, Error> {
        let shape = (inputs.size().heads, Score::parameters(self));
        let of_heads = ArrayView2::from_shape(shape, parameters).expect("checked with the pass");
        let kernel = Scored::with_parameters(self.clone(), of_heads.to_owned());
        Ok(self.with_settings(Settings::pairs(kernel, inputs.mask)))
    }
}
