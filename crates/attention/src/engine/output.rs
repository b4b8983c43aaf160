//! Where results are written.

use super::scan::ResultRows;
use super::{Level, RowStatistics};
use bochner_numerics::instructions::{self, Arithmetic, Task};
use bochner_numerics::memory::Unwritten;
use bochner_numerics::operations::record;
use bochner_numerics::{Operations, Real};

/// Rows of the output, `[rows, dv]`, to be written, with what becomes known of them. The thread that adds
/// to a row clears it right before it does.
pub(crate) struct OutputRows<'a, T> {
    pub(crate) output: Unwritten<'a, T>,
    pub(crate) statistics: &'a mut [RowStatistics<T>],
}

impl<T: Real> ResultRows for OutputRows<'_, T> {
    fn split_at(self, rows: usize) -> (Self, Self) {
        let width = self.output.len() / self.statistics.len().max(1);
        let (output, more_output) = self.output.split_at(rows * width);
        let (statistics, more_statistics) = self.statistics.split_at_mut(rows);
        let first = Self { output, statistics };
        let others = Self {
            output: more_output,
            statistics: more_statistics,
        };
        (first, others)
    }

    fn clear(self) {
        self.output.zeros();
        self.statistics.fill(RowStatistics::new(Level::NONE));
    }
}

/// Divides rows of `width` numbers by their normalisers; rows that met no key stay what they are.
pub(crate) fn normalise<T: Real>(rows: &mut [T], width: usize, statistics: &[RowStatistics<T>]) {
    record(Operations::multiply_adds(rows.len()));
    instructions::run(Normalise {
        rows,
        width,
        statistics,
    });
}

struct Normalise<'a, T> {
    rows: &'a mut [T],
    width: usize,
    statistics: &'a [RowStatistics<T>],
}

impl<T: Real> Task for Normalise<'_, T> {
    #[inline(always)]
    fn run<A: Arithmetic>(self, _: A) {
        let rows = self.rows.chunks_exact_mut(self.width);
        for (row, statistics) in rows.zip(self.statistics) {
            if statistics.normaliser > T::zero() {
                row.iter_mut().for_each(|x| *x /= statistics.normaliser);
            }
        }
    }
}
