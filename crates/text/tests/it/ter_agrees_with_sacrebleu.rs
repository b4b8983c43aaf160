//! TER is that of sacrebleu 2.6.0, and stays within its bounds.

use bochner_text::{Case, Error, TerConfig, TerScore, corpus_ter, sentence_ter};
use proptest::prelude::*;
use serde::Deserialize;

/// A score, its edits and the length of its references.
type Score = (f64, u64, f64);

/// The scores of `golden/ter.py`.
#[derive(Deserialize)]
struct Golden {
    rows: Vec<[String; 3]>,
    lower: Scores,
    mixed: Scores,
}

#[derive(Deserialize)]
struct Scores {
    corpus: Score,
    lines: Vec<Score>,
    alone: Vec<Score>,
}

fn check(got: TerScore, (score, edits, length): Score, what: &str) {
    assert_eq!(got.edits, edits, "{what}");
    assert_eq!(got.reference_length, length, "{what}");
    assert!((got.score - score).abs() < 1e-12 * (1.0 + score), "{what}");
}

#[test]
fn lines_and_corpora() {
    let golden: Golden = serde_json::from_str(include_str!("golden/ter.json")).unwrap();
    let column = |at: usize| -> Vec<&str> { golden.rows.iter().map(|row| &*row[at]).collect() };
    for (case, want) in [(Case::Lower, &golden.lower), (Case::Mixed, &golden.mixed)] {
        let config = TerConfig { case };
        let corpus = corpus_ter(&column(0), &[column(1), column(2)], &config);
        check(corpus.unwrap(), want.corpus, "the corpus");
        // Long lines take long: those of one case have both references, those of the other the first.
        let (references, lines) = match case {
            Case::Lower => (2, &want.lines),
            Case::Mixed => (1, &want.alone),
        };
        assert_eq!(golden.rows.len(), lines.len());
        for ([hypothesis, all @ ..], line) in golden.rows.iter().zip(lines) {
            let got = sentence_ter(hypothesis, &all[..references], &config);
            check(got.unwrap(), *line, hypothesis);
        }
    }
}

/// The edit distance without shifts.
fn levenshtein(a: &[String], b: &[String]) -> usize {
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, a) in a.iter().enumerate() {
        let mut corner = std::mem::replace(&mut row[0], i + 1);
        for (j, b) in b.iter().enumerate() {
            let pair = corner + usize::from(a != b);
            corner = row[j + 1];
            row[j + 1] = pair.min(row[j] + 1).min(corner + 1);
        }
    }
    row[b.len()]
}

fn line() -> impl Strategy<Value = Vec<String>> {
    prop::collection::vec("[a-e]", 0..16)
}

proptest! {
    #[test]
    fn edits_are_at_most_those_without_shifts_and_at_least_the_difference_of_lengths(
        a in line(), b in line()
    ) {
        let edits = |a: &[String], b: &[String]| {
            let score = sentence_ter(&a.join(" "), &[b.join(" ")], &TerConfig::default());
            score.unwrap().edits as usize
        };
        prop_assert!(edits(&a, &b) <= levenshtein(&a, &b));
        prop_assert!(edits(&a, &b) >= a.len().abs_diff(b.len()));
        prop_assert_eq!(edits(&a, &a), 0);
    }

    #[test]
    fn a_run_in_another_place_is_one_edit(start in 0_usize..6, length in 1_usize..4, place in 0_usize..6) {
        let words: Vec<String> = ('a'..='i').map(String::from).collect();
        let mut shifted = words.clone();
        let run: Vec<String> = shifted.drain(start..start + length).collect();
        shifted.splice(place..place, run);
        let score = sentence_ter(&shifted.join(" "), &[words.join(" ")], &TerConfig::default());
        prop_assert_eq!(score.unwrap().edits, u64::from(shifted != words));
    }
}

#[test]
fn missing_lines_are_refused() {
    let config = TerConfig::default();
    let refused = |result: Result<_, Error>| matches!(result, Err(Error::Argument(_)));
    assert!(refused(sentence_ter::<&str>("a", &[], &config)));
    assert!(refused(corpus_ter::<&str, &str>(&[], &[vec![]], &config)));
    assert!(refused(corpus_ter(&["a"], &[vec!["a", "b"]], &config)));
}
