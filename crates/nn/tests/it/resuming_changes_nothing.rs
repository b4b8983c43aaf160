//! A run that is stopped, saved, loaded and continued ends with the same bits as one that is not.

use bochner_nn::{
    Adam, AdamState, Checkpoint, Element, FeedForward, FeedForwardConfig, LayerNorm, Parameters,
    Progress, alloc_gradients, clip_by_norm, mean_squared_error, zero_gradients,
};
use bochner_numerics::{Seed, Stream, StreamState, standard_normal};
use bochner_ops::{Activation, AdamConfig, Mode, Rows};
use dfdx::prelude::*;
use ndarray::ArcArray2;
use std::path::Path;

struct Model<E: Element> {
    norm: LayerNorm<usize, E>,
    layers: Vec<FeedForward<usize, usize, usize, E>>,
}

impl<E: Element> Model<E> {
    fn new(seed: Seed) -> Self {
        let device = Cpu::default();
        let mut rng = seed.stream("initial values");
        let config = FeedForwardConfig {
            dropout: 0.2,
            activation: Activation::Identity,
            ..Default::default()
        };
        let mut layer = |sizes| FeedForward::try_new(&device, sizes, config, &mut rng).unwrap();
        Self {
            norm: LayerNorm::try_new(&device, 4).unwrap(),
            layers: vec![layer((4, 8, 5)), layer((5, 6, 1))],
        }
    }

    fn loss<T: Tape<E, Cpu>>(
        &self,
        x: Tensor<(usize, usize), E, Cpu, T>,
        target: ArcArray2<E>,
        mode: Mode,
    ) -> Tensor<(), E, Cpu, T> {
        let mut y = self.norm.apply(x).unwrap();
        for (i, layer) in self.layers.iter().enumerate() {
            y = layer.apply(y, mode.nth(i as u64)).unwrap();
        }
        mean_squared_error(y, target, Rows::All).unwrap()
    }

    fn bits(&self) -> Vec<u64> {
        let mut bits = Vec::new();
        self.for_each("", &mut |_, p| {
            let mut values = Vec::new();
            p.read_into(&mut values);
            bits.extend(values.iter().map(|x: &E| x.as_f64().to_bits()));
        });
        bits
    }
}

impl<E: Element> Parameters<E> for Model<E> {
    bochner_nn::visit_fields!(E: norm, layers);
}

struct Run<E: Element> {
    model: Model<E>,
    adam: Adam<E>,
    data: Stream,
    step: u64,
}

type End<E> = (Vec<u64>, AdamState<E>, StreamState, u64);

impl<E: Element> Run<E> {
    fn start() -> Self {
        let seed = Seed::new(12);
        Self {
            model: Model::new(seed),
            adam: Adam::new(AdamConfig::adamw()).unwrap(),
            data: seed.stream("data"),
            step: 0,
        }
    }

    fn train(&mut self, steps: u64) {
        let device = Cpu::default();
        let mut gradients = alloc_gradients(&self.model).unwrap();
        for _ in 0..steps {
            let draws: Vec<E> = (0..6 * 4)
                .map(|_| standard_normal(&mut self.data))
                .collect();
            let sums: Vec<E> = draws.chunks(4).map(|row| row[0] + row[1]).collect();
            let x = device.tensor_from_vec(draws, (6, 4));
            let target = ArcArray2::from_shape_vec((6, 1), sums).unwrap();
            let mode = Mode::Training(Seed::new(12).child("dropout").nth(self.step));
            gradients = self
                .model
                .loss(x.traced(gradients), target, mode)
                .backward();
            clip_by_norm(&self.model, &mut gradients, 1.0).unwrap();
            self.adam.step(&mut self.model, &mut gradients).unwrap();
            zero_gradients(&self.model, &mut gradients).unwrap();
            self.step += 1;
        }
    }

    fn save(&self, path: &Path) {
        let streams = [("data".to_string(), self.data.state())].into();
        let progress = Progress {
            step: self.step,
            streams,
            extra: serde_json::json!({"best": 0.25}),
        };
        Checkpoint::of("two layers", &self.model)
            .with_adam(&self.adam)
            .with_progress(progress)
            .write(path)
            .unwrap();
    }

    fn load(path: &Path) -> Self {
        let saved = Checkpoint::<E>::read(path).unwrap();
        let mut model = Model::new(Seed::new(999));
        saved.restore("two layers", &mut model).unwrap();
        let progress = saved.progress();
        assert_eq!(progress.extra["best"], 0.25);
        let state = saved.adam().unwrap().clone();
        Self {
            model,
            adam: Adam::with_state(AdamConfig::adamw(), state).unwrap(),
            data: Stream::from_state(&progress.streams["data"]),
            step: progress.step,
        }
    }

    fn end(self) -> End<E> {
        let state = self.adam.state().clone();
        (self.model.bits(), state, self.data.state(), self.step)
    }
}

fn stopped_and_continued<E: Element>() {
    let mut whole = Run::<E>::start();
    whole.train(9);

    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("run.safetensors");
    let mut first = Run::<E>::start();
    first.train(4);
    first.save(&path);
    drop(first);
    let mut second = Run::<E>::load(&path);
    let halfway = second.model.bits();
    second.train(5);

    assert_ne!(halfway, second.model.bits());
    assert!(whole.end() == second.end());
}

#[test]
fn a_stopped_run_ends_with_the_same_bits() {
    stopped_and_continued::<f32>();
    stopped_and_continued::<f64>();
}

#[test]
fn the_same_run_gives_the_same_bytes() {
    let directory = tempfile::tempdir().unwrap();
    let bytes = |name: &str| {
        let path = directory.path().join(name);
        let mut run = Run::<f32>::start();
        run.train(2);
        run.save(&path);
        std::fs::read(path).unwrap()
    };
    assert!(bytes("a") == bytes("b"));
}

#[test]
fn far_streams_keep_their_position() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("far");
    let mut state = Seed::new(3).stream("noise").state();
    state.position = (1 << 67) + 3;
    let mut progress = Progress::default();
    progress.streams.insert("noise".to_string(), state);
    let nothing: Option<Tensor<(usize,), f32, Cpu>> = None;
    let checkpoint = Checkpoint::of("", &nothing).with_progress(progress);
    checkpoint.write(&path).unwrap();
    assert!(Checkpoint::read(&path).unwrap() == checkpoint);
}
