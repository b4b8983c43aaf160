//! Performer: attention by random features.

mod drawn;

use super::{Mechanism, Pass, SharedMechanism, Streams, is_default};
use crate::error::Error;
use crate::{Card, Form, Settings, Support, card::Rows};
use bochner_kernels::{Coupling, Norms, RandomFeatureMap};
use bochner_numerics::{Real, Seed, argument};
use bochner_spectral::{MOST_POINTS, Size};
use drawn::Drawn;
use serde::{Deserialize, Serialize};

/// Attention whose weights are inner products of random features (FAVOR+); its features are drawn, not trained.
///
/// $$\alpha_{ij} \propto \phi(q_i / d^{1/4}) \cdot \phi(k_j / d^{1/4}), \qquad
/// \mathbb{E} \phi(x) \cdot \phi(y) = e^{x \cdot y}$$
///
/// *where* $\phi$ is the map `features` with m = `points` frequencies for each head. The expectation is that
/// of [`RandomFeatureMap`]: in the mean over the draws, numerator and denominator are those of softmax attention
/// (not for ReLU features, nor with [`Norms::Root`]).
///
/// # Numerics
/// A row's weights are the exact quotient: no number is added to a feature or a normaliser, which would draw
/// the weights towards uniform ones, and under a causal mask let a late, large key change earlier rows. Each
/// feature has a reference of its own, the largest among the keys so far, so that the largest term of every
/// sum is one. O(T m (d + dv)) time in [`Form::LinearTime`]; a mask by a matrix and dropout on weights need
/// pairs, in O(T² (m + dv)). [`Form::Automatic`] chooses. A coordinate of a query or key beyond the root of the
/// type's range over 1024 counts as that large.
///
/// [Trigonometric](RandomFeatureMap::Trigonometric) weights may be negative, and their sum close to zero: then
/// outputs are larger than values. A sum that is exactly zero gives a zero row.
///
/// # Reference
/// Choromanski et al., *Rethinking Attention with Performers*, ICLR 2021. Orthogonal and simplex frequencies:
/// [`Coupling`]. The references of the features, and weights without an added number, are ours.
///
/// ```
/// use bochner_attention::{Mask, Pass, Performer, Variant, mechanism::{Redraw, Streams}};
/// use bochner_numerics::Seed;
/// use bochner_attention::ndarray::Array4;
///
/// let performer = Performer { redraw: Redraw::Every { steps: 1000 }, ..Performer::default() };
/// let x = Array4::from_shape_fn((1, 2, 5, 4), |(_, m, t, n)| (0.1 * (m + t * n) as f64).sin());
/// let (mask, pass) = (Mask::none().with_causality(), Pass::Evaluation { seed: Seed::new(1) });
/// let inputs = Streams::new([x.view(), x.view(), x.view()], &mask);
/// // The draw follows the step of training.
/// let output = |step| {
///     let performer = Variant::from(performer.clone()).at_step(step, inputs.size());
///     Ok::<_, bochner_attention::Error>(performer.get().forward(&inputs, &[], &pass)?.output)
/// };
/// assert_eq!(output(0)?, output(999)?);
/// assert_ne!(output(0)?, output(1000)?);
/// # Ok::<(), bochner_attention::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, remote = "Self")]
pub struct Performer {
    /// The feature map.
    pub features: RandomFeatureMap,
    /// The number of frequencies m of each head.
    pub points: usize,
    /// The dependence of the directions of frequencies on each other.
    pub coupling: Coupling,
    /// The norms of the frequencies.
    pub norms: Norms,
    /// The seed of all draws.
    pub seed: Seed,
    /// The schedule of redraws of the frequencies, counted in [steps](crate::Mechanism::at_step) of training.
    pub redraw: Redraw,
    /// Pair by pair or in linear time; a [decoder](crate::Mechanism::decoder) keeps its state in this one
    /// unless it is asked for another.
    #[serde(default, skip_serializing_if = "is_default")]
    pub form: Form,
}

/// The schedule of redraws of frequencies.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum Redraw {
    /// The first draw stays.
    #[default]
    Never,
    /// The frequencies are drawn again every `steps` steps of training.
    Every {
        /// The steps between two draws, at least 1.
        steps: u64,
    },
}

impl Default for Performer {
    fn default() -> Self {
        Self {
            features: RandomFeatureMap::Positive,
            points: 256,
            coupling: Coupling::Orthogonal,
            norms: Norms::Chi,
            seed: Seed::new(0),
            redraw: Redraw::Never,
            form: Form::Automatic,
        }
    }
}

impl<T: Real> Mechanism<T> for Performer {
    fn card(&self) -> Card {
        let card = Card {
            name: "performer",
            title: "an inner product of random features of the query and of the key",
            paper: "Choromanski et al. 2021",
            shared_keys: Support::Yes,
            linear_form: Support::Yes,
            constant_state: Support::Yes,
            rows: match self.features.is_positive() {
                true => Rows::One,
                false => Rows::OneOfEitherSign,
            },
            points: Some(self.points),
            ..Card::PAIRWISE
        };
        card.in_form(self.form)
    }

    fn validate(&self) -> Result<(), Error> {
        self.features.validate()?;
        argument::at_most("points", self.points, MOST_POINTS)?;
        match self.redraw {
            Redraw::Every { steps: 0 } => Ok(argument::at_least_one("redraw", 0)?),
            _ => Ok(()),
        }
    }

    /// The first draw, for this pass; [`Mechanism::at_step`] keeps one.
    fn kernel(&self, inputs: &Streams<T>, _: &[T], _: &Pass) -> Result<Settings<T>, Error> {
        let w = self.frequencies(0, inputs.size())?;
        Ok(self.settings(&w, inputs.mask))
    }

    fn at_step(&self, step: u64, size: Size) -> Option<SharedMechanism> {
        Some(SharedMechanism::new(Drawn::new(self, step, size)?))
    }
}
