//! The parallel corpora in the directory `BOCHNER_DATA`: pairs, tokens and types are as published, and the test part
//! shares no pair with the training part.

use crate::store;
use bochner_datasets::{
    DataStore, Error, ParallelText, Pin, Policy, TranslationData, TranslationSet, manifest,
    translation,
};
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

#[test]
#[ignore = "needs the data files: BOCHNER_DATA names their directory"]
fn the_test_files_are_those_of_the_commit_that_has_the_full_training_part() {
    // The names in the tree of that commit, beside those that the training files are pinned by.
    for (file, git_blob) in [
        ("test.de", "4b0e83e063d51ad9bddc91a540ef8933b2b300de"),
        ("test.en", "6c25720daee26ea004a8aeeb9b5c785a84ba3de4"),
    ] {
        let entry = manifest::entry(&format!("iwslt14/{file}")).unwrap();
        let of_full = manifest::entry(&format!("iwslt14-full/{file}")).unwrap();
        assert_eq!((&of_full.pin, &of_full.url), (&entry.pin, &entry.url));
        let stored = store().fetch(entry).unwrap();
        let git_blob = git_blob.to_owned();
        assert_eq!(Pin::git_blob(&stored.bytes), Pin::GitBlob { git_blob });
    }
}

#[test]
fn the_full_set_is_fetched_whole_and_nothing_else_is_taken_for_it() {
    let directory = tempfile::tempdir().unwrap();
    let store = DataStore::new(Policy::Offline).with_cache(directory.path());
    let error = translation::load(TranslationSet::Iwslt14Full, &store).unwrap_err();
    let Error::Unavailable {
        command: Some(command),
        ..
    } = &error
    else {
        panic!("{error}");
    };
    assert_eq!(command.matches(" --output ").count(), 6, "{command}");
    assert!(command.contains(" --max-filesize 67108864 "), "{command}");

    std::fs::create_dir(directory.path().join("iwslt14-full")).unwrap();
    std::fs::write(directory.path().join("iwslt14-full/train.de"), "ein hund\n").unwrap();
    let error = translation::load(TranslationSet::Iwslt14Full, &store).unwrap_err();
    assert!(matches!(error, Error::Checksum { .. }), "{error}");
}
