//! Results are the same to the bit whatever the number of threads.

use crate::common::{Parameters, random};
use bochner_spectral::{Features, InferredCotangents};
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
        let density = p.density();
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
        let (network, features) = (p.network(), Features::new(q.view(), k.view()));
        let inferred = network.infer(&features).unwrap();
        let cotangents = InferredCotangents {
            hidden: None,
            mu: inferred.mu.view(),
            log_sigma: inferred.log_sigma.view(),
        };
        let gradients = network
            .infer_vjp(&features, &inferred, &cotangents)
            .unwrap();
        (inferred, gradients)
    };
    assert_eq!(with_threads(1, run), with_threads(3, run));
}
