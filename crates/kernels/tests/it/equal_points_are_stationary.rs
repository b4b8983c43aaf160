//! With $w_1 = w_2$ the non-stationary kernel is the stationary one.

use crate::common::{Case, ROUNDING, case};
use bochner_kernels::{SpectralPoints, feature_map_vjp, kernel_matrix};
use bochner_numerics::Buffers;
use bochner_numerics::check::largest;
use ndarray::Array2;
use proptest::prelude::*;

proptest! {
    #[test]
    fn equal_points_give_the_stationary_kernel(case in case()) {
        let case = Case { w2: case.w1.clone(), ..case };
        let ns = kernel_matrix(case.x.view(), case.y.view(), &case.nonstationary()).unwrap();
        let s = kernel_matrix(case.x.view(), case.y.view(), &case.stationary()).unwrap();
        prop_assert!(largest(&(ns - s)) <= ROUNDING);
    }

    #[test]
    fn both_points_of_an_equal_pair_have_the_stationary_gradient(case in case()) {
        let case = Case { w2: case.w1.clone(), ..case };
        let cotangent = Array2::from_shape_fn(
            (case.x.nrows(), 2 * case.w1.nrows()),
            |(t, r)| (t + 2 * r) as f64 - 3.5,
        );
        let buffers = Buffers::default();
        let ns = feature_map_vjp(case.x.view(), &case.nonstationary(), cotangent.view(), &buffers).unwrap();
        let s = feature_map_vjp(case.x.view(), &case.stationary(), cotangent.view(), &buffers).unwrap();
        let scale = ROUNDING * (1.0 + largest(&s.points.w1) + largest(&s.x));
        prop_assert!(largest(&(&ns.points.w1 - &s.points.w1)) <= scale);
        prop_assert!(largest(&(ns.points.w2.unwrap() - &s.points.w1)) <= scale);
        prop_assert!(largest(&(ns.x - s.x * 2.0)) <= 10.0 * scale);
    }
}

#[test]
fn unequal_points_are_not_stationary() {
    let (w1, w2) = (ndarray::array![[1.0]], ndarray::array![[2.0]]);
    let (w1, w2) = (w1.view(), w2.view());
    let points = SpectralPoints::Nonstationary { w1, w2 };
    let x = ndarray::array![[0.0_f64], [1.0]];
    let f = kernel_matrix(x.view(), x.view(), &points).unwrap();
    assert!((f[[0, 0]] - f[[1, 1]]).abs() > 0.1);
}
