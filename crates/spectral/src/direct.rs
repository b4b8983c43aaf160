//! Spectral points that are parameters themselves, and where they start.

use crate::Error;
use crate::affine::uniform;
use bochner_numerics::{Real, argument, standard_normal};
use ndarray::Array3;
use rand::RngCore;
use serde::{Deserialize, Serialize};

/// The initial values of spectral points that are learned directly.
// The variants are written in capitals, unlike those of other settings: the fingerprints of published results
// hash them so.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum DirectInit {
    /// $w_1 \sim N(0, I/(2\sqrt d))$ and $w_2 = w_1 + w'/10$ with $w'$ a second such draw.
    ///
    /// The squared kernel starts near softmax attention's own similarity
    /// $\exp(-|q - k|^2/(2\sqrt d))$, and the two points of a pair are already told apart.
    #[default]
    NearSoftmax,
    /// $w_1$ and $w_2$ are uniform in $\pm 1/\sqrt{M R}$, Kaiming's bound for the array the points are kept in.
    KaimingUniform,
}

/// Pairs of spectral points for every head.
#[derive(Clone, Debug, PartialEq)]
pub struct DirectPoints<T> {
    /// The first point of each pair, `[M, R, d]`.
    pub w1: Array3<T>,
    /// The second point of each pair, `[M, R, d]`.
    pub w2: Array3<T>,
}

/// Initial spectral points, to be learned directly.
///
/// # Shapes
/// The two arrays are `[heads, points, width]`, $M \times R \times d$.
///
/// # Errors
/// [`Error::Argument`] if one of the three is zero.
///
/// # Numerics
/// Drawn in double precision and rounded, so that `f32` and `f64` start alike.
///
/// # Example
/// ```
/// use bochner_numerics::Seed;
/// use bochner_spectral::{DirectInit, direct_points};
///
/// let mut stream = Seed::new(1).stream("spectral points");
/// let points = direct_points::<f32>(4, 16, 8, DirectInit::NearSoftmax, &mut stream)?;
/// assert_eq!(points.w1.dim(), (4, 16, 8));
/// assert_ne!(points.w1, points.w2);
/// # Ok::<(), bochner_spectral::Error>(())
/// ```
pub fn direct_points<T: Real>(
    heads: usize,
    points: usize,
    width: usize,
    init: DirectInit,
    rng: &mut (impl RngCore + ?Sized),
) -> Result<DirectPoints<T>, Error> {
    argument::at_least_one("heads", heads)?;
    argument::at_least_one("points", points)?;
    argument::at_least_one("width", width)?;
    let shape = (heads, points, width);
    Ok(match init {
        DirectInit::NearSoftmax => near_softmax(shape, rng),
        DirectInit::KaimingUniform => kaiming_uniform(shape, rng),
    })
}

/// The initial distance of the second point of a pair from the first, in standard deviations.
const SPREAD: f64 = 0.1;

fn near_softmax<T: Real>(
    shape: (usize, usize, usize),
    rng: &mut (impl RngCore + ?Sized),
) -> DirectPoints<T> {
    let std = (2.0 * (shape.2 as f64).sqrt()).sqrt().recip();
    let mut draw = || Array3::from_shape_simple_fn(shape, || std * standard_normal::<f64>(rng));
    let w1 = draw();
    let w2 = &w1 + draw() * SPREAD;
    DirectPoints {
        w1: w1.mapv(T::of),
        w2: w2.mapv(T::of),
    }
}

fn kaiming_uniform<T: Real>(
    shape: (usize, usize, usize),
    rng: &mut (impl RngCore + ?Sized),
) -> DirectPoints<T> {
    let bound = 1.0 / ((shape.0 * shape.1) as f64).sqrt();
    let mut draw = || Array3::from_shape_simple_fn(shape, || uniform(bound, rng));
    DirectPoints {
        w1: draw(),
        w2: draw(),
    }
}
