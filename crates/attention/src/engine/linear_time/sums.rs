//! Sums over positions, from which any other position can be attended to.

use crate::engine::Level;
use bochner_numerics::{Mat, MatMut, Real, matmul};

/// $S = \sum_j g_j \psi_j y_j^T$ and $\sum_j g_j y_j$, with $g_j = \exp(m_j - \text{reference})$.
///
/// Over keys, $y = [v | 1]$. In the backward pass the same is summed over queries, with
/// $y = [dO | -dO \cdot O] / Z$ and $g_i = \exp(\text{reference} - r_i)$.
#[derive(Clone, Debug)]
pub(crate) struct Sums<T> {
    pub(super) reference: Level,
    /// S, of shape `[features, columns]`.
    pub(super) moments: Vec<T>,
    /// $\sum_j g_j y_j$.
    pub(super) totals: Vec<T>,
}

impl<T: Real> Sums<T> {
    /// Of nothing.
    pub(super) fn zeros(features: usize, columns: usize) -> Self {
        Self {
            reference: Level::NONE,
            moments: vec![T::zero(); features * columns],
            totals: vec![T::zero(); columns],
        }
    }

    pub(super) fn matrix(&self) -> Mat<'_, T> {
        let columns = self.totals.len();
        Mat::new(&self.moments, self.moments.len() / columns, columns)
    }

    /// Whether nothing has been summed up.
    pub(super) fn is_empty(&self) -> bool {
        self.reference == Level::NONE
    }

    /// Adds weighted rows `y`, given $\psi^T$.
    pub(super) fn add(&mut self, psi: Mat<T>, y: &[T]) {
        let ((features, rows), columns) = (psi.shape(), self.totals.len());
        matmul(
            T::one(),
            psi,
            Mat::new(y, rows, columns),
            T::one(),
            MatMut::new(&mut self.moments, features, columns),
        );
        let mut totals = vec![T::zero(); columns];
        for row in y.chunks_exact(columns) {
            totals.iter_mut().zip(row).for_each(|(a, &b)| *a += b);
        }
        self.totals
            .iter_mut()
            .zip(totals)
            .for_each(|(a, b)| *a += b);
    }

    /// Makes everything relative to a reference that is not below the present one.
    pub(super) fn raise(&mut self, reference: Level) {
        self.scale(self.reference.minus(reference).exp());
        self.reference = reference;
    }

    /// The same for sums over queries, whose weights fall with the reference.
    pub(super) fn lower(&mut self, reference: Level) {
        self.scale(reference.minus(self.reference).exp());
        self.reference = reference;
    }

    /// Adds sums relative to the same reference.
    pub(super) fn join(&mut self, other: &Self) {
        let parts = [
            (&mut self.moments, &other.moments),
            (&mut self.totals, &other.totals),
        ];
        for (sums, more) in parts {
            sums.iter_mut().zip(more).for_each(|(a, &b)| *a += b);
        }
    }

    /// The same of values divided by a power of two.
    pub(crate) fn with_divided_values(&self, power: i32) -> Self {
        let mut sums = self.clone();
        let columns = self.totals.len();
        for row in [&mut sums.moments, &mut sums.totals] {
            for (n, x) in row.iter_mut().enumerate() {
                if n % columns + 1 < columns {
                    *x = T::of(libm::scalbn(x.as_f64(), -power));
                }
            }
        }
        sums
    }

    fn scale(&mut self, factor: f64) {
        if factor != 1.0 && !self.is_empty() {
            let factor = T::of(factor);
            let all = self.moments.iter_mut().chain(&mut self.totals);
            all.for_each(|x| *x *= factor);
        }
    }
}
