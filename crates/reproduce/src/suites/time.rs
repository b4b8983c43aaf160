//! Functional time: what comes next in event sequences, with features of times, with positions, and without either.
//!
//! Everything that is judged is named here, before anything is run.

use super::folds;
use crate::Error;
use crate::mechanisms::{clipped, encoder};
use crate::suite::{Source, Suite};
use crate::trial::events::{Clock, EventSettings, LAST_EVENT, MOST_FREQUENT, MOVED};
use bochner_attention::Softmax;
use bochner_datasets::{DataStore, Echoes, Protocol, events};
use bochner_models::next_event::TimeSense;
use bochner_numerics::Seed;
use bochner_report::Scale;
use bochner_report::check::{Check, falls_below};
use bochner_report::claim::{Claim, Hypothesis};
use bochner_report::plan::Arm;
use bochner_report::sections::{Column, Columns, OWN, Section, comparisons, measures};
use bochner_report::suite::{At, Card, Metric, Model, Set};

/// The suite.
pub static TIME: Suite = Suite::new(&CARD, load, CHECKS);

const NONE: &str = "no time";
const POSITIONS: &str = "positions";
const SHUFFLED: &str = "shuffled times";
const BOCHNER: &str = "Bochner";
const MERCER: &str = "Mercer";
const BOTH: &str = "Bochner and Mercer";
const FUNCTIONAL: &[&str] = &[BOCHNER, MERCER, BOTH];

const ECHOES: &str = "echoes";
const BADGES: &str = "badges";

/// The stream that is drawn: at most 0.79 of the events behind the first lag can be foretold, and 1/6 of those before it.
const STREAM: Echoes = Echoes {
    kinds: 6,
    events: 24,
    sequences: 800,
    gaps: [0.3, 3.0],
    lag: 4.0,
    faithful: 0.75,
};

/// Seconds in 100 days, in which the times of badges are of the order of 1.
const HUNDRED_DAYS: f64 = 8.64e6;

static CARD: Card = Card {
    name: "time",
    table: "Xu et al. 2019, next-event prediction",
    title: "Functional time",
    sets: &[
        Set::new("echoes", ECHOES, 800, Scale::Smoke),
        Set::new("stackoverflow", BADGES, 4_468, Scale::Desk),
    ],
    models: &[
        Model::new(NONE, &[]),
        Model::new(POSITIONS, &[NONE]),
        Model::new(SHUFFLED, &[NONE]),
        Model::new(BOCHNER, &[NONE, POSITIONS, SHUFFLED]).judged(),
        Model::new(MERCER, &[NONE, POSITIONS, SHUFFLED]).judged(),
        Model::new(BOTH, &[NONE, POSITIONS, SHUFFLED]).judged(),
    ],
    metric: Metric::ACCURACY,
    baseline: NONE,
    against: "the model without time",
    opening: "One layer of causal softmax attention foretells the kind of the next event from the kinds and times of those \
              before it. Each event is a vector of its kind joined with features of its time: **Bochner** features are sines \
              and cosines of learnt frequencies, **Mercer** features Fourier series with learnt half-periods and \
              coefficients. All models have one width; what features take is missing from the vectors of the kinds. \
              Accuracies in per cent are over all events but the first of each test sequence. The **V-number** is the test \
              accuracy in the epoch that is best on a separate validation part, the **R-number** the best test accuracy over \
              all epochs.",
    scopes: [
        "Scale smoke tests the machinery on the drawn stream.",
        "Scale desk has five folds of the drawn stream and of the badges, of which the last 64 are read.",
        "Scale paper has ten folds of both, twice the width, and reads 100 badges.",
    ],
    smoke: "One fold, two epochs.",
    decided: &[
        "*Echoes* is a drawn stream in which an event returns, with probability 0.75, when a lag has passed; how many events \
         lie within the lag differs from place to place, so that the order alone does not tell which one returns.",
        "*Badges* are those of 4,468 users of StackOverflow, the union of the five test parts that are published with times, \
         dealt into ten folds of users by the kind of the last badge. The published numbers are of the last badge of a fixed \
         third of 6,633 users, and are not comparable.",
        "*Positions* are the same Bochner features of an event's place in the sequence instead of its time, starting with \
         periods from 2 events to twice the longest sequence. *Shuffled times* is the control: the model with Bochner \
         features, the times of the events that it reads shuffled within each sequence in training, validation and test. An \
         event in the middle of a sequence may then stand beside the time of a later one; the last event's own time is \
         read by no model.",
        "Times are since the first event that is read. The official code takes times before the last one, which tell a model \
         that learns from every event how long it is until the last.",
        "All models have one set of settings, which were chosen beforehand; validation chooses the epoch alone.",
        "SE is too small, since folds share training rows; SE' corrects for it.",
    ],
    arms,
    claims,
    tables: &[
        Section::Numbers(
            "Accuracies",
            "*Last event* is the share of test sequences whose last event is foretold, in the epoch of the V-number: what \
             the paper measures; *most frequent last kind* is that share for a forecaster who always names the kind that is \
             last most often in training. The last column is the mean distance that logits move after the last epoch when \
             the times of test sequences are shuffled.",
            &[OWN, RUNS, SEEN],
        ),
        Section::Written(comparisons),
    ],
    ..Card::EMPTY
};

const RUNS: Columns<'static> = &[("n", Column::N), ("s per unit", Column::Seconds)];
const SEEN: Columns<'static> = &measures([LAST_EVENT, MOST_FREQUENT, MOVED]);

const CHECKS: &[Check] = &[
    Check::Rows(
        "the training error falls",
        |_| true,
        |row| falls_below(row, 1.0),
    ),
    Check::Rows(
        "other times move the logits of models of times, and of no others",
        |_| true,
        |row| {
            let moved = row.measure(MOVED);
            let fits = match &*row.unit.variant {
                NONE | POSITIONS => moved == 0.0,
                _ => moved > 0.0,
            };
            (!fits).then(|| format!("{moved:.1e}"))
        },
    ),
];

fn arms(at: &At<'_>) -> Vec<Arm> {
    let n = at.of_scale([1, 5, 10]);
    let arm = |model: &Model| {
        let settings = settings(at, model.name);
        Arm::new(at, model.name, Protocol::P10, folds(n), &settings)
    };
    CARD.models.iter().map(arm).collect()
}

fn claims() -> Vec<Claim> {
    let over = |name, text, others: &[&'static str], set| {
        let pairs = FUNCTIONAL.iter().flat_map(|model| {
            others
                .iter()
                .map(|other| Hypothesis::better(model, other, set))
        });
        Claim::all(name, text, pairs.collect())
    };
    vec![
        over(
            "echoes",
            "on the drawn stream Bochner, Mercer and both are each better than no time, positions and shuffled times",
            &[NONE, POSITIONS, SHUFFLED],
            ECHOES,
        ),
        over(
            "badges",
            "on badges Bochner, Mercer and both are each better than no time",
            &[NONE],
            BADGES,
        ),
        over(
            "positions",
            "on badges Bochner, Mercer and both are each better than positions",
            &[POSITIONS],
            BADGES,
        ),
        over(
            "control",
            "on badges Bochner, Mercer and both are each better than shuffled times",
            &[SHUFFLED],
            BADGES,
        ),
    ]
}

fn load(set: &Set, _: &[Arm], files: &DataStore) -> Result<Box<dyn Source>, Error> {
    Ok(Box::new(match set.title {
        ECHOES => STREAM.draw(Seed::new(crate::study::SEED))?,
        _ => events::load(files)?,
    }))
}

fn settings(at: &At<'_>, model: &str) -> EventSettings {
    let is_badges = at.set.title == BADGES;
    // Badges: from a day to 1,000 days.
    let (unit, periods, longest, epochs) = match is_badges {
        true => (HUNDRED_DAYS, [0.01, 10.0], [64, 64, 100], [2, 10, 50]),
        false => (1.0, [1.0, 40.0], [STREAM.events - 1; 3], [2, 60, 200]),
    };
    let (longest, epochs) = (at.of_scale(longest), at.of_scale(epochs));
    let width = at.of_scale([32, 32, 64]);
    EventSettings {
        time: senses(model, periods, longest),
        clock: match model {
            POSITIONS => Clock::Position,
            SHUFFLED => Clock::Shuffled,
            _ => Clock::Time,
        },
        unit,
        longest,
        encoder: encoder(1, [width, 1], 0.1, Softmax::default().into()),
        batch: 32,
        training: clipped(2e-3, 1.0),
        epochs,
    }
}

/// The features of a model: 15 to 17 where there are any.
fn senses(model: &str, periods: [f64; 2], longest: usize) -> Vec<TimeSense> {
    let bochner = |frequencies, periods| TimeSense::Bochner {
        frequencies,
        periods,
    };
    let mercer = |degree| TimeSense::Mercer {
        bases: 3,
        degree,
        periods,
    };
    match model {
        NONE => Vec::new(),
        POSITIONS => vec![bochner(8, [2.0, 2.0 * longest as f64])],
        MERCER => vec![mercer(2)],
        BOTH => vec![bochner(4, periods), mercer(1)],
        _ => vec![bochner(8, periods)],
    }
}
