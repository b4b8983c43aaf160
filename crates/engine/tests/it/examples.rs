//! The kernels of the examples keep the engine's promises, and the examples run.
// Examples are programs of their own, whose items are public.
#![allow(unreachable_pub)]

#[path = "../../examples/alibi.rs"]
mod alibi;
#[path = "../../examples/attention_sink.rs"]
mod attention_sink;
#[path = "../../examples/elu.rs"]
pub(crate) mod elu;
#[path = "../../examples/moving_average.rs"]
mod moving_average;
#[path = "../../examples/rational_quadratic.rs"]
mod rational_quadratic;
#[path = "../../examples/retention.rs"]
pub(crate) mod retention;
#[path = "../../examples/retention_scan.rs"]
pub(crate) mod retention_scan;
#[path = "../../examples/sigmoid_attention.rs"]
mod sigmoid_attention;
#[path = "../../examples/soft_cap.rs"]
mod soft_cap;
#[path = "../../examples/t5_bias.rs"]
mod t5_bias;

use crate::{Outcome, conforms};
use bochner_engine::conformance::Trial;
use bochner_engine::ndarray::{Array1, Array2, Array4};
use bochner_engine::numerics::{Real, check::random};
use bochner_engine::{Mask, Score, Scored, Settings, attend};

#[test]
fn all_run() -> Result<(), bochner_engine::Error> {
    alibi::main()?;
    attention_sink::main()?;
    elu::main()?;
    moving_average::main()?;
    rational_quadratic::main()?;
    retention::main()?;
    retention_scan::main()?;
    sigmoid_attention::main()?;
    soft_cap::main()?;
    t5_bias::main()
}

fn numbers<T: Real>(all: &[f64]) -> Vec<T> {
    all.iter().map(|&x| T::of(x)).collect()
}

/// The trial of a score with one learnt number for each of two heads.
fn learnt<T: Real>(score: impl Score, all: [f64; 2]) -> Trial<T> {
    Trial::with_learnt(numbers(&all), move |mask, all| {
        let all = Array2::from_shape_vec((2, 1), all.to_vec()).expect("one a head");
        Settings::pairs(Scored::with_parameters(score.clone(), all), mask)
    })
}

fn score<T: Real>(score: impl Score) -> Trial<T> {
    Trial::new(move |mask, _| Settings::score(score.clone(), mask))
}

#[test]
fn rational_quadratic() -> Outcome {
    let score = rational_quadratic::RationalQuadratic;
    conforms(
        learnt(score.clone(), [0.5, -0.3]),
        learnt(score, [0.5, -0.3]),
    )
}

#[test]
fn alibi() -> Outcome {
    conforms(
        learnt(alibi::Alibi, [0.5, 0.1]),
        learnt(alibi::Alibi, [0.5, 0.1]),
    )
}

#[test]
fn soft_cap() -> Outcome {
    conforms(score(soft_cap::SoftCap(1.5)), score(soft_cap::SoftCap(1.5)))
}

#[test]
fn sigmoid_attention() -> Outcome {
    fn trial<T: Real>() -> Trial<T> {
        Trial::new(|mask, _| sigmoid_attention::settings(7, mask))
    }
    conforms(trial(), trial())
}

#[test]
fn t5_bias() -> Outcome {
    fn trial<T: Real>() -> Trial<T> {
        let table = (0..2 * t5_bias::BUCKETS)
            .map(|n| T::of((n as f64).sin()))
            .collect();
        Trial::with_learnt(table, |mask, table| {
            let table =
                Array2::from_shape_vec((2, t5_bias::BUCKETS), table.to_vec()).expect("two heads");
            t5_bias::settings(table.view(), mask).expect("a column a bucket")
        })
    }
    conforms(trial(), trial())
}

#[test]
fn attention_sink() -> Outcome {
    fn trial<T: Real>() -> Trial<T> {
        Trial::with_learnt(numbers(&[0.4, -1.0]), |mask, sink| {
            attention_sink::settings(Array1::from_vec(sink.to_vec()), mask)
        })
    }
    conforms(trial(), trial())
}

#[test]
fn elu() -> Outcome {
    fn trial<T: Real>() -> Trial<T> {
        Trial::new(|mask, _| Settings::features(elu::Elu { width: 4 }, mask))
    }
    conforms(trial(), trial())
}

#[test]
fn moving_average() -> Outcome {
    fn trial<T: Real>() -> Trial<T> {
        Trial::with_learnt(numbers(&[0.5, 0.9]), |mask, kept| {
            Settings::scan(
                moving_average::MovingAverage {
                    kept: kept.to_vec(),
                },
                mask,
            )
        })
    }
    conforms(trial(), trial())
}

#[test]
fn retention_by_pairs_and_by_a_scan() -> Outcome {
    fn by_pairs<T: Real>() -> Trial<T> {
        Trial::new(|mask, _| retention::settings(mask))
    }
    fn by_scan<T: Real>() -> Trial<T> {
        Trial::new(|mask, _| Settings::scan(retention_scan::RetentionScan, mask))
    }
    conforms(by_pairs(), by_pairs())?;
    conforms(by_scan(), by_scan())
}

#[test]
fn retention_is_the_same_by_pairs_and_by_a_scan() -> Result<(), bochner_engine::Error> {
    let x: Array4<f64> = random([2, 3, 200, 4], "x");
    let of = |settings: Settings<f64>| attend(&settings, x.view(), x.view(), x.view());
    let (pairs, _) = of(retention::settings(&Mask::causal()))?;
    let (scan, _) = of(Settings::scan(
        retention_scan::RetentionScan,
        &Mask::causal(),
    ))?;
    assert!((&pairs - &scan).iter().all(|x| x.abs() < 1e-11));
    Ok(())
}
