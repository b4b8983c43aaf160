//! Figure 3: what the heads of translators rely on, after the first epoch and after the last.

use crate::trial::translation::{Place, Trace};
use bochner_report::document::{Axis, Chart, Document, Marks, Picture, Series};
use bochner_report::plan::Arm;
use bochner_report::statistics::mean;
use bochner_report::{Account, Unit};

/// The traces of a unit after the first and the last epoch.
fn traces(account: &Account<'_>, unit: &Unit, place: Place) -> Option<[Trace; 2]> {
    let found = (account.artefacts)(unit)?;
    let [first, last] = [0, 1].map(|epoch| found.get(&place.trace(epoch)));
    Some([first?, last?])
}

/// A part of a trace, by layer and head.
type Part = fn(&Trace) -> &Vec<Vec<f64>>;

/// The contents of a trace, by their names in reports.
static PARTS: [(&str, Part); 3] = [
    ("similarity", |trace| &trace.similarity),
    ("magnitude", |trace| &trace.magnitude),
    ("magnitude of keys", |trace| &trace.key_magnitude),
];

/// All heads of the first seed. Nothing is drawn without traces.
pub(super) fn pictures_of_traces(account: &Account<'_>, document: &mut Document) {
    for set in account.sets() {
        let arms = account.plan.compared();
        let own: Vec<&Arm> = arms.filter(|arm| arm.set == set.title).collect();
        for place in Place::ALL {
            let pictures = PARTS[..2].iter().filter_map(|(name, part)| {
                let arms = own.iter();
                let heads = arms.flat_map(|arm| series(account, arm, place, *part));
                let heads: Vec<Series> = heads.collect();
                (!heads.is_empty()).then(|| {
                    Picture::Chart(Chart {
                        title: format!("log10 {name}, {} attention", place.name()),
                        x: "head, layer by layer".into(),
                        y: Axis::Linear(format!("log10 {name}")),
                        series: heads,
                    })
                })
            });
            document.figure(
                format!("figure3-{}-{}", set.name, place.name()),
                format!(
                    "{}, {} attention, first seed, every head: after the first epoch and after the last.",
                    set.title,
                    place.name()
                ),
                pictures.collect(),
            );
        }
    }
}

/// The means over layers and heads in a table, and all heads of all seeds in a file. Nothing is written without traces.
pub(super) fn similarity_and_magnitude(account: &Account<'_>, document: &mut Document) {
    let arms: Vec<&Arm> = account.plan.compared().collect();
    let of_arm = |arm: &Arm| {
        Place::ALL.map(|place| {
            let row = row(account, arm, place)?;
            let names = [arm.set.to_owned(), arm.label(), place.name().to_owned()];
            Some([&names[..], &row].concat())
        })
    };
    let rows = arms.iter().flat_map(|arm| of_arm(arm)).flatten();
    let rows: Vec<Vec<String>> = rows.collect();
    if rows.is_empty() {
        return;
    }
    document.heading("Figure 3: similarity and magnitude");
    document.text(
        "Decimal logarithms over the validation part, in the mean over layers, heads and seeds, after the first epoch → after \
         the last: of the similarity of a query and its nearest key, of the product of their magnitudes as Proposition 1 has \
         it, and of the magnitude of keys alone, which is all of it that changes a weight. `figure3.csv` has every head.",
    );
    document.table(
        &[
            "set",
            "model",
            "attention",
            PARTS[0].0,
            PARTS[1].0,
            PARTS[2].0,
        ],
        rows,
    );
    let head = "set,model,seed,attention,epoch,layer,head,similarity,magnitude,magnitude of keys\n";
    let lines = arms.iter().flat_map(|arm| lines(account, arm));
    let table = [head.to_owned()].into_iter().chain(lines).collect();
    document.tables.push(("figure3.csv".into(), table));
}

/// The means of an arm, first → last; `None` until a unit is finished.
fn row(account: &Account<'_>, arm: &Arm, place: Place) -> Option<Vec<String>> {
    let units = arm.units.iter();
    let units: Vec<[Trace; 2]> = units
        .filter_map(|unit| traces(account, unit, place))
        .collect();
    let cell = |part: Part| {
        let of = |epoch: usize| {
            let heads = units
                .iter()
                .flat_map(|traces| part(&traces[epoch]).concat());
            mean(&heads.collect::<Vec<f64>>()).ok()
        };
        Some(format!("{:.2} → {:.2}", of(0)?, of(1)?))
    };
    PARTS.iter().map(|(_, part)| cell(*part)).collect()
}

/// Every head of the first seed after the first epoch, and after the last.
fn series(account: &Account<'_>, arm: &Arm, place: Place, part: Part) -> Vec<Series> {
    let Some(traces) = arm
        .units
        .first()
        .and_then(|unit| traces(account, unit, place))
    else {
        return Vec::new();
    };
    let of = |(trace, epoch): (&Trace, &str)| {
        let heads = part(trace).concat().into_iter().zip(1..);
        Series {
            name: format!("{}, {epoch}", arm.label()),
            marks: Marks::Dots,
            points: heads
                .map(|(value, head)| (f64::from(head), value))
                .collect(),
        }
    };
    traces.iter().zip(["first", "last"]).map(of).collect()
}

/// The lines of all heads of all seeds; names stand between quotes, since some have commas.
fn lines<'a>(account: &'a Account<'_>, arm: &'a Arm) -> impl Iterator<Item = String> + 'a {
    let units = arm.units.iter();
    let looked = units.flat_map(move |unit| {
        let of = move |place| Some((unit, place, traces(account, unit, place)?));
        Place::ALL.map(of).into_iter().flatten()
    });
    looked.flat_map(move |(unit, place, traces)| {
        let mut lines = Vec::new();
        for (trace, epoch) in traces.iter().zip(["first", "last"]) {
            for (layer, heads) in trace.similarity.iter().enumerate() {
                for (head, similarity) in heads.iter().enumerate() {
                    lines.push(format!(
                        "{},\"{}\",{},{},{epoch},{},{},{similarity},{},{}\n",
                        arm.set,
                        arm.label(),
                        unit.seed,
                        place.name(),
                        layer + 1,
                        head + 1,
                        trace.magnitude[layer][head],
                        trace.key_magnitude[layer][head],
                    ));
                }
            }
        }
        lines
    })
}
