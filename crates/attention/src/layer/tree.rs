//! Sequences that have branched off each other share what they have in common.

use super::readers::Readers;
use crate::{Error, engine::Decoder};
use bochner_engine::Paths;
use bochner_numerics::Real;
use bochner_numerics::lists::keep_marked;

/// The sequences of a decoder as the paths of a tree: those that were one before have one memory, which holds the
/// positions of all of them, and each attends to the positions of its own path alone.
///
/// A reorder copies nothing of the memories. Positions that lie on no path any more are forgotten once they are as many
/// as the others.
#[derive(Clone, Debug)]
pub(super) struct Tree {
    pub(super) readers: Readers,
    /// The positions of its memory that each sequence has passed.
    passed: Vec<Vec<bool>>,
    /// The rows before a reorder, whose memory the next ones take.
    before: Vec<Vec<bool>>,
    /// The number of positions that each sequence has passed.
    lengths: Vec<usize>,
    /// The number of sequences that read each memory.
    counts: Vec<usize>,
    paths: Paths,
    marks: Vec<bool>,
}

/// A memory of at most this many positions forgets none: searching it costs more than it holds.
const FEW: usize = 32;

impl Tree {
    /// Sequences of these lengths, each with a memory of its own.
    pub(super) fn new(lengths: &[usize]) -> Self {
        Self {
            readers: Readers::new(lengths.len()),
            passed: lengths.iter().map(|&length| vec![true; length]).collect(),
            before: Vec::new(),
            lengths: lengths.to_vec(),
            counts: Vec::new(),
            paths: Paths::default(),
            marks: Vec::new(),
        }
    }

    /// The number of positions of each sequence.
    pub(super) fn lengths(&self) -> &[usize] {
        &self.lengths
    }

    /// Whether no two sequences have anything in common.
    pub(super) fn has_parted(&self) -> bool {
        self.readers.shape()[1] == 1
    }

    /// Sequence `b` becomes what `indices[b]` was.
    ///
    /// # Errors
    /// [`Error::Argument`] without an index, or for a sequence that is not there.
    pub(super) fn reorder<T: Real>(
        &mut self,
        indices: &[usize],
        decoder: &mut Decoder<T>,
    ) -> Result<(), Error> {
        let read = self.readers.reorder(indices)?;
        if read.len() < decoder.lengths().len() {
            decoder.reorder(read)?;
        }
        std::mem::swap(&mut self.passed, &mut self.before);
        self.passed.resize_with(indices.len(), Vec::new);
        for (row, &index) in self.passed.iter_mut().zip(indices) {
            row.clone_from(&self.before[index]);
        }
        for (memory, group) in self.readers.groups().enumerate() {
            self.marks.clear();
            self.marks.resize(decoder.lengths()[memory], false);
            for &b in group {
                let both = self.marks.iter_mut().zip(&self.passed[b]);
                both.for_each(|(mark, &passed)| *mark |= passed);
            }
            let kept = self.marks.iter().filter(|&&mark| mark).count();
            if self.marks.len() > FEW.max(2 * kept) {
                decoder.keep(memory, &self.marks);
                for &b in group {
                    keep_marked(&mut self.passed[b], &self.marks);
                }
            }
        }
        self.count();
        Ok(())
    }

    /// Adds the next position of each sequence: how many there are of each memory, which holds `lengths`, and the paths
    /// to them.
    pub(super) fn grow(&mut self, lengths: &[usize]) -> (&Readers, &[usize], &Paths) {
        self.counts.clear();
        self.paths.clear();
        for (group, &held) in self.readers.groups().zip(lengths) {
            self.counts.push(group.len());
            for (i, &b) in group.iter().enumerate() {
                let row = &mut self.passed[b];
                row.resize(held + group.len(), false);
                row[held + i] = true;
                self.paths.push(row);
            }
            self.paths.end_example();
        }
        self.count();
        (&self.readers, &self.counts, &self.paths)
    }

    /// Gives each sequence a memory of its own.
    pub(super) fn part<T: Real>(self, decoder: &mut Decoder<T>) {
        let parted = decoder.reorder(self.readers.of());
        parted.expect("memories that are there");
        for (b, row) in self.passed.iter().enumerate() {
            if row.contains(&false) {
                decoder.keep(b, row);
            }
        }
    }

    fn count(&mut self) {
        let length = |row: &Vec<bool>| row.iter().filter(|&&passed| passed).count();
        self.lengths.clear();
        self.lengths.extend(self.passed.iter().map(length));
    }
}
