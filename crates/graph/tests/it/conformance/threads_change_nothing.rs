//! Results are the same to the bit for any number of threads.

use crate::conformance::case::{Case, ENGINES, Size, named, random_graph};
use bochner_graph::{Features, SparseFeatures};
use bochner_numerics::check::random;
use bochner_numerics::{DropoutMask, Seed};
use ndarray::Array2;

fn on_threads<R: Send>(threads: usize, f: impl FnOnce() -> R + Send) -> R {
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads);
    pool.build().unwrap().install(f)
}

fn same_on_all<R: Send + PartialEq + std::fmt::Debug>(f: impl Fn() -> R + Send + Sync) {
    let alone = on_threads(1, &f);
    for threads in [2, 5] {
        assert_eq!(on_threads(threads, &f), alone, "{threads} threads");
    }
}

#[test]
fn products_with_features() {
    let dense: Array2<f32> = random((3000, 70), "features");
    let dense = dense.mapv(|x| if x > 0.5 { x } else { 0.0 });
    let sparse = SparseFeatures::from_dense(dense.view()).unwrap();
    let (weight, cotangent): (Array2<f32>, Array2<f32>) =
        (random((70, 16), "weight"), random((3000, 16), "cotangent"));
    let dropout = DropoutMask::new(0.5, Seed::new(2)).unwrap();
    for features in [Features::Dense(dense.view()), Features::Sparse(&sparse)] {
        same_on_all(|| {
            let product = features.product(weight.view()).unwrap();
            let along_weight = features.weight_vjp(cotangent.view()).unwrap();
            let along_features = features.features_vjp(weight.view(), cotangent.view());
            (product, along_weight, along_features)
        });
    }
    same_on_all(|| sparse.dropped_out(&dropout));
    same_on_all(|| bochner_graph::dropped_out(dense.view(), &dropout));
}

#[test]
fn attention() {
    let size = Size {
        heads: 3,
        width: 8,
        points: 8,
    };
    for kind in ENGINES {
        let case = Case::<f32>::new(random_graph(3000, 2500, 9000), kind, size);
        let case = case.with_attributes();
        let case = case.with_dropout(0.3).with_value_dropout(0.4);
        same_on_all(|| {
            let attended = case.attend();
            let weights = attended.weights();
            (attended.output, weights, named(&case.gradients()))
        });
    }
}
