//! The spectral points of a mechanism, apart from its attention over them.

use crate::error::same_shape;
use crate::mechanism::{Gradients, Inputs, Mechanism, Pass};
use crate::variants::Sets;
use crate::{Error, PointsGradients, Preset, Variant};
use bochner_numerics::Real;
use ndarray::{Array1, Array4};
use std::any::Any;

/// A mechanism whose squared kernel $f^2 + e$ is given by spectral points: for those who weigh
/// something else than a sequence with it, the edges of a graph say.
///
/// ```
/// use bochner_attention::{DrawnCotangents, Inputs, Mask, Mikan, Pass, PointsGradients, Variant};
/// use bochner_numerics::Seed;
/// use ndarray::{Array1, Array4};
///
/// let variant = Variant::from(Mikan { points: 16, ..Mikan::default() });
/// let mechanism = variant.spectral::<f64>().unwrap();
///
/// let mean = Array4::from_elem((1, 2, 1, 4), 0.5);
/// let (x, mask) = (mean.view(), Mask::none());
/// let inputs = Inputs { q: x, k: x, v: x, mask: &mask };
/// let parameters = mechanism.initial(inputs.size(), &mut Seed::new(1).stream("initial values"))?;
/// let pass = Pass::Evaluation { seed: Seed::new(2) };
///
/// let drawn = mechanism.draw_points(&inputs, &parameters, &pass)?;
/// assert_eq!(drawn.w1.dim(), (1, 2, 16, 4));
/// let cotangent = DrawnCotangents {
///     points: PointsGradients { w1: drawn.w1.clone(), w2: drawn.w2.clone() },
///     penalty: Array1::ones(1),
/// };
/// let gradients = mechanism.draw_points_vjp(&inputs, &parameters, &drawn, cotangent)?;
/// assert_eq!(gradients.parameters.len(), parameters.len());
/// # Ok::<(), bochner_attention::Error>(())
/// ```
pub trait SpectralMechanism<T: Real>: Mechanism<T> {
    /// The exponent p of the magnitude's norm.
    fn p(&self) -> f64;

    /// The floor e under the squared kernel.
    fn floor(&self) -> f64;

    /// The points of a pass. Of the inputs the queries and keys count, and only their means over
    /// the kept positions.
    ///
    /// # Errors
    /// As [`Mechanism::forward`]; [`Error::Unsupported`] for the average over several draws, and
    /// for the released preset, whose equations go with its attention.
    fn draw_points(
        &self,
        inputs: &Inputs<T>,
        parameters: &[T],
        pass: &Pass,
    ) -> Result<DrawnPoints<T>, Error>;

    /// The vector-Jacobian product of [`SpectralMechanism::draw_points`]; that with respect to the
    /// values is zero.
    ///
    /// # Errors
    /// As the draw; [`Error::ShapeMismatch`] for cotangents of another shape,
    /// [`Error::ForeignForward`] if `drawn` is another mechanism's.
    fn draw_points_vjp(
        &self,
        inputs: &Inputs<T>,
        parameters: &[T],
        drawn: &DrawnPoints<T>,
        cotangent: DrawnCotangents<T>,
    ) -> Result<Gradients<T>, Error>;
}

/// Spectral points of all heads, `[1 or B, M, R, d]`.
#[derive(Debug)]
pub struct DrawnPoints<T> {
    /// The points w of a stationary kernel, or w1.
    pub w1: Array4<T>,
    /// The points w2 of a non-stationary kernel.
    pub w2: Option<Array4<T>>,
    /// What the objective adds for each example, already weighted, `[B]`; divide by the number of
    /// training examples.
    pub penalty: Array1<T>,
    saved: Box<dyn Any + Send + Sync>,
}

/// Cotangents of [`DrawnPoints`].
#[derive(Clone, Debug)]
pub struct DrawnCotangents<T> {
    /// Of the points.
    pub points: PointsGradients<T>,
    /// Of the penalty, `[B]`.
    pub penalty: Array1<T>,
}

impl<T: Real> DrawnPoints<T> {
    /// From one set of points or two.
    pub(crate) fn new(sets: Sets<T>, penalty: Array1<T>, saved: impl Any + Send + Sync) -> Self {
        let mut sets = sets.into_iter();
        Self {
            w1: sets.next().expect("a kernel has spectral points"),
            w2: sets.next(),
            penalty,
            saved: Box::new(saved),
        }
    }

    /// What was saved by a mechanism with the same settings.
    pub(crate) fn saved<S: 'static>(&self, mechanism: &'static str) -> Result<&S, Error> {
        let saved = self.saved.downcast_ref();
        saved.ok_or(Error::ForeignForward { mechanism })
    }
}

/// The released code's equations for points go with its own for attention.
pub(crate) fn as_in_the_paper(preset: Preset) -> Result<(), Error> {
    match preset {
        Preset::Paper => Ok(()),
        Preset::Released => Err(Error::Unsupported {
            what: "the released preset apart from its attention",
            instead: "the preset of the paper",
        }),
    }
}

impl<T: Real> DrawnCotangents<T> {
    /// Those of the points, a set each, and of the penalty, if they have the shapes of what was
    /// drawn.
    pub(crate) fn checked(self, drawn: &DrawnPoints<T>) -> Result<(Sets<T>, Array1<T>), Error> {
        let shape = |w2: &Option<Array4<T>>| w2.as_ref().map_or(vec![], |w2| w2.shape().to_vec());
        let (PointsGradients { w1, w2 }, penalty) = (self.points, self.penalty);
        same_shape("cotangent of w1", drawn.w1.shape(), w1.shape())?;
        same_shape("cotangent of w2", &shape(&drawn.w2), &shape(&w2))?;
        same_shape("penalty cotangent", drawn.penalty.shape(), penalty.shape())?;
        Ok(([w1].into_iter().chain(w2).collect(), penalty))
    }
}

impl Variant {
    /// The mechanism as one with spectral points, if it has any.
    pub fn spectral<T: Real>(&self) -> Option<&dyn SpectralMechanism<T>> {
        match self {
            Self::IkanDirect(mechanism) => Some(mechanism),
            Self::Mikan(mechanism) => Some(mechanism),
            _ => None,
        }
    }
}
