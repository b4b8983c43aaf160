//! Findings in the heads of graph attention: Figure 5.

use crate::trial::correlations;
use crate::trial::nodes::heads::apart;
use bochner_report::Account;
use bochner_report::document::{Axis, Chart, Document, Marks, Picture, Series, significant};
use bochner_report::plan::Arm;
use bochner_report::row::{Artefacts, Heads, Spread};
use bochner_report::sections::NOTHING;
use bochner_report::sections::heads::{correlation, gaussian_points, points};
use bochner_report::statistics::{mean, sample_deviation};

const HEAD: [&str; 7] = [
    "set",
    "model",
    "deviation over heads",
    "entropy of each head",
    "of equal weights",
    "correlation",
    "n",
];

/// The standard deviation of a coordinate of GAT's spectral points.
const GAT_DEVIATION: f32 = std::f32::consts::FRAC_1_SQRT_2;

/// Says what the pictures of the heads of graph attention are; returns those of the first unit of each arm, with a
/// caption.
pub(super) fn pictures_along_edges<'a>(
    account: &Account<'a>,
    document: &mut Document,
) -> Vec<(&'a Arm, String, Vec<Picture>)> {
    let of = |arm: &'a Arm| {
        let unit = arm.units.first()?;
        account.results.row(unit)?;
        let first = (account.artefacts)(unit)?;
        let caption = format!("{}, {}, seed 0{}.", arm.set, arm.model, sizes(&first));
        Some((arm, caption, pictures_of(&first)))
    };
    let pictures: Vec<_> = account.plan.compared().filter_map(of).collect();
    if !pictures.is_empty() {
        document.text(
            "The pictures are of seed 0: spectral points on their first two principal axes beside as many of GAT's own \
             density, the normal one of variance 1/2; the correlation of the heads; and how many edges have which deviation \
             over the heads. `report.html` holds them.",
        );
    }
    pictures
}

/// Writes the findings in the heads of graph attention; `when` is the epoch in words. Nothing is written without
/// artefacts.
pub(super) fn heads_along_edges(account: &Account<'_>, document: &mut Document, when: &str) {
    let arms = account.plan.compared();
    let rows = arms.filter_map(|arm| row(arm, &found(account, arm).collect::<Vec<_>>()));
    let rows: Vec<Vec<String>> = rows.collect();
    if rows.is_empty() {
        return;
    }
    document.heading("What the heads of the first layer have learnt");
    document.text(format!(
        "{when}, in evaluation. Deviation: the standard deviation over the heads of the \
         weight of an edge, mean over the edges, ± SE over the seeds. Entropy: of the weights with \
         which a node attends, in nats, mean over the nodes and seeds. Correlation: of the copula, \
         mean over the pairs of heads of the absolute value, of the mean over the latent dimensions.",
    ));
    document.table(&HEAD, rows);
}

/// The artefacts of the finished units of an arm.
fn found<'a>(account: &'a Account<'_>, arm: &'a Arm) -> impl Iterator<Item = Artefacts> + 'a {
    let units = arm.units.iter();
    let finished = units.filter(|unit| account.results.row(unit).is_some());
    finished.filter_map(account.artefacts)
}

fn row(arm: &Arm, found: &[Artefacts]) -> Option<Vec<String>> {
    let spreads: Vec<Spread> = found.iter().filter_map(|of| of.get("spread")).collect();
    let deviations: Vec<f64> = spreads.iter().map(|spread| spread.deviation).collect();
    let error = sample_deviation(&deviations).map(|sd| sd / (deviations.len() as f64).sqrt());
    let deviation = mean(&deviations).ok()?;
    let heads = found.iter().filter_map(|of| of.get::<Heads>("heads"));
    let correlations = heads.filter_map(|heads| Some(apart(correlations(&heads)?.view())));
    let correlation = mean(&correlations.collect::<Vec<_>>());
    Some(vec![
        arm.set.to_owned(),
        arm.model.to_owned(),
        match error {
            Ok(error) => format!("{} ± {}", significant(deviation), significant(error)),
            Err(_) => significant(deviation),
        },
        entropies(&spreads),
        format!("{:.2}", spreads.first()?.uniform),
        correlation.map_or(NOTHING.into(), significant),
        spreads.len().to_string(),
    ])
}

/// The numbers of each head, averaged over the seeds.
fn entropies(spreads: &[Spread]) -> String {
    let heads = spreads.first().map_or(0, |spread| spread.entropies.len());
    let head = |head: usize| {
        let of = spreads
            .iter()
            .filter_map(|spread| spread.entropies.get(head));
        of.sum::<f64>() / spreads.len() as f64
    };
    let shown = (0..heads).map(|i| format!("{:.2}", head(i)));
    shown.collect::<Vec<_>>().join(" ")
}

/// The size of the points in the pictures, which lie on axes of their own.
fn sizes(found: &Artefacts) -> String {
    let points = found.get::<Heads>("heads").and_then(|heads| heads.points);
    let squares = points.iter().flatten().flatten();
    let squares: Vec<f64> = squares.map(|&x| f64::from(x).powi(2)).collect();
    mean(&squares).map_or(String::new(), |square| {
        format!(
            "; root mean square of a coordinate: {} of the points by head, {GAT_DEVIATION:.3} of the Gaussian's",
            significant(square.sqrt())
        )
    })
}

fn pictures_of(found: &Artefacts) -> Vec<Picture> {
    let heads = found.get::<Heads>("heads");
    let heads = heads.as_ref();
    let learnt = heads.and_then(points);
    let given = heads.and_then(|heads| gaussian_points(heads, GAT_DEVIATION));
    let others = [
        heads.and_then(correlation),
        found.get("spread").as_ref().map(histogram),
    ];
    [learnt, given]
        .into_iter()
        .chain(others)
        .flatten()
        .collect()
}

fn histogram(spread: &Spread) -> Picture {
    let cells = spread.histogram.len().max(1) as f64;
    let middle = |cell: usize| 0.5 * (cell as f64 + 0.5) / cells;
    let counts = spread.histogram.iter().enumerate();
    Picture::Chart(Chart {
        title: "standard deviation over the heads".into(),
        x: "of the weight of an edge".into(),
        y: Axis::Linear("edges".into()),
        series: vec![Series {
            name: String::new(),
            marks: Marks::Line,
            points: counts.map(|(cell, &n)| (middle(cell), n as f64)).collect(),
        }],
    })
}
