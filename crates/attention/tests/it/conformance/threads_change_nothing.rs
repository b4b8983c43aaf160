use crate::conformance::common::*;
use bochner_attention::{Mask, Pass};
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
    pass: &Pass,
    threads: usize,
) -> Results<T> {
    pool(threads).install(|| {
        let forward = case.forward(example, mask, pass).unwrap();
        let gradients = case.gradients(example, mask, pass);
        let weights = case.weights(example, mask, pass);
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
    for case in few_cases::<f32>() {
        let (example, mask) = (case.example(140, 600), long_mask(&case, 600));
        let [want, got] = [1, 3].map(|threads| results(&case, &example, &mask, &TRAINING, threads));
        assert!(got == want, "{}", case.name);
    }
}
