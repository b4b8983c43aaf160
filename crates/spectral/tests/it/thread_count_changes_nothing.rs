//! Results are the same to the bit whatever the number of threads.

use crate::common::{Parameters, random};
use bochner_spectral::{ImplicitDensity, InferenceNetwork, InferredCotangents};
use ndarray::{Array2, Array4};

fn with_threads<R: Send>(count: usize, f: impl FnOnce() -> R + Send) -> R {
    let pool = rayon::ThreadPoolBuilder::new().num_threads(count);
    pool.build().unwrap().install(f)
}

#[test]
fn implicit_points_and_their_gradients() {
    let p = Parameters::<f32>::new(5, 5, 3);
    let z: Array2<f32> = random((3000, 5), 3, "z");
    let cotangent: Array2<f32> = random((3000, 5), 3, "cotangent");
    let run = || {
        let density = ImplicitDensity {
            w1: p.weights[0].view(),
            b1: p.biases[0].view(),
            w2: p.weights[1].view(),
            b2: p.biases[1].view(),
            w3: p.weights[2].view(),
            b3: p.biases[2].view(),
            slope: 0.2,
        };
        (
            density.points(z.view()).unwrap(),
            density.points_vjp(z.view(), cotangent.view()).unwrap(),
        )
    };
    assert_eq!(with_threads(1, run), with_threads(3, run));
}

#[test]
fn the_posterior_and_its_gradients() {
    let p = Parameters::<f32>::new(4, 8, 5);
    let (q, k): (Array4<f32>, Array4<f32>) = (
        random((3, 2, 40, 4), 5, "queries"),
        random((3, 2, 50, 4), 5, "keys"),
    );
    let run = || {
        let network = InferenceNetwork {
            w1: p.weights[0].view(),
            b1: p.biases[0].view(),
            w2: p.weights[1].view(),
            b2: p.biases[1].view(),
            w3: p.weights[2].view(),
            b3: p.biases[2].view(),
            slope: 0.2,
            prior_std: 0.1,
        };
        let inferred = network.infer(q.view(), k.view(), None, None).unwrap();
        let cotangents = InferredCotangents {
            hidden: None,
            mu: inferred.mu.view(),
            log_sigma: inferred.log_sigma.view(),
        };
        let gradients = network
            .infer_vjp(q.view(), k.view(), None, None, &inferred, &cotangents)
            .unwrap();
        (inferred, gradients)
    };
    assert_eq!(with_threads(1, run), with_threads(3, run));
}
