//! Correlation matrices from lower-triangular factors.
//!
//! A factor is lower-triangular with a positive diagonal. Only the part on and below the diagonal is
//! read, so that entries above the diagonal have no effect and a zero gradient.

use crate::Error;
use bochner_numerics::operations::record;
use bochner_numerics::{ArgumentError, Operations, Real, argument};
use ndarray::{Array1, Array3, ArrayView1, ArrayView3, ArrayView4, CowArray, Ix3};
use std::borrow::Cow;

/// Divides each row of each factor by its norm, so that the factor is one of a correlation matrix.
///
/// $$\hat L_{mk} = L_{mk} \Big/ \sqrt{\textstyle\sum_{j \le m} L_{mj}^2}, \qquad k \le m$$
///
/// # Shapes
/// `factor: [n, M, M]`, a stack of `n` factors, to `[n, M, M]`; zero above the diagonal.
///
/// # Errors
/// [`Error::Diagonal`] if a diagonal entry is not positive, [`Error::Argument`] if an entry of the lower
/// part is not finite, or if the matrices are not square or have no entries.
///
/// # Numerics
/// The norms are computed in double precision, without overflow. A row with nothing left of the diagonal
/// gives exactly a row of the identity. A diagonal entry that would round to zero becomes the type's smallest
/// normal number, so that the result is a factor again.
pub fn normalise<T: Real>(factor: ArrayView3<T>) -> Result<Array3<T>, Error> {
    let stack = Stack::new("factor", factor)?;
    let mut lh = Array3::zeros(stack.shape());
    // A square and a division for each entry of the lower parts.
    record(Operations::multiply_adds(
        stack.n * stack.heads * (stack.heads + 1),
    ));
    stack.write(&mut lh, |(_, m), row, target| {
        // The norm of finite entries may be infinite.
        let (norm, scale) = match norm(row) {
            norm if norm.is_finite() => (norm, 1.0),
            _ => (scaled_norm(row, SHRINK), SHRINK),
        };
        for (y, x) in target.iter_mut().zip(row) {
            *y = T::of(x.as_f64() * scale / norm);
        }
        if target[m] == T::zero() {
            target[m] = T::min_positive_value();
        }
    });
    Ok(lh)
}

/// The vector-Jacobian product of [`normalise`].
///
/// $$\bar L_m = \big(\bar y - y (y \cdot \bar y)\big) / |L_m|, \qquad y = \hat L_m$$
///
/// # Shapes
/// `factor` and `cotangent: [n, M, M]` to `[n, M, M]`; zero above the diagonal, whatever the
/// cotangent holds there.
///
/// # Errors
/// The errors of [`normalise`].
pub fn normalise_vjp<T: Real>(
    factor: ArrayView3<T>,
    cotangent: ArrayView3<T>,
) -> Result<Array3<T>, Error> {
    let stack = Stack::new("factor", factor)?;
    argument::shape("cotangent", factor.shape(), cotangent.shape())?;
    let mut gradient = Array3::zeros(stack.shape());
    stack.write(&mut gradient, |(i, m), row, target| {
        let norm = norm(row);
        let g = |k: usize| cotangent[[i, m, k]].as_f64();
        let along: f64 = (0..=m).map(|k| row[k].as_f64() / norm * g(k)).sum();
        for (k, x) in target.iter_mut().take(m + 1).enumerate() {
            *x = T::of((g(k) - row[k].as_f64() / norm * along) / norm);
        }
    });
    Ok(gradient)
}

/// The correlation matrices of normalised factors.
///
/// $$\mathrm{Corr} = \hat L \hat L^\top$$
///
/// # Shapes
/// `lh: [n, M, M]` to `[n, M, M]`. With rows of norm one, as from [`normalise`], the diagonal is
/// one.
///
/// # Errors
/// The errors of [`normalise`].
pub fn correlation<T: Real>(lh: ArrayView3<T>) -> Result<Array3<T>, Error> {
    let stack = Stack::new("lh", lh)?;
    Ok(Array3::from_shape_fn(stack.shape(), |(i, m, k)| {
        T::of(dot(stack.row(i, m), stack.row(i, k)))
    }))
}

/// The vector-Jacobian product of [`correlation`].
///
/// $$\bar L = (G + G^\top) \hat L, \qquad \text{lower part}$$
///
/// # Shapes
/// `lh` and `cotangent` (*G*): `[n, M, M]` to `[n, M, M]`; zero above the diagonal.
///
/// # Errors
/// The errors of [`normalise`].
pub fn correlation_vjp<T: Real>(
    lh: ArrayView3<T>,
    cotangent: ArrayView3<T>,
) -> Result<Array3<T>, Error> {
    let stack = Stack::new("lh", lh)?;
    argument::shape("cotangent", lh.shape(), cotangent.shape())?;
    let mut gradient = Array3::zeros(stack.shape());
    stack.write(&mut gradient, |(i, m), _, target| {
        for k in 0..stack.heads {
            let g = cotangent[[i, m, k]].as_f64() + cotangent[[i, k, m]].as_f64();
            for (x, y) in target.iter_mut().take(m + 1).zip(stack.row(i, k)) {
                *x += T::of(g * y.as_f64());
            }
        }
    });
    Ok(gradient)
}

/// Half the negative log determinant of each correlation matrix, which is never negative.
///
/// $$-\tfrac12 \log \det \mathrm{Corr} = -\sum_m \log \hat L_{mm}$$
///
/// # Shapes
/// `lh: [n, M, M]` to `[n]`.
///
/// # Errors
/// The errors of [`normalise`].
///
/// # Numerics
/// Computed as $\tfrac12 \sum_m \log\big(1 + \sum_{k<m} (L_{mk} / L_{mm})^2\big)$, which is the
/// same on rows of norm one, keeps its relative precision near independence and is exactly zero
/// for the identity. The rows' norms cancel: a factor that was not normalised gives the value of
/// its normalised one.
pub fn half_neg_log_det<T: Real>(lh: ArrayView3<T>) -> Result<Array1<T>, Error> {
    let stack = Stack::new("lh", lh)?;
    record(Operations::multiply_adds(
        stack.n * stack.heads * (stack.heads + 1) / 2,
    ));
    let value = |i| (0..stack.heads).map(|m| log_secant(stack.row(i, m))).sum();
    Ok(Array1::from_shape_fn(stack.n, |i| T::of(value(i))))
}

/// The vector-Jacobian product of [`half_neg_log_det`].
///
/// $$\bar L_m = g \big(L_m / |L_m|^2 - e_m / L_{mm}\big)$$
///
/// The first term is that of the rows' norms, which [`normalise_vjp`] would remove.
///
/// # Shapes
/// `lh: [n, M, M]`, `cotangent` (*g*): `[n]`, to `[n, M, M]`; zero above the diagonal.
///
/// # Errors
/// The errors of [`normalise`].
pub fn half_neg_log_det_vjp<T: Real>(
    lh: ArrayView3<T>,
    cotangent: ArrayView1<T>,
) -> Result<Array3<T>, Error> {
    let stack = Stack::new("lh", lh)?;
    argument::shape("cotangent", &[stack.n], cotangent.shape())?;
    let mut gradient = Array3::zeros(stack.shape());
    stack.write(&mut gradient, |(i, m), row, target| {
        let (norm, diagonal) = (norm(row), row[m].as_f64());
        let g = cotangent[i].as_f64();
        for (y, x) in target.iter_mut().zip(&row[..m]) {
            *y = T::of(g * (x.as_f64() / norm / norm));
        }
        // 1/|L|^2 L_mm - 1/L_mm without the cancellation of the two near independence.
        let sine = self::norm(&row[..m]) / norm;
        target[m] = T::of(-g * sine * sine / diagonal);
    });
    Ok(gradient)
}

/// A checked stack of factors, row-major; only the lower parts are handed out.
pub(crate) struct Stack<'a, T: Clone> {
    data: Cow<'a, [T]>,
    n: usize,
    heads: usize,
}

impl<'a, T: Real> Stack<'a, T> {
    pub(crate) fn new(name: &'static str, view: ArrayView3<'a, T>) -> Result<Self, Error> {
        let (n, heads, columns) = view.dim();
        argument::not_empty(name, view.shape())?;
        argument::shape(name, &[n, heads, heads], &[n, heads, columns])?;
        let data = match view.to_slice() {
            Some(slice) => Cow::Borrowed(slice),
            None => Cow::Owned(view.iter().copied().collect()),
        };
        let stack = Self { data, n, heads };
        stack.check(name)?;
        Ok(stack)
    }

    fn check(&self, name: &'static str) -> Result<(), Error> {
        for (matrix, row) in self.indices() {
            let entries = self.row(matrix, row);
            if let Some(column) = entries.iter().position(|x| !x.is_finite()) {
                return Err(Error::Argument(ArgumentError::NotFinite {
                    name: name.into(),
                    index: vec![matrix, row, column],
                    got: entries[column].as_f64(),
                }));
            }
            let got = entries[row].as_f64();
            if got <= 0.0 {
                return Err(Error::Diagonal {
                    name,
                    matrix,
                    row,
                    got,
                });
            }
        }
        Ok(())
    }

    fn shape(&self) -> (usize, usize, usize) {
        (self.n, self.heads, self.heads)
    }

    fn indices(&self) -> impl Iterator<Item = (usize, usize)> + use<T> {
        let heads = self.heads;
        (0..self.n).flat_map(move |i| (0..heads).map(move |m| (i, m)))
    }

    /// Row `m` of matrix `i` up to its diagonal entry.
    pub(crate) fn row(&self, i: usize, m: usize) -> &[T] {
        let start = (i * self.heads + m) * self.heads;
        &self.data[start..=start + m]
    }

    /// Calls `f` with the index, the lower part and the whole target of each row.
    fn write(&self, target: &mut Array3<T>, f: impl Fn((usize, usize), &[T], &mut [T])) {
        for ((i, m), mut row) in self.indices().zip(target.rows_mut()) {
            let target = row.as_slice_mut().expect("made in standard layout");
            f((i, m), self.row(i, m), target);
        }
    }
}

/// `[n, d, M, K]` as `[n d, M, K]`.
pub(crate) fn flat<'a, T: Real>(lh: &'a ArrayView4<T>) -> CowArray<'a, T, Ix3> {
    let (n, d, rows, columns) = lh.dim();
    lh.to_shape((n * d, rows, columns))
        .expect("the same number of elements")
}

/// A scale at which the norms of finite rows are finite.
const SHRINK: f64 = 1.0 / (1_u64 << 63) as f64;

fn norm<T: Real>(row: &[T]) -> f64 {
    scaled_norm(row, 1.0)
}

fn scaled_norm<T: Real>(row: &[T], scale: f64) -> f64 {
    row.iter()
        .fold(0.0, |r: f64, x| r.hypot(x.as_f64() * scale))
}

/// `sum a_k b_k` over the shorter of the two.
fn dot<T: Real>(a: &[T], b: &[T]) -> f64 {
    a.iter().zip(b).map(|(x, y)| x.as_f64() * y.as_f64()).sum()
}

/// `log(|row| / diagonal)`, accurate where the row hardly leans to the left.
fn log_secant<T: Real>(row: &[T]) -> f64 {
    let (diagonal, left) = row.split_last().expect("a row ends on its diagonal");
    let tangent = norm(left) / diagonal.as_f64();
    if tangent < 1.0 {
        0.5 * (tangent * tangent).ln_1p()
    } else {
        tangent.hypot(1.0).ln()
    }
}
