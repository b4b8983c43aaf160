//! Lower-triangular factors of small matrices, and systems in them with many right-hand sides.
//!
//! These are plain loops and not those of `bochner-dense`: the matrices are M x M over heads or
//! coordinates, M up to about 64, and the right-hand sides of a block of observations stand next to each
//! other, so that the inner loop vectorises over observations. No library reorders a row-normalised
//! factor without forming the correlation matrix again.

use bochner_numerics::instructions::{Arithmetic, Task, run};
use ndarray::{Array2, ArrayView2};

/// The factor of the matrix with rows and columns in another order: `order[i]` comes to place `i`.
///
/// Rotates the reordered rows of the factor back into triangular form, so that nothing is squared
/// and a factor close to singular stays one.
pub(crate) fn reordered(factor: ArrayView2<f64>, order: &[usize]) -> Array2<f64> {
    let size = order.len();
    let mut l = Array2::from_shape_fn((size, size), |(i, k)| factor[[order[i], k]]);
    for i in 0..size {
        for k in i + 1..size {
            rotate(&mut l, i, k);
        }
        if l[[i, i]] < 0.0 {
            l.column_mut(i).mapv_inplace(|x| -x);
        }
    }
    l
}

/// Turns columns `i` and `k` so that the entry `(i, k)` vanishes.
fn rotate(l: &mut Array2<f64>, i: usize, k: usize) {
    let radius = l[[i, i]].hypot(l[[i, k]]);
    if l[[i, k]] == 0.0 {
        return;
    }
    let (cos, sin) = (l[[i, i]] / radius, l[[i, k]] / radius);
    for row in i..l.nrows() {
        let (a, b) = (l[[row, i]], l[[row, k]]);
        l[[row, i]] = cos * a + sin * b;
        l[[row, k]] = cos * b - sin * a;
    }
    l[[i, k]] = 0.0;
}

/// Replaces each column of `x: [M, n]`, row by row in memory, by `L^-1` times it.
pub(crate) fn solve_columns(l: ArrayView2<f64>, x: &mut [f64]) {
    let order = 0..l.nrows();
    run(Substitution { l, x, order });
}

/// Replaces each column of `x: [M, n]`, row by row in memory, by `L^-T` times it.
pub(crate) fn solve_columns_transposed(l: ArrayView2<f64>, x: &mut [f64]) {
    let (l, order) = (l.reversed_axes(), (0..l.nrows()).rev());
    run(Substitution { l, x, order });
}

/// Solves for the rows of `x` in the order given, in which the matrix is triangular.
struct Substitution<'a, I> {
    l: ArrayView2<'a, f64>,
    x: &'a mut [f64],
    order: I,
}

impl<I: Iterator<Item = usize> + Clone> Task for Substitution<'_, I> {
    #[inline(always)]
    fn run<A: Arithmetic>(self, _: A) {
        // A matrix without rows has no right-hand sides.
        let n = self.x.len() / self.l.nrows().max(1);
        let row = |i: usize| i * n..(i + 1) * n;
        for (solved, i) in self.order.clone().enumerate() {
            for k in self.order.clone().take(solved) {
                let factor = -self.l[[i, k]];
                let [x, y] = self
                    .x
                    .get_disjoint_mut([row(k), row(i)])
                    .expect("different rows");
                for (y, x) in y.iter_mut().zip(x) {
                    *y = A::mul_add(factor, *x, *y);
                }
            }
            self.x[row(i)].iter_mut().for_each(|x| *x /= self.l[[i, i]]);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bochner_dense::Cholesky;
    use ndarray::array;

    fn factor() -> Array2<f64> {
        array![[1.0, 0.0, 0.0], [-0.6, 0.8, 0.0], [0.48, 0.64, 0.6]]
    }

    fn close(a: ArrayView2<f64>, b: ArrayView2<f64>) -> bool {
        a.iter().zip(b).all(|(a, b)| (a - b).abs() < 1e-14)
    }

    #[test]
    fn a_reordered_factor_is_that_of_the_reordered_matrix() {
        let (l, order) = (factor(), [2, 0, 1]);
        let a = l.dot(&l.t());
        let reordered_a = Array2::from_shape_fn((3, 3), |(i, j)| a[[order[i], order[j]]]);
        let want = Cholesky::new(reordered_a.view()).unwrap();
        assert!(close(reordered(l.view(), &order).view(), want.lower()));
    }

    #[test]
    fn solving_undoes_multiplying_for_every_column() {
        for columns in [0, 1, 5] {
            let l = factor();
            let x = Array2::from_shape_fn((3, columns), |(i, j)| ((5 * i + j) as f64).sin());
            let solved = |of: Array2<f64>, solve: fn(ArrayView2<f64>, &mut [f64])| {
                let mut of = of.into_raw_vec_and_offset().0;
                solve(l.view(), &mut of);
                Array2::from_shape_vec((3, columns), of).unwrap()
            };
            assert!(close(solved(l.dot(&x), solve_columns).view(), x.view()));
            assert!(close(
                solved(l.t().dot(&x), solve_columns_transposed).view(),
                x.view()
            ));
        }
    }
}
