//! The singular value decomposition.

use crate::Error;
use crate::backend;
use bochner_numerics::argument;
use ndarray::{Array1, Array2, ArrayView2, ShapeBuilder};

/// The thin singular value decomposition of a matrix.
///
/// $$A = U \operatorname{diag}(s) V^\top, \qquad U^\top U = V^\top V = I$$
#[derive(Clone, Debug, PartialEq)]
pub struct Svd {
    /// The left singular vectors as columns, `[m, k]` with $k = \min(m, n)$.
    pub u: Array2<f64>,
    /// The singular values in descending order, `[k]`.
    pub s: Array1<f64>,
    /// The right singular vectors $V^\top$ as rows, `[k, n]`.
    pub vt: Array2<f64>,
}

/// The thin singular value decomposition of a matrix.
///
/// # Shapes
/// `a: [m, n]`.
///
/// # Errors
/// [`Error::Argument`] if `a` is not finite, [`Error::NoConvergence`].
///
/// # Numerics
/// $O(m n \min(m, n))$ time. Each singular value is off by a small multiple of rounding of the
/// largest one. Entries are squared: those above 1e150 overflow.
///
/// # Reference
/// Golub, Van Loan, *Matrix Computations*, 4th edition, section 8.6.
pub fn svd(a: ArrayView2<f64>) -> Result<Svd, Error> {
    argument::finite("a", a.shape(), a)?;
    let (m, n) = a.dim();
    let k = m.min(n);
    // The transpose read row by row is the matrix read column by column.
    let columns: Vec<f64> = a.t().iter().copied().collect();
    let parts = match k {
        0 => Some(Default::default()),
        _ => backend::svd(columns, m, n),
    };
    let (u, s, vt) = parts.ok_or(Error::NoConvergence {
        what: "singular values",
        shape: [m, n],
    })?;
    Ok(Svd {
        u: Array2::from_shape_vec((m, k).f(), u).expect("k columns of m entries"),
        s: s.into(),
        vt: Array2::from_shape_vec((k, n).f(), vt).expect("n columns of k entries"),
    })
}
