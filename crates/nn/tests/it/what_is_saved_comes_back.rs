//! Models, moments and streams are read back to the bit, and the same run gives the same bytes.
//!
//! That a run which goes on from a file ends like one that never stopped is shown in `bochner-models`.

use crate::common::random;
use bochner_nn::{Adam, Checkpoint, Element, FeedForward, LayerNorm, Parameters, Progress};
use bochner_numerics::Seed;
use bochner_ops::AdamConfig;
use dfdx::prelude::*;

struct Model<E: Element> {
    norm: LayerNorm<usize, E>,
    layers: Vec<FeedForward<usize, usize, usize, E>>,
}

impl<E: Element> Parameters<E> for Model<E> {
    bochner_nn::visit_fields!(E: norm, layers);
}

/// A model after a step, its optimiser, and a stream far from its start.
fn run<E: Element>() -> (Checkpoint<E>, Adam<E>) {
    let (device, seed) = (Cpu::default(), Seed::new(12));
    let mut rng = seed.stream("initial values");
    let mut layer =
        |sizes| FeedForward::try_new(&device, sizes, Default::default(), &mut rng).unwrap();
    let mut model = Model {
        norm: LayerNorm::try_new(&device, 4).unwrap(),
        layers: vec![layer((4, 8, 5)), layer((5, 6, 1))],
    };
    let mut gradients = Gradients::leaky();
    model.for_each("", &mut |name, p| {
        let values: Tensor<(usize,), E, Cpu> = random((p.len(),), name);
        let gradient = p.dense_gradient(&mut gradients).unwrap();
        gradient.copy_from_slice(&values.as_vec());
    });
    let mut adam = Adam::new(AdamConfig::adamw()).unwrap();
    adam.step(&mut model, &mut gradients).unwrap();
    let mut stream = seed.stream("data").state();
    stream.position = (1 << 67) + 3;
    let progress = Progress {
        step: 7,
        streams: [("data".to_string(), stream)].into(),
        extra: serde_json::json!({"best": 0.25}),
    };
    let checkpoint = Checkpoint::of("two layers", &model)
        .with_adam(&adam)
        .with_progress(progress);
    (checkpoint, adam)
}

fn comes_back<E: Element>() {
    let directory = tempfile::tempdir().unwrap();
    let paths = ["a", "b"].map(|name| directory.path().join(name));
    let runs = [(); 2].map(|()| run::<E>());
    for (path, (checkpoint, adam)) in paths.iter().zip(&runs) {
        checkpoint.write(path).unwrap();
        let read = Checkpoint::read(path).unwrap();
        assert!(read == *checkpoint && read.adam() == Some(adam.state()));
    }
    let [a, b] = paths.map(|path| std::fs::read(path).unwrap());
    assert!(a == b);
}

#[test]
fn a_run_comes_back_to_the_bit_and_gives_the_same_bytes() {
    comes_back::<f32>();
    comes_back::<f64>();
}
