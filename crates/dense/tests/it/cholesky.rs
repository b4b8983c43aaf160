//! The Cholesky factor, and what is solved with it.

use crate::testing::{assert_close, covariance};
use bochner_dense::{Cholesky, Error};
use bochner_numerics::check::random;
use ndarray::{Array2, Axis, array};

#[test]
fn a_factor_of_two_rows_is_known() {
    let factor = Cholesky::new(array![[4.0, 2.0], [2.0, 5.0]].view()).unwrap();
    assert_eq!(factor.lower(), array![[2.0, 0.0], [1.0, 2.0]]);
    assert!((factor.log_determinant() - 16.0_f64.ln()).abs() < 1e-15);
    let mut rows = array![[2.0, 5.0], [4.0, 2.0]];
    factor.whiten(rows.view_mut()).unwrap();
    assert_eq!(rows, array![[1.0, 2.0], [2.0, 0.0]]);
    let mut rows = array![[8.0, 12.0]];
    factor.solve(rows.view_mut()).unwrap();
    assert_eq!(rows, array![[1.0, 2.0]]);
    let want = array![[5.0, -2.0], [-2.0, 4.0]] / 16.0;
    assert_close(&factor.inverse(), &want, 1e-15);
}

#[test]
fn factor_solutions_and_inverse_multiply_back() {
    for order in [1, 2, 7, 65, 300] {
        let a = covariance(order);
        let factor = Cholesky::shifted(a.view(), 0.1).unwrap();
        let shifted = a + Array2::<f64>::eye(order) * 0.1;
        assert_close(&factor.lower().dot(&factor.lower().t()), &shifted, 1e-14);
        let above = factor.lower().into_owned();
        let mut above = above.indexed_iter().filter(|((i, j), _)| i < j);
        assert!(above.all(|(_, &l)| l == 0.0));
        assert_close(&factor.inverse().dot(&shifted), &Array2::eye(order), 1e-11);

        let b = random((3, order), "matrix");
        let (mut white, mut solved) = (b.clone(), b.clone());
        factor.whiten(white.view_mut()).unwrap();
        factor.solve(solved.view_mut()).unwrap();
        assert_close(&white.dot(&factor.lower().t()), &b, 1e-12);
        assert_close(&solved.dot(&shifted), &b, 1e-11);
        let mut columns = b.t().as_standard_layout().into_owned();
        factor.solve(columns.view_mut().reversed_axes()).unwrap();
        assert_eq!(columns.t(), solved);
    }
}

#[test]
fn the_row_and_its_pivot_are_named() {
    let a = array![[4.0, 2.0, 6.0], [2.0, 5.0, 7.0], [6.0, 7.0, 11.0]];
    let (order, row, pivot) = (3, 2, -2.0);
    let want = Error::NotPositiveDefinite { order, row, pivot };
    assert_eq!(Cholesky::new(a.view()), Err(want));
    let unshifted = &a - 2.0 * Array2::<f64>::eye(3);
    let error = Cholesky::shifted(unshifted.view(), 2.0).unwrap_err();
    assert_eq!(error, Error::NotPositiveDefinite { order, row, pivot });
    let mut late = covariance(100);
    late[[70, 70]] = 0.5;
    let error = Cholesky::new(late.view()).unwrap_err();
    assert!(
        matches!(error, Error::NotPositiveDefinite { row: 70, pivot, .. }
        if pivot < 0.0 && pivot > -0.6)
    );
    let singular = Cholesky::new(Array2::ones((2, 2)).view()).unwrap_err();
    assert!(matches!(
        singular,
        Error::NotPositiveDefinite {
            row: 1,
            pivot: 0.0,
            ..
        }
    ));
}

#[test]
fn only_the_upper_triangle_is_read() {
    let mut late = covariance(100);
    late[[70, 70]] = 0.5;
    for a in [covariance(9), covariance(300), late] {
        let mut upper = a.clone();
        for ((i, j), x) in upper.indexed_iter_mut() {
            if j < i {
                *x = f64::NAN;
            }
        }
        assert_eq!(Cholesky::new(upper.view()), Cholesky::new(a.view()));
    }
}

#[test]
fn arguments_that_do_not_fit_are_named() {
    let named = |error: Error, text: &str| {
        let said = error.to_string();
        assert!(said.contains(text), "{said}");
    };
    let wide = Cholesky::new(Array2::ones((2, 3)).view()).unwrap_err();
    named(wide, "`a` has shape [2, 3], but must have [2, 2]");
    let infinite = array![[1.0, 0.0], [0.0, f64::INFINITY]];
    named(
        Cholesky::new(infinite.view()).unwrap_err(),
        "`a` is inf at [1, 1]",
    );
    let factor = Cholesky::new(covariance(2).view()).unwrap();
    let short = factor.solve(array![[1.0]].view_mut()).unwrap_err();
    named(short, "`rows` has shape [1, 1], but must have [1, 2]");
}

#[test]
fn a_matrix_without_rows_has_an_empty_factor() {
    let factor = Cholesky::shifted(Array2::zeros((0, 0)).view(), 1.0).unwrap();
    assert_eq!((factor.log_determinant(), factor.order()), (0.0, 0));
    assert_eq!(factor.inverse().dim(), (0, 0));
    let mut none = ndarray::Array1::zeros(0);
    factor.solve(none.view_mut().insert_axis(Axis(0))).unwrap();
}
