//! The Gaussian copula: a checked correlation matrix and its density.

use bochner_copula::{Error, GaussianCopula};
use ndarray::{Array2, ArrayView2, array};

fn three() -> GaussianCopula {
    let r = array![[1.0, 0.5, -0.3], [0.5, 1.0, 0.2], [-0.3, 0.2, 1.0]];
    GaussianCopula::from_correlation(r.view()).unwrap()
}

fn refused(r: Array2<f64>) -> Error {
    GaussianCopula::from_correlation(r.view()).unwrap_err()
}

#[test]
fn matrix_and_factor_give_the_same_copula() {
    let copula = three();
    let scaled = &copula.factor() * &array![[2.0], [0.3], [7.0]];
    let same = GaussianCopula::from_factor(scaled.view()).unwrap();
    let close = |a: ArrayView2<f64>, b: ArrayView2<f64>| {
        a.iter().zip(b).all(|(a, b)| (a - b).abs() < 1e-15)
    };
    assert!(close(same.correlation(), copula.correlation()));
    assert!(close(same.factor(), copula.factor()));
    assert_eq!(copula.correlation()[[2, 0]], -0.3);
    assert_eq!(copula.dimension(), 3);
}

#[test]
fn a_factor_whose_diagonal_vanishes_next_to_its_row_has_a_density() {
    for row in [[1e200, 1e-200], [f64::MAX, f64::from_bits(1)]] {
        let factor = array![[1.0, 0.0], row];
        let copula = GaussianCopula::from_factor(factor.view()).unwrap();
        let kl = copula.kl_to_independence();
        assert!(kl > 700.0 && kl.is_finite(), "{kl}");
        let density = copula.log_density(array![[0.5, 0.5]].view()).unwrap();
        assert!(density[0] > 700.0 && density[0].is_finite(), "{density}");
    }
}

#[test]
fn what_is_no_correlation_matrix_is_refused_by_name() {
    for (wrong, text) in [
        (
            Array2::zeros((0, 0)),
            "`correlation` has shape [0, 0] and so no elements",
        ),
        (
            Array2::ones((2, 3)),
            "`correlation` has shape [2, 3], but must have [2, 2]",
        ),
        (
            array![[1.0, f64::NAN], [0.0, 1.0]],
            "`correlation` is NaN at [0, 1]",
        ),
        (
            array![[1.0, 0.25], [0.5, 1.0]],
            "`correlation` must be symmetric, but has 0.5 in row 1, column 0, and 0.25 mirrored",
        ),
    ] {
        let said = refused(wrong).to_string();
        assert!(said.starts_with(text), "{said}");
    }
    assert!(matches!(
        refused(array![[1.0, 0.0], [0.0, 4.0]]),
        Error::UnitDiagonal {
            row: 1,
            got: 4.0,
            ..
        }
    ));
    let indefinite = array![[1.0, 0.9, -0.9], [0.9, 1.0, 0.9], [-0.9, 0.9, 1.0]];
    let Error::NotPositiveDefinite {
        row,
        pivot,
        smallest,
        ..
    } = refused(indefinite)
    else {
        panic!("a matrix with a negative eigenvalue");
    };
    assert_eq!(row, 2);
    assert!(pivot < 0.0 && (smallest + 0.8).abs() < 1e-14);
    let almost = 1.0 - 1e-16;
    let almost = refused(array![[1.0, almost], [almost, 1.0]]);
    assert!(matches!(almost, Error::NotPositiveDefinite { row: 1, .. }));
    let singular = refused(Array2::ones((2, 2)));
    assert!(matches!(
        singular,
        Error::NotPositiveDefinite { row: 1, .. }
    ));
    assert!(singular.to_string().contains("nearest_correlation"));
}

#[test]
fn what_is_no_factor_is_refused_by_name() {
    let refused = |l: Array2<f64>| GaussianCopula::from_factor(l.view()).unwrap_err();
    assert!(matches!(
        refused(Array2::zeros((2, 2))),
        Error::Diagonal { .. }
    ));
    let wide = refused(Array2::ones((2, 1))).to_string();
    assert!(wide.starts_with("`factor` has shape [2, 1], but must have [2, 2]"));
    let infinite = refused(array![[1.0, 0.0], [f64::INFINITY, 1.0]]).to_string();
    assert!(infinite.starts_with("`factor` is inf at"), "{infinite}");
    let none = refused(Array2::zeros((0, 0))).to_string();
    assert!(none.contains("no elements"), "{none}");
}
