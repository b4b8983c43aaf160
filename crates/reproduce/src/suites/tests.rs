//! What holds for every suite, and what its plan, claims and reports are known to say.

mod classification;
mod datapoints;
mod figures;
mod nodes;
mod on_request;
mod regression;
mod studies;
mod time;
mod translation;

use super::*;
use crate::claim::{Claim, Criterion, Judged, check_names, judge};
use crate::plan::{Arm, Choices, Frame, OnRequest, Plan, Role};
use crate::results::tests::row;
use crate::statistics::Verdict;
use crate::store::tests::published;
use crate::suite::{Cut, Metric, Set};
use crate::{Account, Results, Scale, Unit};

const SCALES: [Scale; 3] = [Scale::Smoke, Scale::Desk, Scale::Paper];

fn trained() -> impl Iterator<Item = &'static dyn Suite> {
    SUITES.into_iter().filter_map(Entry::trained)
}

fn frame(scale: Scale, cut: usize) -> Frame {
    Frame {
        scale,
        cut,
        epochs: None,
        on_request: OnRequest::LeftOut,
    }
}

/// The plan of a scale, in which the last of all that is chosen among stands for it.
pub(crate) fn plan(suite: &'static dyn Suite, scale: Scale) -> Plan {
    let sets = suite.card().asked(scale, &[]);
    Plan::new(suite, &sets, frame(scale, 0), Choices::Dearest)
}

/// Results with the V-numbers that a function gives, which are every measure's number too, and R-numbers .01 below.
fn results(suite: &dyn Suite, plan: &Plan, value: impl Fn(&Arm, &Unit) -> Option<f64>) -> Results {
    let mut results = Results::new(suite.card().metric.direction);
    for arm in &plan.arms {
        let rows = arm.units.iter().filter_map(|unit| {
            let v = value(arm, unit)?;
            let mut row = row(unit, v);
            let claims = suite.claims().iter();
            let names = claims.flat_map(|claim| claim.criterion.measures());
            row.measures = names.map(|name| (name.to_owned(), v)).collect();
            // One of the protocols has no validation part.
            row.v_number = row
                .v_number
                .filter(|_| unit.protocol != crate::Protocol::R90);
            Some(row)
        });
        results.extend(rows);
    }
    results
}

fn verdicts(suite: &dyn Suite, plan: &Plan, results: &Results) -> Vec<Verdict> {
    let judged = judge(suite.card(), suite.claims(), plan, results);
    judged.into_iter().map(|judged| judged.verdict).collect()
}

/// The report on results, without checks and artefacts.
fn report(suite: &dyn Suite, plan: &Plan, results: &Results) -> String {
    let claims: Vec<Judged> = judge(suite.card(), suite.claims(), plan, results);
    let account = Account {
        card: suite.card(),
        plan,
        results,
        claims: &claims,
        checks: &[],
        skipped: &[],
        notes: &[],
        artefacts: &|_| None,
    };
    account.document(suite).to_markdown()
}

fn is_untested(verdict: &Verdict) -> bool {
    matches!(verdict, Verdict::NotTested(_))
}

/// The plan, with the cut that the report names, and the results after the rows of a published directory were imported.
fn of_published(suite: &'static dyn Suite, scale: Scale, name: &str) -> (Plan, Results) {
    let rows = published(name);
    let sets: Vec<&'static Set> = suite
        .card()
        .sets
        .iter()
        .filter(|set| rows.iter().any(|row| row.unit.set == set.title))
        .collect();
    let mut results = Results::new(suite.card().metric.direction);
    results.extend(rows);
    let report = published_report(name);
    let is_named = |cut: &Cut| report.contains(&format!("To save time, {}.", cut.what));
    let cut = suite.card().cuts.iter().position(is_named).unwrap_or(0);
    let plan = Plan::new(suite, &sets, frame(scale, cut), Choices::Of(&results));
    (plan, results)
}

const PUBLISHED: [(&dyn Suite, Scale, &str); 4] = [
    (&REGRESSION, Scale::Desk, "table4-desk"),
    (&REGRESSION, Scale::Paper, "table4-paper"),
    (&NODES, Scale::Desk, "table5-desk"),
    (&NODES, Scale::Paper, "table5-paper"),
];

#[test]
fn what_was_run_before_is_still_found() {
    for (suite, scale, name) in PUBLISHED {
        let (plan, _) = of_published(suite, scale, name);
        let units = [plan.choosing(), plan.units()].concat();
        for row in published(name) {
            assert!(units.contains(&row.unit), "{}", row.id);
        }
    }
}

fn published_report(name: &str) -> String {
    let path = format!(
        "{}/../../docs/results/{name}/report.md",
        env!("CARGO_MANIFEST_DIR")
    );
    std::fs::read_to_string(path).unwrap()
}

#[test]
fn published_tables_come_out_of_published_rows_to_the_byte() {
    for (suite, scale, name) in PUBLISHED {
        let (plan, results) = of_published(suite, scale, name);
        let ours = report(suite, &plan, &results);
        let theirs = published_report(name);
        // What heads have learnt is not part of the rows.
        let (numbers, rest) = theirs
            .split_once("## What the heads")
            .unwrap_or((&theirs, ""));
        let is_number = |line: &&str| {
            suite
                .card()
                .sets
                .iter()
                .any(|set| line.starts_with(&format!("| {} |", set.title)))
        };
        let lines: Vec<&str> = numbers.lines().filter(is_number).collect();
        assert!(lines.len() > 20, "{name}");
        let found: Vec<&str> = ours.lines().filter(is_number).collect();
        assert_eq!(found, lines, "{name}");
        let remarks = |text: &str| {
            text.lines()
                .filter(|line| line.contains("R - V differs"))
                .map(str::to_owned)
                .collect::<Vec<_>>()
        };
        assert_eq!(remarks(&ours), remarks(&[numbers, rest].concat()), "{name}");
    }
}

#[test]
fn published_verdicts_come_out_of_published_rows() {
    const MORE: [(&dyn Suite, Scale, &str); 7] = [
        (&CLASSIFICATION, Scale::Desk, "table2-desk"),
        (&DATAPOINTS, Scale::Desk, "datapoints-desk"),
        (&FIGURE_2, Scale::Desk, "figure2-desk"),
        (&FIGURE_4, Scale::Desk, "figure4-desk"),
        (&FIGURE_5, Scale::Desk, "figure5-desk"),
        (&TIME, Scale::Desk, "time-desk"),
        (&TRANSLATION, Scale::Desk, "table3-desk"),
    ];
    // The name of each claim and its verdict, and all headings: the words of a claim may have become clearer since. Pictures,
    // what heads have learnt and lines are not made of rows.
    let verdicts = |report: &str| {
        let (_, claims) = report.split_once("\n## Claims of the paper\n").unwrap();
        let (claims, _) = claims.split_once("\n## ").unwrap();
        let rows = claims.lines().filter(|line| line.starts_with('|')).skip(2);
        let cells = rows.map(|row| row.split('|').map(|cell| cell.trim().to_owned()).collect());
        let cells = cells.map(|row: Vec<String>| [row[1].clone(), row[row.len() - 2].clone()]);
        let headings = report.lines().filter_map(|line| line.strip_prefix("## "));
        let of_artefacts = ["Pictures", "On resampled", "Figure 3", "Some translations"];
        let is_of_artefacts = |it: &str| {
            of_artefacts.iter().any(|of| it.starts_with(of))
                || it.starts_with("What the") && it.contains("heads")
        };
        let of_rows = headings.filter(|it| !is_of_artefacts(it));
        let of_rows: Vec<String> = of_rows.map(str::to_owned).collect();
        (cells.collect::<Vec<_>>(), of_rows)
    };
    for (suite, scale, name) in PUBLISHED.into_iter().chain(MORE) {
        let (plan, results) = of_published(suite, scale, name);
        let found = verdicts(&report(suite, &plan, &results));
        assert_eq!(found.0.len(), suite.claims().len(), "{name}");
        assert_eq!(found, verdicts(&published_report(name)), "{name}");
    }
}

#[test]
fn every_unit_has_its_own_id() {
    for suite in trained() {
        for scale in SCALES {
            let plan = plan(suite, scale);
            let mut ids: Vec<String> = [plan.choosing(), plan.units()]
                .concat()
                .iter()
                .map(Unit::id)
                .collect();
            let all = ids.len();
            ids.sort();
            ids.dedup();
            assert!(all > 0 && ids.len() == all, "{suite:?} at {scale}");
        }
    }
}

#[test]
fn cards_arms_and_claims_name_the_same_models_and_sets() {
    for suite in trained() {
        let card = suite.card();
        for model in card.models {
            let others = model.against.iter().chain(&model.simpler);
            assert!(
                others.into_iter().all(|other| card.model(other).is_some()),
                "{model:?}"
            );
        }
        assert!(card.model(card.baseline).is_some() && card.cuts[0].name == "none");
        assert!(
            card.published
                .iter()
                .all(|line| line.values.len() <= card.sets.len())
        );
        for scale in SCALES {
            for arm in &plan(suite, scale).arms {
                assert!(
                    card.model(arm.model).is_some() && card.set(arm.set).is_some(),
                    "{arm:?}"
                );
            }
        }
        check_names(suite).unwrap();
    }
}

/// Table 4 with claims about what it does not have.
struct Misspelt(&'static [Claim]);

impl Suite for Misspelt {
    fn card(&self) -> &'static crate::suite::Card {
        REGRESSION.card()
    }

    fn arms(&self, at: &crate::suite::At<'_>) -> Vec<Arm> {
        REGRESSION.arms(at)
    }

    fn load(
        &self,
        set: &Set,
        arms: &[Arm],
        files: &bochner_datasets::DataStore,
    ) -> Result<Box<dyn crate::suite::Source>, Error> {
        REGRESSION.load(set, arms, files)
    }

    fn claims(&self) -> &'static [Claim] {
        self.0
    }

    fn checks(&self, _: &Account<'_>, _: &bochner_datasets::DataStore) -> Vec<crate::Check> {
        Vec::new()
    }

    fn report(&self, _: &Account<'_>, _: &mut crate::report::Document) {}
}

#[test]
fn a_claim_that_names_a_model_or_a_set_that_no_arm_has_is_refused_with_its_line_and_the_names() {
    #[track_caller]
    const fn below(set: &'static str, models: &'static [&'static str]) -> [Claim; 1] {
        let criterion = Criterion::Below { set, models };
        [Claim::new("C9", "a slip of the pen", criterion)]
    }
    static MODEL: [Claim; 1] = below("CO2", &["MIKAN", "MIKNA"]);
    // A set where a model stands, and a model where a set does.
    static SET_FOR_MODEL: [Claim; 1] = below("CO2", &["MIKAN", "Concrete"]);
    static MODEL_FOR_SET: [Claim; 1] = below("IKAN", &["MIKAN"]);
    const LAST: u32 = line!() - 1;
    for (claims, unknown, line) in [
        (&MODEL, "MIKNA", LAST - 3),
        (&SET_FOR_MODEL, "Concrete", LAST - 1),
        (&MODEL_FOR_SET, "IKAN", LAST),
    ] {
        let error = check_names(&Misspelt(claims)).unwrap_err().to_string();
        let names = format!("claim C9 of the suite regression names {unknown},");
        assert!(error.starts_with(&names), "{error}");
        let place = format!("at {}, line {line}, or add the arm", file!());
        assert!(error.contains(&place) && error.contains("MIKAN"), "{error}");
    }
}

#[test]
fn smoke_claims_nothing_and_unfinished_arms_are_not_judged() {
    for suite in trained() {
        let smoke = plan(suite, Scale::Smoke);
        let all = results(suite, &smoke, |_, _| Some(0.3));
        assert!(verdicts(suite, &smoke, &all).iter().all(is_untested));
        let paper = plan(suite, Scale::Paper);
        let none = Results::new(suite.card().metric.direction);
        assert!(verdicts(suite, &paper, &none).iter().all(is_untested));
    }
}

#[test]
fn claims_rest_on_claimed_arms_and_on_no_others() {
    for suite in trained() {
        let plan = plan(suite, Scale::Paper);
        if plan.arms.iter().all(|arm| arm.role != Role::Claimed) {
            // The suite runs all of its arms in turns.
            continue;
        }
        // An accuracy, an error or a score that passes every gate.
        let good = match suite.card().metric == Metric::BLEU {
            true => 95.0,
            false => 0.95,
        };
        let open = |without: Option<&Arm>| {
            let given = |arm: &Arm, _: &Unit| (Some(arm) != without).then_some(good);
            let verdicts = verdicts(suite, &plan, &results(suite, &plan, given));
            verdicts
                .iter()
                .filter(|verdict| is_untested(verdict))
                .count()
        };
        assert_eq!(open(None), 0, "{suite:?}");
        for arm in &plan.arms {
            let rests = arm.role == Role::Claimed;
            assert_eq!(open(Some(arm)) > 0, rests, "{} on {}", arm.label(), arm.set);
        }
    }
}

#[test]
fn models_that_wait_for_a_choice_are_left_out_until_it_is_made() {
    for suite in trained() {
        let sets = suite.card().asked(Scale::Desk, &[]);
        let open = Plan::new(suite, &sets, frame(Scale::Desk, 0), Choices::None);
        let known = plan(suite, Scale::Desk);
        assert_eq!(
            open.choosing().is_empty(),
            open.arms == known.arms,
            "{suite:?}"
        );
        assert!(open.units().iter().all(|unit| known.units().contains(unit)));
    }
}
