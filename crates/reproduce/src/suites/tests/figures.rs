//! Figures 2, 4 and 5: what is planned, what is judged, and what is refused.

use super::*;
use crate::checks::sentences::generated;
use crate::suites::figure2::check_row;
use crate::trial::nodes::heads::{DEVIATION, GROWTH, KEPT_SIZE, REJECTED};
use crate::trial::translation::{Place, Trace};
use bochner_datasets::sentences::Sentence;
use bochner_datasets::{Protocol, SentenceData, SentenceSet};
use bochner_report::Preset;
use bochner_report::row::{Artefacts, Heads, Spread};
use std::collections::BTreeMap;

#[test]
fn figure_2_rests_on_three_folds_with_three_seeds_each_the_fold_of_the_sentence_first() {
    let plan = plan(&FIGURE_2, Scale::Desk);
    assert_eq!(plan.arms.len(), 3);
    for arm in &plan.arms {
        let runs: Vec<(usize, u64)> = arm
            .units
            .iter()
            .map(|unit| (unit.split, unit.seed))
            .collect();
        let expected = [8, 0, 1].map(|fold| [(fold, 0), (fold, 1), (fold, 2)]);
        assert_eq!(runs, expected.concat());
        let settings: crate::trial::sentences::SentenceSettings = arm.settings().read().unwrap();
        assert_eq!(
            (settings.heads, settings.width, settings.hidden),
            (8, 128, 256)
        );
        assert_eq!((settings.p, settings.points), (Some(1.5), Some(32)));
    }
}

/// Results whose measures a function gives.
fn measured(
    suite: &dyn Suite,
    plan: &Plan,
    of: impl Fn(&Arm, &Unit) -> Vec<(&'static str, f64)>,
) -> Results {
    let mut all = results(suite, plan, |_, _| Some(0.2));
    let mut rows = Vec::new();
    for arm in &plan.arms {
        rows.extend(all.of(arm).into_iter().cloned().map(|mut row| {
            let measures = of(arm, &row.unit).into_iter();
            row.measures = measures
                .map(|(name, value)| (name.to_owned(), value))
                .collect();
            row
        }));
    }
    all.extend(rows);
    all
}

#[test]
fn heads_must_differ_more_than_those_of_the_control_and_seeds_of_a_fold_count_once() {
    let plan = plan(&FIGURE_2, Scale::Desk);
    let judged = |ikan: f64, released: f64, between_folds: f64| {
        let all = measured(&FIGURE_2, &plan, |arm, unit| {
            let value = match (arm.model, arm.preset) {
                ("IKAN", _) => ikan,
                (_, Preset::Released) => released,
                _ => 0.2 + between_folds * [1.0, -1.0, 0.0][unit.split % 3],
            };
            vec![("diversity", value + 0.001 * noise(arm, unit))]
        });
        (
            verdicts(&FIGURE_2, &plan, &all).remove(0),
            report(&FIGURE_2, &plan, &all),
        )
    };
    let (verdict, text) = judged(0.1, 0.1, 0.0);
    assert_eq!(verdict, Verdict::Reproduced);
    for other in ["IKAN (paper)", "MIKAN (released)"] {
        let row = format!("| diversity | diversity | MIKAN (paper) | {other} | MR | +0.");
        let row = row.replace("MIKAN (paper) | IKAN (paper)", "MIKAN | IKAN");
        assert!(text.contains(&row), "{row} in {text}");
    }
    assert_eq!(judged(0.1, 0.3, 0.0).0, Verdict::Contradicted);
    // Nine runs show it, three folds do not.
    assert_eq!(judged(0.1, 0.1, 0.1).0, Verdict::Undecided);
}

#[test]
fn a_measure_that_rows_lack_is_named() {
    let plan = plan(&FIGURE_2, Scale::Desk);
    let all = measured(&FIGURE_2, &plan, |arm, _| match arm.model {
        "IKAN" => vec![("diversity", 0.1)],
        _ => vec![],
    });
    let verdict = verdicts(&FIGURE_2, &plan, &all)[0].to_string();
    assert_eq!(
        verdict,
        "not tested: the rows of MIKAN on MR lack diversity"
    );
}

#[test]
fn weights_that_spread_with_p_and_errors_below_the_baseline_are_figure_4() {
    let plan = plan(&FIGURE_4, Scale::Desk);
    let judged = |sign: f64, gain: f64| {
        let mut all = results(&FIGURE_4, &plan, |arm, unit| {
            let own = if arm.model == "Transformer" {
                0.0
            } else {
                gain
            };
            Some(0.3 - own + 0.001 * noise(arm, unit))
        });
        let mut rows = Vec::new();
        for arm in &plan.arms {
            let p = arm.settings().p().unwrap_or(2.0);
            rows.extend(all.of(arm).into_iter().cloned().map(|mut row| {
                let noise = 0.001 * noise(arm, &row.unit);
                row.measures
                    .insert("outside".into(), 1.0 - sign * p / 10.0 + noise);
                row.measures.insert("entropy".into(), sign * p + noise);
                row
            }));
        }
        all.extend(rows);
        verdicts(&FIGURE_4, &plan, &all)
    };
    assert_eq!(judged(1.0, 0.01), [const { Verdict::Reproduced }; 2]);
    assert_eq!(judged(-1.0, -0.01), [const { Verdict::Contradicted }; 2]);
    assert_eq!(judged(0.0, 0.0)[1], Verdict::Undecided);
    // Errors at p below 1 are reported, not judged.
    let role = |model: &str| plan.claimed("Housing", model).unwrap().role;
    assert_eq!(
        (role("MIKAN, p = 3"), plan.units().len()),
        (Role::Claimed, 10 * 10)
    );
}

/// A set with the size and the classes of MR, which has this text in the row of the paper's sentence.
fn corpus(text: &str) -> SentenceData {
    let mut sentences = generated(10_662);
    for (row, sentence) in sentences.iter_mut().enumerate() {
        let number = format!(" number{row}");
        sentence.text.extend(number.bytes());
        sentence.label = usize::from(row >= 5_331);
    }
    sentences[627] = Sentence {
        text: text.into(),
        label: 0,
    };
    SentenceData::of_files(SentenceSet::Mr, Protocol::P10, vec![sentences]).unwrap()
}

#[test]
fn another_sentence_in_the_row_of_the_papers_is_refused_with_both_named() {
    let right = corpus("just a kiss is a just a waste . ");
    check_row(&right).unwrap();
    assert!(right.splits[8].test.contains(&627));
    let error = check_row(&corpus("a kiss is just a kiss .")).unwrap_err();
    assert!(matches!(error, Error::OtherSentence { row: 627, .. }));
    let said = error.to_string();
    assert!(
        said.contains("a kiss is just a kiss .") && said.contains("just a waste"),
        "{said}"
    );
}

#[test]
fn figure_5_is_judged_by_the_runs_that_reject_by_floors_for_the_start_and_the_size_and_by_deviations()
 {
    let plan = plan(&FIGURE_5, Scale::Desk);
    let judged = |rejected: u64, growth: f64, size: f64, ahead: f64| {
        let all = measured(&FIGURE_5, &plan, |arm, unit| {
            let gain = if arm.model == "MIKAN" { ahead } else { 0.0 };
            vec![
                (REJECTED, f64::from(u8::from(unit.seed < rejected))),
                (GROWTH, growth),
                (KEPT_SIZE, size),
                (DEVIATION, 0.1 + gain + 0.001 * noise(arm, unit)),
            ]
        });
        verdicts(&FIGURE_5, &plan, &all)
    };
    let all = judged(10, 2.0, 0.1, 0.01);
    assert_eq!(all, [const { Verdict::Reproduced }; 4]);
    let not = judged(0, 1.9, 0.09, -0.01);
    assert_eq!(not, [const { Verdict::Contradicted }; 4]);
    // Six of ten may be chance.
    assert_eq!(judged(6, 2.0, 0.1, 0.01)[0], Verdict::Undecided);
}

/// The files beside the report, and the report, with artefacts that a function gives.
fn files(
    suite: &dyn Suite,
    plan: &Plan,
    artefacts: &dyn Fn(&Unit) -> Artefacts,
) -> (BTreeMap<String, String>, String) {
    let results = results(suite, plan, |_, _| Some(0.2));
    let account = Account {
        card: suite.card(),
        plan,
        results: &results,
        claims: &[],
        checks: &[],
        skipped: &[],
        earlier: None,
        notes: &[],
        artefacts: &|unit| Some(artefacts(unit)),
    };
    let document = account.document(suite);
    let markdown = document.to_markdown();
    let files: BTreeMap<String, String> = document.files().collect();
    assert!(
        files.keys().all(|name| markdown.contains(name)),
        "{markdown}"
    );
    (files, markdown)
}

#[test]
fn figure_2_is_drawn_from_artefacts_of_the_sentences_fold_and_its_weights_are_a_table() {
    let plan = plan(&FIGURE_2, Scale::Desk);
    let words = ["a", ",", "a"];
    let weights = vec![vec![0.5_f32, 0.2, 0.3, 0.1, 0.8, 0.1, 0.0, 0.0, 1.0]; 8];
    let (files, text) = files(&FIGURE_2, &plan, &|unit| match unit.split {
        8 => Artefacts::default()
            .with("words", &words)
            .with("weights", &weights),
        _ => Artefacts::default(),
    });
    // The third word has the most weight in the mean, .47, and stands in the first place as well.
    let looked = ["a (3), 0.47"; 4].join(" | ");
    for seed in 0..3 {
        let row = format!("| IKAN | paper | {seed} | {looked} |");
        assert!(text.contains(&row), "{row} in {text}");
    }
    let names: Vec<&str> = files.keys().map(String::as_str).collect();
    assert_eq!(
        names,
        [
            "figure2-ikan-paper.svg",
            "figure2-mikan-paper.svg",
            "figure2-mikan-released.svg",
            "figure2-weights.csv"
        ]
    );
    let lines: Vec<&str> = files["figure2-weights.csv"].lines().collect();
    // Three arms, three seeds, eight heads, nine weights, and the names of the columns.
    assert_eq!(lines.len(), 3 * 3 * 8 * 9 + 1);
    assert_eq!(lines[5], r#"IKAN,paper,8,0,1,2,2,",",",",0.8"#);
    assert!(
        lines
            .iter()
            .any(|line| line.starts_with("MIKAN,released,8,2,8,"))
    );
    assert_eq!(files["figure2-ikan-paper.svg"].matches("head ").count(), 4);
}

#[test]
fn figure_3_is_drawn_of_every_set_and_of_both_attentions() {
    let plan = plan(&TRANSLATION, Scale::Paper);
    let trace = Trace {
        similarity: vec![vec![-0.5, -1.0]; 6],
        magnitude: vec![vec![0.5, 1.0]; 6],
        key_magnitude: vec![vec![0.25, 0.5]; 6],
    };
    let names = Place::ALL
        .into_iter()
        .flat_map(|place| [0, 1].map(|epoch| place.trace(epoch)));
    let artefacts = names.fold(Artefacts::default(), |all, name| all.with(&name, &trace));
    let (files, _) = files(&TRANSLATION, &plan, &|_| artefacts.clone());
    let sets = plan.sets();
    assert_eq!(sets.len(), 3);
    for title in sets {
        let set = TRANSLATION.card().set(title).unwrap();
        for place in Place::ALL {
            let svg = &files[&format!("figure3-{}-{}.svg", set.name, place.name())];
            // Similarity and magnitude of three models after two epochs.
            let heads = 2 * 3 * 2 * trace.similarity.concat().len();
            assert_eq!(svg.matches("<circle").count(), heads, "{title}");
        }
    }
}

#[test]
fn figure_4_is_drawn_from_rows_and_from_the_histograms_of_the_first_fold() {
    let plan = plan(&FIGURE_4, Scale::Desk);
    let (files, _) = files(&FIGURE_4, &plan, &|unit| match unit.split {
        0 => Artefacts::default().with("histogram", &[1.0 / 32.0; 32]),
        _ => Artefacts::default(),
    });
    let lines = files
        .iter()
        .map(|(name, svg)| (name.as_str(), svg.matches("<polyline").count()));
    // Two numbers of MIKAN and of the Transformer with a bar at each of nine norms, the one share that the rows have, nine
    // norms; no unit has left a histogram of its last epoch.
    assert_eq!(
        lines.collect::<Vec<_>>(),
        [
            ("figure4-error.svg", 4 * (1 + 9)),
            ("figure4-histogram.svg", 9),
            ("figure4-weights.svg", 1)
        ]
    );
}

#[test]
fn figure_5_is_drawn_from_artefacts_alone() {
    let plan = plan(&FIGURE_5, Scale::Desk);
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
    let artefacts = Artefacts::default()
        .with("spread", &spread)
        .with("heads", &heads);
    let (files, text) = files(&FIGURE_5, &plan, &|_| artefacts.clone());
    // (0 + 1 + 4 + .25) / 4 is 1.146 squared.
    assert!(
        text.contains("coordinate: 1.15 of the points by head, 0.707 of"),
        "{text}"
    );
    assert_eq!(
        files.keys().collect::<Vec<_>>(),
        ["figure5-ikan.svg", "figure5-mikan.svg"]
    );
    // Points of the heads, points of a Gaussian, the correlation and the deviations.
    let svg = &files["figure5-mikan.svg"];
    assert_eq!(svg.matches("<svg").count(), 1 + 4);
    assert!(svg.contains("0.30") && svg.contains("<polyline") && svg.contains("<circle"));
}
