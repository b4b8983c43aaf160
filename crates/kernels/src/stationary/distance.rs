//! Kernels that see only a scaled distance: pairs, and the gradients through it.
//!
//! The squared distance is summed from differences, not expanded into $|x|^2 + |y|^2 - 2 x \cdot y$
//! for one matrix product: the expansion loses all digits of a small distance, and the
//! kernels that are not smooth at zero take its root.

use crate::Error;
use crate::kernel::{Along, GramGradients, Kernel, check_cotangent, common_width};
use crate::lengthscale::Lengthscale;
use bochner_numerics::scaling::bounded;
use bochner_numerics::{Real, argument};
use ndarray::{Array1, Array2, ArrayView1, ArrayView2};

/// The values of a kernel for all pairs of rows. `profile` replaces squared distances
/// $s = \sum_n (x_n - y_n)^2 / l_n^2$ by values.
pub(super) fn gram<T: Real>(
    x: ArrayView2<T>,
    y: ArrayView2<T>,
    lengthscale: &Lengthscale<T>,
    profile: impl Fn(&mut [T]),
) -> Result<Array2<T>, Error> {
    let inverse = lengthscale.inverse(x.nrows(), common_width(&x, &y)?)?;
    Ok(gram_of(x, y, &inverse, |t| t * t, profile))
}

/// The values of a kernel of $\sum_n |x_n - y_n|$ for all pairs of rows. The sum is zero for equal points alone, and
/// NaN for points that are not finite.
pub(super) fn gram_of_gaps<T: Real>(
    x: ArrayView2<T>,
    y: ArrayView2<T>,
    value: impl Fn(T) -> T,
) -> Result<Array2<T>, Error> {
    let plain = vec![T::one(); common_width(&x, &y)?];
    let profile = |gaps: &mut [T]| gaps.iter_mut().for_each(|gap| *gap = value(*gap));
    Ok(gram_of(x, y, &plain, T::abs, profile))
}

/// The profile of sums of terms of scaled differences, for all pairs of rows.
fn gram_of<T: Real>(
    x: ArrayView2<T>,
    y: ArrayView2<T>,
    inverse: &[T],
    term: impl Fn(T) -> T,
    profile: impl Fn(&mut [T]),
) -> Array2<T> {
    let columns = y.t().as_standard_layout().into_owned();
    let mut values = Array2::zeros((x.nrows(), y.nrows()));
    for (a, mut row) in x.rows().into_iter().zip(values.rows_mut()) {
        let row = row.as_slice_mut().expect("a row of an owned array");
        add_terms(row, a, &columns, inverse, &term);
        profile(row);
    }
    values
}

/// Adds the terms of the scaled differences of one point from all others, whose columns are the rows of `columns`.
fn add_terms<T: Real>(
    sums: &mut [T],
    a: ArrayView1<T>,
    columns: &Array2<T>,
    inverse: &[T],
    term: impl Fn(T) -> T,
) {
    for ((&a, y), &inverse) in a.iter().zip(columns.rows()).zip(inverse) {
        let y = y.to_slice().expect("a row of an owned array");
        let pairs = sums.iter_mut().zip(y);
        pairs.for_each(|(sum, &y)| *sum += term((a - y) * inverse));
    }
}

/// The gradients of [`gram`] along the lengthscales, and along both sides if they are asked for.
///
/// `slope` replaces the squared distances of one row by the derivatives of the profile there, and sees the row's
/// cotangents, so that it can sum up the gradients along other parameters.
///
/// What a pair adds is bounded by the largest number, so that no infinity meets a zero or another one.
pub(super) fn gram_vjp<T: Real>(
    along: Along,
    x: ArrayView2<T>,
    y: ArrayView2<T>,
    lengthscale: &Lengthscale<T>,
    cotangent: ArrayView2<T>,
    mut slope: impl FnMut(&mut [T], &[T]),
) -> Result<GramGradients<T>, Error> {
    let width = common_width(&x, &y)?;
    check_cotangent(&x, &y, &cotangent)?;
    let inverse = lengthscale.inverse(x.nrows(), width)?;
    let columns = y.t().as_standard_layout().into_owned();
    let cotangent = cotangent.as_standard_layout();
    let [mut along_x, along_y] = [&x, &y].map(|points| along.zeros(points));
    // Column by column, as the points of `y` are read.
    let mut along_y = along_y.reversed_axes().as_standard_layout().into_owned();
    let mut along_scale = vec![T::zero(); width];
    let mut weights = vec![T::zero(); y.nrows()];
    for (i, a) in x.rows().into_iter().enumerate() {
        let cotangents = cotangent.row(i).to_slice().expect("in row-major order");
        weights.fill(T::zero());
        add_terms(&mut weights, a, &columns, &inverse, |t| t * t);
        slope(&mut weights, cotangents);
        for (weight, &g) in weights.iter_mut().zip(cotangents) {
            *weight = bounded(bounded(T::of(2.0) * g) * *weight);
        }
        for (n, (&a, &inverse)) in a.iter().zip(&inverse).enumerate() {
            let y = columns.row(n).to_slice().expect("a row of an owned array");
            // The distance may be infinite where the kernel and its slope are zero.
            let unless_zero = |weight: T, term: T| match weight == T::zero() {
                true => weight,
                false => bounded(term),
            };
            along_scale[n] -= sum_of_pairs(&weights, y, |weight, y| {
                let scaled = (a - y) * inverse;
                unless_zero(weight, weight * scaled * inverse * scaled)
            });
            if along == Along::Everything {
                let step = |weight, y| unless_zero(weight, weight * ((a - y) * inverse) * inverse);
                along_x[[i, n]] = sum_of_pairs(&weights, y, step);
                let pairs = weights.iter().zip(y).zip(along_y.row_mut(n));
                pairs.for_each(|((&weight, &y), along)| *along -= step(weight, y));
            }
        }
    }
    Ok(GramGradients {
        x: along_x,
        y: along_y.reversed_axes().as_standard_layout().into_owned(),
        parameters: lengthscale.gather(along_scale.into_iter().map(bounded).collect()),
    })
}

/// The sum of a term of each pair, in several partial sums that a processor adds side by side.
pub(super) fn sum_of_pairs<T: Real>(a: &[T], b: &[T], term: impl Fn(T, T) -> T) -> T {
    const LANES: usize = 8;
    let mut sums = [T::zero(); LANES];
    let ((a, a_rest), (b, b_rest)) = (a.as_chunks::<LANES>(), b.as_chunks::<LANES>());
    for (a, b) in a.iter().zip(b) {
        for lane in 0..LANES {
            sums[lane] += term(a[lane], b[lane]);
        }
    }
    let rest = a_rest.iter().zip(b_rest).map(|(&a, &b)| term(a, b));
    sums.into_iter().chain(rest).sum()
}

/// The [`diagonal`] of a kernel that is one at equal points.
pub(super) fn unit_diagonal<T: Real>(
    x: ArrayView2<T>,
    lengthscale: &Lengthscale<T>,
) -> Result<Array1<T>, Error> {
    lengthscale.inverse(x.nrows(), common_width(&x, &x)?)?;
    Ok(diagonal(x, T::one()))
}

/// The gradient of a diagonal that does not depend on the parameters.
pub(super) fn constant_diagonal_vjp<T: Real>(
    kernel: &impl Kernel<T>,
    x: ArrayView2<T>,
    cotangent: ArrayView1<T>,
) -> Result<Vec<T>, Error> {
    argument::shape("cotangent", &[x.nrows()], cotangent.shape())?;
    Ok(vec![T::zero(); kernel.parameters().len()])
}

/// The diagonal of a kernel that is `variance` at equal points; NaN for a point that is not finite.
pub(super) fn diagonal<T: Real>(x: ArrayView2<T>, variance: T) -> Array1<T> {
    let finite = |x: &T| x.is_finite();
    let rows = x.rows().into_iter();
    rows.map(|x| {
        if x.iter().all(finite) {
            variance
        } else {
            T::nan()
        }
    })
    .collect()
}
