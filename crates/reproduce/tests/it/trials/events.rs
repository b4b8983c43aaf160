//! Models of next events.

use bochner_attention::Softmax;
use bochner_datasets::{EventData, EventSequence, Protocol, Split};
use bochner_models::encoder::{EncoderConfig, EncoderLayerConfig};
use bochner_models::next_event::TimeSense;
use bochner_models::training::TrainingConfig;
use bochner_report::{Scale, Settings, Unit};
use bochner_reproduce::suite::Source;
use bochner_reproduce::trial::Moment;
use bochner_reproduce::trial::events::{Clock, EventSettings, LAST_EVENT, MOST_FREQUENT, MOVED};

fn settings(clock: Clock, time: Vec<TimeSense>) -> EventSettings {
    let layer = EncoderLayerConfig {
        width: 8,
        heads: 1,
        hidden: 16,
        attention: Softmax::default().into(),
        dropout: 0.0,
        ..EncoderLayerConfig::default()
    };
    EventSettings {
        time,
        clock,
        unit: 10.0,
        longest: 4,
        encoder: EncoderConfig::new(1, layer),
        batch: 4,
        training: TrainingConfig {
            learning_rate: 2e-2,
            ..TrainingConfig::default()
        },
        epochs: 1,
    }
}

fn data(sequences: Vec<EventSequence>, [validation, test]: [usize; 2]) -> EventData {
    let all = sequences.len();
    EventData {
        names: ["always", "never"].map(str::to_owned).to_vec(),
        sequences,
        splits: vec![Split {
            train: (0..validation).collect(),
            validation: (validation..test).collect(),
            test: (test..all).collect(),
        }],
        provenance: Vec::new(),
    }
}

fn unit(settings: &EventSettings, seed: u64) -> Unit {
    Unit {
        suite: "time".into(),
        scale: Scale::Smoke,
        set: "echoes".into(),
        variant: "no time".into(),
        protocol: Protocol::P10,
        split: 0,
        seed,
        settings: Settings::of(settings),
        versions: None,
    }
}

/// Losses of two epochs with each sequence of these times, which a model with features of times reads by a clock.
fn losses(times: &[f64], clock: Clock, seed: u64) -> [f64; 2] {
    let sequence = |kind: usize| EventSequence {
        kinds: (0..times.len()).map(|t| (t + kind) / 2 % 2).collect(),
        times: times.to_vec(),
    };
    let data = data((0..4).map(sequence).collect(), [2, 3]);
    let time = vec![TimeSense::Bochner {
        frequencies: 2,
        periods: [1.0, 20.0],
    }];
    let mut trial = data.start(&unit(&settings(clock, time), seed)).unwrap();
    [(); 2].map(|()| trial.model_mut().epoch().unwrap().loss)
}

#[test]
fn the_end_of_a_sequence_is_read_in_the_order_of_its_events() {
    let every_ten: Vec<f64> = (0..8).map(|t| 1e6 + 10.0 * f64::from(t)).collect();
    let uneven: Vec<f64> = (0..8).map(|t| 5.0 * f64::from(t * t)).collect();
    let later: Vec<f64> = uneven.iter().map(|t| 1e6 + t).collect();
    // Times count from the first event that is read, in the unit of 10: they are then the positions.
    let positions = losses(&uneven, Clock::Position, 1);
    assert_eq!(losses(&every_ten, Clock::Time, 1), positions);
    let time = losses(&uneven, Clock::Time, 1);
    assert_ne!(time, positions);
    assert_eq!(losses(&later, Clock::Time, 1), time);
    let shuffled = losses(&uneven, Clock::Shuffled, 1);
    assert_ne!(shuffled, time);
    // The last event keeps its time: with one before it nothing is shuffled.
    for seed in 0..8 {
        let two = |clock| losses(&[7.0, 27.0], clock, seed);
        assert_eq!(two(Clock::Shuffled), two(Clock::Time), "seed {seed}");
    }
}

/// A model that has seen nothing but kind 0 come next names it always: how often that is right tells the parts
/// apart.
#[test]
fn each_number_is_that_of_its_own_part() {
    let kinds = [
        [1, 0, 0, 0],
        [0, 0, 0, 0],
        [0, 0, 0, 0],
        [0, 1, 1, 0],
        [0, 0, 0, 1],
        [0, 0, 1, 1],
    ];
    let sequence = |kinds: [usize; 4]| EventSequence {
        kinds: kinds.to_vec(),
        times: vec![0.0, 1.0, 2.0, 3.0],
    };
    let data = data(kinds.map(sequence).to_vec(), [2, 3]);
    let unit = unit(&settings(Clock::Time, Vec::new()), 1);
    let mut trial = data.start(&unit).unwrap();
    assert_eq!(trial.rows(), [6, 3, 9]);
    for _ in 0..200 {
        trial.model_mut().epoch().unwrap();
    }
    let seen = trial.evaluate().unwrap();
    let found = trial.findings(Moment::Last, &|| false).unwrap().measures;
    let [(name, last)] = seen.others[..] else {
        panic!("{seen:?}")
    };
    assert_eq!(name, LAST_EVENT);
    for (got, want) in [
        (seen.validation.unwrap(), 1.0),
        (seen.test, 4.0 / 9.0),
        (last, 1.0 / 3.0),
        (found[MOST_FREQUENT], 1.0 / 3.0),
        (found[MOVED], 0.0),
    ] {
        assert!((got - want).abs() < 1e-12, "{got} {want}");
    }
}
