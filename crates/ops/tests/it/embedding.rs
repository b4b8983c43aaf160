//! Rows of a table, looked up by number.

use bochner_ops::{filled, lookup, lookup_vjp};

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
