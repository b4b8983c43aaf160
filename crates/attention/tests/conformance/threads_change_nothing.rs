use crate::common::*;
use bochner_attention::{Gradients, Mask};
use ndarray::{Array1, Array4};

type Results = (Array4<f32>, Array1<f32>, Gradients<f32>, Array4<f32>);

fn results(case: &Case<f32>, example: &Example<f32>, mask: &Mask, threads: usize) -> Results {
    let pool = rayon::ThreadPoolBuilder::new()
        .num_threads(threads)
        .build()
        .unwrap();
    pool.install(|| {
        let forward = case.forward(example, mask, &TRAINING).unwrap();
        let gradients = case.gradients(example, mask, &TRAINING);
        let weights = case.weights(example, mask, &TRAINING);
        (forward.output, forward.penalty, gradients, weights)
    })
}

/// Several blocks of queries and of keys, with dropout: the same to the bit.
#[test]
fn forward_and_backward() {
    let (queries, keys) = (300, 600);
    let example = Example::new(queries, keys);
    for case in few_cases() {
        for (name, mask) in masks(queries, keys) {
            if !case.takes(&mask) {
                continue;
            }
            let want = results(&case, &example, &mask, 1);
            for threads in [2, 3] {
                let got = results(&case, &example, &mask, threads);
                assert!(
                    got == want,
                    "{}, mask: {name}, {threads} threads",
                    case.name
                );
            }
        }
    }
}
