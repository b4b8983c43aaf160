//! Factorisations of matrices that lie column by column in a slice, by faer or by LAPACK.
//!
//! The entries above a factor's diagonal are zero and never read.

#[cfg(any(test, not(feature = "lapack")))]
mod pure;
#[cfg(feature = "lapack")]
mod system;

#[cfg(not(feature = "lapack"))]
pub(crate) use pure::{eigen, eigenvalues, factor, inverse, solve, svd, whiten};
#[cfg(feature = "lapack")]
pub(crate) use system::{eigen, eigenvalues, factor, inverse, solve, svd, whiten};

/// Left vectors, values and right vectors.
pub(crate) type Singular = (Vec<f64>, Vec<f64>, Vec<f64>);

/// Sets the entries above the diagonal to zero; a factorisation in place leaves its input there.
fn clear_above_diagonal(a: &mut [f64], order: usize) {
    for (j, column) in a.chunks_exact_mut(order.max(1)).enumerate() {
        column[..j].fill(0.0);
    }
}

/// The two libraries compared. Without the feature `lapack` there is only one of them.
#[cfg(all(test, feature = "lapack"))]
mod tests {
    use super::{pure, system};
    use crate::testing::covariance;
    use bochner_numerics::{check::random, relative_error};

    fn assert_close(a: &[f64], b: &[f64]) {
        let error = relative_error(a, b);
        assert!(error < 1e-10, "{error:e}");
    }

    #[test]
    fn factors_solutions_and_inverses_agree() {
        for order in [1, 2, 65, 300] {
            let a: Vec<f64> = covariance(order).iter().copied().collect();
            let (mut l, mut other) = (a.clone(), a);
            system::factor(&mut l, order).unwrap();
            pure::factor(&mut other, order).unwrap();
            assert_close(&l, &other);

            let rows: Vec<f64> = random((3, order), "matrix").iter().copied().collect();
            let (mut got, mut want) = (rows.clone(), rows.clone());
            system::whiten(&l, order, &mut got);
            pure::whiten(&l, order, &mut want);
            assert_close(&got, &want);
            let (mut got, mut want) = (rows.clone(), rows);
            system::solve(&l, order, &mut got);
            pure::solve(&l, order, &mut want);
            assert_close(&got, &want);

            let (got, want) = (system::inverse(&l, order), pure::inverse(&l, order));
            for j in 0..order {
                let lower = j * order + j..(j + 1) * order;
                assert_close(&got[lower.clone()], &want[lower]);
            }
        }
    }

    #[test]
    fn the_row_where_positive_definiteness_ends_agrees() {
        let mut a: Vec<f64> = covariance(100).iter().copied().collect();
        a[70 * 101] = 0.5;
        assert_eq!(system::factor(&mut a.clone(), 100), Err(70));
        assert_eq!(pure::factor(&mut a, 100), Err(70));
    }

    #[test]
    fn eigenvalues_and_singular_values_agree() {
        for order in [1, 2, 40, 150] {
            let a: Vec<f64> = covariance(order).iter().copied().collect();
            let want = pure::eigenvalues(&a, order).unwrap();
            assert_close(&system::eigenvalues(&a, order).unwrap(), &want);
            assert_close(&system::eigen(&a, order).unwrap().0, &want);
            assert_close(&pure::eigen(&a, order).unwrap().0, &want);
            let (m, n) = (order, 2 * order + 1);
            let a: Vec<f64> = random((m, n), "matrix").iter().copied().collect();
            let want = pure::svd(a.clone(), m, n).unwrap();
            assert_close(&system::svd(a, m, n).unwrap().1, &want.1);
        }
    }
}
