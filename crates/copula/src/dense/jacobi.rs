//! Eigenvalues and eigenvectors of small symmetric matrices.

use ndarray::{Array1, Array2, ArrayView2};

/// The eigenvalues, in no order, and the eigenvectors as columns, by Jacobi's cyclic rotations.
///
/// Small eigenvalues come out with an absolute error of a few roundings of the largest. Takes of
/// the order of ten sweeps of `M^3` operations.
pub(crate) fn eigen(a: ArrayView2<f64>) -> (Array1<f64>, Array2<f64>) {
    let mut a = a.to_owned();
    let mut vectors = Array2::eye(a.nrows());
    // Quadratic convergence: ten sweeps are usual, and the bound is never met on finite matrices.
    for _ in 0..60 {
        if !sweep(&mut a, &mut vectors) {
            break;
        }
    }
    (a.diag().to_owned(), vectors)
}

/// Rotates every pair of coordinates once; whether there was anything left to rotate.
fn sweep(a: &mut Array2<f64>, vectors: &mut Array2<f64>) -> bool {
    let size = a.nrows();
    let mut moved = false;
    for p in 0..size {
        for q in p + 1..size {
            let scale = a[[p, p]].abs().max(a[[q, q]].abs());
            if a[[p, q]].abs() > 1e-17 * scale {
                let turn = Turn::vanishing(a, p, q);
                turn.columns(a);
                turn.rows(a);
                turn.columns(vectors);
                moved = true;
            }
        }
    }
    moved
}

/// A rotation of coordinates `p` and `q`.
struct Turn {
    p: usize,
    q: usize,
    cos: f64,
    sin: f64,
}

impl Turn {
    /// The smaller of the two rotations after which the entry `(p, q)` is zero.
    fn vanishing(a: &Array2<f64>, p: usize, q: usize) -> Self {
        let theta = (a[[q, q]] - a[[p, p]]) / (2.0 * a[[p, q]]);
        let tan = 1.0_f64.copysign(theta) / (theta.abs() + theta.hypot(1.0));
        let cos = 1.0 / tan.hypot(1.0);
        let sin = tan * cos;
        Self { p, q, cos, sin }
    }

    fn pair(&self, x: f64, y: f64) -> (f64, f64) {
        (self.cos * x - self.sin * y, self.sin * x + self.cos * y)
    }

    fn columns(&self, a: &mut Array2<f64>) {
        for i in 0..a.nrows() {
            (a[[i, self.p]], a[[i, self.q]]) = self.pair(a[[i, self.p]], a[[i, self.q]]);
        }
    }

    fn rows(&self, a: &mut Array2<f64>) {
        for i in 0..a.nrows() {
            (a[[self.p, i]], a[[self.q, i]]) = self.pair(a[[self.p, i]], a[[self.q, i]]);
        }
        // The rotation was chosen for this; rounding would leave something behind.
        a[[self.p, self.q]] = 0.0;
        a[[self.q, self.p]] = 0.0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bochner_numerics::{Seed, standard_normal};
    use ndarray::array;

    #[test]
    fn eigenvectors_put_the_matrix_together_again() {
        let mut stream = Seed::new(3).stream("matrix");
        let b = Array2::<f64>::from_shape_simple_fn((7, 7), || standard_normal(&mut stream));
        let a = &b + &b.t();
        let (values, vectors) = eigen(a.view());
        let back = (&vectors * &values).dot(&vectors.t());
        assert!((&back - &a).iter().all(|x| x.abs() < 1e-13));
        let unit = vectors.t().dot(&vectors) - Array2::<f64>::eye(7);
        assert!(unit.iter().all(|x| x.abs() < 1e-14));
    }

    #[test]
    fn equal_correlations_by_hand() {
        let a = array![[1.0, 0.5, 0.5], [0.5, 1.0, 0.5], [0.5, 0.5, 1.0]];
        let mut values = eigen(a.view()).0.to_vec();
        values.sort_by(f64::total_cmp);
        let want = [0.5, 0.5, 2.0];
        assert!(values.iter().zip(want).all(|(x, y)| (x - y).abs() < 1e-15));
    }

    #[test]
    fn diagonal_and_zero_matrices_are_left_alone() {
        let (values, vectors) = eigen(Array2::<f64>::zeros((3, 3)).view());
        assert_eq!((values, vectors), (Array1::zeros(3), Array2::eye(3)));
    }
}
