//! Fits of the Gaussian copula to observations, whatever their marginals.

use bochner_copula::{CopulaFit, Error, GaussianCopula, correlation_of_kendall, kendall_tau_b};
use bochner_dense::symmetric_eigenvalues;
use bochner_numerics::Seed;
use ndarray::{Array2, ArrayView2, array};

type Fit = fn(ArrayView2<f64>) -> Result<CopulaFit, Error>;

const FITS: [Fit; 2] = [
    GaussianCopula::fit_kendall,
    GaussianCopula::fit_normal_scores,
];

fn copula() -> GaussianCopula {
    let r = array![[1.0, 0.8, -0.4], [0.8, 1.0, 0.1], [-0.4, 0.1, 1.0]];
    GaussianCopula::from_correlation(r.view()).unwrap()
}

#[test]
fn comonotone_and_few_observations_are_brought_inside() {
    let x = array![
        [1.0, 2.0, -3.0, 0.0],
        [2.0, 4.0, -9.0, 5.0],
        [3.0, 5.0, -10.0, 1.0]
    ];
    for fit in FITS {
        let CopulaFit {
            copula: r,
            smallest_eigenvalue,
        } = fit(x.view()).unwrap();
        assert!(smallest_eigenvalue < 1e-6, "{smallest_eigenvalue:e}");
        assert!(r.correlation()[[0, 1]] > 0.99 && r.correlation()[[0, 2]] < -0.99);
        let least = symmetric_eigenvalues(r.correlation()).unwrap()[0];
        assert!((0.9e-6..1.1e-6).contains(&least), "{least:e}");
    }
    // The fit reports its distance from a correlation matrix.
    let pair = |j: usize, k: usize| kendall_tau_b(x.column(j), x.column(k)).unwrap();
    let pairwise = Array2::from_shape_fn((4, 4), |(j, k)| match j == k {
        true => 1.0,
        false => correlation_of_kendall(pair(j, k)).unwrap(),
    });
    let told = GaussianCopula::fit_kendall(x.view())
        .unwrap()
        .smallest_eigenvalue;
    let least = symmetric_eigenvalues(pairwise.view()).unwrap()[0];
    assert!((told - least).abs() < 1e-14, "{told:e} {least:e}");
}

#[test]
fn discrete_columns_are_fitted_by_tau_and_refused_otherwise() {
    let u = copula().sample(2000, &mut Seed::new(3).stream("scores"));
    let mut x = u.clone();
    x.column_mut(1).mapv_inplace(|u| (20.0 * u).floor());
    let fitted = GaussianCopula::fit_kendall(x.view()).unwrap().copula;
    assert!((fitted.correlation()[[0, 1]] - 0.8).abs() < 0.06);
    let (column, distinct, rows) = (1, 20, 2000);
    let refused = GaussianCopula::fit_normal_scores(x.view());
    let want = Error::Discrete {
        column,
        distinct,
        rows,
    };
    assert_eq!(refused, Err(want));
    // Rounding to three digits leaves a continuous column.
    let rounded = u.mapv(|u| (1e3 * u).round());
    assert!(GaussianCopula::fit_normal_scores(rounded.view()).is_ok());
}

#[test]
fn what_shows_no_dependence_is_refused() {
    for fit in FITS {
        let got = |x: Array2<f64>| fit(x.view()).unwrap_err();
        assert_eq!(got(array![[1.0, 2.0]]), Error::TooFew { got: 1 });
        let constant = array![[1.0, 2.0], [0.0, 2.0]];
        assert_eq!(got(constant), Error::Constant { column: 1 });
        let infinite = array![[1.0, 2.0], [0.0, f64::INFINITY]];
        assert!(
            got(infinite)
                .to_string()
                .starts_with("`x` is inf at [1, 1]")
        );
        let none = got(Array2::zeros((3, 0))).to_string();
        assert!(none.starts_with("`x` has shape [3, 0] and so no elements"));
    }
}
