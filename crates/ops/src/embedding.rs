//! Rows of a table, looked up by number.

use crate::operation::Slot;
use crate::rows::{add, for_each_piece};
use bochner_numerics::Real;

/// Multiplications that take as long as fetching one number of a table.
const WORK: usize = 4;

/// Writes the rows of a table that these numbers name, one after the other.
///
/// # Shapes
/// `table: [words, width]`, `indices: [n]`, each below `words`, to `[n, width]`.
///
/// # Panics
/// If an index is too large, or `width` is 0 or does not divide the table.
pub fn lookup<T: Real>(table: &[T], width: usize, indices: &[usize], rows: Slot<'_, T>) {
    assert!(
        width > 0 && table.len().is_multiple_of(width),
        "a table of {} numbers for rows of width {width}: it takes whole rows",
        table.len()
    );
    assert_below(indices, table.len() / width);
    let work = indices.len() * width * WORK;
    rows.by_blocks(indices.len(), work, |range, piece| {
        let found = indices[range].iter();
        piece.write(|rows| {
            rows.copies_of(found.map(|&i| &table[i * width..(i + 1) * width]));
        });
    });
}

/// Adds the cotangent of each row that [`lookup`] wrote to that of its table row, and sets the mark of this
/// row to one.
///
/// The marks tell the few rows that may differ from zero from all the others.
///
/// # Shapes
/// `indices: [n]`, `dy: [n, width]`, `gradient: [words, width]`, `marks: [words]`.
///
/// # Panics
/// If an index is too large, `marks` does not divide `gradient`, or `dy` does not hold one row for each index.
///
/// # Numerics
/// Each thread has table rows of its own and adds to them in the order of the indices.
pub fn lookup_vjp<T: Real>(indices: &[usize], dy: &[T], gradient: &mut [T], marks: &mut [T]) {
    /// Parts of the table.
    const PARTS: usize = 8;
    let words = marks.len();
    assert_below(indices, words);
    if words == 0 {
        return;
    }
    let (width, part) = (gradient.len() / words, words.div_ceil(PARTS));
    assert_eq!(
        [gradient.len(), dy.len()],
        [words * width, indices.len() * width],
        "the numbers of the gradient and of dy, for {words} rows, {} indices and rows of width {width}",
        indices.len()
    );
    let parts = gradient
        .chunks_mut(part * width)
        .zip(marks.chunks_mut(part));
    for_each_piece(parts.enumerate(), dy.len() * WORK, |(i, (rows, marks))| {
        for (&index, dy) in indices.iter().zip(dy.chunks_exact(width)) {
            // Below the part's first row the difference is huge.
            let index = index.wrapping_sub(i * part);
            if let Some(mark) = marks.get_mut(index) {
                *mark = T::one();
                add(&mut rows[index * width..(index + 1) * width], dy);
            }
        }
    });
}

/// Checks that a table has all rows that are asked for.
///
/// # Panics
/// If an index is too large.
fn assert_below(indices: &[usize], words: usize) {
    if let Some(wrong) = indices.iter().find(|&&index| index >= words) {
        panic!("index {wrong} of a table of {words} rows: indices count from 0");
    }
}
