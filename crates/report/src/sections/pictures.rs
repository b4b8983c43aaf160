//! Pictures of single runs: curves over the epochs, predictions, and what heads have learnt.

use super::heads::{correlation, points, weights};
use crate::Account;
use crate::document::{Axis, Chart, Document, Marks, Picture, Series};
use crate::plan::Arm;
use crate::row::{Artefacts, Curve, Heads, Predictions};
use crate::suite::{Direction, Metric};

/// Pictures of the first split of each arm, set by set; `is_evidence` tells the models whose loss is minus the log
/// evidence of a row, which may lie below zero.
pub fn pictures_of_the_first_split(
    account: &Account<'_>,
    document: &mut Document,
    is_evidence: impl Fn(&str) -> bool,
) {
    let value = match account.card.metric {
        Metric::BLEU => SCORE,
        metric if metric.direction == Direction::Smaller => ERROR,
        _ => "accuracy",
    };
    let mut is_first = true;
    let arms: Vec<&Arm> = account.plan.compared().collect();
    for arms in arms.chunk_by(|a, b| a.set == b.set && a.protocol == b.protocol) {
        let found = arms
            .iter()
            .filter(|arm| arm.stands_alone())
            .filter_map(|arm| {
                let unit = arm.units.first()?;
                account.results.row(unit)?;
                Some((*arm, (account.artefacts)(unit)?))
            });
        let found: Vec<(&Arm, Artefacts)> = found.collect();
        let Some((first, _)) = found.first() else {
            continue;
        };
        if is_first {
            document
                .text("The curves are of the first run of each model; `report.html` holds them.");
            is_first = false;
        }
        let name = format!("{} ({})", first.set, first.protocol.name());
        document.pictures(
            format!("{name}: training loss, validation and test {value} over the epochs."),
            training_curves((value, &found), |arm| is_evidence(arm.model)),
        );
        document.pictures(
            format!("{name}: predictions after the last epoch beside the truth."),
            found.iter().filter_map(predictions).collect(),
        );
        for (arm, heads) in found
            .iter()
            .filter_map(|(arm, a)| Some((arm, a.get::<Heads>("heads")?)))
        {
            let model = format!("{name}, {}", arm.label());
            document.pictures(
                format!("{model}: attention weights of each head after the last epoch, queries downwards."),
                weights(&heads),
            );
            let learnt = points(&heads).into_iter();
            document.pictures(
                format!(
                    "{model}: spectral points of each head on their first two principal axes, and the learnt \
                     correlation of the heads."
                ),
                learnt.chain(correlation(&heads)).collect(),
            );
        }
    }
}

const ERROR: &str = "error";
const SCORE: &str = "BLEU";

/// Losses and test values over the epochs.
fn training_curves(
    (value, found): (&str, &[(&Arm, Artefacts)]),
    is_evidence: impl Fn(&Arm) -> bool,
) -> Vec<Picture> {
    let series = |curve: &str, shown: &dyn Fn(&Arm) -> bool| {
        let found = found.iter().filter(|(arm, _)| shown(arm));
        let series = found.map(|(arm, artefacts)| Series {
            name: arm.label(),
            marks: Marks::Line,
            points: artefacts
                .get::<Curve>(curve)
                .map_or_else(Vec::new, |curve| curve.points()),
        });
        series.filter(|s| !s.points.is_empty()).collect::<Vec<_>>()
    };
    let log = || Axis::Log("log scale".into());
    let [validation, test] = ["validation", "test"].map(|part| format!("{part} {value}"));
    let measured = || match value {
        ERROR => log(),
        SCORE => Axis::Linear(SCORE.into()),
        _ => Axis::Linear("share".into()),
    };
    let charts = [
        (
            "training loss",
            log(),
            series("loss", &|arm| !is_evidence(arm)),
        ),
        (
            "minus the log evidence per training row",
            Axis::Linear("nats".into()),
            series("loss", &is_evidence),
        ),
        (&validation, measured(), series("validation", &|_| true)),
        (&test, measured(), series("test", &|_| true)),
    ];
    let charts = charts.into_iter().filter(|(.., series)| !series.is_empty());
    let chart = |(title, y, series): (&str, Axis, Vec<Series>)| {
        Picture::Chart(Chart {
            title: title.into(),
            x: "epoch".into(),
            y,
            series,
        })
    };
    charts.map(chart).collect()
}

fn predictions((arm, artefacts): &(&Arm, Artefacts)) -> Option<Picture> {
    let shown: Predictions = artefacts.get("predictions")?;
    let series = |name: &str, marks, values: &[f32], places: &[usize]| {
        let place = |&i: &usize| Some((f64::from(*shown.time.get(i)?), f64::from(*values.get(i)?)));
        Series {
            name: name.into(),
            marks,
            points: places.iter().filter_map(place).collect(),
        }
    };
    let all: Vec<usize> = (0..shown.time.len()).collect();
    Some(Picture::Chart(Chart {
        title: arm.label(),
        x: "time, scaled".into(),
        y: Axis::Linear("target, scaled".into()),
        series: vec![
            series("truth", Marks::Line, &shown.truth, &all),
            series("model", Marks::Line, &shown.predicted, &all),
            series(
                "model, test rows",
                Marks::Dots,
                &shown.predicted,
                &shown.test,
            ),
        ],
    }))
}
