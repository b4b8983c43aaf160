//! The joint posterior couples the heads by its factor.

use bochner_copula::heads::joint_posterior;
use bochner_copula::normalise;
use bochner_numerics::check::random;
use ndarray::{Array3, Array4, Axis, array, s};

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
