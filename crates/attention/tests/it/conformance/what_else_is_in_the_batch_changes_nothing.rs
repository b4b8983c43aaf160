//! In an evaluation, an example's output depends neither on its neighbours in the batch nor on its place there.

use crate::conformance::common::*;
use bochner_attention::{Mask, card::Penalty};
use ndarray::Axis;

/// An evaluation may draw, but not by the place in the batch.
#[test]
fn in_an_evaluation_of_every_mechanism() {
    for case in cases::<f32>() {
        let (mask, whole) = (Mask::none(), case.example(5, 5));
        let output = |order: &[usize]| {
            let [q, k, v] = [&whole.q, &whole.k, &whole.v].map(|x| x.select(Axis(0), order));
            let example = Example { q, k, v };
            let forward = case.forward(&example, &mask, &EVALUATION).unwrap();
            (forward.output, forward.penalty)
        };
        let (want, penalty) = output(&[0, 1]);
        for order in [&[1, 0][..], &[0], &[1]] {
            let (got, own_penalty) = output(order);
            assert_eq!(got, want.select(Axis(0), order), "{}: {order:?}", case.name);
            if case.card.penalty == Penalty::PerExample {
                let penalty = penalty.select(Axis(0), order);
                assert_eq!(own_penalty, penalty, "{}: {order:?}", case.name);
            }
        }
    }
}
