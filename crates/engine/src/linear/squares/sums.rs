//! Sums over positions, from which any other position can be attended to.

use super::order::Squares;
use crate::lanes::add;
use bochner_numerics::{Buffer, Buffers, Mat, Real};

/// Rows of $[r | s]$, the last column apart from the others.
///
/// Values and a column of ones are as wide as no register is; the ones' column of a product costs
/// less as a sum of its own.
#[derive(Clone, Debug)]
pub(crate) struct Augmented<T> {
    /// r, row by row.
    pub(super) wide: Buffer<T>,
    /// s.
    pub(super) last: Buffer<T>,
}

impl<T: Real> Augmented<T> {
    pub(super) fn zeros(buffers: &Buffers<T>, rows: usize, width: usize) -> Self {
        Self {
            wide: buffers.filled(rows * width, T::zero()),
            last: buffers.filled(rows, T::zero()),
        }
    }

    /// Columns of r.
    pub(super) fn width(&self) -> usize {
        self.wide.len() / self.last.len()
    }

    /// r.
    pub(super) fn matrix(&self) -> Mat<'_, T> {
        Mat::new(&self.wide, self.last.len(), self.width())
    }

    /// The sum of all rows, as one.
    fn total(&self, buffers: &Buffers<T>) -> Self {
        let mut total = Self::zeros(buffers, 1, self.width());
        for (row, &last) in self.wide.chunks_exact(self.width()).zip(self.last.iter()) {
            add(&mut total.wide, row);
            total.last[0] += last;
        }
        total
    }

    fn add(&mut self, other: &Self) {
        add(&mut self.wide, &other.wide);
        add(&mut self.last, &other.last);
    }

    fn scale(&mut self, factor: T) {
        let all = self.wide.iter_mut().chain(self.last.iter_mut());
        all.for_each(|x| *x *= factor);
    }
}

/// $S = \sum_j g_j \psi_j y_j^T$ and $\sum_j g_j y_j$, with $g_j = \exp(m_j - \text{reference})$.
///
/// Over keys, $y = [v | 1]$. In the backward pass the same is summed over queries, with
/// $y = [dO | -dO \cdot O] / Z$ and $g_i = \exp(\text{reference} - r_i)$.
#[derive(Clone, Debug)]
pub(crate) struct Sums<T> {
    pub(crate) reference: f64,
    /// S, in the order of its features.
    pub(super) moments: Augmented<T>,
    /// $\sum_j g_j y_j$.
    pub(super) totals: Augmented<T>,
}

impl<T: Real> Sums<T> {
    /// Sums over no positions.
    pub(super) fn zeros(buffers: &Buffers<T>, features: usize, width: usize) -> Self {
        Self {
            reference: f64::NEG_INFINITY,
            moments: Augmented::zeros(buffers, features, width),
            totals: Augmented::zeros(buffers, 1, width),
        }
    }

    /// The number of numbers.
    pub(crate) fn size(&self) -> usize {
        let parts = [&self.moments, &self.totals];
        parts.iter().map(|x| x.wide.len() + x.last.len()).sum()
    }

    /// Adds weighted rows `y`.
    pub(super) fn add(&mut self, squares: &mut Squares<T>, y: &Augmented<T>, buffers: &Buffers<T>) {
        squares.add_to(y, &mut self.moments);
        self.totals.add(&y.total(buffers));
    }

    /// Makes everything relative to a reference that is not below the present one.
    pub(super) fn raise(&mut self, reference: f64) {
        self.scale((self.reference - reference).exp());
        self.reference = reference;
    }

    fn scale(&mut self, factor: f64) {
        if factor != 1.0 && self.reference != f64::NEG_INFINITY {
            let factor = T::of(factor);
            self.moments.scale(factor);
            self.totals.scale(factor);
        }
    }
}

impl<T: Real> crate::linear::RunningSums for Sums<T> {
    type Reference = f64;

    fn is_empty(&self) -> bool {
        self.reference == f64::NEG_INFINITY
    }

    fn reference(&self) -> f64 {
        self.reference
    }

    fn follow(&mut self, later: &mut Self) {
        if !later.is_empty() {
            self.raise(later.reference);
            self.join(later);
        }
    }

    fn lower(&mut self, &reference: &f64) {
        self.scale((reference - self.reference).exp());
        self.reference = reference;
    }

    fn join(&mut self, other: &Self) {
        self.moments.add(&other.moments);
        self.totals.add(&other.totals);
    }
}
