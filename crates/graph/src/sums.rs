//! Sums of many terms, whose rounding errors do not grow with the number of terms.

use bochner_numerics::Real;
use bochner_numerics::instructions::Arithmetic;
use bochner_numerics::scaling::bounded;

/// Terms that are added up in their own type. The sums of such blocks are added up in double precision.
const BLOCK: usize = 64;

/// $\sum_i f_i x_i$ of at most N columns; sums of further columns are zero.
#[inline(always)]
pub(crate) fn weighted_sum<'a, T: Real, A: Arithmetic, const N: usize>(
    mut terms: impl ExactSizeIterator<Item = (T, &'a [T])>,
) -> [T; N] {
    if terms.len() <= BLOCK {
        return of_block::<T, A, N>(terms);
    }
    let mut totals = [0.0; N];
    while terms.len() > 0 {
        let block = of_block::<T, A, N>(terms.by_ref().take(BLOCK));
        for (total, sum) in totals.iter_mut().zip(block) {
            *total += sum.as_f64();
        }
    }
    totals.map(T::of)
}

#[inline(always)]
fn of_block<'a, T: Real, A: Arithmetic, const N: usize>(
    terms: impl Iterator<Item = (T, &'a [T])>,
) -> [T; N] {
    let mut sums = [T::zero(); N];
    for (factor, x) in terms {
        for (sum, &x) in sums.iter_mut().zip(x) {
            *sum = A::mul_add(factor, x, *sum);
        }
    }
    sums
}

/// A sum of rows that is built a term at a time.
pub(crate) struct RowSum<T> {
    block: Vec<T>,
    /// The number of terms in the block.
    terms: usize,
    /// The sum of the earlier blocks, where there are any.
    before: Vec<f64>,
}

impl<T: Real> RowSum<T> {
    /// The sum of no terms.
    pub(crate) fn new(columns: usize) -> Self {
        Self {
            block: vec![T::zero(); columns],
            terms: 0,
            before: Vec::new(),
        }
    }

    /// The row that the next term must be added to.
    #[inline(always)]
    pub(crate) fn next(&mut self) -> &mut [T] {
        if self.terms == BLOCK {
            self.end_block();
        }
        self.terms += 1;
        &mut self.block
    }

    #[cold]
    fn end_block(&mut self) {
        self.before.resize(self.block.len(), 0.0);
        for (before, sum) in self.before.iter_mut().zip(&mut self.block) {
            // Infinities of both signs would add up to NaN.
            *before += bounded(*sum).as_f64();
            *sum = T::zero();
        }
        self.terms = 0;
    }

    /// Adds all terms to `start`, and starts again from no terms.
    pub(crate) fn add_to(&mut self, start: &mut [T]) {
        if !self.before.is_empty() {
            self.end_block();
            for (sum, before) in self.block.iter_mut().zip(self.before.drain(..)) {
                *sum = T::of(before);
            }
        }
        for (start, sum) in start.iter_mut().zip(&mut self.block) {
            *start += *sum;
            *sum = T::zero();
        }
        self.terms = 0;
    }
}

/// The sum of rows, in order.
pub(crate) fn sum_of<T: Real>(rows: impl IntoIterator<Item = Vec<T>>, columns: usize) -> Vec<T> {
    let mut sum = RowSum::new(columns);
    for row in rows {
        let terms = sum.next().iter_mut().zip(row);
        terms.for_each(|(sum, x)| *sum += bounded(x));
    }
    let mut out = vec![T::zero(); columns];
    sum.add_to(&mut out);
    out
}
