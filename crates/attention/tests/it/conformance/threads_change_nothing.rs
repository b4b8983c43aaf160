use crate::conformance::common::*;
use crate::conformance::plain::{Gradients, attend, attend_vjp};
use crate::conformance::plain::{Plain, Similarity};
use bochner_attention::{Form, Magnitude, Mask, kernels::Points};
use bochner_numerics::Real;
use ndarray::{Array1, Array4};

type Results<T> = (
    Array4<T>,
    Array1<T>,
    bochner_attention::mechanism::Gradients<T>,
    Option<Array4<T>>,
);

fn results<T: Real>(
    case: &Case<T>,
    example: &Example<T>,
    mask: &Mask,
    threads: usize,
) -> Results<T> {
    pool(threads).install(|| {
        let forward = case.forward(example, mask, &TRAINING).unwrap();
        let gradients = case.gradients(example, mask, &TRAINING);
        let weights = case.weights(example, mask, &TRAINING);
        (
            forward.output.into_owned(),
            forward.penalty,
            gradients,
            weights,
        )
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
    for case in few_cases::<f32>() {
        case.with_every_mask(queries, keys, |case, example, mask, label| {
            if label.contains("pairs") || label.contains(" and ") {
                return;
            }
            let [want, got] = [1, 3].map(|threads| results(case, example, mask, threads));
            assert!(got == want, "{label}");
        });
    }
}

fn in_linear_time<T: Real>(
    Example { q, k, v }: &Example<T>,
    mask: &Mask,
    threads: usize,
) -> (Array4<T>, Gradients<T>) {
    let [w1, w2] = ["w1", "w2"].map(|name| random((1, HEADS, 3, WIDTH), name));
    let (w1, w2) = (w1.view(), w2.view());
    let settings = Plain {
        similarity: Similarity::Squared {
            points: Points::Nonstationary { w1, w2 },
            floor: 1e-5,
        },
        magnitude: Magnitude::Norm { p: 1.5 },
        mask,
        dropout: None,
        form: Form::LinearTime,
    };
    let (q, k, v) = (q.view(), k.view(), v.view());
    pool(threads).install(|| {
        let attended = attend(q, k, v, &settings.settings()).unwrap();
        let cotangent: Array4<T> = random(attended.output.raw_dim(), "output cotangent");
        let g = attend_vjp(&attended, cotangent.view()).unwrap();
        (attended.output, g)
    })
}

/// Several parts, whose sums are joined.
#[test]
fn sums_over_the_sequence() {
    let (queries, keys) = (2100, 1900);
    let example = Example::<f32>::new(queries, keys);
    for (name, mask) in masks(queries, keys) {
        if name.contains("pairs") {
            continue;
        }
        let want = in_linear_time(&example, &mask, 1);
        for threads in [2, 3] {
            let got = in_linear_time(&example, &mask, threads);
            assert!(got == want, "mask: {name}, {threads} threads");
        }
    }
}
