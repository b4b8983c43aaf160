//! Where results are written.

use super::RowStatistics;

/// Rows of the output, `[rows, dv]`, to be written, with what becomes known of them.
pub(crate) struct OutputRows<'a, T> {
    pub(crate) output: &'a mut [T],
    pub(crate) statistics: &'a mut [RowStatistics<T>],
}

impl<T> OutputRows<'_, T> {
    /// The first rows, and the others.
    pub(crate) fn split_at(self, rows: usize) -> (Self, Self) {
        let width = self.output.len() / self.statistics.len().max(1);
        let (output, more_output) = self.output.split_at_mut(rows * width);
        let (statistics, more_statistics) = self.statistics.split_at_mut(rows);
        let first = Self { output, statistics };
        let others = Self {
            output: more_output,
            statistics: more_statistics,
        };
        (first, others)
    }
}
