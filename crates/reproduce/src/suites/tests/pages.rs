//! Texts and pictures of pages beyond the published ones.

use super::*;
use crate::trial::translation::{Place, Trace};
use bochner_report::check::Mark;
use bochner_report::row::{Artefacts, Curve, Heads, Spread};
use std::collections::BTreeMap;

/// V-numbers, a text, and whether the page of them at scale desk has it.
type Page = (&'static Suite, fn(&Arm, &Unit) -> f64, &'static str, bool);

const ALARM: &str = "LOOK FOR A LEAK";
const INADEQUATE: &str = "**no: set-up not adequate**";
const EQUAL: &str = "* IKA-NS and IKA-S have equal V-numbers on splits: 2 of 10 on CR, 2 of 10 on TREC, 2 of 5 on SST";

#[rustfmt::skip]
static PAGES: [Page; 9] = [
    (&CLASSIFICATION, |a, _| if (a.model, a.set) == ("MIKAN", "MR") { 0.802 } else { 0.79 }, ALARM, true),
    (&CLASSIFICATION, |a, _| if (a.model, a.set) == ("MIKAN", "MR") { 0.799 } else { 0.79 }, ALARM, false),
    (&CLASSIFICATION, |a, _| if a.set == "SUBJ" { 0.6 } else { 0.93 }, INADEQUATE, true),
    (&CLASSIFICATION, |_, _| 0.93, INADEQUATE, false),
    (&CLASSIFICATION, |a, u| if a.model == "IKA-NS" && u.split >= 2 { 0.93 } else { 0.92 }, EQUAL, true),
    (&TRANSLATION, |_, _| 31.9, INADEQUATE, true),
    (&TRANSLATION, |_, _| 24.9, "badly trained", true),
    // A thinned set is another one than the published.
    (&REGRESSION, |a, u| 0.3 + 0.01 * noise(a, u), "0.018 ±", false),
    (&REGRESSION, |a, u| 0.3 + 0.01 * noise(a, u), "| Passenger | MIKAN | released |", true),
];

#[test]
fn pages_say_what_is_inadequate_beyond_belief_or_nothing_new() {
    for (suite, value, text, is_said) in PAGES {
        let plan = plan(suite, Scale::Desk);
        let page = report(
            suite,
            &plan,
            &results(suite, &plan, |a, u| Some(value(a, u))),
        );
        assert_eq!(page.contains(text), is_said, "{text}: {page}");
    }
}

/// An account of results with the value 0.2, and artefacts that a function gives.
fn drawn<T>(
    suite: &'static Suite,
    plan: &Plan,
    artefacts: &dyn Fn(&Unit) -> Artefacts,
    look: impl FnOnce(&Account<'_>) -> T,
) -> T {
    let results = results(suite, plan, |_, _| Some(0.2));
    look(&Account {
        card: suite.card,
        plan,
        results: &results,
        claims: &[],
        checks: &[],
        skipped: &[],
        earlier: None,
        notes: &[],
        artefacts: &|unit| Some(artefacts(unit)),
    })
}

/// The artefacts of units of figures.
fn left(unit: &Unit) -> Artefacts {
    let weights = vec![vec![0.5_f32, 0.2, 0.3, 0.1, 0.8, 0.1, 0.0, 0.0, 1.0]; 8];
    let spread = Spread {
        deviation: 0.1,
        histogram: vec![3; 20],
        entropies: vec![0.5; 2],
        uniform: 1.0,
    };
    let heads = Heads {
        weights: vec![],
        points: Some(vec![vec![0.0, 1.0, 2.0, 0.5]; 2]),
        dimensions: 2,
        correlation: Some(vec![1.0, 0.3, 0.3, 1.0]),
    };
    let trace = Trace {
        similarity: vec![vec![-0.5, -1.0]; 6],
        magnitude: vec![vec![0.5, 1.0]; 6],
        key_magnitude: vec![vec![0.25, 0.5]; 6],
    };
    let all = Artefacts::default();
    match (&*unit.suite, unit.split) {
        ("figure2", 8) => all
            .with("words", &["a", ",", "a"])
            .with("weights", &weights),
        ("figure4", 0) => all.with("histogram", &[1.0 / 32.0; 32]),
        ("figure5", _) => all.with("spread", &spread).with("heads", &heads),
        ("translation", _) => {
            let places = Place::ALL.into_iter();
            let names = places.flat_map(|place| [0, 1].map(|epoch| place.trace(epoch)));
            names.fold(all, |all, name| all.with(&name, &trace))
        }
        _ => all,
    }
}

/// The files of a figure, how often each has a mark, and how often.
type Drawn = (
    &'static Suite,
    Scale,
    &'static str,
    &'static [(&'static str, usize)],
);

#[test]
fn figures_are_drawn_from_what_their_units_leave() {
    let figures: [Drawn; 4] = [
        (
            &FIGURE_2,
            Scale::Desk,
            "head ",
            &[
                ("figure2-ikan-paper.svg", 4),
                ("figure2-mikan-paper.svg", 4),
                ("figure2-mikan-released.svg", 4),
            ],
        ),
        // Two numbers of MIKAN and of the Transformer with a bar at each of nine norms, and nine norms; no unit has
        // left a histogram of its last epoch.
        (
            &FIGURE_4,
            Scale::Desk,
            "<polyline",
            &[
                ("figure4-error.svg", 4 * (1 + 9)),
                ("figure4-histogram.svg", 9),
                ("figure4-weights.svg", 1),
            ],
        ),
        // Points of the heads, points of a Gaussian, the correlation and the deviations.
        (
            &FIGURE_5,
            Scale::Desk,
            "<svg",
            &[("figure5-ikan.svg", 5), ("figure5-mikan.svg", 5)],
        ),
        // Similarity and magnitude of all heads of three models after two epochs.
        (
            &TRANSLATION,
            Scale::Paper,
            "<circle",
            &[
                ("figure3-iwslt14-cross.svg", 144),
                ("figure3-iwslt14-full-encoder.svg", 144),
            ],
        ),
    ];
    for (suite, scale, mark, expected) in figures {
        let plan = plan(suite, scale);
        let (files, page) = drawn(suite, &plan, &left, |account| {
            let document = account.document();
            let files: BTreeMap<String, String> = document.files().collect();
            (files, document.to_markdown())
        });
        for (name, times) in expected {
            assert_eq!(files[*name].matches(mark).count(), *times, "{name}");
            assert!(page.contains(name), "{page}");
        }
        if let Some(table) = files.get("figure2-weights.csv") {
            // Three arms, three seeds, eight heads, nine weights, and the names of the columns.
            let lines: Vec<&str> = table.lines().collect();
            assert_eq!(lines.len(), 3 * 3 * 8 * 9 + 1);
            assert_eq!(lines[5], r#"IKAN,paper,8,0,1,2,2,",",",",0.8"#);
            // The third word has the most weight in the mean, 0.47, and stands in the first place as well.
            let looked = ["a (3), 0.47"; 4].join(" | ");
            assert!(
                page.contains(&format!("| IKAN | paper | 2 | {looked} |")),
                "{page}"
            );
        }
    }
}

#[test]
fn a_loss_that_rises_in_one_epoch_is_seen() {
    let plan = plan(&TRANSLATION, Scale::Smoke);
    for (values, passes) in [
        ([3.0, 2.0, 1.0], true),
        ([3.0, 0.1, 0.11], true),
        ([3.0, 1.0, 2.0], false),
        ([3.0, 3.0, 1.0], false),
        ([3.0, 0.1, 0.2], false),
    ] {
        let curve = Curve {
            epochs: vec![1, 2, 3],
            values: values.to_vec(),
        };
        let left = |_: &Unit| Artefacts::default().with("loss", &curve);
        let mark = drawn(&TRANSLATION, &plan, &left, translation::losses_fall);
        assert_eq!(matches!(mark, Mark::Passed(_)), passes, "{values:?}");
    }
}
