//! Dense positive definite matrices: the same four functions, by faer or by LAPACK.
//!
//! Matrices are column by column. What is above a factor's diagonal is zero and never read.

#[cfg(any(test, not(feature = "lapack")))]
mod pure;
#[cfg(feature = "lapack")]
mod system;

#[cfg(not(feature = "lapack"))]
pub(crate) use pure::{factor, inverse, solve, whiten};
#[cfg(feature = "lapack")]
pub(crate) use system::{factor, inverse, solve, whiten};

/// Sets everything above the diagonal to zero, where a factorisation in place leaves its input.
fn clear_above_diagonal(a: &mut [f64], order: usize) {
    for (j, column) in a.chunks_exact_mut(order.max(1)).enumerate() {
        column[..j].fill(0.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bochner_numerics::relative_error;

    /// A covariance matrix over several blocks of either library, with a condition of about 1e4.
    fn covariance(order: usize) -> Vec<f64> {
        let entry = |i: usize, j: usize| {
            let smooth = (-0.02 * (i as f64 - j as f64).powi(2)).exp();
            if i == j { smooth + 1e-3 } else { smooth }
        };
        (0..order * order)
            .map(|k| entry(k % order, k / order))
            .collect()
    }

    #[test]
    fn whichever_is_built_agrees_with_faer() {
        for order in [1, 2, 65, 300] {
            let a = covariance(order);
            let (l, want) = (factor(a.clone(), order), pure::factor(a, order));
            let (l, want) = (l.unwrap(), want.unwrap());
            assert!(relative_error(&l, &want) < 1e-10);

            let rows: Vec<f64> = (0..3 * order).map(|k| (k as f64).sin()).collect();
            let (mut got, mut expected) = (rows.clone(), rows.clone());
            whiten(&l, order, &mut got);
            pure::whiten(&l, order, &mut expected);
            assert!(relative_error(&got, &expected) < 1e-10);

            let (mut got, mut expected) = (rows.clone(), rows);
            solve(&l, order, &mut got);
            pure::solve(&l, order, &mut expected);
            assert!(relative_error(&got, &expected) < 1e-10);

            let (got, expected) = (inverse(&l, order), pure::inverse(&l, order));
            for j in 0..order {
                let lower = j * order + j..(j + 1) * order;
                assert!(relative_error(&got[lower.clone()], &expected[lower]) < 1e-10);
            }
        }
    }

    #[test]
    fn both_name_the_row_where_positive_definiteness_ends() {
        let mut a = covariance(100);
        a[70 * 101] = 0.5;
        assert_eq!(factor(a.clone(), 100), Err(70));
        assert_eq!(pure::factor(a, 100), Err(70));
    }
}
