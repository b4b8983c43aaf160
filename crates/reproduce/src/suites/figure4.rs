//! Figure 4: the attention weights and the error of MIKAN over the norm p.
//!
//! The paper gives neither the values of p nor a number; what is tested is what its text says: as p goes to 0, most
//! weights become 0 or 1, and the error varies with p but is below the baseline's.

use super::folds;
use crate::Error;
use crate::mechanisms::{RELEASED, TRANSFORMER, mechanism};
use crate::suite::{Source, Suite};
use crate::trial::Findings;
use crate::trial::regressor::AttentionSettings;
use crate::trial::rows::{RowSource, inputs};
use bochner_attention::Preset;
use bochner_attention::mechanism::Inspection;
use bochner_datasets::{DataStore, Protocol};
use bochner_interpret::entropy;
use bochner_report::check::Check;
use bochner_report::claim::{Claim, Hypothesis, Quantity};
use bochner_report::document::{Axis, Chart, Document, Marks, Picture, Series};
use bochner_report::plan::Arm;
use bochner_report::row;
use bochner_report::sections::{Column, Columns, OWN, Section, at_last, comparisons, measures};
use bochner_report::suite::{At, Card, Metric, Model, Set};
use bochner_report::{Account, Number, Scale};
use ndarray::Axis as Along;

/// The suite.
pub static FIGURE_4: Suite = Suite::new(&CARD, load, CHECKS);

const AGAINST: &[&str] = &[TRANSFORMER];

/// MIKAN with each norm.
const NORMS: [(&str, f64); 9] = [
    ("MIKAN, p = 0.25", 0.25),
    ("MIKAN, p = 0.5", 0.5),
    ("MIKAN, p = 1", 1.0),
    ("MIKAN, p = 1.5", 1.5),
    ("MIKAN, p = 1.8", 1.8),
    ("MIKAN, p = 2", 2.0),
    ("MIKAN, p = 2.5", 2.5),
    ("MIKAN, p = 3", 3.0),
    ("MIKAN, p = 4", 4.0),
];

/// From p = 2 down to 0.25.
const DOWN: [&str; 4] = [
    "MIKAN, p = 2",
    "MIKAN, p = 1",
    "MIKAN, p = 0.5",
    "MIKAN, p = 0.25",
];

/// The norms from 1 on.
const FROM_1: [&str; 7] = [
    "MIKAN, p = 1",
    "MIKAN, p = 1.5",
    "MIKAN, p = 1.8",
    "MIKAN, p = 2",
    "MIKAN, p = 2.5",
    "MIKAN, p = 3",
    "MIKAN, p = 4",
];

const BELOW: &str = "below 1e-3";
const ABOVE: &str = "above .999";
const OUTSIDE: &str = "outside";
const ENTROPY: &str = "entropy";
const WINNERS: &str = "winning keys";
const MEASURES: [&str; 5] = [BELOW, ABOVE, OUTSIDE, ENTROPY, WINNERS];
const HISTOGRAM: &str = "histogram";

/// Powers of ten that the histogram of weights spans, and cells in each.
const DECADES: usize = 8;
const CELLS: usize = 4;

static CARD: Card = Card {
    name: "figure4",
    table: "Figure 4",
    title: "Figure 4, weights and error over the norm p",
    sets: &[
        Set::new("housing", "Housing", 506, Scale::Desk),
        Set::new("passenger", "Passenger", 144, Scale::Smoke),
    ],
    models: &[
        Model::new(TRANSFORMER, &[]),
        Model::new(NORMS[0].0, AGAINST).judged(),
        Model::new(NORMS[1].0, AGAINST).judged(),
        Model::new(NORMS[2].0, AGAINST).judged(),
        Model::new(NORMS[3].0, AGAINST).judged(),
        Model::new(NORMS[4].0, AGAINST).judged(),
        Model::new(NORMS[5].0, AGAINST).judged(),
        Model::new(NORMS[6].0, AGAINST).judged(),
        Model::new(NORMS[7].0, AGAINST).judged(),
        Model::new(NORMS[8].0, AGAINST).judged(),
    ],
    metric: Metric::RMSE,
    baseline: TRANSFORMER,
    against: "the Transformer",
    opening: "Root mean square errors in units of the target scaled to [-1, 1]; smaller is better. The **V-number** is the \
              test error in the epoch that is best on a separate validation part, the **R-number** the best test error \
              over all epochs, which the test part chose. Weights are those of all heads, queries and keys in the epoch of \
              the V-number. The paper publishes no number behind the figure, only what its text says.",
    scopes: [
        "Scale smoke tests the machinery on one fold of Passenger with two norms and 30 epochs. Its numbers say nothing \
         about the method.",
        "Scale desk has ten folds of Housing, nine norms, 32 spectral points and 500 epochs.",
        "Scale paper has ten folds of Housing, nine norms, 64 spectral points and 1,000 epochs, in the paper's reading and \
         in that of the released code.",
    ],
    smoke: "One fold of Passenger, 16 spectral points, p of 0.5 and 2, 30 epochs.",
    decided: &[
        "The norms are ours: the paper gives none. The limit p to 0 needs distinct keys, and in it every query attends to \
         the same key.",
        "*Outside* is the share of weights that are not in [0.001, 0.999]; entropy is that of a query's weights, in nats; \
         winning keys are those that some query of a head attends to most, mean over the heads.",
        "All else is as in Table 4: the Transformer has 4 heads, MIKAN 8.",
    ],
    arms,
    claims,
    pictures: &[Section::Written(pictures)],
    tables: &[
        Section::Numbers("Weights and errors", "", &[OWN, RUNS]),
        Section::Numbers(
            "",
            "The weights in the epoch of the V-number, means over the folds:",
            &[&measures(MEASURES)],
        ),
        Section::Numbers(
            "",
            "The weights after the last epoch, reported and not judged:",
            &[&at_last(MEASURES)],
        ),
        Section::Written(comparisons),
    ],
    ..Card::EMPTY
};

const RUNS: Columns<'static> = &[("n", Column::N), ("s per fold", Column::Seconds)];

const CHECKS: &[Check] = &[Check::Rows(
    "every row of weights has an entropy, and not all weights are alike",
    |_| true,
    |row| {
        let entropy = row.measure(ENTROPY);
        let uniform = (row.train_rows as f64 * 1.25).ln();
        (!(0.0..uniform).contains(&entropy)).then(|| format!("{entropy:.3}"))
    },
)];

fn arms(at: &At<'_>) -> Vec<Arm> {
    let smoke = at.scale == Scale::Smoke;
    if smoke != (at.set.title == "Passenger") {
        return Vec::new();
    }
    let (splits, points, epochs) = at.of_scale([(1, 16, 30), (10, 32, 500), (10, 64, 1000)]);
    let inputs = inputs(at.set);
    let arm = |model, (preset, tag), p: Option<f64>| {
        let name = if p.is_some() { "MIKAN" } else { TRANSFORMER };
        let attention = mechanism(name, preset, p, points);
        let points = p.map(|_| points);
        let mut settings = AttentionSettings::new(inputs, attention, p, points, epochs);
        settings.model.heads = if p.is_some() { 8 } else { 4 };
        Arm::new(at, model, Protocol::P10, folds(splits), &settings).with_tag(tag)
    };
    let norms = || {
        NORMS
            .into_iter()
            .filter(|(_, p)| !smoke || [0.5, 2.0].contains(p))
    };
    let (paper, released) = ((Preset::Paper, None), (Preset::Released, Some(RELEASED)));
    let mut arms = vec![arm(TRANSFORMER, paper, None)];
    arms.extend(norms().map(|(model, p)| arm(model, paper, Some(p))));
    if at.scale == Scale::Paper {
        arms.extend(norms().map(|(model, p)| arm(model, released, Some(p))));
    }
    arms
}

fn claims() -> Vec<Claim> {
    let step = |measure| {
        let steps = DOWN.windows(2);
        let more = |step: &[&'static str]| {
            Hypothesis::more(Quantity::Measure(measure), step[1], step[0], "Housing")
        };
        steps.map(more).collect::<Vec<_>>()
    };
    let falls = step(ENTROPY).into_iter().map(Hypothesis::reversed);
    let better = FROM_1.map(|model| Hypothesis::better(model, TRANSFORMER, "Housing"));
    vec![
        Claim::all(
            "a, b",
            "from p = 2 to 1, 0.5 and 0.25, more weights are below 0.001 or above 0.999, and the entropy of the weights falls, \
         in the epoch of the V-number",
            step(OUTSIDE).into_iter().chain(falls).collect(),
        ),
        Claim::all(
            "c",
            "MIKAN's mean error is below the Transformer's for every p from 1 on",
            better.to_vec(),
        ),
    ]
}

fn pictures(account: &Account<'_>, document: &mut Document) {
    let figures = [
        (
            "error",
            "The error over p: means over the folds ± one standard error.",
            errors(account),
        ),
        (
            "weights",
            "The weights over p in the epoch of the V-number: means over the folds.",
            shares(account),
        ),
        (
            "histogram",
            "How often weights have which size, on the first fold, in the epoch of the V-number.",
            histograms(account, HISTOGRAM),
        ),
        (
            "histogram-last",
            "How often weights have which size, on the first fold, after the last epoch.",
            histograms(account, &row::at_last(HISTOGRAM)),
        ),
    ];
    for (name, caption, chart) in figures {
        if !chart.series.is_empty() {
            let chart = vec![Picture::Chart(chart)];
            document.figure(format!("figure4-{name}"), caption, chart);
        }
    }
}

fn load(set: &Set, arms: &[Arm], files: &DataStore) -> Result<Box<dyn Source>, Error> {
    Ok(Box::new(RowSource::load(set, arms, files, Some(look))?))
}

/// The measures of the weights of a model.
fn look(seen: &Inspection<f32>) -> Findings {
    let all = seen.weights.len().max(1) as f64;
    let share =
        |of: &dyn Fn(f32) -> bool| seen.weights.iter().filter(|&&w| of(w)).count() as f64 / all;
    let (below, above) = (share(&|w| w < 1e-3), share(&|w| w > 0.999));
    let rows = seen.weights.lanes(Along(3)).into_iter();
    let entropies: Vec<f64> = rows
        .map(|row| entropy(row.iter().map(|&w| w.into())))
        .collect();
    let heads = seen.weights.index_axis(Along(0), 0);
    let winners = heads.outer_iter().map(|head| {
        let largest = |row: ndarray::ArrayView1<'_, f32>| {
            (0..row.len()).max_by(|&a, &b| row[a].total_cmp(&row[b]))
        };
        let mut keys: Vec<_> = head.outer_iter().map(largest).collect();
        keys.sort_unstable();
        keys.dedup();
        keys.len() as f64
    });
    let winners: Vec<f64> = winners.collect();
    let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len().max(1) as f64;
    let mut histogram = vec![0.0; DECADES * CELLS];
    for &weight in &seen.weights {
        let decades = (f64::from(weight).log10() + DECADES as f64).max(0.0);
        let cell = ((decades * CELLS as f64) as usize).min(histogram.len() - 1);
        histogram[cell] += 1.0 / all;
    }
    let measures = [
        (BELOW, below),
        (ABOVE, above),
        (OUTSIDE, below + above),
        (ENTROPY, mean(&entropies)),
        (WINNERS, mean(&winners)),
    ];
    Findings::of(measures).with(HISTOGRAM, &histogram)
}

/// The arms of MIKAN with their norms, in the paper's reading.
fn over_p<'a>(account: &'a Account<'_>) -> impl Iterator<Item = (f64, &'a Arm)> {
    let arms = account.plan.compared().filter(|arm| arm.tag.is_none());
    arms.filter_map(|arm| Some((arm.settings().p()?, arm)))
}

fn line(name: &str, points: Vec<(f64, f64)>) -> Option<Series> {
    (!points.is_empty()).then(|| Series {
        name: name.into(),
        marks: Marks::Line,
        points,
    })
}

fn chart(title: &str, y: Axis, series: impl IntoIterator<Item = Option<Series>>) -> Chart {
    Chart {
        title: title.into(),
        x: Axis::Log("p".into()),
        y,
        series: series.into_iter().flatten().collect(),
    }
}

/// Means over the folds, each with a bar of one standard error.
fn errors(account: &Account<'_>) -> Chart {
    let of = |arm: &Arm, number| {
        let (mean, deviation) = account.results.spread(arm, number)?;
        let folds = account.results.of(arm).len().max(2);
        Some((mean, deviation / ((folds - 1) as f64).sqrt()))
    };
    let models = ["MIKAN", TRANSFORMER].into_iter();
    let series = models.flat_map(|model| {
        [(Number::V, "V-number"), (Number::R, "R-number")].map(|(number, name)| {
            let points = over_p(account).filter_map(|(p, arm)| {
                let baseline = account.plan.beside(arm, model);
                let (mean, bar) = of(baseline.unwrap_or(arm), number)?;
                Some(((p, mean), bar))
            });
            let (points, bars) = points.unzip();
            let marks = Marks::Errors(bars);
            line(&format!("{model}, {name}"), points).map(|series| Series { marks, ..series })
        })
    });
    let y = Axis::Linear("test error".into());
    chart("root mean square error", y, series)
}

fn shares(account: &Account<'_>) -> Chart {
    let series = [OUTSIDE, ABOVE].map(|name| {
        let points =
            over_p(account).filter_map(|(p, arm)| Some((p, account.results.measure(arm, name)?)));
        line(name, points.collect())
    });
    chart("share of the weights", Axis::Linear("share".into()), series)
}

fn histograms(account: &Account<'_>, artefact: &str) -> Chart {
    let series = over_p(account).map(|(p, arm)| {
        let found = (account.artefacts)(arm.units.first()?)?;
        let cells: Vec<f64> = found.get(artefact)?;
        let middle = |cell: usize| 10f64.powf((cell as f64 + 0.5) / CELLS as f64 - DECADES as f64);
        line(
            &format!("p = {p}"),
            cells
                .iter()
                .enumerate()
                .map(|(cell, &share)| (middle(cell), share))
                .collect(),
        )
    });
    let y = Axis::Linear("share of the weights".into());
    Chart {
        x: Axis::Log("weight".into()),
        ..chart("sizes of the weights", y, series)
    }
}
