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
use bochner_report::check::{self, Check};
use bochner_report::claim::{Claim, Hypothesis};
use bochner_report::document::Document;
use bochner_report::plan::{Arm, Role};
use bochner_report::sections::{self, Column, Columns, Comparison, NAMES};
use bochner_report::suite::{At, Card, Experiment, Metric, Model, Set};
use bochner_report::{Account, Scale, Settings};

/// The suite.
pub const TIME: Time = Time;

/// Functional time.
#[derive(Clone, Copy, Debug)]
pub struct Time;

const NONE: &str = "no time";
const POSITIONS: &str = "positions";
const SHUFFLED: &str = "shuffled times";
const BOCHNER: &str = "Bochner";
const MERCER: &str = "Mercer";
const BOTH: &str = "Bochner and Mercer";
const FUNCTIONAL: &[&str] = &[BOCHNER, MERCER, BOTH];

const ECHOES: &str = "echoes";
const BADGES: &str = "badges";

/// The stream that is drawn: at most .79 of the events behind the first lag can be foretold, and 1/6 of those before it.
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
    version: 1,
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
    published: &[],
    repeats: true,
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
        "*Echoes* is a drawn stream in which an event returns, with probability .75, when a lag has passed; how many events \
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
};

impl Experiment for Time {
    fn card(&self) -> &'static Card {
        &CARD
    }

    fn arms(&self, at: &At<'_>) -> Vec<Arm> {
        let n = match at.scale {
            Scale::Smoke => 1,
            Scale::Desk => 5,
            Scale::Paper => 10,
        };
        let arm = |model: &Model| {
            let runs = folds(n);
            let settings = Settings::of(&settings(at, model.name));
            Arm::new(at, model.name, Protocol::P10, runs, &settings).with_role(Role::Claimed)
        };
        CARD.models.iter().map(arm).collect()
    }

    fn claims(&self) -> Vec<Claim> {
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

    fn report(&self, account: &Account<'_>, document: &mut Document) {
        document.heading("Accuracies");
        document.text(
            "*Last event* is the share of test sequences whose last event is foretold, in the epoch of the V-number: what the \
             paper measures; *most frequent last kind* is that share for a forecaster who always names the kind that is last \
             most often in training. The last column is the mean distance that logits move after the last epoch when the \
             times of test sequences are shuffled.",
        );
        sections::own_numbers(document, account, &[NAMES, sections::OWN, SEEN].concat());
        sections::against_baseline(document, account, &COMPARISON);
        account.conditions(document);
    }
}

impl Suite for Time {
    fn load(&self, set: &Set, _: &[Arm], files: &DataStore) -> Result<Box<dyn Source>, Error> {
        Ok(Box::new(match set.title {
            ECHOES => STREAM.draw(Seed::new(crate::study::SEED))?,
            _ => events::load(files)?,
        }))
    }

    fn checks(&self, account: &Account<'_>, _files: &DataStore) -> Vec<Check> {
        let (plan, results) = (account.plan, account.results);
        vec![
            check::training_error_falls("the training error falls", results, &plan.arms, 1.0),
            check::each(
                "other times move the logits of models of times, and of no others",
                results,
                &plan.arms,
                |row| {
                    let moved = row.measures.get(MOVED).copied().unwrap_or(f64::NAN);
                    let sees_times = ![NONE, POSITIONS].contains(&&*row.unit.variant);
                    let fits = if sees_times {
                        moved > 0.0
                    } else {
                        moved == 0.0
                    };
                    (!fits).then(|| format!("{moved:.1e}"))
                },
            ),
        ]
    }
}

const SEEN: Columns<'static> = &[
    ("n", Column::N),
    ("s per unit", Column::Seconds),
    (LAST_EVENT, Column::Measure(LAST_EVENT)),
    (MOST_FREQUENT, Column::Measure(MOST_FREQUENT)),
    (MOVED, Column::Measure(MOVED)),
];

const COMPARISON: Comparison<'static> = Comparison {
    heading: "Model against model, fold by fold",
    text: "d = accuracy of the model - accuracy of the other on the same fold, in points, starting from the same seed: \
           mean ± SE (SE'), wins of n. What is found rests on the two-sided 95 % interval of each comparison by \
           itself.",
    steps: "",
    names: NAMES,
};

fn settings(at: &At<'_>, model: &str) -> EventSettings {
    let is_badges = at.set.title == BADGES;
    let longest = match (is_badges, at.scale) {
        (false, _) => STREAM.events - 1,
        (true, Scale::Paper) => 100,
        (true, _) => 64,
    };
    let epochs = match (at.scale, is_badges) {
        (Scale::Smoke, _) => 2,
        (Scale::Desk, true) => 10,
        (Scale::Desk, false) => 60,
        (Scale::Paper, true) => 50,
        (Scale::Paper, false) => 200,
    };
    let width = match at.scale {
        Scale::Paper => 64,
        _ => 32,
    };
    // Badges: from a day to 1,000 days.
    let (unit, periods) = match is_badges {
        true => (HUNDRED_DAYS, [0.01, 10.0]),
        false => (1.0, [1.0, 40.0]),
    };
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
