//! CAT: time against length, and a masked token against softmax attention at equal width.

use crate::Error;
use crate::complexity::clock::{self, LONG_ENOUGH};
use crate::runner::pool;
use crate::study::case::Case;
use crate::study::{Finding, Measure, SEED, Study};
use bochner_attention::{Cat, Mask, Pass, Softmax, Variant, mechanism::Streams};
use bochner_models::classifier::{Task, TextClassifierConfig, Trainer};
use bochner_models::encoder::{EncoderConfig, EncoderLayerConfig, NormPlacement};
use bochner_models::training::TrainingConfig;
use bochner_nn::parameter_count;
use bochner_numerics::{Seed, parallel, standard_normal};
use bochner_report::Scale;
use bochner_report::statistics::{Paired, line, mean, median};
use bochner_text::BatchConfig;
use ndarray::Array4;

/// The suite.
pub static CAT: Study = Study {
    name: "cat",
    title: "CAT: circular-convolutional attention",
    part: "statement",
    opening,
    parts: &[time, masked_token],
};

fn opening(_: Scale) -> String {
    "CAT is the paper's form, correlation, with one score a token and head. Times are those of the mechanism's \
     forward pass alone, without projections, in single precision on one thread, by the processor's clock where the \
     system has one."
        .to_owned()
}

/// The width of values, queries and keys of the one head that is timed.
const WIDTH: usize = 32;

/// Slopes are taken over lengths from this one on.
const SLOPE_FROM: usize = 1024;

fn time(scale: Scale) -> Result<Finding, Error> {
    let (longest, repetitions) = match scale {
        Scale::Smoke => (256, 1),
        Scale::Desk => (8192, 5),
        Scale::Paper => (32_768, 5),
    };
    let lengths = std::iter::successors(Some(256), |t| Some(2 * t));
    let mut lengths: Vec<usize> = lengths.take_while(|t| *t <= longest).collect();
    if scale != Scale::Smoke {
        // A prime, whose transform is the hardest.
        lengths.push(4099);
    }
    let ways = [
        ("CAT", Cat::default().into()),
        ("softmax", Softmax::default().into()),
    ];
    let mut seconds = vec![vec![Vec::new(); lengths.len()]; ways.len()];
    // One repetition of all after the other, so that a busy spell of the machine meets all alike.
    for _ in 0..repetitions {
        for (t, &tokens) in lengths.iter().enumerate() {
            for ((_, variant), seconds) in ways.iter().zip(&mut seconds) {
                seconds[t].push(seconds_of(variant, tokens, scale)?);
            }
        }
    }
    let mut measures = Vec::new();
    let mut medians = Vec::new();
    for ((name, _), seconds) in ways.iter().zip(&seconds) {
        let of_length = seconds.iter().map(|times| median(times));
        let of_length = of_length.collect::<Result<Vec<f64>, _>>()?;
        for (tokens, seconds) in lengths.iter().zip(&of_length) {
            let what = format!("{name}, T = {tokens}: milliseconds");
            measures.push(Measure::shown(what, 1e3 * seconds));
        }
        medians.push(of_length);
    }
    for (t, tokens) in lengths.iter().enumerate() {
        let what = format!("T = {tokens}: softmax over CAT");
        let ratio = Measure::shown(what, medians[1][t] / medians[0][t]);
        measures.push(match (scale, *tokens) {
            (Scale::Smoke, _) | (_, ..2048) => ratio,
            _ => ratio.at_least(1.0),
        });
    }
    if scale != Scale::Smoke {
        for ((name, _), (medians, [low, high])) in ways
            .iter()
            .zip(medians.iter().zip([[0.9, 1.3], [1.8, 2.2]]))
        {
            let points = lengths.iter().zip(medians);
            let points = points.filter(|(t, _)| t.is_power_of_two() && **t >= SLOPE_FROM);
            let logs: Vec<_> = points.map(|(&t, s)| ((t as f64).ln(), s.ln())).collect();
            let slope = line(&logs)?;
            let what = format!("{name}: slope of log time over log T from {SLOPE_FROM} on");
            let measure = Measure::shown(what, slope.slope).with_error(slope.error);
            measures.push(measure.within(low, high));
        }
    }
    Ok(Finding {
        number: 1,
        title: "time against length",
        statement: "From 1,024 tokens on the time of CAT grows with a slope of 0.9 to 1.3 in the logarithms (T log T \
                    has 1.1 there), that of softmax attention, the control, with 1.8 to 2.2; from 2,048 tokens on \
                    CAT is the faster one, at a prime length too.",
        cases: repetitions,
        measures,
        ..Finding::default()
    })
}

/// Seconds of one forward pass over so many tokens.
fn seconds_of(variant: &Variant, tokens: usize, scale: Scale) -> Result<f64, Error> {
    let mut stream = Seed::new(SEED).child("cat").stream("tokens");
    let [q, k, v] = [(); 3].map(|()| {
        let shape = (1, 1, tokens, WIDTH);
        Array4::from_shape_simple_fn(shape, || standard_normal::<f32>(&mut stream))
    });
    let (mechanism, mask) = (variant.mechanism::<f32>(), Mask::none());
    let streams = Streams::asked_by(&mechanism.card(), [q.view(), k.view(), v.view()], &mask);
    let pass = Pass::Evaluation {
        seed: Seed::new(SEED),
    };
    let long_enough = match scale {
        // One step of the processor's clock, so that no time is zero.
        Scale::Smoke => f64::MIN_POSITIVE,
        _ => LONG_ENOUGH,
    };
    pool(1, 1)?.install(|| {
        let forward = || -> Result<(), Error> {
            mechanism.forward(&streams, &[], &pass)?;
            Ok(())
        };
        forward()?;
        clock::seconds_of(long_enough, forward)
    })
}

/// Symbols, the length of a sentence and of the pattern that it repeats.
const SYMBOLS: usize = 6;
const LENGTH: usize = 16;
const PERIOD: usize = 4;

/// Numbers of words below are the text crate's own; the next one hides a symbol.
const HIDDEN: usize = 2;

/// Sentences, each with one symbol hidden, and the hidden symbols.
type Sentences = (Vec<Vec<usize>>, Vec<usize>);

fn sentences(case: &mut Case, count: usize, period: usize) -> Sentences {
    let sentence = |case: &mut Case| {
        let pattern: Vec<usize> = (0..period).map(|_| case.count(0, SYMBOLS - 1)).collect();
        let hidden = case.count(0, LENGTH - 1);
        let word = |t: usize| HIDDEN + 1 + pattern[t % period];
        let words = (0..LENGTH).map(|t| if t == hidden { HIDDEN } else { word(t) });
        (words.collect(), pattern[hidden % period])
    };
    (0..count).map(|_| sentence(case)).unzip()
}

fn masked_token(scale: Scale) -> Result<Finding, Error> {
    let (seeds, count, epochs) = match scale {
        Scale::Smoke => (1, 64, 1),
        Scale::Desk => (8, 2000, 40),
        Scale::Paper => (32, 2000, 40),
    };
    let mechanisms: [(&str, Variant); 2] = [
        ("softmax", Softmax::default().into()),
        ("CAT", Cat::default().into()),
    ];
    let mut measures = Vec::new();
    let mut errors = Vec::new();
    for period in [PERIOD, LENGTH] {
        for (name, variant) in &mechanisms {
            let runs = parallel::map(seeds, |seed| learn(variant, seed, period, count, epochs));
            let runs = runs.into_iter().collect::<Result<Vec<_>, Error>>()?;
            let (wrong, parameters): (Vec<f64>, Vec<usize>) = runs.into_iter().unzip();
            let accuracy = Measure::shown(
                match period {
                    PERIOD => format!("{name}: share of hidden symbols found"),
                    _ => format!("control, no pattern, {name}: share found"),
                },
                1.0 - mean(&wrong)?,
            );
            let chance = 1.0 / SYMBOLS as f64;
            measures.push(match (scale, period) {
                (Scale::Smoke, _) => accuracy,
                (_, PERIOD) => accuracy.at_least(2.0 * chance),
                _ => accuracy.at_most(chance + 0.05),
            });
            if period == PERIOD {
                let what = format!("{name}: parameters of the model");
                measures.push(Measure::shown(what, parameters[0] as f64));
                errors.push(wrong);
            }
        }
    }
    let gain = Paired::between(&errors[1], &errors[0])?;
    let what = "CAT less softmax: share of hidden symbols found";
    let measure = Measure::shown(what, -gain.mean);
    // One seed has no standard error.
    let measure = match gain.error {
        Some(error) => measure.with_error(error),
        None => measure,
    };
    measures.push(match scale {
        Scale::Smoke => measure,
        _ => measure.at_least(-0.05),
    });
    Ok(Finding {
        number: 2,
        title: "a hidden token, at equal width",
        statement: "Sentences of 16 symbols out of 6 repeat a pattern of 4; one symbol is hidden, and is to be named \
                    from the mean over the positions after two encoder layers of width 32. Both mechanisms find it \
                    at least twice as often as chance (0.167), and CAT at most 0.05 less often than softmax attention, \
                    on average over seeds. Control: without a pattern neither is above chance by more than 0.05.",
        cases: seeds,
        measures,
        ..Finding::default()
    })
}

/// The share of hidden symbols of other sentences that a trained model does not find, and its number of parameters.
fn learn(
    variant: &Variant,
    seed: usize,
    period: usize,
    count: usize,
    epochs: usize,
) -> Result<(f64, usize), Error> {
    // Both mechanisms read the same sentences and start alike.
    let mut case = Case::new(2, seed);
    let (train, classes) = sentences(&mut case, count, period);
    let (test, hidden) = sentences(&mut case, count, period);
    let batches = BatchConfig {
        tokens: 32 * LENGTH,
        sentences: Some(32),
        ..BatchConfig::default()
    };
    let layer = EncoderLayerConfig {
        width: 32,
        heads: 4,
        hidden: 64,
        attention: variant.clone(),
        dropout: 0.0,
        norm: NormPlacement::Pre,
        ..Default::default()
    };
    let encoder = EncoderConfig::new(2, layer);
    let words = HIDDEN + 1 + SYMBOLS;
    let config = TextClassifierConfig::transformer(words, SYMBOLS, LENGTH, encoder);
    let training = TrainingConfig {
        learning_rate: 2e-3,
        clip_norm: Some(1.0),
        ..TrainingConfig::default()
    };
    let task = Task::new(train, classes, batches)?;
    let mut trainer = Trainer::new(&config, &training, task, Seed::new(SEED).nth(seed as u64))?;
    for _ in 0..epochs {
        trainer.epoch()?;
    }
    let error = trainer.assess(&test, &hidden)?.error;
    Ok((error, parameter_count(trainer.model())))
}
