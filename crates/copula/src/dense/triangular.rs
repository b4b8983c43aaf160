//! Lower-triangular factors of small symmetric matrices.
//!
//! Written out rather than taken from a linear algebra library: the matrices are M x M over heads
//! or coordinates, M up to about 64, where the plain loops cost microseconds, and a library would
//! cost this crate most of its compile time. The factors are also turned, which no library does
//! for row-normalised ones without forming the correlation again.

use bochner_numerics::instructions::{Arithmetic, Task, run};
use ndarray::{Array2, ArrayView2};

/// The lower-triangular `L` with a positive diagonal and `L L^T` the symmetric matrix given, of
/// which only the lower part is read; or the row and the pivot where positive definiteness ends.
///
/// A pivot counts as positive above `M` units of rounding of its diagonal entry.
pub(crate) fn cholesky(a: ArrayView2<f64>) -> Result<Array2<f64>, (usize, f64)> {
    let size = a.nrows();
    let mut l = Array2::<f64>::zeros((size, size));
    for i in 0..size {
        for j in 0..=i {
            let inner: f64 = (0..j).map(|k| l[[i, k]] * l[[j, k]]).sum();
            let rest = a[[i, j]] - inner;
            if i > j {
                l[[i, j]] = rest / l[[j, j]];
            } else if rest > size as f64 * f64::EPSILON * a[[i, i]] {
                l[[i, i]] = rest.sqrt();
            } else {
                return Err((i, rest));
            }
        }
    }
    Ok(l)
}

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

/// Replaces `x` by `L^-1 x`.
pub(crate) fn solve(l: ArrayView2<f64>, x: &mut [f64]) {
    for i in 0..x.len() {
        let inner: f64 = (0..i).map(|k| l[[i, k]] * x[k]).sum();
        x[i] = (x[i] - inner) / l[[i, i]];
    }
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
    fn run<A: Arithmetic>(self) {
        let n = self.x.len() / self.l.nrows();
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
    use ndarray::array;

    fn factor() -> Array2<f64> {
        array![[1.0, 0.0, 0.0], [-0.6, 0.8, 0.0], [0.48, 0.64, 0.6]]
    }

    fn close(a: &Array2<f64>, b: &Array2<f64>) -> bool {
        a.iter().zip(b).all(|(a, b)| (a - b).abs() < 1e-14)
    }

    #[test]
    fn cholesky_finds_the_factor_back() {
        let l = factor();
        assert!(close(&cholesky(l.dot(&l.t()).view()).unwrap(), &l));
    }

    #[test]
    fn the_pivot_that_fails_is_named() {
        let a = array![[1.0, 0.0, 2.0], [0.0, 1.0, 0.0], [2.0, 0.0, 1.0]];
        assert_eq!(cholesky(a.view()), Err((2, -3.0)));
        assert_eq!(cholesky(Array2::ones((2, 2)).view()), Err((1, 0.0)));
    }

    #[test]
    fn a_reordered_factor_is_that_of_the_reordered_matrix() {
        let (l, order) = (factor(), [2, 0, 1]);
        let a = l.dot(&l.t());
        let want = Array2::from_shape_fn((3, 3), |(i, j)| a[[order[i], order[j]]]);
        assert!(close(
            &reordered(l.view(), &order),
            &cholesky(want.view()).unwrap()
        ));
    }

    #[test]
    fn solving_undoes_multiplying() {
        let (l, x) = (factor(), [0.3, -1.7, 2.2]);
        let y: [f64; 3] = l.dot(&ndarray::aview1(&x)).to_vec().try_into().unwrap();
        let mut y = y;
        solve(l.view(), &mut y);
        assert!(x.iter().zip(y).all(|(x, y)| (x - y).abs() < 1e-14));
        solve_columns_transposed(l.view(), &mut y);
        let back = l.t().dot(&ndarray::aview1(&y));
        assert!(x.iter().zip(back).all(|(x, y)| (x - y).abs() < 1e-14));
    }

    #[test]
    fn columns_are_solved_one_by_one() {
        let l = factor();
        let x: Vec<f64> = (0..15).map(|i| f64::from(i).sin()).collect();
        let (mut whole, mut turned) = (x.clone(), x.clone());
        solve_columns(l.view(), &mut whole);
        solve_columns_transposed(l.view(), &mut turned);
        for c in 0..5 {
            let column = |x: &[f64]| [x[c], x[c + 5], x[c + 10]];
            let (mut one, mut other) = (column(&x), column(&x));
            solve(l.view(), &mut one);
            solve_columns_transposed(l.view(), &mut other);
            let close =
                |a: [f64; 3], b: [f64; 3]| a.iter().zip(b).all(|(a, b)| (a - b).abs() < 1e-14);
            assert!(close(column(&whole), one) && close(column(&turned), other));
        }
        solve_columns(l.view(), &mut []);
    }
}
