//! Studies: what they find at scale smoke, and pages beside the rows that they are written from.

use super::directory;
use crate::smoke::{SMOKE, lines, rows};
use bochner_reproduce::study::{Allowed, Measure, Study};
use bochner_reproduce::suites::{Entry, SUITES};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

fn studies() -> impl Iterator<Item = &'static Study> {
    SUITES.iter().filter_map(|suite| match suite {
        Entry::Study(study) => Some(*study),
        Entry::Trained(_) => None,
    })
}

/// The studies whose published rows are measures; those of Table 1 are counts and times one by one.
fn of_measures() -> impl Iterator<Item = &'static Study> {
    studies().filter(|study| study.name != "complexity")
}

/// The statement of a study holds at scale smoke, where the scale judges it.
#[test]
fn studies_find_what_they_state() {
    for study in studies() {
        let rows: Vec<Value> = rows(study.name);
        let failed = rows.iter().find(|row| row["passed"] != true);
        assert!(failed.is_none(), "{failed:?}");
        let numbers = rows.iter().map(|row| row[study.part].as_u64().unwrap());
        let mut numbers: Vec<u64> = numbers.collect();
        numbers.dedup();
        let all: Vec<u64> = (1..=study.parts.len() as u64).collect();
        assert_eq!(numbers, all, "{}", study.name);
    }
}

/// The number in a cell, and half of its last digit.
fn printed(cell: &str) -> (f64, f64) {
    let (digits, exponent) = cell.split_once('e').unwrap_or((cell, "0"));
    let places = digits.split_once('.').map_or(0, |(_, behind)| behind.len());
    let last = exponent.parse::<i32>().unwrap() - places as i32;
    (cell.parse().unwrap(), 0.500_001 * 10f64.powi(last))
}

fn assert_printed(cell: &str, number: &Value, row: &Value) {
    let ((seen, most), number) = (printed(cell), number.as_f64().unwrap());
    assert!((seen - number).abs() <= most, "{cell} for {row}");
}

/// Asserts that a page has a line for each row, in its order, with its numbers, its bounds and its verdict.
fn assert_shown(study: &Study, directory: &Path) {
    let page = fs::read_to_string(directory.join("report.md")).unwrap();
    let mut parts = page.split("\n## ").skip(1);
    let rows: Vec<Value> = lines(&directory.join("rows.jsonl"));
    let of_part = |row: &Value| row[study.part].as_u64().unwrap();
    for rows in rows.chunk_by(|a, b| of_part(a) == of_part(b)) {
        let part = parts.next().unwrap();
        let head = format!(
            " {}: {}",
            of_part(&rows[0]),
            rows[0]["title"].as_str().unwrap()
        );
        assert!(part.lines().next().unwrap().ends_with(&head), "{head}");
        let lines = part.lines().filter(|line| line.starts_with("| "));
        let lines: Vec<&str> = lines.skip(1).collect();
        assert_eq!(lines.len(), rows.len(), "{head}");
        for (line, row) in lines.into_iter().zip(rows) {
            let what = row["what"].as_str().unwrap().replace('|', "\\|");
            let line = line.strip_prefix(&format!("| {what} | "));
            let cells: Vec<&str> = line.expect("its row").split(" | ").collect();
            let [value, allowed, verdict] = cells[..] else {
                panic!("{cells:?}")
            };
            let numbers: Vec<&str> = value.split(" ± ").collect();
            assert_printed(numbers[0], &row["value"], row);
            assert_eq!(numbers.len() == 2, !row["error"].is_null(), "{row}");
            if let [_, error] = numbers[..] {
                assert_printed(error, &row["error"], row);
            }
            let bounds = allowed
                .split(' ')
                .filter(|word| word.parse::<f64>().is_ok());
            let wanted = match &row["allowed"] {
                Value::Object(of) => of.values().next().unwrap().clone(),
                _ => Value::Array(Vec::new()),
            };
            let wanted = wanted.as_array().cloned().unwrap_or(vec![wanted]);
            let mut wanted: Vec<Value> = wanted;
            wanted.dedup();
            assert_eq!(bounds.clone().count(), wanted.len(), "{allowed} for {row}");
            for (bound, wanted) in bounds.zip(&wanted) {
                assert_printed(bound, wanted, row);
            }
            let is_shown_only = row["allowed"] == "anything" && row["passed"] == true;
            let outcome = match row["passed"].as_bool().unwrap() {
                _ if is_shown_only => " |",
                true => "passed |",
                false => "**failed** |",
            };
            assert_eq!(verdict, outcome, "{row}");
        }
    }
    assert!(parts.next().is_none());
}

#[test]
fn pages_of_studies_have_the_numbers_of_their_rows() {
    for study in of_measures() {
        assert_shown(study, &directory(&format!("{}-desk", study.name)));
    }
    for study in studies() {
        assert_shown(study, &SMOKE.0.join(study.name));
    }
}

/// Published pages state what the code states today.
#[test]
fn published_studies_have_the_titles_and_statements_of_today() {
    let words = |page: &Path| {
        let page = fs::read_to_string(page.join("report.md")).unwrap();
        let parts = page.split("\n## ").skip(1);
        let words = |part: &str| part.lines().take(3).map(str::to_owned).collect::<Vec<_>>();
        parts.map(words).collect::<Vec<_>>()
    };
    for study in of_measures() {
        let published = words(&directory(&format!("{}-desk", study.name)));
        assert_eq!(
            published,
            words(&SMOKE.0.join(study.name)),
            "{}",
            study.name
        );
    }
}

/// The counts of softmax attention are worked out by hand; those of all others have the paper's largest term.
#[test]
fn operations_are_those_of_the_paper() {
    let page = fs::read_to_string(SMOKE.0.join("complexity/report.md")).unwrap();
    // Four projections, scores and output; for each pair of each of 8 heads the scale, and a division of each row.
    let softmax = "* softmax (paper: T^2 d + T d^2): multiply-adds 2 T^2 d + 8 T^2 + 4 T d^2 + T d + 8 T; exponentials \
                   8 T^2 + 8 T.";
    assert!(page.lines().any(|line| line == softmax), "{page}");
    let polynomials = page.lines().filter_map(|line| {
        let (_, rest) = line.strip_prefix("* ")?.split_once("(paper: ")?;
        rest.split_once("): multiply-adds ")
    });
    let factors = |term: &str| {
        let factors = term
            .split(' ')
            .filter(|factor| factor.parse::<f64>().is_err());
        factors.map(str::to_owned).collect::<BTreeSet<String>>()
    };
    let mut seen = 0;
    for (paper, ours) in polynomials {
        let most = match paper {
            "none" => "T R^2 d",
            // Ours is cheaper: the factors are parametrised directly.
            "d M^3" => "M^2",
            paper => paper.split(" + ").next().unwrap(),
        };
        let ours = ours.split("; ").next().unwrap().trim_end_matches('.');
        let mut terms = ours.split(" + ").map(factors);
        let is_there = terms.any(|term| factors(most).is_subset(&term));
        assert!(is_there, "{most} in {ours}");
        seen += 1;
    }
    assert!(seen > 10, "{seen}");
}

#[test]
fn what_lies_outside_fails() {
    let passed = |value, allowed| Measure::new("", value, allowed).passed();
    assert!(passed(1.0, Allowed::AtMost(1.0)) && !passed(1.1, Allowed::AtMost(1.0)));
    assert!(!passed(f64::NAN, Allowed::AtMost(1.0)) && !passed(f64::NAN, Allowed::Anything));
    assert!(passed(-0.5, Allowed::Within(-0.6, -0.4)) && !passed(0.5, Allowed::Within(-0.6, -0.4)));
    assert!(!passed(0.0, Allowed::AtLeast(0.1)));
}

/// A graph counts as found with all its marks, and not with its joined pairs alone: 64 samples find few.
#[test]
fn few_samples_find_few_graphs_with_all_marks() {
    let rows: Vec<Value> = rows("causal");
    let what = "share of graphs with all marks right, 64 samples";
    let row = rows.iter().find(|row| row["what"] == what).unwrap();
    assert!(row["value"].as_f64().unwrap() <= 0.2, "{row}");
}

/// Means over the same explanations: what is said of one set beside another is their difference.
#[test]
fn explanations_are_compared_with_sets_by_weight_and_at_random() {
    let published = directory("explanations-desk").join("rows.jsonl");
    let smoke = SMOKE.0.join("explanations/rows.jsonl");
    for rows in [published, smoke].map(|path| lines::<Value>(&path)) {
        for rows in rows.chunk_by(|a, b| a["statement"] == b["statement"]) {
            let values = rows.iter().map(|row| {
                let what = row["what"].as_str().unwrap();
                (what, row["value"].as_f64().unwrap())
            });
            let of: BTreeMap<&str, f64> = values.collect();
            let parents = of["share of parents in explanations"];
            for (less, than) in [
                (
                    "less that by weight",
                    "by weight, as many tokens: share of parents",
                ),
                (
                    "less that at random",
                    "control, as many tokens at random: share of parents",
                ),
            ] {
                let less = of[&*format!("share of parents in explanations, {less}")];
                assert!((parents - of[than] - less).abs() < 1e-9, "{of:?}");
            }
            assert!((1.0..=3.0).contains(&of["tokens of an explanation"]));
            let asked = ["an explanation is found", "all are gone through by size"];
            let [until, through] = asked.map(|what| {
                let what = of.iter().find(|(name, _)| name.ends_with(what));
                *what.unwrap().1
            });
            assert!(until < through, "{of:?}");
        }
    }
}

/// With a wrong gradient the few steps of scale smoke teach nothing.
#[test]
fn the_trained_model_of_primal_attention_learns() {
    let rows: Vec<Value> = rows("primal");
    let of = |what: &str| {
        let row = rows.iter().find(|row| row["what"] == what);
        row.unwrap()["value"].as_f64().unwrap()
    };
    assert!(of("η = 0: accuracy") > of("untrained: accuracy") + 0.1);
    assert!(of("η = 0: objective") < of("untrained: objective") - 0.05);
}
