//! Systems in lower-triangular factors of small matrices, with many right-hand sides.
//!
//! These are plain loops and not those of `bochner-dense`: the matrices are M x M over heads or
//! coordinates, M up to about 64, and the right-hand sides of a block of observations stand next to each
//! other, so that the inner loop vectorises over observations.

use bochner_numerics::instructions::{Arithmetic, Task, run};
use ndarray::ArrayView2;

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
