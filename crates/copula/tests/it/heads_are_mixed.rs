//! The joint posterior couples the heads, with exactly the correlations of its factor.

use bochner_copula::heads::joint_posterior;
use bochner_copula::{correlation, normalise};
use bochner_numerics::check::random;
use ndarray::{Array3, Array4, ArrayView1, Axis, array, s};

/// Three heads, two latent dimensions.
fn factor() -> Array3<f64> {
    let factor = array![
        [[1.0, 0.0, 0.0], [0.9, 1.0, 0.0], [-0.6, 0.4, 0.5]],
        [[2.0, 0.0, 0.0], [-1.0, 0.3, 0.0], [0.5, 0.1, 1.0]],
    ];
    normalise(factor.view()).unwrap()
}

/// A contraction over the wrong axes keeps the heads independent, and has the right shapes and marginals
/// all the same.
#[test]
fn the_noise_of_one_head_moves_the_later_ones() {
    let lh = factor().insert_axis(Axis(0));
    let zero = Array3::zeros((2, 3, 2));
    let draw = |eps: &Array4<f64>| {
        let draw = joint_posterior(zero.view(), zero.view(), lh.view(), eps.view());
        draw.unwrap().x
    };
    let eps = random((2, 3, 4, 2), "eps");
    let mut moved = eps.clone();
    moved.slice_mut(s![.., 1, .., ..]).mapv_inplace(|x| x + 1.0);
    for ((_, m, _, l), change) in (draw(&moved) - draw(&eps)).indexed_iter() {
        let want = if m >= 1 { lh[[0, l, m, 1]] } else { 0.0 };
        assert!((change - want).abs() < 1e-12);
        assert_eq!(want.abs() > 0.05, m >= 1);
    }
}

#[test]
fn draws_have_the_correlations_of_the_factor() {
    let draws = 100_000;
    let corr = correlation(factor().view()).unwrap();
    let lh = factor().insert_axis(Axis(0));
    let mu = Array3::from_elem((1, 3, 2), 5.0);
    let log_sigma = Array3::from_elem((1, 3, 2), -1.0);
    let eps = random((1, 3, draws, 2), "eps");
    let draw = joint_posterior(mu.view(), log_sigma.view(), lh.view(), eps.view()).unwrap();
    let product = |a: &ArrayView1<f64>, b: &ArrayView1<f64>| (a * b).sum() / draws as f64;
    for ((l, m, k), &want) in corr.indexed_iter() {
        let [a, b] = [m, k].map(|m| draw.x.slice(s![0, m, .., l]));
        let got = product(&a, &b) / (product(&a, &a) * product(&b, &b)).sqrt();
        assert!(
            (got - want).abs() < 0.015,
            "{l}, {m}, {k}: {got}, not {want}"
        );
        assert!((product(&a, &a) - 1.0).abs() < 0.03);
    }
}
