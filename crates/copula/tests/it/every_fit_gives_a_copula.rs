//! Whatever the observations, a fit gives a valid copula or names the constant or discrete column.

use bochner_copula::{CopulaFit, Error, GaussianCopula, pseudo_observations};
use ndarray::{Array2, ArrayView2};
use proptest::prelude::*;

/// Few observations of few values: ties, contradictory pairs, exact dependence.
fn observations() -> impl Strategy<Value = Array2<f64>> {
    (2usize..12, 1usize..6).prop_flat_map(|(n, dimension)| {
        let values = prop::collection::vec(-3i8..4, n * dimension);
        values.prop_map(move |values| {
            Array2::from_shape_fn((n, dimension), |(i, m)| {
                f64::from(values[i * dimension + m])
            })
        })
    })
}

fn has_constant_column(x: &Array2<f64>) -> bool {
    x.columns()
        .into_iter()
        .any(|column| column.iter().all(|v| *v == column[0]))
}

type Fit = fn(ArrayView2<f64>) -> Result<CopulaFit, Error>;

const FITS: [Fit; 2] = [
    GaussianCopula::fit_kendall,
    GaussianCopula::fit_normal_scores,
];

proptest! {
    #[test]
    fn or_names_the_column_that_has_none(x in observations()) {
        for fit in FITS {
            match fit(x.view()) {
                Ok(CopulaFit { copula, .. }) => {
                    let u = pseudo_observations(x.view()).unwrap();
                    let logs = copula.log_density(u.view()).unwrap();
                    prop_assert!(logs.iter().all(|p| p.is_finite()));
                    prop_assert!(copula.kl_to_independence().is_finite());
                }
                Err(Error::Discrete { distinct, rows, .. }) => prop_assert!(distinct < rows),
                Err(error) => {
                    let constant = matches!(error, Error::Constant { .. });
                    prop_assert!(constant && has_constant_column(&x), "{error}");
                }
            }
        }
    }

    #[test]
    fn the_order_of_the_columns_does_not_matter(x in observations()) {
        prop_assume!(!has_constant_column(&x));
        let reversed = x.slice(ndarray::s![.., ..;-1]);
        for fit in FITS {
            let (Ok(a), Ok(b)) = (fit(x.view()), fit(reversed)) else {
                let discrete = |x| matches!(fit(x), Err(Error::Discrete { .. }));
                prop_assert!(discrete(x.view()) && discrete(reversed));
                continue;
            };
            let (a, b) = (a.copula, b.copula);
            let b = b.correlation().slice(ndarray::s![..;-1, ..;-1]).to_owned();
            prop_assert!((&b - &a.correlation()).iter().all(|d| d.abs() < 1e-7));
        }
    }
}
