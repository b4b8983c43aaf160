//! MIKAN's joint posterior: Gaussian marginals, coupled over the heads by a Gaussian copula.

use crate::testing::factors;
use bochner_copula::Error;
use bochner_copula::heads::{joint_posterior, joint_posterior_vjp};
use bochner_numerics::ArgumentError;
use bochner_numerics::check::{assert_gradient, random};
use ndarray::{Array3, Array4, ArrayView3, ArrayView4};

fn gradients_agree(lh: Array4<f64>) {
    let [mu, ls] = ["mu", "log sigma"].map(|name| random((2, 3, 2), name));
    let [eps, g] = ["eps", "g"].map(|name| random((2, 3, 4, 2), name));
    type Three<'a> = ArrayView3<'a, f64>;
    type Four<'a> = ArrayView4<'a, f64>;
    let loss = |mu: Three, ls: Three, lh: Four, eps: Four| {
        (joint_posterior(mu, ls, lh, eps).unwrap().z * &g).sum()
    };
    let got = joint_posterior_vjp(ls.view(), lh.view(), eps.view(), g.view()).unwrap();
    let (m, s, l, e) = (mu.view(), ls.view(), lh.view(), eps.view());
    assert_gradient(&got.mu, &mu, |mu| loss(mu, s, l, e));
    assert_gradient(&got.log_sigma, &ls, |ls| loss(m, ls, l, e));
    assert_gradient(&got.lh, &lh, |lh| loss(m, s, lh, e));
    assert_gradient(&got.eps, &eps, |eps| loss(m, s, l, eps));
}

#[test]
fn gradients_agree_with_finite_differences() {
    gradients_agree(factors(1, 2, 3));
    gradients_agree(factors(2, 2, 3));
}

#[test]
fn independent_heads_are_the_mean_field_posterior_value_for_value() {
    let [mu, ls]: [Array3<f64>; 2] = ["mu", "log sigma"].map(|name| random((2, 3, 2), name));
    let eps: Array4<f64> = random((2, 3, 4, 2), "eps");
    let identity = Array4::from_shape_fn((1, 2, 3, 3), |(_, _, m, k)| f64::from(m == k));
    let draw = joint_posterior(mu.view(), ls.view(), identity.view(), eps.view()).unwrap();
    assert_eq!(draw.x, eps);
    for ((b, m, r, l), &z) in draw.z.indexed_iter() {
        assert_eq!(z, mu[[b, m, l]] + ls[[b, m, l]].exp() * eps[[b, m, r, l]]);
    }
}

#[test]
fn spreads_beyond_the_range_give_no_nan() {
    let (mu, ls) = (
        Array3::zeros((1, 2, 1)),
        Array3::from_elem((1, 2, 1), 800.0),
    );
    let lh = factors(1, 1, 2);
    let eps = Array4::from_shape_fn((1, 2, 3, 1), |(_, m, r, _)| [0.0, 2.0, -2.0][(m + r) % 3]);
    let draw = joint_posterior(mu.view(), ls.view(), lh.view(), eps.view()).unwrap();
    assert!(draw.z.iter().all(|z: &f64| !z.is_nan()), "{:?}", draw.z);
    let g = Array4::from_shape_fn((1, 2, 3, 1), |(_, m, r, _)| [0.0, 5.0, 5.0][(m + r) % 3]);
    let got = joint_posterior_vjp(ls.view(), lh.view(), eps.view(), g.view()).unwrap();
    let all = got.mu.iter().chain(&got.log_sigma).chain(&got.lh);
    assert!(all.chain(&got.eps).all(|x| !x.is_nan()), "{got:?}");
}

#[test]
fn shapes_are_checked() {
    let (three, four) = (
        Array3::<f32>::zeros((2, 3, 2)),
        Array4::<f32>::zeros((2, 3, 4, 2)),
    );
    let lh = factors(2, 2, 3).mapv(|x| x as f32);
    let call = |mu: &Array3<f32>, lh: &Array4<f32>, eps: &Array4<f32>| {
        joint_posterior(mu.view(), three.view(), lh.view(), eps.view()).unwrap_err()
    };
    let what = |error| match error {
        Error::Argument(ArgumentError::Shape { name, .. } | ArgumentError::Empty { name, .. }) => {
            name
        }
        _ => "something else".into(),
    };
    assert_eq!(what(call(&Array3::zeros((2, 3, 1)), &lh, &four)), "mu");
    assert_eq!(what(call(&three, &Array4::ones((3, 2, 3, 3)), &four)), "lh");
    assert_eq!(
        what(call(&three, &lh, &Array4::zeros((2, 2, 4, 2)))),
        "log_sigma"
    );
    assert_eq!(what(call(&three, &lh, &Array4::zeros((2, 3, 0, 2)))), "eps");
    let zero = call(&three, &Array4::zeros((1, 2, 3, 3)), &four);
    assert!(matches!(zero, Error::Diagonal { .. }));
}
