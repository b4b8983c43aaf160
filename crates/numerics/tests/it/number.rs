//! Values against references of some thirty digits, and slopes against finite differences.

use crate::accuracy::{self, Pair, Reference, largest_error, log_uniform, uniform};
use bochner_numerics::instructions::{Arithmetic, Task, run};
use bochner_numerics::{Dual, Number, Real, Value, finite_difference, relative_error};

/// A function of one number.
pub(crate) trait Function: Copy {
    fn of<N: Number>(self, x: N) -> N;
}

macro_rules! functions {
    ($($Name:ident: |$x:ident| $value:expr;)*) => {$(
        #[derive(Clone, Copy)]
        pub(crate) struct $Name;

        impl Function for $Name {
            #[inline(always)]
            fn of<N: Number>(self, $x: N) -> N {
                $value
            }
        }
    )*};
}

functions! {
    Exp: |x| x.exp();
    Ln: |x| x.ln();
    Sqrt: |x| x.sqrt();
    Tanh: |x| x.tanh();
    Sin: |x| x.sin();
    Cos: |x| x.cos();
    Abs: |x| x.abs();
    Root: |x| x.powf(N::of(0.3));
    Line: |x| x.powf(N::of(1.0));
    Square: |x| x.powf(N::of(2.0));
    ZeroToThe: |x| N::of(0.0).powf(x);
    TwoToThe: |x| N::of(2.0).powf(x);
    SmallToThe: |x| N::of(1e-30).powf(x);
    ToItself: |x| x.powf(x);
    Sigmoid: |x| x.sigmoid();
    Softplus: |x| x.softplus();
    Quotient: |x| (x - N::of(2.0)) / (x.square() + N::of(0.5)) - x.recip();
    Clamped: |x| x.max(N::of(-0.5)).min(N::of(0.75));
    AtMostOne: |x| N::of(1.0).min(x);
    AtLeastOne: |x| N::of(1.0).max(x);
    Piecewise: |x| x.if_less(N::of(0.5), x.sin(), x.cos());
    RootOfZero: |x| x + N::of(0.0).sqrt();
    ExpOfLnOfZero: |x| x + N::of(0.0).ln().exp();
    RootOfSquare: |x| (x.square() + N::of(4.0)).powf(N::of(0.5));
    Score: |x| {
        let capped = N::of(3.0) * (x / N::of(3.0)).tanh();
        let decay = (-(x - N::of(0.7)).abs()).exp().max(N::of(0.2));
        (capped.square() + N::of(1.0)).sqrt().ln() * decay + capped.softplus().powf(N::of(1.5))
    };
}

/// Writes the value of a function, its slope and its second derivative, as far as there is room, in the place of each
/// first number: the loop that a user writes.
struct Evaluate<'a, F, T, const N: usize>(F, &'a mut [[T; N]]);

impl<F: Function, T: Real> Task for Evaluate<'_, F, T, 1> {
    #[inline(always)]
    fn run<A: Arithmetic>(self, _: A) {
        for [x] in self.1 {
            *x = self.0.of(Value::<T, A>::new(*x)).get();
        }
    }
}

impl<F: Function, T: Real> Task for Evaluate<'_, F, T, 3> {
    #[inline(always)]
    fn run<A: Arithmetic>(self, _: A) {
        for y in self.1 {
            let x = Dual::variable(Dual::variable(Value::<T, A>::new(y[0])));
            let Dual { value, slope } = self.0.of(x);
            *y = [value.value, slope.value, slope.slope].map(Value::get);
        }
    }
}

/// The values of a function.
pub(crate) fn values<T: Real>(f: impl Function, x: &[T]) -> Vec<T> {
    let mut values = x.to_vec();
    run(Evaluate(f, values.as_chunks_mut::<1>().0));
    values
}

/// The value, the slope and the second derivative of a function at each number.
fn slopes<T: Real>(f: impl Function, x: &[T]) -> Vec<[T; 3]> {
    let mut slopes: Vec<_> = x.iter().map(|&x| [x; 3]).collect();
    run(Evaluate(f, &mut slopes));
    slopes
}

/// Asserts that the largest error is below a number of ulp.
fn assert_error<T: Real>(
    f: impl Function,
    bound: f64,
    x: &[T],
    reference: impl Fn(f64) -> Reference,
) {
    let error = largest_error(x, &values(f, x), reference);
    assert!(
        error < bound,
        "{} {}: {error}",
        std::any::type_name_of_val(&f),
        T::NAME
    );
}

fn with_both_signs<T: Real>(from: f64, to: f64) -> Vec<T> {
    let positive: Vec<T> = log_uniform(from, to, 2_000);
    let negative = positive.iter().map(|&x| -x);
    negative.chain(positive.iter().copied()).collect()
}

fn power(x: f64, p: f64) -> Reference {
    accuracy::exp(Pair::from(p) * accuracy::ln(x))
}

fn sigmoid(x: f64) -> Reference {
    let Reference { value, exponent } = accuracy::exp(Pair::from(-x.abs()));
    let e = value * Pair::from(2f64.powi(exponent));
    let one = Pair::from(1.0);
    let numerator = if x < 0.0 { e } else { one };
    Reference::from(numerator / (one + e))
}

fn root(x: f64) -> Reference {
    let root = Pair::from(x.sqrt());
    let rest = Pair::from(x) - root * root;
    Reference::from(root + rest / (root + root))
}

/// `all` are the bounds of the positive numbers, and `exponents` of the arguments whose exponential is finite.
fn errors_are_below<T: Real>(power_bound: f64, all: (f64, f64), exponents: (f64, f64), angle: f64) {
    let x: Vec<T> = uniform(exponents.0, exponents.1, 4_000);
    assert_error(Exp, 1.0, &x, |x| accuracy::exp(Pair::from(x)));
    let x: Vec<T> = log_uniform(all.0, all.1, 4_000);
    assert_error(Ln, 1.5, &x, |x| accuracy::ln(x).into());
    assert_error(Root, power_bound, &x, |x| power(x, T::of(0.3).as_f64()));
    let x: Vec<T> = log_uniform(1e-30, 1e30, 4_000);
    assert_error(Sqrt, 0.5 + 1e-9, &x, root);
    let x: Vec<T> = log_uniform(1e-6, 20.0, 4_000);
    assert_error(ToItself, power_bound, &x, |x| power(x, x));
    let x: Vec<T> = with_both_signs(all.0, angle);
    assert_error(Sin, 1.0, &x, |x| accuracy::sin_cos(x).0.into());
    assert_error(Cos, 1.0, &x, |x| accuracy::sin_cos(x).1.into());
    for x in [
        with_both_signs::<T>(all.0, all.1),
        uniform(-5.0, 5.0, 4_000),
    ] {
        assert_error(Tanh, 3.0, &x, |x| accuracy::tanh(x).into());
    }
    let x: Vec<T> = uniform(-80.0, 80.0, 4_000);
    assert_error(Sigmoid, 3.0, &x, sigmoid);
}

#[test]
#[cfg_attr(miri, ignore = "a sweep over safe code")]
fn errors_are_below_the_bounds() {
    errors_are_below::<f32>(1.0, (1.5e-45, 3e38), (-103.9, 88.7), 131_072.0);
    errors_are_below::<f64>(1.5, (5e-324, 1e308), (-745.1, 709.7), 1_048_576.0);
}

fn softplus_is_below<T: Real>() {
    let x: Vec<T> = uniform(-40.0, 40.0, 2_000);
    for (x, y) in x.iter().zip(values(Softplus, &x)) {
        let x = x.as_f64();
        let want = x.max(0.0) + (-x.abs()).exp().ln_1p();
        let bound = 2.0 * T::epsilon().as_f64() * want.max(1.0);
        assert!((y.as_f64() - want).abs() < bound, "{x}");
    }
}

#[test]
#[cfg_attr(miri, ignore = "a sweep over safe code")]
fn the_error_of_softplus_is_below_two_epsilons() {
    softplus_is_below::<f32>();
    softplus_is_below::<f64>();
}

/// Asserts what comes out of these arguments: the same number with the same sign, or NaN.
fn assert_values<T: Real>(f: impl Function, cases: &[(f64, f64)]) {
    let x: Vec<T> = cases.iter().map(|&(x, _)| T::of(x)).collect();
    let alike = |a: T, b: T| {
        a == b && a.is_sign_negative() == b.is_sign_negative() || a.is_nan() && b.is_nan()
    };
    for (got, &(x, want)) in values(f, &x).into_iter().zip(cases) {
        let name = std::any::type_name_of_val(&f);
        assert!(alike(got, T::of(want)), "{name}({x}) = {got}, not {want}");
    }
}

const INF: f64 = f64::INFINITY;
const NAN: f64 = f64::NAN;

fn ends_are_exact<T: Real>() {
    let (small, large) = (T::min_positive_value().as_f64(), T::max_value().as_f64());
    let same = |x| (x, x);
    let (zero, negative_zero, up, nan) = (same(0.0), same(-0.0), same(INF), same(NAN));
    let is_one = |x| (x, 1.0);
    let is_nan = |x| (x, NAN);
    let exp = [
        is_one(0.0),
        is_one(-0.0),
        (-INF, 0.0),
        (large, INF),
        up,
        nan,
    ];
    assert_values::<T>(Exp, &exp);
    let poles = [(0.0, -INF), (-0.0, -INF), (1.0, 0.0)];
    assert_values::<T>(
        Ln,
        &[&poles[..], &[up, is_nan(-small), is_nan(-INF), nan]].concat(),
    );
    assert_values::<T>(
        Sqrt,
        &[zero, negative_zero, (4.0, 2.0), up, is_nan(-small), nan],
    );
    let tanh = [
        zero,
        negative_zero,
        same(-small),
        is_one(large),
        (-INF, -1.0),
        nan,
    ];
    assert_values::<T>(Tanh, &tanh);
    assert_values::<T>(Sin, &[zero, negative_zero, same(-small), is_nan(INF), nan]);
    assert_values::<T>(Cos, &[is_one(0.0), is_one(-0.0), is_nan(-INF), nan]);
    assert_values::<T>(Abs, &[(-0.0, 0.0), (-2.0, 2.0), (-INF, INF), nan]);
    assert_values::<T>(
        Square,
        &[zero, (-0.0, 0.0), is_one(1.0), up, is_nan(-small), nan],
    );
    assert_values::<T>(ZeroToThe, &[(-2.0, INF), is_one(0.0), (3.0, 0.0), nan]);
    assert_values::<T>(Sigmoid, &[(-INF, 0.0), (0.0, 0.5), is_one(INF), nan]);
    assert_values::<T>(Softplus, &[(-INF, 0.0), up, same(large), nan]);
    assert_values::<T>(Clamped, &[same(0.5), (-INF, -0.5), (INF, 0.75), nan]);
    // A comparison with NaN is false.
    assert_values::<T>(
        AtMostOne,
        &[same(-INF), same(0.5), is_one(2.0), is_one(NAN)],
    );
    assert_values::<T>(
        AtLeastOne,
        &[is_one(-INF), is_one(0.5), same(2.0), is_one(NAN)],
    );
}

#[test]
fn the_ends_of_the_range_are_exact() {
    ends_are_exact::<f32>();
    ends_are_exact::<f64>();
}

/// Asserts that finite angles beyond the bound have the values at the bound.
fn far_angles_are_bounded<T: Real>(f: impl Function, bound: f64) {
    let large = T::max_value().as_f64();
    let x = [bound, -bound, 1.1 * bound, -1.1 * bound, large, -large].map(T::of);
    let y = values(f, &x);
    assert!(y.chunks(2).all(|pair| pair == &y[..2]), "{y:?}");
    assert!(y[0].abs() <= T::one(), "{y:?}");
}

#[test]
fn far_angles_count_as_the_bound() {
    far_angles_are_bounded::<f32>(Sin, 131_072.0);
    far_angles_are_bounded::<f32>(Cos, 131_072.0);
    far_angles_are_bounded::<f64>(Sin, 1_048_576.0);
    far_angles_are_bounded::<f64>(Cos, 1_048_576.0);
}

/// Asserts that slopes and second derivatives are those of finite differences, and that `f32` agrees with `f64`.
fn assert_slopes(f: impl Function, x: &[f64]) {
    let name = std::any::type_name_of_val(&f);
    let along =
        |x: &[f64], order: usize| -> Vec<f64> { slopes(f, x).iter().map(|y| y[order]).collect() };
    for (order, bound) in [(1, 1e-8), (2, 1e-7)] {
        let want = finite_difference(x, |x| along(x, order - 1).iter().sum());
        let error = relative_error(&along(x, order), &want);
        assert!(error < bound, "derivative {order} of {name}: {error}");
    }
}

#[test]
#[cfg_attr(miri, ignore = "a sweep over safe code")]
fn slopes_are_those_of_finite_differences() {
    // No point is a kink of one of the functions.
    let x = [-3.1, -1.7, -0.3, 0.2, 0.8, 1.3, 2.4, 4.5];
    let positive = &x[3..];
    assert_slopes(Exp, &x);
    assert_slopes(Ln, positive);
    assert_slopes(Sqrt, positive);
    assert_slopes(Tanh, &x);
    assert_slopes(Sin, &x);
    assert_slopes(Cos, &x);
    assert_slopes(Abs, &x);
    assert_slopes(Root, positive);
    assert_slopes(Square, positive);
    assert_slopes(TwoToThe, &x);
    assert_slopes(ToItself, positive);
    assert_slopes(Sigmoid, &x);
    assert_slopes(Softplus, &x);
    assert_slopes(Quotient, &x);
    assert_slopes(Clamped, &x);
    assert_slopes(Piecewise, &x);
    assert_slopes(Score, &x);
    // Functions are generic over the type: one of many parts stands for all of them in single precision.
    let single: Vec<f32> = x.iter().map(|&x| x as f32).collect();
    let [single, double] = [
        slopes(Score, &single)
            .iter()
            .map(|y| f64::from(y[1]))
            .collect(),
        slopes(Score, &x).iter().map(|y| y[1]).collect::<Vec<f64>>(),
    ];
    assert!(relative_error(&single, &double) < 1e-5);
    // The slope of the power's base is zero at zero, and its second derivative is not.
    assert_slopes(RootOfSquare, &[-1.0, 0.0, 0.5]);
}

/// Asserts the value and the slope at one number.
fn assert_dual<T: Real>(f: impl Function, x: f64, want: (f64, f64)) {
    let [value, slope, _] = slopes(f, &[T::of(x)])[0];
    let name = std::any::type_name_of_val(&f);
    let want = (T::of(want.0), T::of(want.1));
    assert_eq!((value, slope), want, "{name}({x})");
}

#[test]
fn slopes_at_the_ends_are_no_nan() {
    assert_dual::<f64>(Abs, 0.0, (0.0, 1.0));
    assert_dual::<f64>(Sqrt, 0.0, (0.0, INF));
    assert_dual::<f64>(Root, 0.0, (0.0, INF));
    assert_dual::<f64>(Line, 0.0, (0.0, 1.0));
    assert_dual::<f64>(Square, 0.0, (0.0, 0.0));
    assert_dual::<f64>(Ln, 0.0, (-INF, INF));
    assert_dual::<f64>(ZeroToThe, 2.0, (0.0, 0.0));
    assert_dual::<f64>(RootOfZero, 2.0, (2.0, 1.0));
    assert_dual::<f64>(ExpOfLnOfZero, 2.0, (2.0, 1.0));
    for x in [-INF, -1e3, 1e3, INF] {
        let is_positive = if x > 0.0 { 1.0 } else { 0.0 };
        assert_dual::<f64>(Tanh, x, (x.signum(), 0.0));
        assert_dual::<f64>(Sigmoid, x, (is_positive, 0.0));
        assert_dual::<f64>(Softplus, x, (x.max(0.0), is_positive));
    }
    // The square and the steepness overflow, the slopes do not.
    assert_dual::<f32>(Square, 1e30, (INF, 2e30));
    let (value, logarithm) = (1e30, -69.077_55);
    assert_dual::<f32>(SmallToThe, -1.0, (value, logarithm * value));
}

fn a_part_gives_a_part<T: Real>() {
    let x: Vec<T> = uniform(-6.0, 6.0, 101);
    let whole = slopes(Score, &x);
    for from in [0, 1, 7, 64, 100] {
        for to in [from + 1, from + 6, from + 32, x.len()].map(|to| to.min(x.len())) {
            assert_eq!(whole[from..to], slopes(Score, &x[from..to]), "{from}..{to}");
        }
    }
}

#[test]
#[cfg_attr(miri, ignore = "a sweep over safe code")]
fn a_value_does_not_depend_on_its_place() {
    a_part_gives_a_part::<f32>();
    a_part_gives_a_part::<f64>();
}

#[test]
fn a_value_prints_its_number_only() {
    let value = Value::<f32, ()>::new(1.5);
    assert_eq!(format!("{value:?}"), "Value(1.5)");
}
