//! Eigenvalues and eigenvectors of symmetric matrices.

use crate::testing::{assert_close, covariance};
use bochner_dense::{Error, SymmetricEigen, symmetric_eigen, symmetric_eigenvalues, symmetrised};
use bochner_numerics::ArgumentError;
use bochner_numerics::check::random;
use ndarray::{Array1, Array2, array};

#[test]
fn eigenvectors_are_orthonormal_and_put_the_matrix_together_again() {
    for order in [1, 2, 7, 64, 200] {
        let b = random((order, order), "matrix");
        for a in [
            covariance(order),
            &b + &b.t(),
            Array2::zeros((order, order)),
        ] {
            let SymmetricEigen { values, vectors } = symmetric_eigen(a.view()).unwrap();
            let size = 1.0 + values.fold(0.0, |m: f64, v| m.max(v.abs()));
            assert_close(&(&vectors * &values).dot(&vectors.t()), &a, 1e-13 * size);
            assert_close(&vectors.t().dot(&vectors), &Array2::eye(order), 1e-13);
            assert!(values.windows(2).into_iter().all(|w| w[0] <= w[1]));
            let alone = symmetric_eigenvalues(a.view()).unwrap();
            assert!((&alone - &values).iter().all(|d| d.abs() < 1e-13 * size));
        }
    }
}

/// The matrix of second differences, whose eigenvalues are known.
#[test]
fn large_matrices_have_eigenvalues() {
    let order = 500;
    let a = Array2::from_shape_fn((order, order), |(i, j)| match i.abs_diff(j) {
        0 => 2.0,
        1 => -1.0,
        _ => 0.0,
    });
    let angle = |k: usize| (k + 1) as f64 * std::f64::consts::PI / (order + 1) as f64;
    let want = Array1::from_shape_fn(order, |k| 2.0 - 2.0 * angle(k).cos());
    let SymmetricEigen { values, vectors } = symmetric_eigen(a.view()).unwrap();
    let alone = symmetric_eigenvalues(a.view()).unwrap();
    for got in [&values, &alone] {
        assert!((got - &want).iter().all(|off| off.abs() < 1e-12));
    }
    assert_close(&a.dot(&vectors), &(&vectors * &values), 1e-12);
}

#[test]
fn equal_correlations_by_hand() {
    let a = array![[1.0, 0.5, 0.5], [0.5, 1.0, 0.5], [0.5, 0.5, 1.0]];
    let values = symmetric_eigenvalues(a.view()).unwrap();
    let pairs = values.iter().zip([0.5, 0.5, 2.0]);
    assert!(pairs.into_iter().all(|(x, y)| (x - y).abs() < 1e-15));
}

#[test]
fn only_the_upper_triangle_is_read() {
    for unread in [f64::MAX, f64::NAN] {
        let a = array![[1.0, 2.0], [unread, 1.0]];
        let values = symmetric_eigenvalues(a.view()).unwrap();
        assert!((values[0] + 1.0).abs() < 1e-15 && (values[1] - 3.0).abs() < 1e-15);
    }
}

#[test]
fn a_matrix_that_is_symmetric_within_the_tolerance_is_made_so() {
    let made = |lower, upper| symmetrised("a", array![[1.0, upper], [lower, 1.0]].view(), 0.1);
    assert_eq!(made(8.0, 8.5), Ok(array![[1.0, 8.25], [8.25, 1.0]]));
    assert_eq!(
        made(0.0, 0.0625),
        Ok(array![[1.0, 0.03125], [0.03125, 1.0]])
    );
    for tolerance in [f64::NAN, -1.0] {
        let refused = symmetrised("a", array![[1.0]].view(), tolerance);
        assert!(matches!(refused, Err(Error::Argument(_))));
    }
    for (lower, upper) in [(8.0, 9.0), (-0.06, 0.06), (8.0, -8.0)] {
        assert!(matches!(
            made(lower, upper),
            Err(Error::NotSymmetric { .. })
        ));
    }
}

#[test]
fn arguments_that_do_not_fit_are_refused() {
    let wide = symmetric_eigen(Array2::zeros((2, 3)).view());
    assert!(matches!(
        wide,
        Err(Error::Argument(ArgumentError::Shape { .. }))
    ));
    let nan = symmetric_eigenvalues(array![[f64::NAN]].view());
    assert!(matches!(
        nan,
        Err(Error::Argument(ArgumentError::NotFinite { .. }))
    ));
    assert_eq!(
        symmetric_eigenvalues(Array2::zeros((0, 0)).view()),
        Ok(Array1::zeros(0))
    );
    let none = symmetrised("a", Array2::zeros((0, 0)).view(), 0.0);
    assert!(matches!(
        none,
        Err(Error::Argument(ArgumentError::Empty { .. }))
    ));
}
