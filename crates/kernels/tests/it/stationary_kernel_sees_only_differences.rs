//! Symmetries of the two kernels: shifts, mirrored points, exchanged inputs.

use crate::common::{ROUNDING, case};
use bochner_kernels::{SpectralPoints, kernel_matrix};
use ndarray::{Array2, Axis, concatenate};
use proptest::prelude::*;

fn close(a: &Array2<f64>, b: &Array2<f64>) -> bool {
    a.iter().zip(b).all(|(a, b)| (a - b).abs() <= ROUNDING)
}

fn mirrored(w: &Array2<f64>) -> Array2<f64> {
    concatenate(Axis(0), &[w.view(), (-w).view()]).unwrap()
}

proptest! {
    #[test]
    fn a_common_shift_changes_nothing(case in case(), shift in -5.0..5.0f64) {
        let here = kernel_matrix(case.x.view(), case.y.view(), &case.stationary()).unwrap();
        let (x, y) = (&case.x + shift, &case.y + shift);
        let there = kernel_matrix(x.view(), y.view(), &case.stationary()).unwrap();
        prop_assert!(close(&here, &there));
    }

    #[test]
    fn adding_the_mirrored_points_changes_nothing(case in case()) {
        let (w1, w2) = (mirrored(&case.w1), mirrored(&case.w2));
        let (x, y) = (case.x.view(), case.y.view());
        let stationary = SpectralPoints::Stationary { w: w1.view() };
        let (w1, w2) = (w1.view(), w2.view());
        let nonstationary = SpectralPoints::Nonstationary { w1, w2 };
        for (half, whole) in [
            (case.stationary(), stationary),
            (case.nonstationary(), nonstationary),
        ] {
            let half = kernel_matrix(x, y, &half).unwrap();
            let whole = kernel_matrix(x, y, &whole).unwrap();
            prop_assert!(close(&half, &whole));
        }
    }

    #[test]
    fn the_kernel_is_symmetric(case in case()) {
        let (x, y) = (case.x.view(), case.y.view());
        for points in [case.stationary(), case.nonstationary()] {
            let there = kernel_matrix(x, y, &points).unwrap();
            let back = kernel_matrix(y, x, &points).unwrap();
            prop_assert!(close(&there, &back.reversed_axes()));
        }
    }
}
