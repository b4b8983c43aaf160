//! The Gaussian estimator: normal spectral points whose standard deviations are learned.

use crate::Error;
use bochner_numerics::scaling::bounded;
use bochner_numerics::{Real, argument};
use ndarray::{Array1, Array2, ArrayView1, ArrayView2};

/// The density $N(0, \operatorname{diag} s^2)$ of spectral points, as a function of $\log s$.
///
/// $$w_r = \exp(\log s) \odot \varepsilon_r$$
///
/// *where* $\varepsilon$ are standard normal draws. The kernel is the RBF kernel of lengthscales
/// $1 / s_n$, so this is the estimator that learns nothing but lengthscales. With one $s$ for all
/// coordinates and $s^2 = 1 / (2 l^2)$, the squared kernel tends to $\exp(-|x - y|^2 / (2 l^2))$.
///
/// # Shapes
/// `log_std` is `[d]`, or `[1]` for one standard deviation that all coordinates share.
///
/// # Example
/// ```
/// use bochner_spectral::{GaussianPoints, softmax_log_std};
/// use bochner_spectral::ndarray::array;
///
/// let log_std = array![softmax_log_std::<f64>(4)?];
/// let density = GaussianPoints { log_std: log_std.view() };
/// let w = density.points(array![[1.0, -2.0, 0.0, 4.0]].view())?;
/// assert_eq!(w, array![[0.5, -1.0, 0.0, 2.0]]); // variance 1 / (2 sqrt 4)
/// # Ok::<(), bochner_spectral::Error>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct GaussianPoints<'a, T> {
    /// The logarithm of the standard deviation, for each coordinate or for all.
    pub log_std: ArrayView1<'a, T>,
}

/// The gradients of [`GaussianPoints::points`], along parameter and noise.
#[derive(Clone, Debug, PartialEq)]
pub struct GaussianGradients<T> {
    /// Along the logarithm of the standard deviation, `[d]` or `[1]`.
    pub log_std: Array1<T>,
    /// Along the standard normal draws, `[n, d]`.
    pub eps: Array2<T>,
}

impl<T: Real> GaussianPoints<'_, T> {
    /// The spectral points of standard normal draws, one row each.
    ///
    /// # Shapes
    /// `eps` and the result are `[n, d]`; batch, heads and points are all rows here.
    ///
    /// # Errors
    /// [`Error::Argument`] if $d = 0$, or if `log_std` has neither one entry nor as many as `eps` has
    /// columns.
    ///
    /// # Numerics
    /// Finite arguments give no NaN, here and in the gradients: a standard deviation beyond the type's
    /// range is its largest number, and so is a gradient.
    pub fn points(&self, eps: ArrayView2<T>) -> Result<Array2<T>, Error> {
        self.check(&eps)?;
        Ok(&eps * &self.std())
    }

    /// The vector-Jacobian product of [`points`](Self::points).
    ///
    /// $$\dot{\log s} = \sum_r \dot w_r \odot w_r, \qquad \dot\varepsilon_r = s \odot \dot w_r$$
    ///
    /// # Shapes
    /// `eps` and `cotangent` are `[n, d]`.
    ///
    /// # Errors
    /// The errors of [`points`](Self::points), and [`Error::Argument`] if `cotangent` does not fit.
    ///
    /// # Numerics
    /// Summed in double precision, in the order of the rows.
    pub fn points_vjp(
        &self,
        eps: ArrayView2<T>,
        cotangent: ArrayView2<T>,
    ) -> Result<GaussianGradients<T>, Error> {
        self.check(&eps)?;
        argument::shape("cotangent", eps.shape(), cotangent.shape())?;
        let along_eps = (&cotangent * &self.std()).mapv_into(bounded);
        let mut log_std = vec![0.0; self.log_std.len()];
        let shared = log_std.len() == 1;
        for ((r, n), &eps) in eps.indexed_iter() {
            let sum = &mut log_std[if shared { 0 } else { n }];
            *sum = bounded(*sum + bounded(eps.as_f64() * along_eps[[r, n]].as_f64()));
        }
        Ok(GaussianGradients {
            log_std: log_std.into_iter().map(T::of).collect(),
            eps: along_eps,
        })
    }

    fn std(&self) -> Array1<T> {
        self.log_std.mapv(|x| bounded(x.exp()))
    }

    fn check(&self, eps: &ArrayView2<T>) -> Result<(), Error> {
        argument::at_least_one("width", eps.ncols())?;
        if self.log_std.len() == 1 {
            return Ok(());
        }
        argument::shape("log_std", &[eps.ncols()], self.log_std.shape())?;
        Ok(())
    }
}

/// The $\log s$ at which the squared kernel is softmax attention's own similarity,
/// $s^2 = 1 / (2 \sqrt d)$.
///
/// # Errors
/// [`Error::Argument`] if `width`, $d$, is zero.
pub fn softmax_log_std<T: Real>(width: usize) -> Result<T, Error> {
    argument::at_least_one("width", width)?;
    Ok(T::of(-0.5 * (2.0 * (width as f64).sqrt()).ln()))
}
