//! Spectral densities in closed form: a stationary kernel is the Fourier transform of its density.

mod coupling;
mod gaussian;
mod mixture;
mod random_frequencies;
mod stationary;
mod student_t;

pub use coupling::{Coupling, Norms, coupled_frequencies, orthonormal_rows};
pub use gaussian::GaussianDensity;
pub use mixture::MixtureDensity;
pub use random_frequencies::{RandomFrequencies, random_frequencies};
pub use stationary::{Stationary, squared_rbf_density};
pub use student_t::StudentTDensity;

use crate::Error;
use bochner_numerics::Real;
use bochner_numerics::argument;
use ndarray::{Array1, Array2, ArrayView1, ArrayView2};
use rand::RngCore;
use std::fmt::Debug;

/// A symmetric probability density of angular frequencies, $p(w) = p(-w)$ on $\mathbb{R}^d$.
///
/// By Bochner's theorem $k(x, y) / k(0, 0) = \mathbb{E}_p \cos w \cdot (x - y)$, so that draws
/// from it are the [`SpectralPoints`](crate::SpectralPoints) of a stationary kernel. Frequencies
/// are in radians per unit.
///
/// # Reference
/// Bochner, *Lectures on Fourier Integrals*, 1959; Rasmussen, Williams, *Gaussian Processes for
/// Machine Learning*, 2006, theorem 4.1.
pub trait SpectralDensity<T: Real>: Debug + Send + Sync {
    /// The number $d$ of coordinates.
    fn width(&self) -> usize;

    /// Draws `count` frequencies, `[count, d]`.
    ///
    /// # Errors
    /// [`Error::Argument`] if `count` is zero.
    fn sample(&self, count: usize, rng: &mut dyn RngCore) -> Result<Array2<T>, Error>;

    /// $\log p(w)$ of each row of `w: [R, d]`, to `[R]`.
    ///
    /// # Errors
    /// [`Error::Argument`] unless `w` has $d$ columns.
    fn log_density(&self, w: ArrayView2<T>) -> Result<Array1<T>, Error>;
}

/// A matrix of `count` rows, each filled by `draw`.
fn rows<T: Real>(
    count: usize,
    width: usize,
    mut draw: impl FnMut(&mut [T]),
) -> Result<Array2<T>, Error> {
    argument::not_empty("w", &[count, width])?;
    let mut w = vec![T::zero(); count * width];
    w.chunks_exact_mut(width).for_each(&mut draw);
    Ok(Array2::from_shape_vec((count, width), w).expect("allocated with this shape"))
}

/// `log_density` of each row, in double precision.
fn each_row<T: Real>(
    width: usize,
    w: ArrayView2<T>,
    log_density: impl Fn(ArrayView1<T>) -> f64,
) -> Result<Array1<T>, Error> {
    argument::shape("w", &[w.nrows(), width], w.shape())?;
    let logs = w.rows().into_iter().map(|row| T::of(log_density(row)));
    Ok(logs.collect())
}
