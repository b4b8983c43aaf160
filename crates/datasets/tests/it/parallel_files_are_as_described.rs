//! The parallel corpora in the directory `BOCHNER_DATA`: pairs, tokens and types are as published, and the test part
//! shares no pair with the training part.

use crate::store;
use bochner_datasets::{ParallelText, TranslationData, TranslationSet, translation};
use std::collections::HashSet;

fn load(set: TranslationSet) -> TranslationData {
    translation::load(set, &store()).unwrap()
}

/// Tokens and distinct tokens of lines.
fn size(lines: &[String]) -> [usize; 2] {
    let words = || lines.iter().flat_map(|line| line.split_ascii_whitespace());
    [words().count(), words().collect::<HashSet<_>>().len()]
}

fn check(text: &ParallelText, pairs: usize, of_source: [usize; 2], of_target: [usize; 2]) {
    assert_eq!(text.len(), pairs);
    assert_eq!(
        [size(&text.source), size(&text.target)],
        [of_source, of_target]
    );
}

fn share_no_pair(data: &TranslationData) {
    let pairs = |text: &ParallelText| {
        let pairs = text.source.iter().cloned().zip(text.target.iter().cloned());
        pairs.collect::<HashSet<_>>()
    };
    let train = pairs(&data.train);
    assert!(pairs(&data.test).is_disjoint(&train));
    assert!(pairs(&data.validation).is_disjoint(&train));
}

#[test]
#[ignore = "needs the data files: BOCHNER_DATA names their directory"]
fn multi30k() {
    let data = load(TranslationSet::Multi30k);
    check(&data.train, 29_000, [360_706, 18_722], [377_534, 10_210]);
    check(&data.validation, 1014, [12_828, 2303], [13_308, 1964]);
    check(&data.test, 1000, [12_103, 2125], [12_968, 1898]);
    let [(name, other)] = &data.others[..] else {
        panic!("{} further tests", data.others.len());
    };
    assert_eq!(*name, "test 2017");
    check(other, 1000, [10_758, 2153], [11_376, 1790]);
    share_no_pair(&data);
    assert_eq!(data.provenance.len(), 8);
}

#[test]
#[ignore = "needs the data files: BOCHNER_DATA names their directory"]
fn iwslt14() {
    let data = load(TranslationSet::Iwslt14);
    check(&data.train, 27_378, [521_863, 40_275], [551_254, 24_187]);
    check(&data.validation, 1000, [19_513, 4638], [20_621, 3814]);
    check(&data.test, 6750, [125_738, 13_790], [131_141, 9404]);
    share_no_pair(&data);
    assert!(data.others.is_empty());
}
