//! The positions that the queries of a step see, where sequences branch.

/// The paths to the queries of a call: of the positions that the cache of an example will hold after the call, those
/// that each of its queries sees.
#[derive(Clone, Debug, Default)]
pub struct Paths {
    /// The rows of one example after those of another.
    seen: Vec<bool>,
    /// The end of the rows of each example.
    ends: Vec<usize>,
}

impl Paths {
    pub(crate) fn of_example(&self, example: usize) -> &[bool] {
        let start = example.checked_sub(1).map_or(0, |before| self.ends[before]);
        &self.seen[start..self.ends[example]]
    }

    /// Removes all rows.
    pub fn clear(&mut self) {
        self.seen.clear();
        self.ends.clear();
    }

    /// Adds the row of the next query of an example.
    pub fn push(&mut self, row: &[bool]) {
        self.seen.extend_from_slice(row);
    }

    /// Ends the queries of an example.
    pub fn end_example(&mut self) {
        self.ends.push(self.seen.len());
    }
}
