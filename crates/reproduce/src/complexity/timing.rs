//! Time of attention's forward pass over the length.

use super::clock::{LONG_ENOUGH, seconds_of};
use super::kernel::SquaredKernel;
use super::{counts::HEADS, mechanisms, with_points};
use crate::Error;
use crate::runner::pool;
use crate::study::{Finding, Measure};
use bochner_attention::{Form, Mask, Pass, Variant, mechanism::Streams};
use bochner_numerics::{Seed, standard_normal};
use bochner_report::Scale;
use bochner_report::document::{Axis, Chart, Marks, Series};
use bochner_report::statistics::{line, median};
use ndarray::Array4;

/// Width over all heads.
const WIDTH: usize = 64;

/// Slopes are taken over lengths from this one on.
const SLOPE_FROM: usize = 1024;

/// Repetitions of each measurement.
const REPETITIONS: usize = 5;

/// The numbers of spectral points.
const POINTS: [usize; 2] = [16, 64];

/// A computation that is timed at several lengths.
enum Timed {
    /// The forward pass of a mechanism, pair by pair.
    Mechanism(Variant),
    /// A squared kernel without parameters or noise around it, in one of its forms.
    Kernel(Form, usize),
}

/// The time of one computation over the length.
struct Growth {
    name: String,
    timed: Timed,
    /// Seconds, a list of repetitions for each length.
    seconds: Vec<Vec<f64>>,
}

/// Times all mechanisms, and both forms of a squared kernel. Scale smoke times nothing.
pub(super) fn growth(scale: Scale) -> Result<Finding, Error> {
    let longest = match scale {
        Scale::Smoke => 0,
        Scale::Desk => 4096,
        Scale::Paper => 32_768,
    };
    let lengths = std::iter::successors(Some(256), |t| Some(2 * t));
    let lengths: Vec<usize> = lengths.take_while(|t| *t <= longest).collect();
    let finding = Finding {
        number: 4,
        title: "time over the length",
        statement: "From 1,024 tokens on, the slope of log time over log T is 1.8 to 2.2 pair by pair, and 0.8 to 1.2 by \
                    sums over the keys. Times are those of forward passes without projections, in single precision on \
                    one thread, by the processor's clock where the system has one. Scale smoke times nothing.",
        cases: if lengths.is_empty() { 0 } else { REPETITIONS },
        ..Finding::default()
    };
    if lengths.is_empty() {
        return Ok(finding);
    }
    let growths = pool(1, 1)?.install(|| measured(&lengths, LONG_ENOUGH))?;
    described(finding, &lengths, &growths)
}

/// Times everything, one repetition of all after the other, so that a busy spell of the machine meets all alike.
fn measured(lengths: &[usize], long_enough: f64) -> Result<Vec<Growth>, Error> {
    let mut growths = Vec::new();
    let mut add = |name: String, timed: Timed| {
        growths.push(Growth {
            name,
            timed,
            seconds: vec![Vec::new(); lengths.len()],
        });
    };
    for (variant, card, _) in mechanisms() {
        match card.points {
            None => add(card.name.to_owned(), Timed::Mechanism(variant)),
            Some(_) => {
                for points in POINTS {
                    let sized = with_points(&variant, points)?;
                    add(
                        format!("{}, R = {points}", card.name),
                        Timed::Mechanism(sized),
                    );
                }
            }
        }
    }
    for (form, how) in [
        (Form::Pairwise, "pair by pair"),
        (Form::LinearTime, "by sums"),
    ] {
        for points in POINTS {
            let name = format!("squared kernel {how}, R = {points}");
            add(name, Timed::Kernel(form, points));
        }
    }
    for repetition in 1..=REPETITIONS {
        eprintln!("complexity: timing, repetition {repetition} of {REPETITIONS}");
        for growth in &mut growths {
            for (&tokens, seconds) in lengths.iter().zip(&mut growth.seconds) {
                seconds.push(growth.timed.seconds(tokens, long_enough)?);
            }
        }
    }
    Ok(growths)
}

impl Timed {
    /// The time of one forward pass.
    fn seconds(&self, tokens: usize, long_enough: f64) -> Result<f64, Error> {
        let variant = match self {
            Self::Mechanism(variant) => variant,
            Self::Kernel(form, points) => {
                let kernel = SquaredKernel::random(tokens, *points, WIDTH, HEADS);
                return seconds_of(long_enough, || kernel.attend(*form).map(drop));
            }
        };
        let seed = Seed::new(2021);
        let mut stream = seed.stream("inputs");
        let shape = (1, HEADS, tokens, WIDTH / HEADS);
        let mut x = || Array4::from_shape_simple_fn(shape, || standard_normal::<f32>(&mut stream));
        let (q, k, v) = (x(), x(), x());
        let mask = Mask::none();
        let inputs = Streams::new([q.view(), k.view(), v.view()], &mask);
        let mechanism = variant.at_step(0, inputs.size());
        let mechanism = mechanism.get::<f32>();
        let parameters = mechanism.initial(inputs.size(), &mut seed.stream("initial values"))?;
        let pass = Pass::Evaluation { seed };
        seconds_of(long_enough, || {
            Ok(mechanism.forward(&inputs, &parameters, &pass).map(drop)?)
        })
    }

    /// The slopes that are allowed.
    fn allowed(&self) -> (f64, f64) {
        match self {
            Self::Kernel(Form::LinearTime, _) => (0.8, 1.2),
            _ => (1.8, 2.2),
        }
    }
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
            let (low, high) = growth.timed.allowed();
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
    let chart = |title: &str, is_kernel: bool| Chart {
        title: title.to_owned(),
        x: Axis::Log("tokens T".to_owned()),
        y: Axis::Log("milliseconds".to_owned()),
        series: series
            .iter()
            .filter(|s| s.name.starts_with("squared") == is_kernel)
            .cloned()
            .collect(),
    };
    finding.charts = vec![
        chart("forward pass", false),
        chart("the two forms of a squared kernel", true),
    ];
    Ok(finding)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_slope_is_the_power_of_the_length() {
        let lengths = [256, 512, 1024, 2048, 4096];
        let growth = |form, power| {
            let seconds = lengths.map(|tokens: usize| {
                [0.9, 1.0, 1.2]
                    .map(|s| s * (tokens as f64).powi(power))
                    .to_vec()
            });
            Growth {
                name: "x".to_owned(),
                timed: Timed::Kernel(form, 16),
                seconds: seconds.to_vec(),
            }
        };
        for (form, power, passes) in [
            (Form::Pairwise, 2, true),
            (Form::LinearTime, 1, true),
            (Form::LinearTime, 2, false),
        ] {
            let found = described(Finding::default(), &lengths, &[growth(form, power)]).unwrap();
            let slope = &found.measures[0];
            assert!((slope.value - f64::from(power)).abs() < 1e-9);
            assert_eq!(slope.passed(), passes);
            assert_eq!(found.measures[1].value, 1e3 * 4096_f64.powi(power));
        }
    }

    #[test]
    fn everything_is_timed_at_every_length() {
        for growth in measured(&[16, 32], 0.0).unwrap() {
            assert_eq!(growth.seconds.len(), 2);
            let all = growth.seconds.iter().flatten();
            assert!(all.clone().count() == 2 * REPETITIONS && all.clone().all(|s| *s > 0.0));
        }
    }
}
