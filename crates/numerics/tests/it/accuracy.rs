//! The measure of errors in the tests: units in the last place, against references of some
//! thirty digits.

use bochner_numerics::{Real, Seed};
use rand::Rng;
use std::ops::{Add, Div, Mul, Neg, Sub};

/// A number as the sum of two, of which the second is below half an ulp of the first.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pair(pub(crate) f64, pub(crate) f64);

impl Pair {
    /// The sum of any two numbers, without error.
    fn of_sum(a: f64, b: f64) -> Self {
        let s = a + b;
        let b_seen = s - a;
        Self(s, (a - (s - b_seen)) + (b - b_seen))
    }
}

impl From<f64> for Pair {
    fn from(x: f64) -> Self {
        Self(x, 0.0)
    }
}

impl Neg for Pair {
    type Output = Self;

    fn neg(self) -> Self {
        Self(-self.0, -self.1)
    }
}

impl Add for Pair {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        let high = Self::of_sum(self.0, other.0);
        let low = Self::of_sum(self.1, other.1);
        let sum = Self::of_sum(high.0, high.1 + low.0);
        Self::of_sum(sum.0, sum.1 + low.1)
    }
}

impl Sub for Pair {
    type Output = Self;

    fn sub(self, other: Self) -> Self {
        self + -other
    }
}

impl Mul for Pair {
    type Output = Self;

    fn mul(self, other: Self) -> Self {
        let product = self.0 * other.0;
        let lost = self.0.mul_add(other.0, -product);
        Self::of_sum(product, lost + (self.0 * other.1 + self.1 * other.0))
    }
}

impl Div for Pair {
    type Output = Self;

    fn div(self, other: Self) -> Self {
        let first = Self::from(self.0 / other.0);
        let rest = self - first * other;
        let second = Self::from(rest.0 / other.0);
        let rest = rest - second * other;
        first + second + Self::from(rest.0 / other.0)
    }
}

pub(crate) const LN_2: Pair = Pair(std::f64::consts::LN_2, 2.3190468138462996e-17);

/// $1 / \sqrt{2 \pi}$.
const INVERSE_ROOT_TAU: Pair = Pair(0.3989422804014327, -2.49232720227773e-17);

/// $\pi / 2$ in three parts.
const QUARTER: [f64; 3] = [
    std::f64::consts::FRAC_PI_2,
    6.123233995736766e-17,
    -1.4973849048591698e-33,
];

/// The double below $2^{20}$ that is closest to a multiple of $\pi / 2$ (by continued fractions).
pub(crate) const HARD_ANGLE: f64 = 45.553093477052;

/// A value $2^e (a + b)$: without the power of two, the smallest would lose their second part.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reference {
    pub(crate) value: Pair,
    pub(crate) exponent: i32,
}

impl From<Pair> for Reference {
    fn from(value: Pair) -> Self {
        Self { value, exponent: 0 }
    }
}

impl Neg for Reference {
    type Output = Self;

    fn neg(self) -> Self {
        Self {
            value: -self.value,
            ..self
        }
    }
}

/// $\sum_{k \ge 0} t_k$ where $t_0$ is `first` and $t_k$ is $t_{k - 1}$ times `ratio(k)`.
fn series(first: Pair, ratio: impl Fn(f64) -> Pair) -> Pair {
    let mut term = first;
    let mut sum = term;
    for k in 1..40 {
        term = term * ratio(f64::from(k));
        sum = sum + term;
    }
    sum
}

pub(crate) fn exp(x: Pair) -> Reference {
    let n = (x.0 / LN_2.0).round();
    let r = x - Pair::from(n) * LN_2;
    Reference {
        value: series(Pair::from(1.0), |k| r / Pair::from(k)),
        exponent: n as i32,
    }
}

/// The logarithm by $2 \operatorname{artanh}((m - 1) / (m + 1))$, to full relative precision near 1 too.
pub(crate) fn ln(x: f64) -> Pair {
    let exponent = x.log2().round();
    let m = scaled(x, -(exponent as i32));
    let s = Pair::of_sum(m, -1.0) / Pair::of_sum(m, 1.0);
    let z = s * s;
    let (mut power, mut sum) = (s, s);
    for k in 1..60 {
        power = power * z;
        sum = sum + power / Pair::from(f64::from(2 * k + 1));
    }
    Pair::from(exponent) * LN_2 + sum + sum
}

/// Sine and cosine of an angle below $2^{20}$ or so.
pub(crate) fn sin_cos(x: f64) -> (Pair, Pair) {
    let n = (x / QUARTER[0]).round();
    let r = QUARTER.iter().fold(Pair::from(x), |r, &part| {
        r - Pair::from(n) * Pair::from(part)
    });
    let z = -(r * r);
    let sine = series(r, |k| z / Pair::from(2.0 * k * (2.0 * k + 1.0)));
    let cosine = series(Pair::from(1.0), |k| {
        z / Pair::from(2.0 * k * (2.0 * k - 1.0))
    });
    match n.rem_euclid(4.0) as u8 {
        0 => (sine, cosine),
        1 => (cosine, -sine),
        2 => (-sine, -cosine),
        _ => (-cosine, sine),
    }
}

/// The hyperbolic tangent as the hyperbolic sine over the cosine, to 30 digits up to 4 and to 20 beyond.
pub(crate) fn tanh(x: f64) -> Pair {
    // Beyond 20 the result is one to 17 digits.
    let x = Pair::from(x.clamp(-20.0, 20.0));
    let sine = series(x, |k| x * x / Pair::from(2.0 * k * (2.0 * k + 1.0)));
    let one = Pair::from(1.0);
    sine / series(one, |k| x * x / Pair::from(2.0 * k * (2.0 * k - 1.0)))
}

/// The distribution function by its power series in the middle, and by Laplace's continued fraction beyond.
pub(crate) fn normal_cdf(x: Pair) -> Reference {
    let square = x * x;
    let density = exp(Pair(-0.5 * square.0, -0.5 * square.1));
    let of_tail = |factor| Reference {
        value: density.value * factor * INVERSE_ROOT_TAU,
        ..density
    };
    if x.0.abs() < 2.0 {
        let odd = series(x, |k| square / Pair::from(2.0 * k + 1.0));
        let half = scaled(0.5, -density.exponent);
        let centered = of_tail(odd);
        return Reference {
            value: centered.value + Pair::from(half),
            ..centered
        };
    }
    let distance = if x.0 < 0.0 { -x } else { x };
    let fraction = (1..=200).rev().fold(distance, |tail, k| {
        distance + Pair::from(f64::from(k)) / tail
    });
    let tail = of_tail(Pair::from(1.0) / fraction);
    if x.0 < 0.0 {
        return tail;
    }
    let part = |part| scaled(part, tail.exponent);
    Reference::from(Pair::from(1.0) - Pair(part(tail.value.0), part(tail.value.1)))
}

/// The quantile by Newton's method, from a number close by.
pub(crate) fn normal_quantile(u: f64, near: f64) -> Reference {
    if u > 0.5 {
        return -normal_quantile(1.0 - u, -near);
    }
    let mut x = Pair::from(near);
    for _ in 0..2 {
        let Reference { value, exponent } = normal_cdf(x);
        let square = x * x;
        let density = exp(Pair(-0.5 * square.0, -0.5 * square.1));
        let slope = density.value * INVERSE_ROOT_TAU;
        let shift = scaled(1.0, density.exponent - exponent);
        let off = value - Pair::from(scaled(u, -exponent));
        x = x - off / (slope * Pair::from(shift));
    }
    Reference::from(x)
}

/// $2^n x$, in steps that cannot overflow before the result does.
fn scaled(x: f64, n: i32) -> f64 {
    let third = n / 3;
    x * 2f64.powi(third) * 2f64.powi(third) * 2f64.powi(n - 2 * third)
}

/// Returns the distance of `got` from the reference, in units of the spacing of `T`'s numbers there.
fn ulps<T: Real>(got: T, reference: Reference) -> f64 {
    let Reference { value, exponent } = reference;
    let significand = -T::epsilon().as_f64().log2() as i32;
    let smallest = T::min_positive_value().as_f64().log2() as i32 - significand;
    let of_value = value.0.abs().log2().floor() as i32;
    let spacing = (of_value + exponent - significand).max(smallest) - exponent;
    let error = scaled(got.as_f64(), -exponent) - value.0 - value.1;
    scaled(error, -spacing).abs()
}

/// The largest error of `got` in ulp, which must be finite.
pub(crate) fn largest_error<T: Real>(
    x: &[T],
    got: &[T],
    reference: impl Fn(f64) -> Reference,
) -> f64 {
    let errors = x.iter().zip(got).map(|(&x, &got)| {
        let error = ulps(got, reference(x.as_f64()));
        assert!(error.is_finite(), "f({x}) = {got}");
        error
    });
    errors.fold(0.0, f64::max)
}

/// Numbers spread evenly over an interval.
pub(crate) fn uniform<T: Real>(from: f64, to: f64, n: usize) -> Vec<T> {
    let mut stream = Seed::new(3).stream("uniform");
    (0..n).map(|_| T::of(stream.gen_range(from..to))).collect()
}

/// Numbers whose logarithms are spread evenly between those of two bounds.
pub(crate) fn log_uniform<T: Real>(from: f64, to: f64, n: usize) -> Vec<T> {
    let logarithms: Vec<f64> = uniform(from.log2(), to.log2(), n);
    logarithms.iter().map(|&x| T::of(x.exp2())).collect()
}

fn assert_agrees(got: Pair, want: Pair) {
    let difference = got - want;
    assert!(
        difference.0.abs() < 1e-29 * want.0.abs(),
        "{got:?}, {want:?}"
    );
}

// The values were computed with mpmath 1.3 in 80 digits and split into two doubles.

#[test]
fn the_exponential_agrees_with_eighty_digits() {
    for (x, want, exponent) in [
        (0.5, Pair(0.8243606353500641, -2.3657842397179166e-17), 1),
        (-0.3, Pair(0.7408182206817179, -1.805530505953e-18), 0),
        (
            700.5,
            Pair(0.7620069930514648, 4.9933867882697963e-17),
            1011,
        ),
    ] {
        let got = exp(Pair::from(x));
        assert_agrees(got.value, want);
        assert_eq!(got.exponent, exponent);
    }
}

#[test]
fn the_logarithm_agrees_with_eighty_digits() {
    for (x, want) in [
        (0.1, Pair(-2.3025850929940455, -1.7150243628057985e-16)),
        (3.0, Pair(1.0986122886681098, -9.07129723500153e-17)),
        (1e-300, Pair(-690.7755278982137, -2.3670096176709832e-14)),
        (
            1.0 + f64::EPSILON,
            Pair(2.2204460492503128e-16, 3.649214750845877e-48),
        ),
    ] {
        assert_agrees(ln(x), want);
    }
}

#[test]
fn the_hyperbolic_tangent_agrees_with_eighty_digits() {
    for (x, want) in [
        (0.001, Pair(0.0009999996666668, 1.7800613799166557e-20)),
        (0.7, Pair(0.6043677771171635, -2.7916180015425346e-17)),
        (-5.0, Pair(-0.9999092042625951, -2.298523750966507e-17)),
    ] {
        assert_agrees(tanh(x), want);
    }
    let far = tanh(18.5) - Pair(0.9999999999999998, 5.1383652410150004e-17);
    assert!(far.0.abs() < 1e-20);
}

#[test]
fn sine_and_cosine_agree_with_eighty_digits() {
    for (x, sine, cosine) in [
        (
            1.0,
            Pair(0.8414709848078965, 1.776845092935536e-18),
            Pair(0.5403023058681398, -4.760954612604417e-17),
        ),
        (
            1048575.5,
            Pair(-0.1624508310778367, 2.71266961205879e-18),
            Pair(0.9867166399134658, 9.306535570750839e-18),
        ),
        (
            HARD_ANGLE,
            Pair(1.0, -1.915685142356643e-37),
            Pair(-6.189806365883577e-19, 5.558005016244944e-36),
        ),
    ] {
        let got = sin_cos(x);
        assert_agrees(got.0, sine);
        assert_agrees(got.1, cosine);
    }
}

#[test]
fn the_normal_distribution_agrees_with_eighty_digits() {
    for (x, want) in [
        (-1.5, Pair(0.06680720126885807, -5.303515941678518e-18)),
        (0.25, Pair(0.5987063256829237, 2.300399437650529e-17)),
        (-6.5, Pair(4.016000583859118e-11, 1.6791104218420475e-28)),
        (-20.0, Pair(2.7536241186062337e-89, -4.205855543202273e-106)),
        (3.0, Pair(0.9986501019683699, 8.940996681239719e-18)),
    ] {
        let got = normal_cdf(Pair::from(x));
        let part = |part| scaled(part, got.exponent);
        assert_agrees(Pair(part(got.value.0), part(got.value.1)), want);
    }
    for (u, want) in [
        (0.25, Pair(-0.6744897501960817, -3.7755511355050287e-17)),
        (1e-10, Pair(-6.361340902404057, 3.862393341514606e-16)),
        (0.975, Pair(1.9599639845400538, 2.821657963445305e-17)),
    ] {
        assert_agrees(normal_quantile(u, want.0 * (1.0 + 1e-9)).value, want);
    }
}

#[test]
fn an_ulp_is_the_spacing() {
    let one = Reference::from(Pair::from(1.0));
    assert_eq!(ulps(1.0 + 3.0 * f32::EPSILON, one), 3.0);
    assert_eq!(ulps(1.0 - f64::EPSILON, one), 1.0);
    let smallest = Reference {
        value: Pair::from(1.0),
        exponent: -1074,
    };
    assert_eq!(ulps(0.0, smallest), 1.0);
}
