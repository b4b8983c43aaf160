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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::filled;

    #[test]
    fn no_indices_give_no_rows() {
        let [rows] = filled([0], |[rows]| lookup(&[1.0; 6], 2, &[], rows));
        assert!(rows.is_empty());
        lookup_vjp::<f64>(&[], &[], &mut [], &mut []);
    }

    #[test]
    #[should_panic(expected = "index 3 of a table of 3 rows")]
    fn a_gradient_of_no_row_is_not_dropped() {
        lookup_vjp(&[1, 3], &[1.0; 4], &mut [0.0; 6], &mut [0.0; 3]);
    }

    #[test]
    #[should_panic(expected = "for 3 rows, 2 indices and rows of width 2")]
    fn a_cotangent_of_too_few_rows_is_refused() {
        lookup_vjp(&[1, 2], &[1.0; 3], &mut [0.0; 6], &mut [0.0; 3]);
    }

    #[test]
    #[should_panic(expected = "index 3 of a table of 3 rows: indices count from 0")]
    fn a_row_that_the_table_does_not_have_is_refused() {
        filled([4], |[rows]| lookup(&[1.0; 6], 2, &[0, 3], rows));
    }

    #[test]
    #[should_panic(expected = "a table of 7 numbers for rows of width 2")]
    fn a_table_with_part_of_a_row_is_refused() {
        filled([2], |[rows]| lookup(&[1.0; 7], 2, &[0], rows));
    }

    #[test]
    fn rows_are_copied_and_their_cotangents_added() {
        let table: Vec<f64> = (0..40).map(f64::from).collect();
        let indices = [3, 19, 3, 0];
        let [rows] = filled([8], |[rows]| lookup(&table, 2, &indices, rows));
        assert_eq!(rows, [6.0, 7.0, 38.0, 39.0, 6.0, 7.0, 0.0, 1.0]);
        let (mut gradient, mut marks) = (vec![1.0; 40], vec![0.0; 20]);
        lookup_vjp(&indices, &rows, &mut gradient, &mut marks);
        let mut want = vec![1.0; 40];
        for (row, [a, b]) in [(3, [12.0, 14.0]), (19, [38.0, 39.0]), (0, [0.0, 1.0])] {
            want[2 * row] += a;
            want[2 * row + 1] += b;
        }
        assert_eq!(gradient, want);
        let marked: Vec<usize> = (0..20).filter(|&i| marks[i] == 1.0).collect();
        assert_eq!(marked, [0, 3, 19]);
    }
}
