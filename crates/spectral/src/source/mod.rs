//! Sources of spectral points: what the points of a kernel are computed from, and the way back.

mod bounds;
mod coupling;
mod direct;
mod implicit;
mod parameters;
mod posterior;
mod released;

pub use coupling::Copula;
pub use direct::Direct;
pub use implicit::{Implicit, Latent};
pub use parameters::{ParameterSpec, Size};
pub use posterior::Posterior;

use crate::{Error, Features};
use bochner_numerics::{Real, argument};
use ndarray::{Array1, Array4};
use rand::RngCore;
use serde::{Deserialize, Serialize};
use std::fmt::Debug;

/// The most spectral points of a head. Their memory is taken before anything is computed: at 8 heads of width 64 this many
/// take 0.27 GB in `f64`, and each pass holds several arrays of that size. Kernels of the papers have at most some
/// thousands.
pub const MOST_POINTS: usize = 1 << 16;

/// The stationarity of a kernel. A stationary kernel depends on the difference of its arguments alone.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Stationarity {
    /// $f_S(x, y) = \frac1R \sum_r \cos(w_r \cdot (x - y))$, with one set of spectral points.
    Stationary,
    /// $f_{NS}$, with two sets.
    #[default]
    Nonstationary,
}

impl Stationarity {
    /// The number of sets of spectral points that the kernel has.
    pub const fn sets(self) -> usize {
        match self {
            Self::Stationary => 1,
            Self::Nonstationary => 2,
        }
    }
}

/// The equations that a source follows.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(rename_all = "kebab-case")]
pub enum Preset {
    /// The paper's settings, with the corrections that `docs/deviations.md` lists.
    #[default]
    Paper,
    /// The authors' released code, deviation by deviation.
    Released,
}

impl Preset {
    /// The name in settings, tables and file names.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Paper => "paper",
            Self::Released => "released",
        }
    }
}

/// A source of spectral points: from parameters, features and noise to the points of every head.
///
/// Parameters travel as one flat slice, laid out by [`parameters`](Self::parameters). What is computed
/// from the points, attention over a sequence or along the edges of a graph, is not the source's concern.
///
/// # Example
/// ```
/// use bochner_numerics::Seed;
/// use bochner_spectral::{DrawnCotangents, Features, Implicit, Size, Source};
/// use bochner_spectral::ndarray::{Array1, Array4};
///
/// let (source, size) = (Implicit { points: 16, ..Implicit::default() }, Size { heads: 2, width: 4 });
/// let parameters: Vec<f64> = source.initial(size, &mut Seed::new(1).stream("initial values"))?;
/// let x = Array4::from_shape_fn((1, 2, 5, 4), |(_, m, t, n)| 0.1 * (m + t * n) as f64);
/// let features = Features::new(x.view(), x.view());
///
/// let noise = source.noise(1, size, &mut Seed::new(2).stream("noise"));
/// let drawn = source.draw(&features, &parameters, noise)?;
/// assert_eq!(drawn.points[0].dim(), (1, 2, 16, 4));
///
/// let cotangent = DrawnCotangents { points: drawn.points.clone(), kl: Array1::ones(1), entropy: None };
/// let gradients = source.draw_vjp(&features, &parameters, &drawn, cotangent)?;
/// assert_eq!(gradients.parameters.len(), parameters.len());
/// # Ok::<(), bochner_spectral::Error>(())
/// ```
pub trait Source<T: Real>: Debug + Send + Sync {
    /// Checks the settings.
    ///
    /// # Errors
    /// [`Error::Argument`] naming the setting, [`Error::Unsupported`] for two that do not go together.
    fn validate(&self) -> Result<(), Error>;

    /// The parameters for heads of a given size, in the order in which they are laid out.
    fn parameters(&self, size: Size) -> Vec<ParameterSpec>;

    /// Initial values of all parameters.
    ///
    /// # Errors
    /// The errors of [`validate`](Self::validate), and [`Error::Argument`] for a size of zero.
    fn initial(&self, size: Size, rng: &mut dyn RngCore) -> Result<Vec<T>, Error>;

    /// The standard normal noise of one draw, `[B, M, R, d]`; a source that draws nothing takes none,
    /// `[B, M, 0, d]`.
    fn noise(&self, batch: usize, size: Size, rng: &mut dyn RngCore) -> Array4<T>;

    /// The points that belong to these features, parameters and noise.
    ///
    /// # Errors
    /// [`Error::Argument`] for whatever does not fit, and those of [`validate`](Self::validate).
    fn draw(
        &self,
        features: &Features<T>,
        parameters: &[T],
        noise: Array4<T>,
    ) -> Result<Drawn<T>, Error>;

    /// The vector-Jacobian product of [`draw`](Self::draw), given what it returned for these features and
    /// parameters.
    ///
    /// # Errors
    /// The errors of [`draw`](Self::draw), [`Error::Argument`] for cotangents that do not fit, and
    /// [`Error::ForeignDraw`] if another source made the draw, or this one from other features or parameters.
    fn draw_vjp(
        &self,
        features: &Features<T>,
        parameters: &[T],
        drawn: &Drawn<T>,
        cotangent: DrawnCotangents<T>,
    ) -> Result<SourceGradients<T>, Error>;
}

/// Spectral points of all heads, and what led to them.
#[derive(Clone, Debug)]
pub struct Drawn<T> {
    /// The set of points of a stationary kernel, or the two sets w1 and w2, each `[1 or B, M, R, d]`.
    pub points: Vec<Array4<T>>,
    /// The divergence $\mathrm{KL}(q \Vert p)$ of each example, `[B]`; zero for points that are parameters.
    pub kl: Array1<T>,
    /// The latent behind the points, where there is one.
    pub latent: Option<Latent<T>>,
}

/// Cotangents of [`Drawn`].
#[derive(Clone, Debug)]
pub struct DrawnCotangents<T> {
    /// The cotangent of each set of points.
    pub points: Vec<Array4<T>>,
    /// The cotangent of the divergence, `[B]`.
    pub kl: Array1<T>,
    /// The cotangent of [`Latent::entropy`], `[B]`, where it is part of the objective.
    pub entropy: Option<Array1<T>>,
}

/// Gradients of [`Source::draw`].
#[derive(Clone, Debug, PartialEq)]
pub struct SourceGradients<T> {
    /// Along the queries.
    pub q: Array4<T>,
    /// Along the keys.
    pub k: Array4<T>,
    /// Along the parameters, laid out like them.
    pub parameters: Vec<T>,
    /// Along the noise.
    pub noise: Array4<T>,
}

impl<T: Real> DrawnCotangents<T> {
    fn check(&self, drawn: &Drawn<T>) -> Result<(), Error> {
        let (sets, given) = (drawn.points.len(), self.points.len());
        argument::shape("cotangents of the sets of points", &[sets], &[given])?;
        for (set, given) in drawn.points.iter().zip(&self.points) {
            argument::shape("cotangent of the points", set.shape(), given.shape())?;
        }
        let batch = drawn.kl.shape();
        argument::shape("cotangent of the divergence", batch, self.kl.shape())?;
        let Some(entropy) = &self.entropy else {
            return Ok(());
        };
        if drawn.latent.as_ref().and_then(Latent::entropy).is_none() {
            return Err(Error::Unsupported {
                what: "a cotangent of the entropy of a draw that has none",
                instead: "`entropy: None`, or the released preset",
            });
        }
        Ok(argument::shape(
            "cotangent of the entropy",
            batch,
            entropy.shape(),
        )?)
    }
}
