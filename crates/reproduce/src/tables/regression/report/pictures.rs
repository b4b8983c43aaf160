//! The pictures of the report: the first split of each arm.

use super::super::{Arm, Model, title};
use super::Account;
use crate::report::{Axis, Chart, Document, Marks, Picture, Series};
use crate::store::{Artefacts, Curve, Heads, Predictions};
use crate::tables::heads::{Plane, correlation, points};
use crate::{Preset, Unit};

pub(super) fn write(
    document: &mut Document,
    account: &Account<'_>,
    artefacts: impl Fn(&Unit) -> Option<Artefacts>,
) {
    document.heading("Pictures");
    document.text("All are of the first split. `report.html` holds them.");
    let arms = account.plan.arms();
    for arms in arms.chunk_by(|a, b| a.set == b.set && a.protocol == b.protocol) {
        let found: Vec<(&Arm, Artefacts)> = arms
            .iter()
            .filter(|arm| arm.candidate.is_none())
            .filter_map(|arm| {
                let unit = arm.units.first()?;
                account.results.row(unit)?;
                Some((arm, artefacts(unit)?))
            })
            .collect();
        set(document, &found);
    }
}

fn set(document: &mut Document, found: &[(&Arm, Artefacts)]) {
    let Some((first, _)) = found.first() else {
        return;
    };
    let name = format!("{} ({})", title(first.set), first.protocol.name());
    document.pictures(
        format!("{name}: training loss, validation and test error over the epochs."),
        curves(found),
    );
    document.pictures(
        format!("{name}: predictions after the last epoch beside the truth."),
        found.iter().filter_map(predictions).collect(),
    );
    for (arm, artefacts) in found {
        if let Some(heads) = &artefacts.heads {
            let model = format!("{name}, {}", label(arm));
            document.pictures(
                format!("{model}: attention weights of each head after the last epoch, queries downwards."),
                weights(heads),
            );
            document.pictures(
                format!("{model}: spectral points of each head on their first two principal axes, and the learnt correlation of the heads."),
                points(heads, Plane::Principal).into_iter().chain(correlation(heads)).collect(),
            );
        }
    }
}

fn label(arm: &Arm) -> String {
    match arm.preset {
        Preset::Paper => arm.model.name().to_owned(),
        Preset::Released => format!("{} (released)", arm.model.name()),
    }
}

fn curves(found: &[(&Arm, Artefacts)]) -> Vec<Picture> {
    let series = |curve: fn(&Artefacts) -> &Curve, shown: fn(Model) -> bool| {
        let found = found.iter().filter(|(arm, _)| shown(arm.model));
        let series = found.map(|(arm, artefacts)| Series {
            name: label(arm),
            marks: Marks::Line,
            points: points_of(curve(artefacts)),
        });
        series.filter(|s| !s.points.is_empty()).collect::<Vec<_>>()
    };
    let log = || Axis::Log("log scale".into());
    let any = |_| true;
    let charts = [
        (
            "training loss",
            log(),
            series(|a| &a.loss, |model| !model.is_process()),
        ),
        // A density may exceed one, so this may lie below zero.
        (
            "minus the log evidence per training row",
            Axis::Linear("nats".into()),
            series(|a| &a.loss, Model::is_process),
        ),
        ("validation error", log(), series(|a| &a.validation, any)),
        ("test error", log(), series(|a| &a.test, any)),
    ];
    let charts = charts.into_iter().filter(|(.., series)| !series.is_empty());
    charts
        .map(|(title, y, series)| {
            Picture::Chart(Chart {
                title: title.into(),
                x: "epoch".into(),
                y,
                series,
            })
        })
        .collect()
}

fn points_of(curve: &Curve) -> Vec<(f64, f64)> {
    let epochs = curve.epochs.iter().map(|&epoch| epoch as f64);
    epochs.zip(curve.values.iter().copied()).collect()
}

fn predictions((arm, artefacts): &(&Arm, Artefacts)) -> Option<Picture> {
    let shown = artefacts.predictions.as_ref()?;
    let line = |name: &str, marks, values: &[f32]| Series {
        name: name.into(),
        marks,
        points: pairs(shown, values, 0..values.len()),
    };
    Some(Picture::Chart(Chart {
        title: label(arm),
        x: "time, scaled".into(),
        y: Axis::Linear("target, scaled".into()),
        series: vec![
            line("truth", Marks::Line, &shown.truth),
            line("model", Marks::Line, &shown.predicted),
            Series {
                name: "model, test rows".into(),
                marks: Marks::Dots,
                points: pairs(shown, &shown.predicted, shown.test.iter().copied()),
            },
        ],
    }))
}

fn pairs(
    shown: &Predictions,
    values: &[f32],
    places: impl Iterator<Item = usize>,
) -> Vec<(f64, f64)> {
    places
        .filter_map(|i| Some((f64::from(*shown.time.get(i)?), f64::from(*values.get(i)?))))
        .collect()
}

fn weights(heads: &Heads) -> Vec<Picture> {
    let pictures = heads.weights.iter().enumerate().filter_map(|(i, shades)| {
        Some(Picture::Shades {
            title: format!("head {}, up to {:.3}", i + 1, shades.largest),
            side: shades.side,
            levels: shades.levels()?,
        })
    });
    pictures.collect()
}
