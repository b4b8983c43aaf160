//! Whatever the factor, its correlation matrix has a unit diagonal and is positive definite, and
//! the divergence it adds is zero for independent heads and positive for all others.

use bochner_copula::heads::dependence_kl;
use bochner_copula::{correlation, half_neg_log_det, normalise};
use bochner_dense::Cholesky;
use ndarray::{Array3, Axis};
use proptest::prelude::*;

/// Lower-triangular with a positive diagonal, entries over six orders of magnitude.
fn factor() -> impl Strategy<Value = Array3<f64>> {
    (1usize..6).prop_flat_map(|heads| {
        let entries = prop::collection::vec((-3.0..3.0, any::<bool>()), heads * heads);
        entries.prop_map(move |entries| {
            Array3::from_shape_fn((1, heads, heads), |(_, m, k)| {
                let (exponent, negative) = entries[m * heads + k];
                let x = 10.0_f64.powf(exponent);
                if negative && m != k { -x } else { x }
            })
        })
    })
}

proptest! {
    #[test]
    fn the_diagonal_is_one_and_the_matrix_symmetric(factor in factor()) {
        let corr = correlation(normalise(factor.view()).unwrap().view()).unwrap();
        let corr = corr.index_axis(Axis(0), 0);
        prop_assert!(corr.diag().iter().all(|x| (x - 1.0).abs() < 1e-14));
        prop_assert_eq!(corr, corr.t());
        prop_assert!(corr.iter().all(|x| x.abs() < 1.0 + 1e-14));
    }

    #[test]
    fn it_is_positive_definite_and_its_determinant_is_the_one_reported(
        // The elimination loses as many digits as the determinant has zeros behind the point.
        lh in factor()
            .prop_map(|factor| normalise(factor.view()).unwrap())
            .prop_filter("determinant", |lh| lh.index_axis(Axis(0), 0).diag().product() > 1e-3)
    ) {
        let corr = correlation(lh.view()).unwrap();
        // There is a Cholesky factor exactly if the matrix is positive definite.
        let factor = Cholesky::new(corr.index_axis(Axis(0), 0)).unwrap();
        let want = -0.5 * factor.log_determinant();
        let got = half_neg_log_det(lh.view()).unwrap()[0];
        prop_assert!((got - want).abs() < 1e-6 * (1.0 + want));
    }

    #[test]
    fn dependence_costs_and_independence_does_not(factor in factor()) {
        let kl = |factor: &Array3<f64>| {
            let lh = normalise(factor.view()).unwrap();
            dependence_kl(lh.insert_axis(Axis(0)).view()).unwrap()[0]
        };
        let heads = factor.dim().1;
        prop_assert_eq!(kl(&factor) > 0.0, heads > 1);
        let mut diagonal = factor;
        diagonal.indexed_iter_mut().for_each(|((_, m, k), x)| if m != k { *x = 0.0 });
        prop_assert_eq!(kl(&diagonal), 0.0);
    }
}
