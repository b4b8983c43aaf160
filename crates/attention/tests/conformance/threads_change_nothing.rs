use crate::common::*;
use bochner_attention::{
    AttentionGradients, Form, Gradients, Magnitude, Mask, Points, Settings, Similarity, attend,
    attend_vjp,
};
use ndarray::{Array1, Array4};

type Results = (Array4<f32>, Array1<f32>, Gradients<f32>, Array4<f32>);

fn results(case: &Case<f32>, example: &Example<f32>, mask: &Mask, threads: usize) -> Results {
    pool(threads).install(|| {
        let forward = case.forward(example, mask, &TRAINING).unwrap();
        let gradients = case.gradients(example, mask, &TRAINING);
        let weights = case.weights(example, mask, &TRAINING);
        (forward.output, forward.penalty, gradients, weights)
    })
}

fn pool(threads: usize) -> rayon::ThreadPool {
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads);
    pool.build().unwrap()
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

fn in_linear_time(
    Example { q, k, v }: &Example<f32>,
    mask: &Mask,
    threads: usize,
) -> (Array4<f32>, AttentionGradients<f32>) {
    let w = random((1, HEADS, 3, WIDTH), "w1");
    let settings = Settings {
        similarity: Similarity::Squared {
            points: Points::Stationary { w: w.view() },
            floor: 1e-5,
        },
        magnitude: Magnitude::Norm { p: 1.5 },
        mask,
        dropout: None,
        form: Form::LinearTime,
    };
    let (q, k, v) = (q.view(), k.view(), v.view());
    pool(threads).install(|| {
        let attended = attend(q, k, v, &settings).unwrap();
        let cotangent: Array4<f32> = random(attended.output.raw_dim(), "output cotangent");
        let g = attend_vjp(q, k, v, &settings, &attended, cotangent.view()).unwrap();
        (attended.output, g)
    })
}

/// Several parts, whose sums are joined.
#[test]
fn sums_over_the_sequence() {
    let (queries, keys) = (2100, 1900);
    let example = Example::new(queries, keys);
    for (name, mask) in masks(queries, keys) {
        if name.contains("matrix") {
            continue;
        }
        let want = in_linear_time(&example, &mask, 1);
        for threads in [2, 3] {
            let got = in_linear_time(&example, &mask, threads);
            assert!(got == want, "mask: {name}, {threads} threads");
        }
    }
}
