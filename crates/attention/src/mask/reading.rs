//! What is checked when a mask is read.

use super::{Mask, check_window};
use crate::Error;
use bochner_numerics::argument;

bochner_numerics::checked_when_read!(Mask, Mask::is_one_that_can_be_made);

impl Mask {
    /// Refuses what no constructor makes; [`validate`](Self::validate) compares the rest with the sequences.
    fn is_one_that_can_be_made(&self) -> Result<(), Error> {
        self.window.map_or(Ok(()), check_window)?;
        let matrices = self.matrices[0].saturating_mul(self.matrices[1]);
        argument::at_least_one("matrices", matrices)?;
        let rows = self.matrix.as_ref().map_or(0, |rows| rows.len());
        argument::shape("matrix", &[rows.next_multiple_of(matrices)], &[rows])?;
        let mut of_rows = self.matrix.iter().flat_map(|rows| rows.iter());
        if let Some(first) = of_rows.next() {
            of_rows.try_for_each(|row| {
                argument::shape("row of matrix", &[first.len()], &[row.len()])
            })?;
        }
        // A block has one position more than this number.
        argument::index("more_of_block", self.more_of_block, usize::MAX)?;
        Ok(())
    }
}
