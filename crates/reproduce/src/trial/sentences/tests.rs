//! Classifiers of sentences on a generated corpus.

use super::corpora::generated;
use super::*;
use crate::suites::CLASSIFICATION;
use crate::suites::tests::plan;
use bochner_datasets::sentences::Sentence;
use bochner_datasets::{Protocol, SentenceSet};
use bochner_report::{Scale, Settings};

fn corpus_of(sentences: Vec<Sentence>) -> Corpus {
    let data = SentenceData::of_files(SentenceSet::Cr, Protocol::P10, vec![sentences]).unwrap();
    Corpus::of(&data)
}

fn unit(model: &str) -> Unit {
    let plan = plan(&CLASSIFICATION, Scale::Smoke);
    plan.claimed("generated", model).unwrap().units[0].clone()
}

#[test]
fn empty_unknown_and_long_sentences_are_no_trouble() {
    let mut sentences = generated(60);
    // Texts that recur stay in one fold, so each is different.
    for (row, text) in [
        (0, String::new()),
        (1, "* ...".into()),
        (2, "word ".repeat(200)),
        (3, "never seen before".into()),
    ] {
        sentences[row].text = text.into_bytes();
    }
    let corpus = corpus_of(sentences);
    for split in 0..10 {
        let mut unit = unit("MIKAN");
        unit.split = split;
        let mut trial = classifier(&unit, &corpus).unwrap();
        assert!(trial.epoch().unwrap().loss.is_finite());
        let seen = trial.evaluate().unwrap();
        assert!((0.0..=1.0).contains(&seen.test) && seen.validation.is_some());
    }
}

#[test]
fn words_of_held_out_sentences_never_enter_the_vocabulary() {
    let own = corpus_of(generated(120));
    let mut changed = generated(120);
    let unit = unit("MIKAN");
    let split = own.splits[unit.split].clone();
    let held_out = [split.validation, split.test].concat();
    for &row in &held_out {
        changed[row].text = format!("heldout{row} heldout{row} sign1of0").into_bytes();
    }
    let changed = corpus_of(changed);
    let mut plain = classifier(&unit, &own).unwrap();
    let mut other = classifier(&unit, &changed).unwrap();
    assert_eq!(plain.probe.split, other.probe.split);
    for &row in &held_out {
        // The third word is one of the training sentences'.
        let [first, second, third] = other.probe.sentences[row][..] else {
            panic!("{:?}", other.probe.sentences[row]);
        };
        assert_eq!([first, second], [Vocabulary::UNKNOWN; 2]);
        assert_ne!(third, Vocabulary::UNKNOWN);
    }
    let train = &plain.probe.split.train;
    assert_eq!(
        select(&plain.probe.sentences, train),
        select(&other.probe.sentences, train)
    );
    assert_eq!(plain.rows(), other.rows());
    assert_eq!(plain.parameters(), other.parameters());
    for _ in 0..2 {
        assert_eq!(plain.epoch().unwrap(), other.epoch().unwrap());
    }
    let control = Unit {
        settings: Settings::of(&BayesSettings::CONTROL),
        ..unit.clone()
    };
    let control = |corpus| {
        let mut trial = naive_bayes(&control, corpus).unwrap();
        (trial.epoch().unwrap(), trial.parameters())
    };
    assert_eq!(control(&own), control(&changed));
}

/// A corpus of these labelled texts alone, and the unit of naive Bayes on its split.
fn of_naive_bayes(rows: &[(usize, &str)], split: Split) -> (Corpus, Unit) {
    let filler = |row: usize| Sentence {
        label: row % 2,
        text: format!("filler {row}").into(),
    };
    let mut corpus = corpus_of((0..40).map(filler).collect());
    let words = rows.iter().map(|(_, text)| clean_str(text.as_bytes()));
    corpus.words = words.collect();
    corpus.labels = rows.iter().map(|(label, _)| *label).collect();
    corpus.splits = vec![split];
    let unit = Unit {
        split: 0,
        ..unit("naive Bayes")
    };
    (corpus, unit)
}

#[test]
fn naive_bayes_worked_out_by_hand() {
    let rows = [
        (0, "bad film"),
        (0, "bad bad plot"),
        (1, "good film"),
        (1, "good"),
        (0, "bad"),
        (1, "film"),
    ];
    let split = Split {
        train: vec![0, 1, 2, 3],
        validation: vec![4],
        test: vec![5],
    };
    let (corpus, unit) = of_naive_bayes(&rows, split);
    let mut trial = naive_bayes(&unit, &corpus).unwrap();
    trial.epoch().unwrap();
    // Words: bad, film, plot, good; pairs: bad film, bad bad, bad plot, good film. Class 0 has 8 grams, class 1 has 4;
    // eight kinds with alpha 1: film is 2 of 16 in class 0 and 2 of 12 in class 1, bad 4 of 16 and 1 of 12.
    let seen = trial.evaluate().unwrap();
    assert_eq!((seen.validation, seen.test), (Some(1.0), 1.0));
    assert_eq!(trial.parameters(), (8 + 1) * 2);
}
