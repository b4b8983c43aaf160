//! The airline series works on an empty machine, but wrong files of it do not go unnoticed.

use bochner_datasets::{
    DataStore, Error, Origin, Policy, Protocol, RegressionSet, Rows, Split, deal, load,
};
use std::fs;
use std::num::NonZeroUsize;
use std::path::Path;

fn empty_store(cache: &Path) -> DataStore {
    DataStore::new(Policy::Offline).with_cache(cache)
}

#[test]
fn both_protocols_load_without_files() {
    let cache = tempfile::tempdir().unwrap();
    let store = empty_store(cache.path());
    let p10 = load(RegressionSet::Passenger, Protocol::P10, Rows::All, &store).unwrap();
    assert_eq!(p10.splits, Split::cross_validation(&deal(&[0; 144])));
    assert!(p10.provenance.is_empty());
    let r90 = load(RegressionSet::Passenger, Protocol::R90, Rows::All, &store).unwrap();
    assert_eq!((&r90.inputs, &r90.target), (&p10.inputs, &p10.target));
    assert_eq!(r90.provenance[0].origin, Origin::Embedded);
    // The fewest, 104, flew in November 1949, the most, 622, in July 1960.
    assert_eq!((p10.target[10], p10.target[138]), (-1.0, 1.0));
    assert_eq!(
        (p10.inputs.row(0), p10.inputs.row(143)),
        (&[-1.0][..], &[1.0][..])
    );
}

#[test]
fn a_protocol_of_other_data_is_refused_before_any_file_is_looked_for() {
    let cache = tempfile::tempdir().unwrap();
    for set in RegressionSet::ALL {
        let store = empty_store(cache.path());
        let error = load(set, Protocol::Fixed, Rows::All, &store).unwrap_err();
        let says = format!("no protocol of {set} is called `Fixed`: there are P10, R90");
        assert_eq!(error.to_string(), says);
    }
}

#[test]
fn the_other_sets_are_unavailable_with_a_command() {
    let cache = tempfile::tempdir().unwrap();
    let store = empty_store(cache.path());
    for set in RegressionSet::ALL {
        for protocol in Protocol::REGRESSION {
            match load(set, protocol, Rows::All, &store) {
                Ok(_) => assert_eq!(set, RegressionSet::Passenger),
                Err(Error::Unavailable {
                    set: name, command, ..
                }) => {
                    assert_eq!(name, set.name());
                    assert!(
                        command
                            .unwrap()
                            .contains("https://raw.githubusercontent.com/")
                    );
                }
                Err(error) => panic!("{error}"),
            }
        }
    }
}

#[test]
fn a_wrong_file_of_the_set_is_an_error() {
    for name in [
        "train.csv",
        "test.csv",
        "international-airline-passengers.csv",
    ] {
        let directory = tempfile::tempdir().unwrap();
        fs::create_dir(directory.path().join("passenger")).unwrap();
        let path = directory.path().join("passenger").join(name);
        fs::write(&path, "-1,-1\n").unwrap();
        let store = empty_store(directory.path())
            .with_directory(directory.path())
            .unwrap();
        let error = load(RegressionSet::Passenger, Protocol::P10, Rows::All, &store).unwrap_err();
        let Error::Checksum { place, .. } = error else {
            panic!("{error}");
        };
        assert_eq!(place, path.display().to_string());
    }
}

#[test]
fn too_few_rows_for_ten_splits_are_an_error() {
    let cache = tempfile::tempdir().unwrap();
    let store = empty_store(cache.path());
    let rows = |k| Rows::Every(NonZeroUsize::new(k).unwrap());
    for protocol in Protocol::REGRESSION {
        let error = load(RegressionSet::Passenger, protocol, rows(50), &store).unwrap_err();
        assert!(
            matches!(error, Error::EmptySplit { every: 50, .. }),
            "{error}"
        );
    }
    let half = load(RegressionSet::Passenger, Protocol::P10, rows(2), &store).unwrap();
    assert_eq!(half.target.len(), 72);
}
