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

/// `profile` of $s = \sum_n (x_n - y_n)^2 / l_n^2$ for all pairs of rows.
pub(super) fn gram<T: Real>(
    x: ArrayView2<T>,
    y: ArrayView2<T>,
    lengthscale: &Lengthscale<T>,
    profile: impl Fn(T) -> T,
) -> Result<Array2<T>, Error> {
    let inverse = lengthscale.inverse(x.nrows(), common_width(&x, &y)?)?;
    let mut values = Vec::with_capacity(x.nrows() * y.nrows());
    for_each_pair(x, y, |x, y| {
        values.push(profile(squared_distance(x, y, &inverse)));
    });
    Ok(Array2::from_shape_vec((x.nrows(), y.nrows()), values).expect("one value per pair"))
}

/// `value` of $\sum_n |x_n - y_n|$ for all pairs of rows. It is zero for equal points alone, and NaN for points
/// that are not finite.
pub(super) fn gram_of_gaps<T: Real>(
    x: ArrayView2<T>,
    y: ArrayView2<T>,
    value: impl Fn(T) -> T,
) -> Result<Array2<T>, Error> {
    common_width(&x, &y)?;
    let mut values = Vec::with_capacity(x.nrows() * y.nrows());
    for_each_pair(x, y, |x, y| {
        let gaps = x.iter().zip(y).map(|(&x, &y)| (x - y).abs());
        values.push(value(gaps.fold(T::zero(), |sum, gap| sum + gap)));
    });
    Ok(Array2::from_shape_vec((x.nrows(), y.nrows()), values).expect("one value per pair"))
}

/// The gradients of [`gram`] along the lengthscales, and along both sides if they are asked for, for the
/// derivative `slope` of the profile along $s$.
///
/// What a pair adds is bounded by the largest number, so that no infinity meets a zero or another one.
pub(super) fn gram_vjp<T: Real>(
    along: Along,
    x: ArrayView2<T>,
    y: ArrayView2<T>,
    lengthscale: &Lengthscale<T>,
    cotangent: ArrayView2<T>,
    slope: impl Fn(T) -> T,
) -> Result<GramGradients<T>, Error> {
    let width = common_width(&x, &y)?;
    check_cotangent(&x, &y, &cotangent)?;
    let inverse = lengthscale.inverse(x.nrows(), width)?;
    let [mut along_x, mut along_y] = [&x, &y].map(|points| along.zeros(points));
    let mut along_scale = vec![T::zero(); width];
    let (columns, mut cotangents) = (y.nrows(), cotangent.iter().enumerate());
    for_each_pair(x, y, |a, b| {
        let (pair, &cotangent) = cotangents.next().expect("one for each pair");
        let twice = bounded(T::of(2.0) * cotangent);
        let weight = bounded(twice * slope(squared_distance(a, b, &inverse)));
        // The distance may be infinite where the kernel and its slope are zero.
        if weight == T::zero() {
            return;
        }
        let each = along_scale.iter_mut().zip(a.iter().zip(b).zip(&inverse));
        for (along, ((&a, &b), &inverse)) in each {
            let scaled = (a - b) * inverse;
            *along -= bounded(weight * scaled * inverse * scaled);
        }
        if along == Along::Everything {
            for n in 0..width {
                let step = bounded(weight * ((a[n] - b[n]) * inverse[n]) * inverse[n]);
                along_x[[pair / columns, n]] += step;
                along_y[[pair % columns, n]] -= step;
            }
        }
    });
    Ok(GramGradients {
        x: along_x,
        y: along_y,
        parameters: lengthscale.gather(along_scale.into_iter().map(bounded).collect()),
    })
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

/// Calls `f` with every row of `x` and, for each, every row of `y`.
pub(super) fn for_each_pair<T: Real>(
    x: ArrayView2<T>,
    y: ArrayView2<T>,
    mut f: impl FnMut(&[T], &[T]),
) {
    let width = x.ncols();
    let (x, y) = (x.as_standard_layout(), y.as_standard_layout());
    let x = x.as_slice().expect("brought to row-major order");
    let y = y.as_slice().expect("brought to row-major order");
    for a in x.chunks_exact(width) {
        for b in y.chunks_exact(width) {
            f(a, b);
        }
    }
}

#[inline]
fn squared_distance<T: Real>(x: &[T], y: &[T], inverse: &[T]) -> T {
    let scaled = x
        .iter()
        .zip(y)
        .zip(inverse)
        .map(|((&x, &y), &i)| (x - y) * i);
    scaled.fold(T::zero(), |sum, t| sum + t * t)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{MaternConfig, RbfConfig, Smoothness};
    use ndarray::array;

    /// The reciprocal of a lengthscale overflows in one case, a distance in the other.
    #[test]
    fn no_nan_comes_out_of_finite_points() {
        fn holds<T: Real>(kernel: &dyn Kernel<T>, [x, y]: [T; 2]) {
            let (x, y) = (array![[x]], array![[x], [y]]);
            assert_eq!(
                kernel.gram(x.view(), y.view()).unwrap(),
                array![[T::one(), T::zero()]]
            );
            let ones = Array2::ones((1, 2));
            let got = kernel.gram_vjp(x.view(), y.view(), ones.view()).unwrap();
            let mut all = got.x.iter().chain(&got.y).chain(&got.parameters);
            assert!(all.all(|g| !g.is_nan()), "{kernel:?}: {got:?}");
        }
        fn of<T: Real>(tiny: f64, huge: f64) {
            for (lengthscale, points) in [(tiny, [0.5, 0.75]), (1.0, [huge, -huge])] {
                let lengthscale = Lengthscale::Shared(T::of(lengthscale));
                let points = points.map(T::of);
                for smoothness in Smoothness::ALL {
                    let lengthscale = lengthscale.clone();
                    let config = MaternConfig {
                        smoothness,
                        lengthscale,
                    };
                    holds(&config.build().unwrap(), points);
                }
                holds(&RbfConfig { lengthscale }.build().unwrap(), points);
            }
        }
        of::<f32>(1e-40, 3e38);
        of::<f64>(1e-310, 1.5e308);
    }

    #[test]
    fn a_small_distance_keeps_its_digits_far_from_the_origin() {
        let (x, y) = (array![[1e6, -1e6]], array![[1e6 + 0.25, -1e6]]);
        let lengthscale = Lengthscale::PerDimension(vec![0.5, 1.0]);
        let s = gram(x.view(), y.view(), &lengthscale, |s| s);
        assert_eq!(s.unwrap(), array![[0.25]]);
    }
}
