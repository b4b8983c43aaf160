//! Classifiers of sentences on a drawn corpus.

use bochner_datasets::sentences::Sentence;
use bochner_datasets::{Protocol, SentenceData, SentenceSet, Split};
use bochner_report::{Scale, Settings, Unit};
use bochner_reproduce::suite::Source;
use bochner_reproduce::suites::CLASSIFICATION;
use bochner_reproduce::trial::sentences::{BayesSettings, Corpus};

fn data(sentences: Vec<Sentence>) -> SentenceData {
    SentenceData::of_files(SentenceSet::Cr, Protocol::P10, vec![sentences]).unwrap()
}

/// Sentences of two classes, each with a text of its own: texts that recur stay in one fold.
fn sentences(rows: usize) -> Vec<Sentence> {
    let sentence = |row: usize| Sentence {
        label: row % 2,
        text: format!("word{} sign{} row{row} word{}", row % 7, row % 2, row % 5).into(),
    };
    (0..rows).map(sentence).collect()
}

fn unit(model: &str) -> Unit {
    let plan = crate::suites::plan(&CLASSIFICATION, Scale::Smoke);
    plan.claimed("generated", model).unwrap().units[0].clone()
}

#[test]
fn empty_unknown_and_long_sentences_are_no_trouble() {
    let mut sentences = sentences(60);
    for (row, text) in [
        (0, String::new()),
        (1, "* ...".into()),
        (2, "word ".repeat(200)),
        (3, "never seen before".into()),
    ] {
        sentences[row].text = text.into_bytes();
    }
    let corpus = Corpus::new(&data(sentences));
    for split in 0..10 {
        let unit = Unit {
            split,
            ..unit("MIKAN")
        };
        let mut trial = corpus.start(&unit).unwrap();
        assert!(trial.model_mut().epoch().unwrap().loss.is_finite());
        let seen = trial.evaluate().unwrap();
        assert!((0.0..=1.0).contains(&seen.test) && seen.validation.is_some());
    }
}

#[test]
fn words_of_held_out_sentences_never_enter_the_vocabulary() {
    let own = data(sentences(120));
    let mut changed = own.clone();
    let unit = unit("MIKAN");
    let split = &own.splits[unit.split];
    for &row in [&split.validation[..], &split.test].concat().iter() {
        changed.sentences[row].text = format!("heldout{row} heldout{row} sign1").into_bytes();
    }
    let control = Unit {
        variant: BayesSettings::MODEL.into(),
        settings: Settings::of(&BayesSettings::CONTROL),
        ..unit.clone()
    };
    for unit in [unit, control] {
        let trained = [&own, &changed].map(|data| {
            let corpus = Corpus::new(data);
            let mut trial = corpus.start(&unit).unwrap();
            let steps = [(); 2].map(|()| trial.model_mut().epoch().unwrap());
            (steps, trial.model().parameters(), trial.rows())
        });
        assert_eq!(trained[0], trained[1]);
    }
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
    let sentence = |(label, text): (usize, &str)| Sentence {
        label,
        text: text.into(),
    };
    let data = SentenceData {
        set: SentenceSet::Cr,
        sentences: rows.map(sentence).to_vec(),
        splits: vec![Split {
            train: vec![0, 1, 2, 3],
            validation: vec![4],
            test: vec![5],
        }],
        provenance: Vec::new(),
    };
    let corpus = Corpus::new(&data);
    let unit = Unit {
        split: 0,
        ..unit(BayesSettings::MODEL)
    };
    let mut trial = corpus.start(&unit).unwrap();
    trial.model_mut().epoch().unwrap();
    // Words: bad, film, plot, good; pairs: bad film, bad bad, bad plot, good film. Class 0 has 8 grams, class 1 has 4;
    // eight kinds with alpha 1: film is 2 of 16 in class 0 and 2 of 12 in class 1, bad 4 of 16 and 1 of 12.
    let seen = trial.evaluate().unwrap();
    assert_eq!((seen.validation, seen.test), (Some(1.0), 1.0));
    assert_eq!(trial.model().parameters(), (8 + 1) * 2);
}
