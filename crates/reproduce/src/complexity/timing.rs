//! Time of attention's forward pass over the length.

use super::clock::{LONG_ENOUGH, seconds_of};
use super::forward::Forward;
use super::{in_linear_time, mechanisms, with_points};
use crate::Error;
use crate::mechanisms::LINEAR_TIME;
use crate::runner::pool;
use crate::study::{Finding, Measure};
use bochner_attention::Variant;
use bochner_report::Scale;
use bochner_report::document::{Axis, Chart, Marks, Series};
use bochner_report::statistics::{line, median};

/// Width over all heads.
const WIDTH: usize = 64;

/// Slopes are taken over lengths from this one on.
const SLOPE_FROM: usize = 1024;

/// Repetitions of each measurement.
const REPETITIONS: usize = 5;

/// The numbers of spectral points.
const POINTS: [usize; 2] = [16, 64];

/// The slopes that are allowed pair by pair, and in linear time.
const QUADRATIC: [f64; 2] = [1.8, 2.2];
const LINEAR: [f64; 2] = [0.8, 1.2];

/// The time of the forward pass of a mechanism over the length.
struct Growth {
    name: String,
    mechanism: Variant,
    /// The range of slopes that is allowed.
    allowed: [f64; 2],
    /// Seconds, a list of repetitions for each length.
    seconds: Vec<Vec<f64>>,
}

/// Times all mechanisms pair by pair, and IKAN-direct in linear time, too. Scale smoke times two
/// short lengths, from which there is no slope.
pub(super) fn growth(scale: Scale) -> Result<Finding, Error> {
    let (longest, long_enough) = match scale {
        Scale::Smoke => (512, 0.0),
        Scale::Desk => (4096, LONG_ENOUGH),
        Scale::Paper => (32_768, LONG_ENOUGH),
    };
    let lengths = std::iter::successors(Some(256), |t| Some(2 * t));
    let lengths: Vec<usize> = lengths.take_while(|t| *t <= longest).collect();
    let finding = Finding {
        number: 4,
        title: "time over the length",
        statement: "From 1,024 tokens on, the slope of log time over log T is 1.8 to 2.2 pair by pair, and 0.8 to 1.2 by \
                    sums over the keys. Times are those of forward passes without projections, in single precision on \
                    one thread, by the processor's clock where the system has one. Scale smoke times two lengths, and judges no slope.",
        cases: REPETITIONS,
        ..Finding::default()
    };
    let growths = pool(1, 1)?.install(|| measured(&lengths, long_enough))?;
    described(finding, &lengths, &growths)
}

/// Times everything, one repetition of all after the other, so that a busy spell of the machine meets all alike.
fn measured(lengths: &[usize], long_enough: f64) -> Result<Vec<Growth>, Error> {
    let growth = |name, mechanism, allowed| Growth {
        name,
        mechanism,
        allowed,
        seconds: vec![Vec::new(); lengths.len()],
    };
    let mut growths = Vec::new();
    for (variant, card, _) in mechanisms() {
        if card.points.is_none() {
            growths.push(growth(card.name.to_owned(), variant, QUADRATIC));
            continue;
        }
        for points in POINTS {
            let name = format!("{}, R = {points}", card.name);
            growths.push(growth(name, with_points(&variant, points)?, QUADRATIC));
        }
    }
    for points in POINTS {
        let name = format!("{LINEAR_TIME}, R = {points}");
        growths.push(growth(name, in_linear_time(points), LINEAR));
    }
    for repetition in 1..=REPETITIONS {
        eprintln!("complexity: timing, repetition {repetition} of {REPETITIONS}");
        for growth in &mut growths {
            for (&tokens, seconds) in lengths.iter().zip(&mut growth.seconds) {
                let forward = Forward::random(&growth.mechanism, tokens, WIDTH)?;
                seconds.push(seconds_of(long_enough, || forward.run())?);
            }
        }
    }
    Ok(growths)
}

/// The slopes and the times at the longest length, and charts of all medians.
fn described(
    mut finding: Finding,
    lengths: &[usize],
    growths: &[Growth],
) -> Result<Finding, Error> {
    let mut series = Vec::new();
    for growth in growths {
        let medians = growth.seconds.iter().map(|seconds| median(seconds));
        let medians = medians.collect::<Result<Vec<f64>, _>>()?;
        let points = lengths.iter().zip(&growth.seconds);
        let points = points.filter(|(tokens, _)| **tokens >= SLOPE_FROM);
        let logs = points.flat_map(|(&tokens, seconds)| {
            seconds.iter().map(move |s| ((tokens as f64).ln(), s.ln()))
        });
        if let Ok(slope) = line(&logs.collect::<Vec<_>>()) {
            let [low, high] = growth.allowed;
            let slope = Measure::shown(format!("{}: slope", growth.name), slope.slope)
                .with_error(slope.error);
            finding.measures.push(slope.within(low, high));
        }
        if let (Some(tokens), Some(seconds)) = (lengths.last(), medians.last()) {
            let what = format!("{}: milliseconds at T = {tokens}", growth.name);
            finding.measures.push(Measure::shown(what, 1e3 * seconds));
        }
        let milliseconds = medians.iter().map(|seconds| 1e3 * seconds);
        series.push(Series {
            name: growth.name.clone(),
            marks: Marks::Line,
            points: lengths
                .iter()
                .map(|&t| t as f64)
                .zip(milliseconds)
                .collect(),
        });
    }
    finding.charts = vec![Chart {
        title: "forward pass".to_owned(),
        x: Axis::Log("tokens T".to_owned()),
        y: Axis::Log("milliseconds".to_owned()),
        series,
    }];
    Ok(finding)
}
