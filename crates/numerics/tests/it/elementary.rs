//! Functions of whole slices: they hold what single numbers give, whose errors `number` checks, and the normal
//! distribution has no other form.

use crate::accuracy::{self, HARD_ANGLE, LN_2, Pair, largest_error, log_uniform, uniform};
use crate::number::{Cos, Exp, Ln, Sin, values};
use bochner_numerics::Real;
use bochner_numerics::elementary::{
    exp_in_place, ln_in_place, normal_cdf_in_place, normal_quantile_in_place, sin_cos,
};
use bochner_numerics::instructions::{Arithmetic, Task, exp2, run};

/// Returns a copy with the function applied.
fn on_copy<T: Real>(f: impl Fn(&mut [T]), x: &[T]) -> Vec<T> {
    let mut x = x.to_vec();
    f(&mut x);
    x
}

/// The sines and cosines of a slice.
fn sines_cosines<T: Real>(x: &[T]) -> [Vec<T>; 2] {
    let [mut sin, mut cos] = [(); 2].map(|()| vec![T::nan(); x.len()]);
    sin_cos(x, &mut sin, &mut cos);
    [sin, cos]
}

fn slices_hold_the_values_of_numbers<T: Real>() {
    let positive: Vec<T> = log_uniform(0.01, 1e5, 101);
    let x: Vec<T> = uniform(-50.0, 50.0, 101);
    for from in [0, 1, 7, 32, 35] {
        for to in [from, from + 1, from + 6, from + 32, x.len()] {
            let (x, positive) = (&x[from..to], &positive[from..to]);
            assert_eq!(on_copy(exp_in_place, x), values(Exp, x));
            assert_eq!(on_copy(ln_in_place, positive), values(Ln, positive));
            assert_eq!(sines_cosines(x), [values(Sin, x), values(Cos, x)]);
            for f in [normal_cdf_in_place, normal_quantile_in_place] {
                let single = x.iter().flat_map(|&x| on_copy(f, &[T::of(0.02) * x.abs()]));
                let several: Vec<T> = x.iter().map(|x| T::of(0.02) * x.abs()).collect();
                assert_eq!(on_copy(f, &several), single.collect::<Vec<_>>());
            }
        }
    }
}

#[test]
#[cfg_attr(miri, ignore = "a sweep over safe code")]
fn a_value_depends_on_its_number_alone() {
    slices_hold_the_values_of_numbers::<f32>();
    slices_hold_the_values_of_numbers::<f64>();
}

fn angles_are_reduced<T: Real>(largest: f64) {
    // Angles next to the zeros show a reduction by too few digits of pi.
    let quarter = |k| T::of(f64::from(k) * std::f64::consts::FRAC_PI_2);
    let mut x: Vec<T> = (1..4_000).map(quarter).collect();
    x.extend(uniform::<T>(-largest, largest, 4_000));
    let [sin, cos] = sines_cosines(&x);
    assert!(largest_error(&x, &sin, |x| accuracy::sin_cos(x).0.into()) < 1.0);
    assert!(largest_error(&x, &cos, |x| accuracy::sin_cos(x).1.into()) < 1.0);
    let negative: Vec<T> = x.iter().map(|&x| -x).collect();
    let odd: Vec<T> = sin.iter().map(|&y| -y).collect();
    assert_eq!(sines_cosines(&negative), [odd, cos]);
    // Larger angles are left to the standard library.
    let mut x: Vec<T> = log_uniform(largest * 1.1, T::max_value().as_f64(), 50);
    let alone = values(Sin, &[T::one()])[0];
    x.insert(3, T::one());
    let [sin, cos] = sines_cosines(&x);
    for i in (0..51).filter(|&i| i != 3) {
        assert_eq!((sin[i], cos[i]), x[i].sin_cos(), "{}", x[i]);
    }
    assert_eq!(sin[3], alone);
}

#[test]
#[cfg_attr(miri, ignore = "a sweep over safe code")]
fn angles_are_reduced_by_all_digits_of_pi() {
    angles_are_reduced::<f32>(131_072.0);
    angles_are_reduced::<f64>(1_048_576.0);
    let [_, [cos]] = sines_cosines(&[HARD_ANGLE]).map(|y| [y[0]]);
    let want = |x| accuracy::sin_cos(x).1.into();
    assert!(largest_error(&[HARD_ANGLE], &[cos], want) < 1.0);
}

struct PowersOfTwo<'a, T>(&'a mut [T]);

impl<T: Real> Task for PowersOfTwo<'_, T> {
    #[inline(always)]
    fn run<A: Arithmetic>(self, _: A) {
        self.0.iter_mut().for_each(|x| *x = exp2::<T, A>(*x));
    }
}

fn powers_of_two<T: Real>(x: &[T]) -> Vec<T> {
    on_copy(|x: &mut [T]| run(PowersOfTwo(x)), x)
}

fn powers_of_two_are_accurate<T: Real>(lowest: f64) {
    for bound in [-lowest - 0.1, 2.0, 1e-3] {
        let x: Vec<T> = uniform(-bound, 1.0, 4_000);
        let want = |x| accuracy::exp(Pair::from(x) * LN_2);
        assert!(largest_error(&x, &powers_of_two(&x), want) < 1.25);
    }
    let mut x = [0.0, -0.0, -1.0, 1.0, lowest, lowest - 0.5, -1e30]
        .map(T::of)
        .to_vec();
    x.extend([T::neg_infinity(), T::nan(), -T::nan()]);
    let y = powers_of_two(&x);
    let want = [
        1.0,
        1.0,
        0.5,
        2.0,
        T::min_positive_value().as_f64(),
        0.0,
        0.0,
        0.0,
    ];
    assert_eq!(y[..8], want.map(T::of));
    assert!(y[8].is_nan() && y[9].is_nan());
}

#[test]
#[cfg_attr(miri, ignore = "a sweep over safe code")]
fn errors_of_powers_of_two_are_below_the_bound() {
    powers_of_two_are_accurate::<f32>(-126.0);
    powers_of_two_are_accurate::<f64>(-1022.0);
}

const N: usize = 1_000;

fn cdf_error<T: Real>(from: f64, to: f64) -> f64 {
    let x: Vec<T> = uniform(from, to, N);
    let got = on_copy(normal_cdf_in_place, &x);
    largest_error(&x, &got, |x| accuracy::normal_cdf(x.into()))
}

#[test]
#[cfg_attr(miri, ignore = "a sweep over safe code")]
fn errors_of_the_distribution_function_are_below_five_ulp() {
    for (from, to) in [(-1e-3, 1e-3), (-3.0, 0.0), (0.0, 9.0), (-12.9, -3.0)] {
        assert!(cdf_error::<f32>(from, to) < 5.0);
        assert!(cdf_error::<f64>(from, to) < 5.0);
    }
    assert!(cdf_error::<f64>(-37.5, -12.9) < 5.0);
    // Subnormal results: in units of the smallest number.
    assert!(cdf_error::<f64>(-38.6, -37.5) < 5.0);
    assert!(cdf_error::<f32>(-14.4, -12.9) < 5.0);
}

fn quantile_error<T: Real>(u: &[T]) -> f64 {
    let got = on_copy(normal_quantile_in_place, u);
    largest_error(u, &got, |u| {
        let near = on_copy(normal_quantile_in_place, &[u])[0];
        accuracy::normal_quantile(u, near)
    })
}

#[test]
#[cfg_attr(miri, ignore = "a sweep over safe code")]
fn errors_of_the_quantile_are_below_four_ulp() {
    for (from, to) in [(0.0, 1.0), (0.14, 0.16), (0.499, 0.501), (0.84, 0.86)] {
        assert!(quantile_error::<f32>(&uniform(from, to, N)) < 4.0);
        assert!(quantile_error::<f64>(&uniform(from, to, N)) < 4.0);
    }
    for (from, to) in [(1e-16, 0.2), (1e-323, 1e-15)] {
        assert!(quantile_error::<f64>(&log_uniform(from, to, N)) < 4.0);
    }
    assert!(quantile_error::<f32>(&log_uniform(1e-45, 0.2, N)) < 4.0);
    let mut upper: Vec<f64> = log_uniform(1e-15, 0.2, N);
    upper.iter_mut().for_each(|p| *p = 1.0 - *p);
    assert!(quantile_error::<f64>(&upper) < 4.0);
}

fn the_ends_are_exact<T: Real>(zero_from: f64, one_from: f64) {
    let (inf, nan) = (T::infinity(), T::nan());
    let x = [-inf, T::of(-zero_from), T::of(one_from), inf, nan];
    let y = on_copy(normal_cdf_in_place, &x);
    assert_eq!(y[..4], [T::zero(), T::zero(), T::one(), T::one()]);
    assert!(y[4].is_nan());
    let below = T::one() - T::epsilon() / T::of(2.0);
    let smallest = T::min_positive_value() * T::epsilon();
    let u = [T::zero(), T::one(), T::of(0.5), below, smallest];
    let outside = [T::of(-1e-9), T::of(1.001), -inf, inf, nan];
    let x = on_copy(normal_quantile_in_place, &[u, outside].concat());
    assert_eq!(x[..3], [-inf, inf, T::zero()]);
    assert!(x[3] > T::of(5.0) && x[3].is_finite());
    assert!(x[4] < T::of(-13.0) && x[4].is_finite());
    assert!(x[5..].iter().all(|x| x.is_nan()));
}

#[test]
fn the_ends_of_the_range_are_exact() {
    the_ends_are_exact::<f32>(14.3, 6.0);
    the_ends_are_exact::<f64>(38.6, 9.0);
}

#[test]
fn quantiles_are_odd_around_one_half() {
    let upper: Vec<f64> = (1..60)
        .map(|k| 1.0 - 2f64.powi(-k.min(52)) * 0.75)
        .collect();
    let lower: Vec<f64> = upper.iter().map(|u| 1.0 - u).collect();
    let [x, y] = [lower, upper].map(|u| on_copy(normal_quantile_in_place, &u));
    assert!(x.iter().zip(&y).all(|(x, y)| *x == -y));
}
