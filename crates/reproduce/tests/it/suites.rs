//! Properties of every suite, and of its plan, claims and reports.

mod pages;
mod plans;
mod studies;
mod trials;
mod verdicts;

use crate::fixtures::row;
use bochner_datasets::Protocol;
use bochner_numerics::{Seed, fingerprint};
use bochner_report::archive::Archive;
use bochner_report::claim::{Claim, Hypothesis, check_card};
use bochner_report::judge::{Judged, Verdict, judge};
use bochner_report::page;
use bochner_report::plan::{Arm, Choices, Frame, OnRequest, Plan, Role};
use bochner_report::suite::{At, Card, Metric, Model};
use bochner_report::{Account, Results, Scale, Settings, Unit};
use bochner_reproduce::Suite;
use bochner_reproduce::suites::{
    CLASSIFICATION, DATAPOINTS, FIGURE_2, FIGURE_4, FIGURE_5, NODES, REGRESSION, TIME, TRANSLATION,
    trained,
};
use rand::Rng;

fn frame(scale: Scale) -> Frame {
    Frame {
        scale,
        epochs: None,
        on_request: OnRequest::LeftOut,
    }
}

/// The plan of a scale, in which the last of all that is chosen among stands for it.
pub(crate) fn plan(suite: &'static Suite, scale: Scale) -> Plan {
    let sets = suite.card.asked(scale, &[]);
    Plan::new(suite.card, &sets, frame(scale), Choices::Dearest)
}

/// Results with the V-numbers that a function gives, which are every measure's number too, and R-numbers 0.01 below.
fn results(
    suite: &'static Suite,
    plan: &Plan,
    value: impl Fn(&Arm, &Unit) -> Option<f64>,
) -> Results {
    let mut results = Results::new(suite.card.metric.direction);
    for arm in &plan.arms {
        let rows = arm.units.iter().filter_map(|unit| {
            let v = value(arm, unit)?;
            let mut row = row(unit, v);
            let claims = (suite.card.claims)().into_iter();
            let names = claims.flat_map(|claim| claim.measures());
            row.measures = names.map(|name| (name.to_owned(), v)).collect();
            // One of the protocols has no validation part.
            row.v_number = row.v_number.filter(|_| unit.protocol != Protocol::R90);
            Some(row)
        });
        results.extend(rows);
    }
    results
}

fn verdicts(suite: &'static Suite, plan: &Plan, results: &Results) -> Vec<Verdict> {
    let judged = judge(suite.card, &(suite.card.claims)(), plan, results);
    judged.into_iter().map(|judged| judged.verdict).collect()
}

/// A number between -1 and 1 that differs from run to run, and of which no two models have the same ones.
fn noise(arm: &Arm, unit: &Unit) -> f64 {
    let name = format!("{} {} {}", arm.label(), unit.split, unit.seed);
    let seed = Seed::new(fingerprint(name.into_bytes()));
    seed.stream("noise").gen_range(-1.0..1.0)
}

/// The report on results, without checks and artefacts.
fn report(suite: &'static Suite, plan: &Plan, results: &Results) -> String {
    let claims: Vec<Judged> = judge(suite.card, &(suite.card.claims)(), plan, results);
    let account = Account {
        card: suite.card,
        plan,
        results,
        claims: &claims,
        checks: &[],
        skipped: &[],
        preface: None,
        epochs: None,
        notes: &[],
        artefacts: &|_| None,
    };
    account.document().to_markdown()
}

fn is_untested(verdict: &Verdict) -> bool {
    matches!(verdict, Verdict::NotTested(_))
}

/// Whether numbers are missing of what is only shown.
fn is_lacking(verdict: &Verdict) -> bool {
    matches!(verdict, Verdict::Shown(numbers) if numbers.contains("missing"))
}

/// The published archives, each with those whose rows its page shows as well.
static ARCHIVES: [(&Suite, Scale, &str, &[&str]); 13] = [
    (&CLASSIFICATION, Scale::Desk, "table2-desk", &[]),
    (
        &CLASSIFICATION,
        Scale::Desk,
        "table2-others",
        &["table2-desk"],
    ),
    (&TRANSLATION, Scale::Desk, "table3-desk", &[]),
    (&REGRESSION, Scale::Desk, "table4-desk", &[]),
    (&REGRESSION, Scale::Desk, "table4-others", &["table4-desk"]),
    (&REGRESSION, Scale::Paper, "table4-paper", &[]),
    (&NODES, Scale::Desk, "table5-desk", &[]),
    (&NODES, Scale::Paper, "table5-paper", &[]),
    (&DATAPOINTS, Scale::Desk, "datapoints-desk", &[]),
    (&TIME, Scale::Desk, "time-desk", &[]),
    (&FIGURE_2, Scale::Desk, "figure2-desk", &[]),
    (&FIGURE_4, Scale::Desk, "figure4-desk", &[]),
    (&FIGURE_5, Scale::Desk, "figure5-desk", &[]),
];

fn directory(name: &str) -> std::path::PathBuf {
    let results = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/results");
    std::path::Path::new(results).join(name)
}

fn archive(name: &str, with: &[&str]) -> Archive {
    let mut archive = Archive::read(&directory(name)).unwrap();
    for other in with {
        archive.extend(Archive::read(&directory(other)).unwrap());
    }
    archive
}

#[test]
fn every_published_row_answers_a_unit_of_its_suite() {
    for (suite, scale, name, with) in ARCHIVES {
        let archive = archive(name, with);
        let mut results = Results::new(suite.card.metric.direction);
        results.extend(archive.rows.iter().cloned());
        let plan = page::plan(suite.card, scale, &results);
        let units = [plan.choosing(), plan.units()].concat();
        let answered: Vec<&str> = units
            .iter()
            .filter_map(|u| Some(&*results.row(u)?.id))
            .collect();
        for row in &archive.rows {
            assert!(answered.contains(&&*row.id), "{}", row.id);
        }
    }
}

#[test]
fn published_pages_are_those_that_their_rows_give_today() {
    for (suite, scale, name, with) in ARCHIVES {
        let archive = archive(name, with);
        let page = page::of_archive(suite.card, scale, &archive);
        // A preface is written by hand, and says what today's verdicts are.
        let preface = archive.preface.as_deref().unwrap_or_default();
        for line in preface.lines().filter(|line| line.starts_with("* ")) {
            let (claim, change) = line[2..].split_once(": was *").expect(line);
            let (_, now) = change.rsplit_once("is **").expect(line);
            let (verdict, _) = now.split_once("**").expect(line);
            let is_so = |judged: &Judged| {
                judged.name == claim && judged.verdict.to_string().starts_with(verdict)
            };
            assert!(page.claims.iter().any(is_so), "docs/results/{name}: {line}");
        }
        let report = ("report.md".to_owned(), page.to_markdown());
        // Tables of all weights of a figure can be large, and are not kept.
        let files = page.document.files().chain([report]);
        for (file, text) in files.filter(|(file, _)| !file.ends_with(".csv")) {
            let published = std::fs::read_to_string(directory(name).join(&file)).unwrap();
            assert!(
                text == published,
                "docs/results/{name}/{file} is not what its rows give: write it with `cargo xtask reproduce report`"
            );
        }
    }
}

#[test]
fn every_unit_has_its_own_id() {
    for suite in trained() {
        for scale in Scale::ALL {
            let plan = plan(suite, scale);
            let mut ids: Vec<String> = [plan.choosing(), plan.units()]
                .concat()
                .iter()
                .map(Unit::id)
                .collect();
            let all = ids.len();
            ids.sort();
            ids.dedup();
            assert!(
                all > 0 && ids.len() == all,
                "{} at {scale}",
                suite.card.name
            );
        }
    }
}

#[test]
fn cards_arms_and_claims_name_the_same_models_and_sets() {
    for suite in trained() {
        let card = suite.card;
        for model in card.models {
            let others = model
                .against
                .iter()
                .copied()
                .chain(model.simpler.map(|simpler| simpler.0));
            assert!(
                others.into_iter().all(|other| card.model(other).is_some()),
                "{model:?}"
            );
        }
        assert!(card.model(card.baseline).is_some());
        assert!(
            card.published
                .iter()
                .all(|line| line.values.len() <= card.sets.len())
        );
        check_card(suite.card).unwrap();
    }
}

/// Makes claims on the line that calls it.
type Claims = fn() -> Vec<Claim>;

#[test]
fn a_claim_that_names_a_model_or_a_set_that_no_arm_has_is_refused_with_its_line_and_the_names() {
    #[track_caller]
    fn better(model: &'static str, set: &'static str) -> Vec<Claim> {
        let better = Hypothesis::better(model, "Transformer", set);
        vec![Claim::all("C9", "a slip of the pen", vec![better])]
    }
    const FIRST: u32 = line!() + 2;
    let claims: [(Claims, &str); 3] = [
        (|| better("MIKNA", "CO2"), "MIKNA"),
        (|| better("Concrete", "CO2"), "Concrete"),
        (|| better("MIKAN", "IKAN"), "IKAN"),
    ];
    for ((claims, unknown), line) in claims.into_iter().zip(FIRST..) {
        let card = REGRESSION.card;
        let misspelt = Box::leak(Box::new(Card { claims, ..*card }));
        let error = check_card(misspelt).unwrap_err().to_string();
        let names = format!("claim C9 of the suite regression names {unknown},");
        assert!(error.starts_with(&names), "{error}");
        let place = format!("at {}, line {line}, or add the arm", file!());
        assert!(error.contains(&place) && error.contains("MIKAN"), "{error}");
    }
}

#[test]
fn a_card_that_contradicts_itself_is_refused_with_the_fault() {
    let card = *REGRESSION.card;
    let no_epochs = |at: &At<'_>| {
        let of =
            |model: &Model| Arm::new(at, model.name, Protocol::P10, [(0, 0)], &Settings::of(&()));
        at.card.models.iter().map(of).collect()
    };
    let unlisted = |at: &At<'_>| {
        let mut arms = (REGRESSION.card.arms)(at);
        arms[0].model = "MIKNA";
        arms
    };
    let twice = |at: &At<'_>| {
        let arms = (REGRESSION.card.arms)(at);
        [arms.clone(), arms].concat()
    };
    for (card, fault) in [
        (Card { name: "", ..card }, "its name is empty"),
        (
            Card {
                baseline: "transformer",
                ..card
            },
            "its baseline \"transformer\" is not among",
        ),
        (
            Card {
                arms: no_epochs,
                ..card
            },
            "have no field `epochs` of at least 1",
        ),
        (
            Card {
                arms: unlisted,
                ..card
            },
            "of a model that the card does not list",
        ),
        (
            Card {
                arms: twice,
                ..card
            },
            "is there twice",
        ),
    ] {
        let error = check_card(Box::leak(Box::new(card)))
            .unwrap_err()
            .to_string();
        assert!(error.contains(fault), "{error}");
    }
}

#[test]
fn smoke_claims_nothing_and_unfinished_arms_are_not_judged() {
    for suite in trained() {
        let smoke = plan(suite, Scale::Smoke);
        let all = results(suite, &smoke, |_, _| Some(0.3));
        assert!(verdicts(suite, &smoke, &all).iter().all(is_untested));
        let paper = plan(suite, Scale::Paper);
        let none = Results::new(suite.card.metric.direction);
        let verdicts = verdicts(suite, &paper, &none);
        assert!(
            verdicts.iter().all(|v| is_untested(v) || is_lacking(v)),
            "{verdicts:?}"
        );
    }
}

#[test]
fn units_that_claims_name_run_first() {
    let plan = plan(&REGRESSION, Scale::Desk);
    let units = plan.units();
    let is_claimed =
        |unit: &&Unit| ["Transformer", "IKAN-direct", "MIKAN"].contains(&&*unit.variant);
    let first = units.iter().take_while(is_claimed).count();
    assert_eq!(first, units.iter().filter(is_claimed).count());
    assert!((1..units.len()).contains(&first));
}

#[test]
fn models_that_wait_for_a_choice_are_left_out_until_it_is_made() {
    for suite in trained() {
        let sets = suite.card.asked(Scale::Desk, &[]);
        let open = Plan::new(suite.card, &sets, frame(Scale::Desk), Choices::None);
        let known = plan(suite, Scale::Desk);
        assert_eq!(
            open.choosing().is_empty(),
            open.arms == known.arms,
            "{}",
            suite.card.name
        );
        assert!(open.units().iter().all(|unit| known.units().contains(unit)));
    }
}
