use crate::conformance::common::*;
use bochner_attention::Mask;
use ndarray::{Array1, Array4, s};

/// Whether a row is empty in all heads.
fn is_empty(mask: &Mask, b: usize, i: usize, queries: usize, keys: usize) -> bool {
    let keeps = |m, j| mask.keeps([b, m, i, j], [queries, keys]);
    !(0..HEADS).any(|m| (0..keys).any(|j| keeps(m, j)))
}

pub(crate) fn nothing_comes_of_nothing(case: &Case<f64>) {
    // Seven queries and six keys: a causal mask then leaves the first row empty.
    case.with_every_mask(7, 6, |case, example, mask, label| {
        let (queries, keys) = (example.q.dim().2, example.k.dim().2);
        let forward = case.forward(example, mask, &TRAINING).unwrap();
        let weights = case.weights(example, mask, &EVALUATION);
        let mut cotangent = Array4::zeros(forward.output.raw_dim());
        let mut found = 0;
        for b in 0..BATCH {
            for i in (0..queries).filter(|&i| is_empty(mask, b, i, queries, keys)) {
                found += 1;
                let row = s![b, .., i, ..];
                let of_row = weights.iter().flat_map(|weights| weights.slice(row));
                assert!(of_row.into_iter().all(|&w| w == 0.0), "{label}");
                assert!(
                    forward.output.slice(row).iter().all(|&o| o == 0.0),
                    "{label}"
                );
                cotangent.slice_mut(row).fill(1.0);
            }
        }
        let may_be_none =
            label.ends_with("none") || label.contains("prefix") || !case.card.cross.is_yes();
        assert!(may_be_none || found > 0, "{label}: no row is empty");

        let penalty = Array1::zeros(BATCH);
        let g = case.pull_back(example, mask, &TRAINING, &forward, &cotangent, &penalty);
        let all = g.streams[0]
            .iter()
            .chain(&g.streams[1])
            .chain(&g.streams[2])
            .chain(&g.parameters);
        assert!(all.into_iter().all(|&x| x == 0.0), "{label}");
    });
}

#[test]
fn weights_outputs_and_gradients() {
    cases().iter().for_each(nothing_comes_of_nothing);
}
