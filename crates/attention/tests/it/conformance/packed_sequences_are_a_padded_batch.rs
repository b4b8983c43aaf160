//! Sequences one after the other in one example are those of a padded batch.

use crate::conformance::common::*;
use bochner_attention::{Mask, card::Draws};
use ndarray::{Array, Array1, Array4, Axis, Ix3, Ix4, s};

const LENGTHS: [usize; 4] = [70, 3, 0, 40];

/// The rows of a padded batch one after the other.
fn pack(padded: &Array4<f64>) -> Array4<f64> {
    let rows: Vec<_> = (padded.outer_iter().zip(LENGTHS))
        .map(|(example, length)| example.slice_move(s![.., ..length, ..]))
        .collect();
    let packed: Array<f64, Ix3> = ndarray::concatenate(Axis(1), &rows).unwrap();
    packed.insert_axis(Axis(0))
}

fn padded(width: usize, purpose: &str) -> Array<f64, Ix4> {
    random((LENGTHS.len(), HEADS, 70, width), purpose)
}

/// Outputs and gradients, under every mask that moves along with its sequence.
#[test]
fn of_every_mechanism_that_goes_pair_by_pair() {
    let mut compared = 0;
    for case in cases::<f64>() {
        let masks = [
            Mask::none(),
            Mask::none().with_causality(),
            Mask::none().with_causality_after(5),
            Mask::none().with_causal_blocks(4).unwrap(),
            Mask::none().with_window(9, 2).unwrap(),
        ];
        let batch = Example {
            q: padded(WIDTH, "q"),
            k: padded(WIDTH, "k"),
            v: padded(VALUE_WIDTH, "v"),
        };
        let packed = Example {
            q: pack(&batch.q),
            k: pack(&batch.k),
            v: pack(&batch.v),
        };
        for mask in masks {
            let of_packed = mask.clone().with_packed(&LENGTHS);
            let of_batch = mask.with_key_lengths(LENGTHS.to_vec());
            if !case.card.takes(&of_packed) || case.card.draws != Draws::Nothing {
                continue;
            }
            compared += 1;
            let label = format!("{}, {of_packed:?}", case.name);
            let want = case.forward(&batch, &of_batch, &EVALUATION).unwrap();
            let got = case.forward(&packed, &of_packed, &EVALUATION).unwrap();
            assert_close(&got.output, &pack(&want.output.to_owned()), &label);
            // Rows of padding are computed like any other, but never used.
            let mut cotangent = padded(VALUE_WIDTH, "cotangent");
            for (mut example, length) in cotangent.outer_iter_mut().zip(LENGTHS) {
                example.slice_mut(s![.., length.., ..]).fill(0.0);
            }
            let [mut want, got] = [
                (&batch, of_batch, want, &cotangent),
                (&packed, of_packed, got, &pack(&cotangent)),
            ]
            .map(|(example, mask, forward, cotangent)| {
                let none = Array1::zeros(forward.penalty.len());
                case.pull_back(example, &mask, &EVALUATION, &forward, cotangent, &none)
            });
            want.streams.iter_mut().for_each(|x| *x = pack(x));
            assert_same_gradients(&got, &want, &label);
        }
    }
    assert!(compared > 20, "{compared}");
}
