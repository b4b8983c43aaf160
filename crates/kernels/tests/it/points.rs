//! Spectral points, and gradients along them.

use crate::testing::refused;
use bochner_kernels::{PointsGradients, SpectralPoints, kernel_matrix};
use bochner_numerics::check::random;
use ndarray::{Array2, Axis, array};

#[test]
fn the_normaliser_counts_pairs_four_times() {
    let w = array![[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]];
    let stationary = SpectralPoints::Stationary { w: w.view() };
    let (w1, w2) = (w.view(), w.view());
    let nonstationary = SpectralPoints::Nonstationary { w1, w2 };
    assert_eq!((stationary.count(), stationary.width()), (2, 3));
    assert_eq!(stationary.normaliser(), 2.0);
    assert_eq!(nonstationary.normaliser(), 8.0);
}

#[test]
fn ill_formed_points_are_named() {
    let [none, one, two] = [0, 1, 2].map(|count| Array2::<f32>::zeros((count, 3)));
    let empty = SpectralPoints::Stationary { w: none.view() };
    let of = |points: &SpectralPoints<f32>| refused(kernel_matrix(one.view(), one.view(), points));
    assert_eq!(of(&empty), "w");
    let uneven = SpectralPoints::Nonstationary {
        w1: one.view(),
        w2: two.view(),
    };
    assert_eq!(of(&uneven), "w2");
}

#[test]
fn arrays_of_heads_keep_their_order_and_shape() {
    let sets = ["w1", "w2"].map(|name| random::<f64, _>((2, 3, 4, 5), name));
    let points = SpectralPoints::of_sets(&sets);
    assert_eq!((points.count(), points.width()), (4, 5));
    assert!(points.sets().eq(sets.each_ref().map(|w| w.view())));
    let second = points.map(|w| w.index_axis_move(Axis(0), 1));
    assert!(
        second
            .sets()
            .eq(sets.each_ref().map(|w| w.index_axis(Axis(0), 1)))
    );
    let mut sum = points.zero_gradients();
    sum.add(&PointsGradients {
        w1: sets[0].clone(),
        w2: Some(sets[1].clone()),
    });
    assert_eq!([sum.w1, sum.w2.unwrap()], sets);
    let stationary = SpectralPoints::of_sets(&sets[..1]);
    assert_eq!(stationary.zero_gradients().w2, None);
    assert_eq!(stationary.sets().count(), 1);
}
