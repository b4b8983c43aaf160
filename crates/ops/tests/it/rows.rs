//! Work over the rows of a matrix, split by the matrix's shape alone.

use bochner_numerics::memory::Unwritten;
use bochner_ops::rows::{add, by_blocks, first_not_finite, sum_over};

#[test]
fn nothing_is_a_matrix_too() {
    let [none] = by_blocks(0, [3], 1, |_, [_]: [Unwritten<'_, f64>; 1]| {
        panic!("a block")
    });
    assert!(none.is_empty());
    add::<f64>(&mut [], &[]);
}

#[test]
fn blocks_cover_every_row_once() {
    for rows in [1, 31, 32, 33, 255, 256, 257, 2048, 5000] {
        for work in [0, 1 << 20] {
            let [out] = by_blocks(rows, [3], work, |range, [piece]: [Unwritten<f32>; 1]| {
                for (i, row) in range.zip(piece.zeros().chunks_exact_mut(3)) {
                    row.iter_mut().for_each(|x| *x += 1.0 + i as f32);
                }
            });
            assert!(
                out.iter()
                    .enumerate()
                    .all(|(j, &x)| x == 1.0 + (j / 3) as f32)
            );
            let [sum] = sum_over(rows, work, |range| {
                vec![[range.map(|i| i as f64).sum::<f64>()].to_vec()]
                    .try_into()
                    .unwrap()
            });
            assert_eq!(sum, [(rows * (rows - 1) / 2) as f64]);
        }
    }
}

#[test]
fn what_is_not_finite_is_found_wherever_it_is() {
    for n in [0, 1, 7, 8, 300, (1 << 20) + 3] {
        let mut values = vec![-f32::MAX; n];
        assert_eq!(first_not_finite(&values), None);
        for i in [n / 3, n / 2, n.saturating_sub(1)] {
            for wrong in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY] {
                if let Some(value) = values.get_mut(i) {
                    let before = std::mem::replace(value, wrong);
                    assert_eq!(first_not_finite(&values), Some(i));
                    values[i] = before;
                }
            }
        }
    }
}
