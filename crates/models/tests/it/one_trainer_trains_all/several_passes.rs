//! Steps of several passes: accumulated batches, and batches in parts that are computed side by side.

use super::*;
use crate::{node_classifiers, tiny};
use bochner_graph::FanOut;
use bochner_models::classifier::TextClassifier;
use bochner_models::datapoints::{Between, Column, Masking};
use bochner_models::node_classifier::Sampling;
use bochner_models::training::{self, Objective};
use dfdx::tensor::{Cpu, Gradients};
use dfdx::tensor_ops::TryMul;
use std::collections::HashSet;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::channel;

/// Batches whose gradients add up, and parts of each, are one batch of all sentences.
#[test]
fn parts_of_batches_are_one_batch() {
    let run = |[accumulate, parts, batch]: [usize; 3]| {
        let training = TrainingConfig {
            accumulate: NonZeroUsize::new(accumulate).unwrap(),
            parts: NonZeroUsize::new(parts).unwrap(),
            l2: 0.1,
            ..training()
        };
        let mut trainer = trainer_of(&training, batch, 0.0);
        let reports = [(); 2].map(|()| trainer.epoch().unwrap());
        (reports, trainer.steps_done(), logits(&trainer))
    };
    let whole = run([1, 1, 60]);
    for sizes in [[1, 2, 60], [1, 1000, 60], [3, 4, 20], [6, 1, 11]] {
        let of_parts = run(sizes);
        assert_eq!(of_parts.1, 2);
        for (part, whole) in of_parts.0.into_iter().zip(whole.0) {
            for (part, whole) in [
                (part.loss, whole.loss),
                (part.error, whole.error),
                (part.squared_error, whole.squared_error),
                (part.gradient_norm, whole.gradient_norm),
            ] {
                let off = (part - whole).abs();
                assert!(off < 1e-3 * whole, "{part} and {whole} of {sizes:?}");
            }
        }
        assert!(relative_error(&of_parts.2, &whole.2) < 1e-2);
    }
    assert!(relative_error(&run([1, 1, 11]).2, &whole.2) > 1e-2);
}

/// Two trainers, each with half of the sentences, whose hooks average their gradients, take the steps of one with all of
/// them, clipping and L2 term included.
#[test]
fn trainers_that_average_their_gradients_are_one() {
    let training = TrainingConfig {
        l2: 0.1,
        ..training()
    };
    let (to_second, from_first) = channel::<Vec<f32>>();
    let (to_first, from_second) = channel();
    let ends = [(0, to_second, from_second), (1, to_first, from_first)];
    let mut halves = ends.map(|(first, sender, receiver)| {
        let of_half = |place: &usize| place % 2 == first;
        let places: Vec<usize> = (0..60).filter(of_half).collect();
        let task = Task::new(
            places.iter().map(|&i| sentences()[i].clone()).collect(),
            places.iter().map(|&i| classes()[i]).collect(),
            BatchConfig::default(),
        );
        let config = config(Softmax::default().into(), 0.0);
        let trainer = Trainer::new(&config, &training, task.unwrap(), Seed::new(3)).unwrap();
        trainer.with_gradient_hook(move |gradients| {
            sender.send(gradients.to_vec())?;
            for (own, other) in gradients.iter_mut().zip(receiver.recv()?) {
                *own = 0.5 * (*own + other);
            }
            Ok(())
        })
    });
    let mut one = trainer_of(&training, 60, 0.0);
    for _ in 0..2 {
        std::thread::scope(|scope| {
            let halves = halves.each_mut();
            let epochs = halves.map(|half| scope.spawn(move || half.epoch()));
            for epoch in epochs {
                epoch.join().unwrap().unwrap();
            }
        });
        one.epoch().unwrap();
    }
    let [first, second] = halves.each_ref().map(logits);
    assert_eq!(first, second);
    assert!(relative_error(&first, &logits(&one)) < 1e-2);
    let mut alone = trainer_of(
        &TrainingConfig {
            l2: 0.0,
            ..training
        },
        60,
        0.0,
    );
    alone.epoch().unwrap();
    assert!(relative_error(&first, &logits(&alone)) > 1e-2);
}

#[test]
fn a_hook_that_fails_ends_the_epoch_and_changes_nothing() {
    let mut fails = true;
    let failing =
        trainer_of(&training(), 60, 0.0).with_gradient_hook(move |_| {
            match std::mem::take(&mut fails) {
                true => Err("the network is down".into()),
                false => Ok(()),
            }
        });
    let [mut failing, mut plain] = [failing, trainer_of(&training(), 60, 0.0)];
    let before = logits(&failing);
    let error = failing.epoch().unwrap_err();
    assert!(matches!(error, Error::GradientHook(_)));
    assert!(
        error.to_string().ends_with("the network is down"),
        "{error}"
    );
    assert_eq!(logits(&failing), before);
    failing.epoch().unwrap();
    plain.epoch().unwrap();
    assert!(relative_error(&logits(&failing), &logits(&plain)) < 1e-2);
}

/// A divergence is summed over a step, not a mean of its batches or their parts. Noise is in the errors alone.
#[test]
fn divergences_of_accumulated_batches_are_summed() {
    let mikan = Mikan {
        points: 4,
        beta: 1e3,
        ..Default::default()
    };
    let report = |accumulate: usize, parts: usize, batch: usize| {
        let training = TrainingConfig {
            accumulate: NonZeroUsize::new(accumulate).unwrap(),
            parts: NonZeroUsize::new(parts).unwrap(),
            ..training()
        };
        let config = config(mikan.clone().into(), 0.0);
        let trainer = Trainer::new(&config, &training, task(batch), Seed::new(3));
        trainer.unwrap().epoch().unwrap()
    };
    let one = report(1, 1, 60);
    assert!(one.loss > 100.0 * one.error, "{one:?}");
    for (accumulate, parts, batch) in [(6, 1, 11), (1, 6, 60), (3, 2, 20)] {
        let parts = report(accumulate, parts, batch);
        assert!(
            (parts.loss - one.loss).abs() < 1e-2 * one.loss,
            "{parts:?} and {one:?}"
        );
        // The mean over the batches, each of them whole.
        let batches = parts.penalty * accumulate as f64;
        let are_equal = 60 % batch == 0;
        assert!(
            !are_equal || (batches - one.penalty).abs() < 1e-2 * one.penalty,
            "{parts:?} and {one:?}"
        );
    }
}

#[test]
fn parts_are_as_equal_as_can_be_and_leave_nothing_out() {
    for (n, parts, sizes) in [
        (6, 4, vec![1, 2, 1, 2]),
        (9, 4, vec![2, 2, 2, 3]),
        (64, 2, vec![32, 32]),
        (2, 5, vec![1, 1]),
        (0, 3, vec![]),
    ] {
        let examples: Vec<usize> = (10..10 + n).collect();
        let parts = NonZeroUsize::new(parts).unwrap();
        let got = training::Task::cut(&task(8), &examples, parts).unwrap();
        assert_eq!(got.iter().map(Vec::len).collect::<Vec<_>>(), sizes);
        assert_eq!(got.concat(), examples);
    }
}

fn refused_in_parts<T: training::Task>(config: &T::Config, task: T) {
    let training = TrainingConfig {
        parts: NonZeroUsize::new(2).unwrap(),
        ..training()
    };
    let got = training::Trainer::new(config, &training, task, Seed::new(1));
    match got.map(|_| ()) {
        Err(Error::Argument(error @ ArgumentError::OutOfRange { .. })) => assert_eq!(
            error.to_string(),
            "`parts` is 2, but must be 1 for a model that reads all examples together"
        ),
        other => panic!("{}: {other:?}", T::MODEL),
    }
}

#[test]
fn what_cannot_be_cut_is_refused_before_anything_is_trained() {
    let softmax = Softmax::default().into();
    refused_in_parts(&tiny::regressor(softmax, 0.0), tiny::rows([0, 2, 3, 5]));
    let config = tiny::npt(&[Column::Number; 2], &[Between::Datapoints], None);
    refused_in_parts(&config, tiny::table(4.0, Masking::NONE));
    let sampling = Sampling {
        batch: NonZeroUsize::new(2).unwrap(),
        fan_outs: vec![FanOut::All; 2],
    };
    let config = node_classifiers::config("classic", 0.0);
    refused_in_parts(&config, tiny::rings(24));
    refused_in_parts(&config, tiny::rings(24).sampled(sampling));
}

/// The fault of one pass.
#[derive(Clone, Copy)]
enum Wrong {
    /// The model refuses it.
    Refused,
    /// Its objective is no number.
    Nan,
}

/// Sentences of which one pass goes wrong, and the seeds of all passes.
struct Failing {
    sentences: Task,
    wrong: Wrong,
    left: AtomicUsize,
    seeds: Mutex<Vec<Seed>>,
}

impl Failing {
    /// Sentences of which one pass goes wrong after so many.
    fn after(passes: usize, wrong: Wrong) -> Self {
        Self {
            sentences: task(11),
            wrong,
            left: AtomicUsize::new(passes),
            seeds: Mutex::default(),
        }
    }

    /// Whether this is the pass that goes wrong by being like this.
    fn goes(&self, wrong: Wrong) -> bool {
        matches!(
            (self.wrong, wrong),
            (Wrong::Refused, Wrong::Refused) | (Wrong::Nan, Wrong::Nan)
        ) && self.left.fetch_sub(1, Ordering::SeqCst) == 0
    }
}

impl training::Task for Failing {
    type Model = TextClassifier<f32>;
    type Config = TextClassifierConfig;
    type Batch = Vec<usize>;
    type Output = <Task as training::Task>::Output;

    const MODEL: &'static str = <Task as training::Task>::MODEL;

    fn model(&self, config: &TextClassifierConfig, seed: Seed) -> Result<Self::Model, Error> {
        training::Task::model(&self.sentences, config, seed)
    }

    fn fingerprint(&self) -> String {
        self.sentences.fingerprint()
    }

    fn batches(&self, next: &mut dyn FnMut() -> Seed) -> Result<Vec<Vec<usize>>, Error> {
        training::Task::batches(&self.sentences, next)
    }

    fn examples(&self, batch: &Vec<usize>) -> usize {
        self.sentences.examples(batch)
    }

    fn cut(&self, batch: &Vec<usize>, parts: NonZeroUsize) -> Option<Vec<Vec<usize>>> {
        self.sentences.cut(batch, parts)
    }

    fn forward(
        &self,
        model: &Self::Model,
        batch: &Vec<usize>,
        gradients: Gradients<f32, Cpu>,
        seed: Seed,
    ) -> Result<Self::Output, Error> {
        self.seeds.lock().unwrap().push(seed);
        match self.goes(Wrong::Refused) {
            true => Err(ArgumentError::Empty {
                name: "pass".into(),
                shape: vec![0],
            }
            .into()),
            false => self.sentences.forward(model, batch, gradients, seed),
        }
    }

    fn objective(
        &self,
        model: &Self::Model,
        batch: &Vec<usize>,
        output: Self::Output,
        part: f64,
    ) -> Result<Objective, Error> {
        let mut objective = self.sentences.objective(model, batch, output, part)?;
        if self.goes(Wrong::Nan) {
            objective.loss = objective.loss.try_mul(f32::NAN).unwrap();
        }
        Ok(objective)
    }
}

/// Whichever pass of a step fails, the next step knows nothing of it: its gradient is that of a trainer that never failed.
#[test]
fn a_step_that_fails_leaves_no_gradients_to_the_next() {
    let config = config(Softmax::default().into(), 0.0);
    for (parts, wrong) in [1, 3]
        .map(|parts| [(parts, Wrong::Refused), (parts, Wrong::Nan)])
        .concat()
    {
        let settings = TrainingConfig {
            accumulate: NonZeroUsize::new(6).unwrap(),
            parts: NonZeroUsize::new(parts).unwrap(),
            ..super::training()
        };
        let norm_after = |failing: usize| {
            let task = Failing::after(failing, wrong);
            let mut trainer =
                training::Trainer::new(&config, &settings, task, Seed::new(3)).unwrap();
            if failing < 18 {
                assert!(trainer.epoch().is_err());
                assert_eq!(trainer.steps_done(), 0);
            }
            trainer.epoch().unwrap().gradient_norm
        };
        let want = norm_after(usize::MAX);
        for failing in 0..6 * parts {
            let got = norm_after(failing);
            assert!(
                (got - want).abs() < 1e-4 * want,
                "{got} and {want} after pass {failing} of {parts} parts"
            );
        }
    }
}

/// Passes of one seed would drop the same.
#[test]
fn every_pass_draws_from_a_seed_of_its_own() {
    let config = config(Softmax::default().into(), 0.1);
    let settings = TrainingConfig {
        accumulate: NonZeroUsize::new(2).unwrap(),
        parts: NonZeroUsize::new(3).unwrap(),
        ..super::training()
    };
    let task = Failing::after(usize::MAX, Wrong::Refused);
    let mut trainer = training::Trainer::new(&config, &settings, task, Seed::new(3)).unwrap();
    for _ in 0..2 {
        trainer.epoch().unwrap();
    }
    let seeds = trainer.task().seeds.lock().unwrap();
    let distinct: HashSet<Seed> = seeds.iter().copied().collect();
    assert_eq!([seeds.len(), distinct.len()], [36, 36]);
}
