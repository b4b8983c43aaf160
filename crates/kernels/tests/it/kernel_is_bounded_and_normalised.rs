//! $|f_{NS}| \le 1$, $|f_S| \le 1$ and $f_S(x, x) = 1$.

use crate::common::{ROUNDING, case};
use bochner_kernels::{SpectralPoints, kernel_matrix};
use proptest::prelude::*;

proptest! {
    #[test]
    fn no_similarity_exceeds_one(case in case()) {
        for points in [case.stationary(), case.nonstationary()] {
            let f = kernel_matrix(case.x.view(), case.y.view(), &points).unwrap();
            prop_assert!(f.iter().all(|f| f.abs() <= 1.0 + ROUNDING));
        }
    }

    #[test]
    fn the_stationary_kernel_of_a_point_with_itself_is_one(case in case()) {
        let f = kernel_matrix(case.x.view(), case.x.view(), &case.stationary()).unwrap();
        prop_assert!(f.diag().iter().all(|f| (f - 1.0).abs() <= ROUNDING));
    }

    #[test]
    fn the_nonstationary_kernel_of_a_point_with_itself_is_not_negative(case in case()) {
        let f = kernel_matrix(case.x.view(), case.x.view(), &case.nonstationary()).unwrap();
        prop_assert!(f.diag().iter().all(|f| *f >= 0.0));
    }
}

#[test]
fn the_bound_is_reached() {
    let zero = ndarray::array![[0.0, 0.0]];
    let (w1, w2) = (ndarray::array![[1.0, 2.0]], ndarray::array![[-3.0, 0.5]]);
    let points = SpectralPoints::Nonstationary {
        w1: w1.view(),
        w2: w2.view(),
    };
    let f = kernel_matrix(zero.view(), zero.view(), &points).unwrap();
    assert_eq!(f[[0, 0]], 1.0);
}
