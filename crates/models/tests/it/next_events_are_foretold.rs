//! A model of next events: no logits rest on what comes later or on the filling, times tell what the order does not, all
//! parameters are learnt, training resumes with the same bits, and what does not fit is named.

use crate::common::parameters;
use bochner_attention::{Cat, Pass, Softmax, Variant};
use bochner_datasets::Echoes;
use bochner_models::encoder::{EncoderConfig, EncoderLayerConfig, NormPlacement};
use bochner_models::next_event::{
    Events, NextEvent, NextEventConfig, Task, TimeSense, Trainer, TrainingConfig,
};
use bochner_numerics::Seed;
use bochner_text::BatchConfig;
use dfdx::prelude::*;
use ndarray::{Array2, array};
use std::f64::consts::TAU;

const KINDS: usize = 4;

const BOCHNER: TimeSense = TimeSense::Bochner {
    frequencies: 5,
    periods: [1.5, 30.0],
};

const MERCER: TimeSense = TimeSense::Mercer {
    bases: 2,
    degree: 2,
    periods: [5.0, 30.0],
};

fn config(attention: Variant, time: &[TimeSense]) -> NextEventConfig {
    let layer = EncoderLayerConfig {
        width: 24,
        heads: 1,
        hidden: 32,
        attention,
        dropout: 0.0,
        norm: NormPlacement::Pre,
        ..Default::default()
    };
    NextEventConfig {
        kinds: KINDS,
        encoder: EncoderConfig::new(1, layer),
        time: time.to_vec(),
    }
}

fn softmax(time: &[TimeSense]) -> NextEventConfig {
    config(Softmax::default().into(), time)
}

/// Logits of two sequences of three and two events, the second one filled up with an event.
fn logits(config: &NextEventConfig, kinds: [usize; 6], times: Array2<f64>) -> Vec<f64> {
    let device = Cpu::default();
    let model: NextEvent<f64> = NextEvent::try_new(&device, config, Seed::new(1)).unwrap();
    let kinds = device.tensor_from_vec(kinds.to_vec(), (2, 3));
    let pass = Pass::Evaluation { seed: Seed::new(2) };
    let seen = model.apply(kinds, times, &[3, 2], pass).unwrap();
    seen.output.as_vec()
}

#[test]
fn neither_the_future_nor_the_filling_is_read() {
    for time in [&[][..], &[BOCHNER], &[MERCER], &[BOCHNER, MERCER]] {
        let config = softmax(time);
        let times = array![[0.0, 1.0, 4.0], [0.5, 2.0, 0.0]];
        let one = logits(&config, [0, 1, 2, 3, 1, 0], times);
        let times = array![[0.0, 1.0, 5.0], [0.5, 2.0, 9.0]];
        let other = logits(&config, [0, 1, 3, 3, 1, 2], times);
        let rows = |logits: &[f64], rows: &[usize]| -> Vec<f64> {
            let of = |&row: &usize| logits[row * KINDS..(row + 1) * KINDS].to_vec();
            rows.iter().flat_map(of).collect()
        };
        assert_eq!(rows(&one, &[0, 1, 3, 4]), rows(&other, &[0, 1, 3, 4]));
        assert_ne!(rows(&one, &[2]), rows(&other, &[2]));
    }
}

fn sequences(count: usize) -> Vec<Events> {
    let task = Echoes {
        kinds: KINDS,
        events: 20,
        sequences: count,
        gaps: [0.3, 3.0],
        lag: 4.0,
        faithful: 0.9,
    };
    let drawn = task.draw(Seed::new(8)).unwrap().sequences;
    let events = drawn.into_iter().map(|own| Events {
        kinds: own.kinds,
        times: own.times,
    });
    events.collect()
}

fn trainer(time: &[TimeSense], sequences: Vec<Events>) -> Trainer {
    let batches = BatchConfig {
        sentences: Some(16),
        ..BatchConfig::default()
    };
    let training = TrainingConfig {
        learning_rate: 5e-3,
        clip_norm: Some(1.0),
        ..TrainingConfig::default()
    };
    let task = Task::new(sequences, batches).unwrap();
    Trainer::new(&softmax(time), &training, task, Seed::new(4)).unwrap()
}

#[test]
fn times_tell_what_the_order_does_not() {
    let drawn = sequences(200);
    let (train, others) = drawn.split_at(100);
    let error = |time: &[TimeSense]| {
        let mut trainer = trainer(time, train.to_vec());
        for _ in 0..15 {
            trainer.epoch().unwrap();
        }
        trainer.assess(others).unwrap().all.error
    };
    let (without, bochner, mercer) = (error(&[]), error(&[BOCHNER]), error(&[MERCER]));
    assert!(bochner < without - 0.1, "{bochner} {without}");
    assert!(mercer < without - 0.1, "{mercer} {without}");
}

#[test]
fn every_parameter_is_learnt() {
    let mut trainer = trainer(&[BOCHNER, MERCER], sequences(20));
    let before = parameters(trainer.model());
    trainer.epoch().unwrap();
    assert!(before.iter().any(|(name, _)| name == "senses.1.roots"));
    for (before, after) in before.iter().zip(&parameters(trainer.model())) {
        assert_ne!(before, after);
    }
}

/// The last events are assessed by themselves, whatever the lengths of the sequences.
/// Periods start even on a logarithmic scale, and the features of a time with norm 1.
#[test]
fn features_start_with_even_periods_and_norm_one() {
    let periods = [1.0, 100.0];
    let (frequencies, bases, degree) = (3, 3, 1);
    let bochner = TimeSense::Bochner {
        frequencies,
        periods,
    };
    let mercer = TimeSense::Mercer {
        bases,
        degree,
        periods,
    };
    let config = softmax(&[bochner, mercer]);
    let model = NextEvent::<f64>::try_new(&Cpu::default(), &config, Seed::new(1)).unwrap();
    let all = parameters(&model);
    let of = |name: &str| &all.iter().find(|(of, _)| of == name).unwrap().1;
    let even = [1.0, 10.0, 100.0_f64];
    let near = |got: &[f64], want: [f64; 3]| {
        let pairs = got.iter().zip(want);
        assert!(
            pairs
                .into_iter()
                .all(|(got, want)| (got - want).abs() < 1e-12),
            "{got:?}"
        );
    };
    near(of("senses.0.rates"), even.map(|period| TAU / period));
    near(of("senses.1.rates"), even.map(|period| (0.5 * period).ln()));
    // A cosine and a sine of one angle share a root; the constant has its own.
    let root = ((bases * (1 + degree)) as f64).sqrt().recip();
    assert_eq!(of("senses.1.roots"), &[root; 9]);
}

#[test]
fn last_events_are_those_of_each_sequence() {
    let events = |kinds: &[usize]| Events {
        kinds: kinds.to_vec(),
        times: (0..kinds.len()).map(|t| t as f64).collect(),
    };
    let trainer = trainer(&[BOCHNER], sequences(20));
    let all = [events(&[0, 1, 2, 3]), events(&[1, 2]), events(&[3, 3, 0])];
    let logits = trainer.predict(&all).unwrap();
    assert_eq!(
        logits.iter().map(Array2::nrows).collect::<Vec<_>>(),
        [3, 1, 2]
    );
    let seen = trainer.assess(&all).unwrap();
    let by_hand = all.iter().zip(&logits).map(|(own, logits)| {
        let row = logits.row(logits.nrows() - 1).mapv(f64::from);
        row.mapv(f64::exp).sum().ln() - row[own.kinds[own.kinds.len() - 1]]
    });
    let mean = by_hand.sum::<f64>() / 3.0;
    assert!((seen.last.cross_entropy - mean).abs() < 1e-5);
    let own = all
        .iter()
        .map(|own| trainer.assess(std::slice::from_ref(own)).unwrap());
    let own: Vec<_> = own.collect();
    let sums = own
        .iter()
        .zip([3.0, 1.0, 2.0])
        .map(|(one, n)| n * one.all.cross_entropy);
    assert!((seen.all.cross_entropy - sums.sum::<f64>() / 6.0).abs() < 1e-5);
}

/// An event is read with its own time, not with that of the next event, which is not known yet.
#[test]
fn a_trainer_reads_no_time_before_its_event() {
    for (senses, counts) in [(&[][..], false), (&[BOCHNER], true), (&[MERCER], true)] {
        let trainer = trainer(senses, sequences(20));
        let logits = |times: [f64; 4]| {
            let own = Events {
                kinds: vec![0, 1, 2, 3],
                times: times.to_vec(),
            };
            trainer.predict(&[own]).unwrap().remove(0)
        };
        let times = [0.0, 1.0, 3.0, 7.0];
        let before = logits(times);
        for place in 0..4 {
            let mut other = times;
            other[place] += 0.5;
            let after = logits(other);
            let rows = before.rows().into_iter().zip(after.rows());
            let moved: Vec<bool> = rows.map(|(one, other)| one != other).collect();
            let want = [0, 1, 2].map(|row| counts && row >= place);
            assert_eq!(moved, want, "{senses:?}, place {place}");
        }
    }
}

#[test]
fn what_does_not_fit_is_named() {
    let task = |kinds: &[usize], times: &[f64]| {
        let (kinds, times) = (kinds.to_vec(), times.to_vec());
        Task::new(vec![Events { kinds, times }], BatchConfig::default())
    };
    for (kinds, times, named) in [
        (&[0][..], &[0.0][..], "events of sequence 0"),
        (&[0, 1], &[0.0], "times of sequence 0"),
        (&[0, 1], &[0.0, f64::INFINITY], "times of sequence 0"),
    ] {
        let said = task(kinds, times).unwrap_err().to_string();
        assert!(said.contains(named), "{said}");
    }
    let refused = |config: NextEventConfig| {
        let model = NextEvent::<f32>::try_new(&Cpu::default(), &config, Seed::new(1));
        model.unwrap_err().to_string()
    };
    let wide = TimeSense::Bochner {
        frequencies: 12,
        periods: [1.0, 2.0],
    };
    assert!(refused(softmax(&[wide])).contains("less than the encoder's width, 24"));
    let backwards = TimeSense::Bochner {
        frequencies: 2,
        periods: [3.0, 2.0],
    };
    assert!(refused(softmax(&[backwards])).contains("periods"));
    // CAT's default mixes the whole sequence.
    assert!(
        refused(config(Cat::default().into(), &[]))
            .contains("a model of next events with this mechanism")
    );
    let unknown = Task::new(sequences(20), BatchConfig::default()).unwrap();
    let two = NextEventConfig {
        kinds: 2,
        ..softmax(&[])
    };
    let refused = Trainer::new(&two, &TrainingConfig::default(), unknown, Seed::new(1));
    assert!(
        refused
            .unwrap_err()
            .to_string()
            .contains("kinds of sequence 0")
    );
}
