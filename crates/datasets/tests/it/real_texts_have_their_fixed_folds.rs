//! The sentence corpora in the directory `BOCHNER_DATA`: rows, labels and folds are as published.

use crate::store;
use bochner_datasets::{FOLDS, Protocol, Repeats, SentenceData, SentenceSet, Split, sentences};
use bochner_text::clean_str;
use std::collections::HashSet;

fn load(set: SentenceSet, protocol: Protocol) -> SentenceData {
    sentences::load(set, protocol, &store()).unwrap()
}

/// The fold of a row: the split that tests it.
fn fold(data: &SentenceData, row: usize) -> usize {
    let tested = |part: &[usize]| part.binary_search(&row).is_ok();
    let splits = &data.splits;
    splits.iter().position(|split| tested(&split.test)).unwrap()
}

fn check(set: SentenceSet, labels: &[usize], first: [usize; 16], sizes: [usize; FOLDS]) {
    let data = load(set, Protocol::P10);
    let of = |label| {
        data.sentences
            .iter()
            .filter(|row| row.label == label)
            .count()
    };
    let found = (0..set.classes()).map(of).collect::<Vec<_>>();
    assert_eq!(found, labels, "{set:?}");
    let found = std::array::from_fn::<_, 16, _>(|row| fold(&data, row));
    assert_eq!(found, first, "{set:?}");
    let size = |fold: usize| data.splits[fold].test.len();
    let found = std::array::from_fn::<_, FOLDS, _>(size);
    assert_eq!(found, sizes, "{set:?}");
}

#[test]
#[ignore = "needs the data files: BOCHNER_DATA names their directory"]
fn ten_folds() {
    check(
        SentenceSet::Mr,
        &[5331, 5331],
        [8, 9, 1, 2, 1, 6, 7, 5, 5, 5, 4, 6, 4, 1, 5, 8],
        [1067, 1067, 1066, 1066, 1066, 1066, 1066, 1066, 1066, 1066],
    );
    check(
        SentenceSet::Cr,
        &[1368, 2407],
        [9, 3, 0, 5, 4, 1, 2, 4, 0, 9, 1, 4, 7, 7, 6, 6],
        [376, 378, 380, 378, 380, 378, 377, 376, 377, 375],
    );
    check(
        SentenceSet::Subj,
        &[5000, 5000],
        [1, 1, 0, 5, 8, 5, 0, 8, 4, 5, 7, 6, 2, 6, 2, 5],
        [1000; 10],
    );
    check(
        SentenceSet::Sst2,
        &[3310 + 428 + 912, 3610 + 444 + 909],
        [9, 9, 0, 9, 6, 9, 8, 2, 6, 4, 9, 2, 4, 2, 0, 1],
        [960, 961, 961, 963, 961, 963, 961, 962, 960, 961],
    );
}

#[test]
#[ignore = "needs the data files: BOCHNER_DATA names their directory"]
fn trec() {
    let data = load(SentenceSet::Trec, Protocol::Fixed);
    let sizes = [547, 547, 545, 541, 554, 543, 537, 545, 548, 545];
    let size = |fold: usize| data.splits[fold].validation.len();
    assert_eq!(std::array::from_fn::<_, FOLDS, _>(size), sizes);
    let validated = |row: usize| {
        let splits = data.splits.iter();
        let mut parts = splits.map(|split| split.validation.contains(&row));
        parts.position(|part| part).unwrap()
    };
    let first = [4, 9, 9, 9, 1, 2, 7, 8, 6, 7, 2, 0, 9, 2, 8, 1];
    assert_eq!(std::array::from_fn::<_, 16, _>(validated), first);
    assert!(data.splits.iter().all(|split| split.test.len() == 500));
}

#[test]
#[ignore = "needs the data files: BOCHNER_DATA names their directory"]
fn sst2_by_its_files() {
    let data = load(SentenceSet::Sst2, Protocol::Fixed);
    let split = &data.splits[0];
    let sizes = [&split.train, &split.validation, &split.test].map(Vec::len);
    assert_eq!(sizes, [6920, 872, 1821]);
}

/// The test rows of all splits whose cleaned text stands in the training part.
fn seen(data: &SentenceData, splits: &[Split]) -> usize {
    let cleaned = |row: &usize| clean_str(&data.sentences[*row].text);
    let of_split = |split: &Split| {
        let train: HashSet<_> = split.train.iter().map(cleaned).collect();
        let test = split.test.iter().map(cleaned);
        test.filter(|text| train.contains(text)).count()
    };
    splits.iter().map(of_split).sum()
}

#[test]
#[ignore = "needs the data files: BOCHNER_DATA names their directory"]
fn cleaned_texts_recur_in_published_folds_and_not_in_new_ones() {
    let expected = [
        (SentenceSet::Mr, 2),
        (SentenceSet::Cr, 5),
        (SentenceSet::Subj, 0),
        (SentenceSet::Trec, 6),
        (SentenceSet::Sst2, 0),
    ];
    for (set, recurring) in expected {
        let data = load(set, Protocol::P10);
        let new = sentences::folds(&data.sentences, Repeats::Cleaned);
        let new = Split::cross_validation(&new);
        let found = (seen(&data, &data.splits), seen(&data, &new));
        assert_eq!(found, (recurring, 0), "{set}");
    }
}
