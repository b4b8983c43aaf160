//! Linear maps with a bias.

use bochner_numerics::Buffers;
use bochner_ops::{PackedAffine, affine, affine_vjp, filled};

#[test]
#[should_panic(expected = "x of 5 numbers for a map of 2 inputs")]
fn rows_that_are_cut_off_are_refused() {
    filled([6], |[y]| {
        affine(&[1.0; 5], &[1.0; 6], &[0.0; 3], y, |_, _| ())
    });
}

#[test]
#[should_panic(expected = "a weight of 0 numbers for 3 outputs")]
fn a_map_without_inputs_is_refused() {
    filled([6], |[y]| affine(&[1.0; 4], &[], &[0.0; 3], y, |_, _| ()));
}

#[test]
#[should_panic(expected = "a cotangent of 5 numbers for 2 rows of 3 outputs")]
fn a_cotangent_that_is_too_short_is_refused() {
    let none = [None, None, None];
    affine_vjp(&[1.0; 4], &[1.0; 6], &[1.0; 5], 3, none);
}

/// Also where the rows are several blocks.
#[test]
fn what_finishes_a_block_is_told_where_it_starts() {
    for rows in [1, 700] {
        let x: Vec<f64> = (0..2 * rows).map(|i| i as f64).collect();
        let [y] = filled([3 * rows], |[y]| {
            affine(&x, &[0.0; 6], &[0.0; 3], y, |start, piece| {
                let places = piece.iter_mut().zip(start..);
                places.for_each(|(y, place)| *y = place as f64);
            });
        });
        assert!(y.into_iter().eq((0..3 * rows).map(|i| i as f64)));
    }
}

/// One block and several, the last of them cut; with a bias and without.
#[test]
fn a_packed_map_gives_the_bits_of_the_map() {
    for (rows, inputs, outputs) in [(1, 3, 2), (7, 5, 33), (300, 65, 70)] {
        let numbers = |n: usize| -> Vec<f32> { (0..n).map(|i| (i as f32).sin()).collect() };
        let (x, weight) = (numbers(rows * inputs), numbers(outputs * inputs));
        for bias in [numbers(outputs), vec![0.0; outputs]] {
            let [want] = filled([rows * outputs], |[y]| {
                affine(&x, &weight, &bias, y, |_, y| {
                    y.iter_mut().for_each(|y| *y *= 2.0);
                });
            });
            let given = Some(&bias[..]).filter(|bias| bias.iter().any(|&b| b != 0.0));
            let map = PackedAffine::new(&weight, outputs, given);
            let mut got = vec![f32::NAN; rows * outputs];
            map.apply(&x, &Buffers::default(), &mut got, |y| {
                y.iter_mut().for_each(|y| *y *= 2.0);
            });
            assert_eq!(got, want);
        }
    }
}

#[test]
#[should_panic(expected = "rows of a map")]
fn a_packed_map_takes_whole_rows() {
    let map = PackedAffine::new(&[1.0; 6], 3, None);
    map.apply(&[1.0; 5], &Buffers::default(), &mut [0.0; 6], |_| ());
}

/// Narrow maps, whose rows are cut, and wide ones, whose outputs are; one part and several.
#[test]
fn gradients_of_a_map_are_those_of_the_definition() {
    for (rows, inputs, outputs) in [(3, 2, 4), (700, 3, 5), (700, 3, 131), (9, 2, 260)] {
        let numbers = |n: usize, step: usize| -> Vec<f64> {
            (0..n).map(|i| (i * step % 13) as f64 - 6.0).collect()
        };
        let (x, dy) = (numbers(rows * inputs, 5), numbers(rows * outputs, 7));
        let weight = numbers(outputs * inputs, 3);
        let lengths = [x.len(), weight.len(), outputs];
        let [dx, dw, db] = filled(lengths, |all| {
            affine_vjp(&x, &weight, &dy, outputs, all.map(Some));
        });
        // Small integers: every order of summation gives the same.
        let sum = |n, term: &dyn Fn(usize) -> f64| (0..n).map(term).sum::<f64>();
        for (i, dx) in dx.chunks(inputs).enumerate() {
            for (j, &dx) in dx.iter().enumerate() {
                let term = |o| dy[i * outputs + o] * weight[o * inputs + j];
                assert_eq!(dx, sum(outputs, &term));
            }
        }
        for (o, dw) in dw.chunks(inputs).enumerate() {
            assert_eq!(db[o], sum(rows, &|i| dy[i * outputs + o]));
            for (j, &dw) in dw.iter().enumerate() {
                let term = |i| dy[i * outputs + o] * x[i * inputs + j];
                assert_eq!(dw, sum(rows, &term));
            }
        }
    }
}
