//! No weights give a negative variance, and the order of the two points does not matter.

use crate::kernels::with_compositions;
use bochner_kernels::{ExpsinConfig, Kernel, Lengthscale};
use ndarray::{Array2, array};
use proptest::collection::vec;
use proptest::prelude::*;

/// Whether elimination finds positive pivots only, after the diagonal was raised by more than
/// rounding can have lowered an eigenvalue.
fn is_positive_semi_definite(mut k: Array2<f64>) -> bool {
    let jitter = 1e-11 * k.diag().sum().abs() + f64::MIN_POSITIVE;
    k.diag_mut().mapv_inplace(|v| v + jitter);
    for i in 0..k.nrows() {
        if k[[i, i]].is_nan() || k[[i, i]] <= 0.0 {
            return false;
        }
        for j in i + 1..k.nrows() {
            let factor = k[[j, i]] / k[[i, i]];
            for l in i + 1..k.nrows() {
                k[[j, l]] -= factor * k[[i, l]];
            }
        }
    }
    true
}

fn matrix(width: usize) -> impl Strategy<Value = Array2<f64>> {
    (1..9usize).prop_flat_map(move |rows| {
        vec(-3.0..3.0f64, rows * width)
            .prop_map(move |data| Array2::from_shape_vec((rows, width), data).unwrap())
    })
}

proptest! {
    #[test]
    fn no_pivot_is_negative(x in matrix(2), first in 0.3..2.0f64, second in 0.3..2.0f64) {
        for kernel in with_compositions(first, second) {
            let k = kernel.gram(x.view(), x.view()).unwrap();
            prop_assert!(is_positive_semi_definite(k), "{kernel:?}");
        }
    }

    #[test]
    fn the_periodic_kernel_is_so_on_the_line_and_with_a_lengthscale_for_each_column(
        line in matrix(1),
        plane in matrix(2),
        period in 0.3..3.0f64,
        lengthscale in 0.3..2.0f64,
    ) {
        let each = Lengthscale::PerDimension(vec![lengthscale, 1.0]);
        for (x, lengthscale) in [(line, Lengthscale::Shared(lengthscale)), (plane, each)] {
            let kernel = ExpsinConfig { period, lengthscale }.build().unwrap();
            let k = kernel.gram(x.view(), x.view()).unwrap();
            prop_assert!(is_positive_semi_definite(k));
        }
    }

    #[test]
    fn the_order_of_the_points_does_not_matter(x in matrix(2), y in matrix(2)) {
        for kernel in with_compositions(0.7, 1.2) {
            let there = kernel.gram(x.view(), y.view()).unwrap();
            let back = kernel.gram(y.view(), x.view()).unwrap();
            let close = |a: f64, b: f64| (a - b).abs() <= 1e-13 * (1.0 + a.abs());
            prop_assert!(there.iter().zip(back.t()).all(|(&a, &b)| close(a, b)));
        }
    }
}

#[test]
fn a_matrix_that_is_indefinite_is_found_out() {
    assert!(!is_positive_semi_definite(array![[1.0, 2.0], [2.0, 1.0]]));
    assert!(!is_positive_semi_definite(array![[f64::NAN]]));
    assert!(is_positive_semi_definite(array![[1.0, 1.0], [1.0, 1.0]]));
}
