//! Functions of each element that follow a linear map.

use crate::testing::gradients_are_right;
use bochner_numerics::normal;
use bochner_ops::{Activation, activation_vjp, filled};

fn numbers(n: usize) -> Vec<f64> {
    (0..n)
        .map(|i| ((i * 37) % 101) as f64 / 15.0 - 3.3)
        .collect()
}

const ALL: [Activation; 6] = [
    Activation::Identity,
    Activation::Relu,
    Activation::LeakyRelu { slope: 0.2 },
    Activation::Elu,
    Activation::Gelu,
    Activation::GeluTanh,
];

fn formula(of: Activation, x: f64) -> [f64; 2] {
    match of {
        Activation::Identity => [x, 1.0],
        Activation::Gelu if x.is_infinite() => [x.max(0.0), x.signum().max(0.0)],
        Activation::Gelu => [x * normal::cdf(x), normal::cdf(x) + x * normal::density(x)],
        Activation::GeluTanh => {
            let root = (2.0 / std::f64::consts::PI).sqrt();
            let t = (root * (x + 0.044715 * x.powi(3))).tanh();
            let inner = root * (1.0 + 3.0 * 0.044715 * x * x);
            let outer = if t.abs() == 1.0 {
                0.0
            } else {
                x * (1.0 - t * t) * inner
            };
            [
                if t == -1.0 { 0.0 } else { x * (1.0 + t) / 2.0 },
                (1.0 + t + outer) / 2.0,
            ]
        }
        _ if x > 0.0 => [x, 1.0],
        Activation::Relu => [0.0, 0.0],
        Activation::LeakyRelu { slope } => [slope * x, slope],
        Activation::Elu => [x.exp_m1(), x.exp()],
        _ => unreachable!("an activation that the list lacks"),
    }
}

#[test]
fn values_and_slopes_are_their_formulas() {
    // More than a piece, and enough for several threads; at zero the slope is that below.
    let mut x = numbers(300_000);
    (x[0], x[20_000]) = (0.0, -0.0);
    for activation in ALL {
        let [mut y, mut z] = [x.clone(), x.clone()];
        activation.apply(&mut y);
        let slopes = activation.apply_with_slopes(&mut z);
        assert_eq!(y, z);
        let slopes = slopes.unwrap_or_else(|| vec![1.0; x.len()]);
        for ((&x, y), slope) in x.iter().zip(y).zip(&slopes) {
            let [value, derivative] = formula(activation, x);
            let near = |want: f64, got: f64| (want - got).abs() < 1e-15 * (1.0 + want.abs());
            assert!(
                near(value, y) && near(derivative, *slope),
                "{activation:?} {x}"
            );
        }
        let [dx] = filled([x.len()], |[dx]| activation_vjp(&slopes, &x, dx));
        assert!(dx.into_iter().eq(x.iter().zip(&slopes).map(|(x, s)| x * s)));
    }
}

#[test]
fn gradients_agree_with_finite_differences() {
    for activation in ALL {
        gradients_are_right(activation, &[&[4, 10]]);
    }
}

#[test]
fn extremes_stay_what_they_are() {
    for activation in ALL {
        let low = |x: f32| formula(activation, f64::from(x))[0] as f32;
        let [inf, max] = [f32::INFINITY, f32::MAX];
        let mut x = [max, -1e30, inf, -0.0, f32::NAN];
        activation.apply(&mut x);
        assert_eq!(x[..4], [max, low(-1e30), inf, 0.0]);
        assert!(x[4].is_nan());
    }
}

#[test]
fn the_gaussian_unit_is_right_in_its_tail_and_at_infinity() {
    let [low, high] = [f64::NEG_INFINITY, f64::INFINITY];
    let x = [-30.0, -10.0, -5.0, -1e-300, 8.0, low, high];
    let mut y = x;
    let slopes = Activation::Gelu.apply_with_slopes(&mut y).unwrap();
    for ((x, y), slope) in x.into_iter().zip(y).zip(slopes) {
        let wanted = formula(Activation::Gelu, x);
        for (got, want) in [y, slope].into_iter().zip(wanted) {
            let near = (got - want).abs() <= 2e-14 * want.abs();
            assert!(got == want || near, "{x:e}: {got:e}, {want:e}");
        }
    }
}

#[test]
fn names_in_writing_stay() {
    let written = ALL.map(|activation| serde_json::to_string(&activation).unwrap());
    let names = [
        "\"identity\"",
        "\"relu\"",
        "{\"leaky-relu\":{\"slope\":0.2}}",
        "\"elu\"",
        "\"gelu\"",
        "\"gelu-tanh\"",
    ];
    assert_eq!(written, names);
    // In single precision 1e300 is infinite.
    for slope in [f64::NAN, f64::INFINITY, 1e300] {
        assert!(Activation::LeakyRelu { slope }.validate().is_err());
    }
    assert!(ALL.iter().all(|a| a.validate().is_ok()));
}
