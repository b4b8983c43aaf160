//! Small dense matrices: the same four functions, by loops of our own or by LAPACK.

#[cfg(any(test, not(feature = "lapack")))]
mod jacobi;
#[cfg(feature = "lapack")]
mod system;
mod triangular;

#[cfg(not(feature = "lapack"))]
use jacobi::eigen as decompose;
#[cfg(feature = "lapack")]
use system::eigen as decompose;

#[cfg(feature = "lapack")]
pub(crate) use system::{cholesky, solve};
#[cfg(not(feature = "lapack"))]
pub(crate) use triangular::{cholesky, solve};
pub(crate) use triangular::{reordered, solve_columns, solve_columns_transposed};

use ndarray::{Array1, Array2, ArrayView2};

/// The eigenvalues of a symmetric matrix, in no order, and the eigenvectors as columns.
pub(crate) fn eigen(a: ArrayView2<f64>) -> (Array1<f64>, Array2<f64>) {
    decompose(a)
}

/// The smallest eigenvalue.
pub(crate) fn smallest_eigenvalue(a: ArrayView2<f64>) -> f64 {
    eigen(a).0.fold(f64::INFINITY, |m, &x| m.min(x))
}

#[cfg(test)]
mod tests {
    use super::*;
    use bochner_numerics::{Seed, relative_error, standard_normal};
    use faer::linalg::solvers::Solve;
    use faer::{Mat, Side};
    use ndarray::array;

    const SIZES: [usize; 4] = [1, 2, 7, 40];

    fn correlation(size: usize) -> Array2<f64> {
        let mut stream = Seed::new(3).stream("matrix");
        let b = Array2::<f64>::from_shape_simple_fn((size, size), || standard_normal(&mut stream));
        let covariance = b.dot(&b.t()) + Array2::<f64>::eye(size);
        let std = covariance.diag().mapv(f64::sqrt);
        Array2::from_shape_fn((size, size), |(i, j)| {
            covariance[[i, j]] / (std[i] * std[j])
        })
    }

    fn faer(a: &Array2<f64>) -> Mat<f64> {
        Mat::from_fn(a.nrows(), a.ncols(), |i, j| a[[i, j]])
    }

    fn close(got: &[f64], want: &[f64]) {
        assert!(relative_error(got, want) < 1e-10);
    }

    #[test]
    fn whichever_is_built_agrees_with_faer() {
        for size in SIZES {
            let a = correlation(size);
            let reference = faer(&a).llt(Side::Lower).unwrap();
            let l = cholesky(a.view()).unwrap();
            let want = reference.L();
            let want = Array2::from_shape_fn((size, size), |(i, j)| match j <= i {
                true => want[(i, j)],
                false => 0.0,
            });
            close(l.as_slice().unwrap(), want.as_slice().unwrap());

            let b: Vec<f64> = (0..size).map(|i| (i as f64 + 0.5).sin()).collect();
            let mut x = b.clone();
            solve(l.view(), &mut x);
            let back = want.dot(&ndarray::aview1(&x));
            close(back.as_slice().unwrap(), &b);
            solve_columns_transposed(l.view(), &mut x);
            let want = reference.solve(Mat::from_fn(size, 1, |i, _| b[i]));
            let want: Vec<f64> = (0..size).map(|i| want[(i, 0)]).collect();
            close(&x, &want);
        }
    }

    #[test]
    fn eigenvalues_agree_with_faer_and_the_vectors_multiply_back() {
        for size in SIZES {
            let a = correlation(size);
            let (values, vectors) = eigen(a.view());
            let back = (&vectors * &values).dot(&vectors.t());
            let off = &back - &a;
            assert!(off.iter().all(|x| x.abs() < 1e-12));
            let mut got = values.to_vec();
            got.sort_by(f64::total_cmp);
            let want = faer(&a).self_adjoint_eigenvalues(Side::Lower).unwrap();
            close(&got, &want);
        }
    }

    #[test]
    fn the_smallest_eigenvalue_may_be_negative() {
        let a = array![[1.0, 0.75], [0.75, 0.25]];
        assert!((smallest_eigenvalue(a.view()) + 0.2135).abs() < 1e-4);
    }

    #[test]
    fn what_is_not_positive_definite_has_its_pivot() {
        let a = array![[1.0, 0.0, 2.0], [0.0, 1.0, 0.0], [2.0, 0.0, 1.0]];
        assert_eq!(cholesky(a.view()), Err((2, -3.0)));
        assert_eq!(cholesky(Array2::ones((2, 2)).view()), Err((1, 0.0)));
        let singular = array![[1.0, 1.0 - 1e-16], [1.0 - 1e-16, 1.0]];
        assert!(matches!(cholesky(singular.view()), Err((1, _))));
    }
}
