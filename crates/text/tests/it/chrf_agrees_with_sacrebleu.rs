//! chrF and chrF++ are the numbers of sacrebleu 2.6.0: `CHRF(word_order=w, ...)` with `corpus_score` and `sentence_score`.

use bochner_text::{Case, ChrfConfig, Error, corpus_chrf, sentence_chrf};
use proptest::prelude::*;

const DOGS: [&str; 3] = [
    "The dog bit the man.",
    "It wasn't surprising.",
    "The man had just bitten him.",
];

fn of_dogs() -> [Vec<&'static str>; 2] {
    [
        vec![
            "The dog bit the man.",
            "It was not unexpected.",
            "The man bit him first.",
        ],
        vec![
            "The dog had bit the man.",
            "No one was surprised.",
            "The man had bitten the dog.",
        ],
    ]
}

/// Compares the score of the corpus, then those of its sentences.
fn check(hypotheses: &[&str], references: &[Vec<&str>], config: &ChrfConfig, expected: &[f64]) {
    let close = |got: f64, expected: f64| {
        assert!(
            (got - expected).abs() < 1e-9,
            "{config:?}: {got} for {expected}"
        );
    };
    let corpus = corpus_chrf(hypotheses, references, config).unwrap();
    close(corpus.score, expected[0]);
    assert_eq!(expected.len(), 1 + hypotheses.len());
    for (at, hypothesis) in hypotheses.iter().enumerate() {
        let references: Vec<_> = references.iter().map(|stream| stream[at]).collect();
        let sentence = sentence_chrf(hypothesis, &references, config).unwrap();
        close(sentence.score, expected[1 + at]);
    }
}

fn config(word_order: usize) -> ChrfConfig {
    ChrfConfig {
        word_order,
        ..ChrfConfig::default()
    }
}

#[test]
fn several_references_and_settings() {
    let dogs = |config: &ChrfConfig, expected| check(&DOGS, &of_dogs(), config, expected);
    let (chrf, chrf_plus_plus) = (config(0), config(2));
    let scores = &[
        59.72751782684763,
        100.0,
        35.34635301425291,
        51.87740799504779,
    ];
    dogs(&chrf, scores);
    let scores = &[
        59.15310444399262,
        100.0,
        29.14513880802484,
        52.00714394858371,
    ];
    dogs(&chrf_plus_plus, scores);
    let lower = ChrfConfig {
        case: Case::Lower,
        ..chrf_plus_plus.clone()
    };
    let scores = &[
        59.374750531852115,
        100.0,
        29.83200255571749,
        52.00714394858371,
    ];
    dogs(&lower, scores);
    let more_recall = ChrfConfig { beta: 3, ..chrf };
    let scores = &[
        59.97018342124192,
        100.0,
        35.56394074078664,
        52.13673600395675,
    ];
    dogs(&more_recall, scores);
    let short = ChrfConfig {
        char_order: 3,
        ..chrf_plus_plus
    };
    let scores = &[
        65.0628370222321,
        100.0,
        34.109832800501614,
        60.32863209914075,
    ];
    dogs(&short, scores);
}

#[test]
fn short_lines_punctuation_and_spaces() {
    let hypotheses = ["Die Katze (schläft) tief.", "ja", "", "a"];
    let references = [vec!["Die Katze schlief tief!", "nein", "x", "a"]];
    let scores = &[44.310425904086074, 48.99177561729689, 0.0, 0.0, 100.0];
    check(&hypotheses, &references, &config(0), scores);
    let scores = &[42.47899922817291, 46.94325221802133, 0.0, 0.0, 100.0];
    check(&hypotheses, &references, &config(2), scores);
    let hypotheses = ["«Ça va?» dit-il  à\u{3000}l’été.", "..."];
    let references = [vec!["« Ça va ? » dit il à l'été .", "?"]];
    let scores = &[61.6462481649278, 62.69624572534327, 0.0];
    check(&hypotheses, &references, &config(0), scores);
    let scores = &[48.698661858353475, 49.87715035100534, 0.0];
    check(&hypotheses, &references, &config(2), scores);
    check(&["ab"], &[vec![""]], &config(2), &[0.0, 0.0]);
}

proptest! {
    #[test]
    fn equal_lines_have_the_full_score_and_no_other_more(a in "[a-c .]{0,12}", b in "[a-c .]{0,12}") {
        let score = |hypothesis: &str| sentence_chrf(hypothesis, &[&b], &config(2)).unwrap().score;
        prop_assert!(score(&a) <= 100.0 + 1e-9);
        let own = if b.trim().is_empty() { 0.0 } else { 100.0 };
        prop_assert!((score(&b) - own).abs() < 1e-9);
    }
}

#[test]
fn names_and_wrong_arguments() {
    assert_eq!(config(0).name(), "chrF2");
    assert_eq!(config(2).name(), "chrF2++");
    let refused = |result: Result<_, Error>| matches!(result, Err(Error::Argument(_)));
    let none = ChrfConfig {
        char_order: 0,
        ..config(0)
    };
    assert!(refused(sentence_chrf("a", &["a"], &none)));
    assert!(refused(sentence_chrf::<&str>("a", &[], &config(0))));
    assert!(refused(corpus_chrf(
        &["a"],
        &[vec!["a"], vec![]],
        &config(0)
    )));
}
