//! The magnitude: how loud a key is.

use crate::Error;
use bochner_engine::{HeadRows, KeyWeight};
use bochner_numerics::elementary::SquaredNorms;
use bochner_numerics::operations::record;
use bochner_numerics::scaling::rounded;
use bochner_numerics::{Real, argument};
use ndarray::{Array1, Array2, ArrayView1, ArrayView2};

/// The factor $\exp m_j$ of the similarity.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Magnitude {
    /// No magnitude: the similarity alone.
    None,
    /// $m_j = |k_j|_p^2 / (2 \sqrt d)$; `p = 2` in softmax attention.
    Norm {
        /// The exponent of the norm, above 0.
        p: f64,
    },
    /// The magnitude of the authors' released code in evaluation: $m_j = |k_j|_p^2 / (2 d^{1/4})$.
    Released {
        /// The exponent of the norm, above 0.
        p: f64,
    },
}

impl Magnitude {
    /// The exponent of the norm, if there is one.
    pub(crate) fn p(self) -> Option<f64> {
        match self {
            Self::None => None,
            Self::Norm { p } | Self::Released { p } => Some(p),
        }
    }

    /// Returns the number that the squared norms of rows of some width are divided by.
    pub(crate) fn divisor(self, width: usize) -> f64 {
        match self {
            Self::Released { .. } => 2.0 * (width as f64).sqrt().sqrt(),
            _ => divisor(width),
        }
    }
}

/// A log-weight $m_j$ of each key.
///
/// Where a magnitude is beyond 1e100, its logarithm decides between keys: any difference that double precision can tell
/// there leaves one of two keys without weight.
impl<T: Real> KeyWeight<T> for Magnitude {
    fn check(&self) -> Result<(), bochner_engine::Error> {
        Ok(self.p().map_or(Ok(()), |p| argument::positive("p", p))?)
    }

    fn log_weights(&self, keys: HeadRows<T>, out: &mut Vec<f64>) {
        let (rows, width) = keys.x.shape();
        let Some(p) = self.p() else {
            return out.resize(out.len() + rows, 0.0);
        };
        record(SquaredNorms::cost(p, keys.x.data().len()));
        let log_divisor = self.divisor(width).ln();
        let before = out.len();
        out.resize(before + rows, 0.0);
        SquaredNorms::write_logarithms(keys.x.data(), width, p, &mut out[before..]);
        out[before..]
            .iter_mut()
            .for_each(|x| *x = bounded_exponential(*x - log_divisor));
    }

    fn pull(&self, keys: HeadRows<T>, cotangents: &[T], out: &mut [T]) {
        let Some(p) = self.p() else {
            return;
        };
        let width = keys.x.shape().1;
        let divisor = self.divisor(width);
        let cotangents: Vec<f64> = cotangents.iter().map(|c| c.as_f64() / divisor).collect();
        let along =
            SquaredNorms::new(keys.x.data(), width, p).pull_back(keys.x.data(), &cotangents);
        for (sum, more) in out.iter_mut().zip(along) {
            *sum = rounded(sum.as_f64() + more);
        }
    }
}

/// $e^x$ up to 1e100, and beyond it a number that is finite and grows with x.
fn bounded_exponential(x: f64) -> f64 {
    const LARGE: f64 = 1e100;
    let excess = x - LARGE.ln();
    if excess > 0.0 {
        LARGE * (1.0 + excess)
    } else {
        x.exp()
    }
}

/// $\log |x|_p^2$ of each row of `x`.
///
/// $$\log |x|_p^2 = 2 \log s + \frac{2}{p} \log \sum_n |x_n / s|^p, \qquad s = \max_n |x_n|$$
///
/// # Shapes
/// `x: [N, d]` to `[N]`.
///
/// # Errors
/// [`Error::Argument`] unless `p` is finite and positive, or if `x` has no row or no column.
///
/// # Numerics
/// Computed in double precision with the largest entry factored out: finite for every finite
/// non-zero row, even where $|x|_p^2$ itself overflows. A zero row gives $-\infty$. For `p < 1` a
/// row and its permutations have the same norm to the bit.
pub fn log_norm_sq<T: Real>(x: ArrayView2<T>, p: f64) -> Result<Array1<T>, Error> {
    check(x, p)?;
    Ok(rows(x, p, |log| log))
}

/// The magnitude $m = |x|_p^2 / (2 \sqrt d)$ of each row of `x`, the square of the p-norm.
///
/// *where* `p > 0` (for `p < 1` a quasi-norm) and `d` is the width of a row. In softmax attention
/// `p = 2`.
///
/// # Shapes
/// `x: [N, d]` to `[N]`.
///
/// # Errors
/// [`Error::Argument`] unless `p` is finite and positive, or if `x` has no row or no column.
///
/// # Numerics
/// Overflows to infinity for small `p` and many coordinates; attention itself works on the
/// logarithms ([`log_norm_sq`]) and is not affected.
///
/// # Reference
/// Song et al. 2021, equation 9.
///
/// ```
/// use bochner_attention::magnitude::magnitude;
/// use bochner_attention::ndarray::array;
///
/// let m = magnitude(array![[3.0_f64, -4.0]].view(), 1.0)?;
/// assert!((m[0] - 49.0 / (2.0 * 2.0_f64.sqrt())).abs() < 1e-12);
/// # Ok::<(), bochner_attention::Error>(())
/// ```
pub fn magnitude<T: Real>(x: ArrayView2<T>, p: f64) -> Result<Array1<T>, Error> {
    check(x, p)?;
    let divisor = divisor(x.ncols());
    Ok(rows(x, p, |log| log.exp() / divisor))
}

/// The vector-Jacobian product of [`magnitude`].
///
/// $$\frac{\partial |x|_p^2}{\partial x_n} = 2 |x|_p^{2-p} |x_n|^{p-1} \operatorname{sign} x_n$$
///
/// # Shapes
/// `x: [N, d]`, `cotangent: [N]` to `[N, d]`.
///
/// # Errors
/// The errors of [`magnitude`], and [`Error::Argument`] if the cotangent does not fit.
///
/// # Numerics
/// Zero at `x_n = 0`. For `p < 1`, `|x_n|` is clamped from below at `1e-6 max |x_n|` (in this
/// gradient only). Where the cotangent is zero the product is zero even if the derivative
/// overflows.
pub fn magnitude_vjp<T: Real>(
    x: ArrayView2<T>,
    p: f64,
    cotangent: ArrayView1<T>,
) -> Result<Array2<T>, Error> {
    check(x, p)?;
    argument::shape("cotangent", &[x.nrows()], cotangent.shape())?;
    let divisor = divisor(x.ncols());
    let (shape, x) = (x.raw_dim(), x.as_standard_layout());
    let x = x.as_slice().expect("brought to row-major order");
    let cotangent = cotangent.mapv(|c| c.as_f64() / divisor).to_vec();
    let gradient = SquaredNorms::new(x, shape[1], p).pull_back(x, &cotangent);
    let gradient = gradient.into_iter().map(T::of).collect();
    Ok(Array2::from_shape_vec(shape, gradient).expect("as many as before"))
}

/// $2 \sqrt d$.
fn divisor(width: usize) -> f64 {
    2.0 * (width as f64).sqrt()
}

fn check<T>(x: ArrayView2<T>, p: f64) -> Result<(), Error> {
    argument::positive("p", p)?;
    argument::not_empty("x", x.shape())?;
    Ok(())
}

/// `f` of the logarithm of each row's norm.
fn rows<T: Real>(x: ArrayView2<T>, p: f64, f: impl Fn(f64) -> f64) -> Array1<T> {
    let (width, x) = (x.ncols(), x.as_standard_layout());
    let norms = SquaredNorms::new(x.as_slice().expect("brought to row-major order"), width, p);
    let logarithms = norms.logarithms().into_iter();
    logarithms.map(|log| T::of(f(log))).collect()
}
