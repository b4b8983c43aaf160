//! The singular value decomposition.

use crate::testing::assert_close;
use bochner_dense::{Svd, svd};
use bochner_numerics::check::random;
use ndarray::Array2;

#[test]
fn the_parts_are_orthonormal_and_put_the_matrix_together_again() {
    for (m, n) in [(1, 1), (5, 3), (3, 5), (80, 80), (300, 20), (20, 300)] {
        let full = random((m, n), "matrix");
        let one = random((m, 1), "matrix").dot(&random((1, n), "matrix"));
        for a in [full, one, Array2::zeros((m, n))] {
            let Svd { u, s, vt } = svd(a.view()).unwrap();
            let k = m.min(n);
            assert_close(&(&u * &s).dot(&vt), &a, 1e-12);
            assert_close(&u.t().dot(&u), &Array2::eye(k), 1e-12);
            assert_close(&vt.dot(&vt.t()), &Array2::eye(k), 1e-12);
            assert!(s.iter().all(|&s| s >= 0.0));
            assert!(s.windows(2).into_iter().all(|w| w[0] >= w[1]));
        }
    }
}

#[test]
fn a_matrix_without_entries_has_none() {
    let none = svd(Array2::zeros((0, 3)).view()).unwrap();
    assert_eq!(
        (none.u.dim(), none.s.len(), none.vt.dim()),
        ((0, 0), 0, (0, 3))
    );
    assert!(svd(ndarray::array![[f64::NAN]].view()).is_err());
}
