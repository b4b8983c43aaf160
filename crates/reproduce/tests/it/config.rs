//! Options: what cannot be run is refused, and what is asked for is selected.

use crate::program::{answer, program};
use bochner_datasets::Policy;
use bochner_report::Scale;
use bochner_reproduce::{Config, Error, Reproduction, Shard, reproduce, suites};
use std::sync::atomic::AtomicBool;

/// A run that is interrupted before it begins: it selects and does nothing.
fn begun(config: Config) -> Result<Reproduction, Error> {
    let directory = tempfile::tempdir().unwrap();
    let out = directory.path().into();
    reproduce(&Config { out, ..config }, &AtomicBool::new(true))
}

/// A configuration of suites, a set and a model, where they are not empty.
fn config(suites: &[&str], set: &str, model: &str, scale: Scale) -> Config {
    let names = |names: &[&str]| {
        let names = names.iter().filter(|name| !name.is_empty());
        names.map(|name| (*name).to_owned()).collect()
    };
    Config {
        suites: names(suites),
        sets: names(&[set]),
        models: names(&[model]),
        scale,
        downloads: Policy::Offline,
        ..Config::default()
    }
}

#[test]
fn what_cannot_be_run_is_refused_with_the_option_and_what_would_do() {
    let smoke = |suites, set, model| config(suites, set, model, Scale::Smoke);
    let jobs = Config {
        jobs: 0,
        ..Config::default()
    };
    let epochs = Config {
        epochs: Some(0),
        ..Config::default()
    };
    for (config, option, expected) in [
        (smoke(&["poetry"], "", ""), "SUITE", "propositions, causal"),
        (smoke(&["propositions"], "co2", ""), "--set", "only"),
        (smoke(&["complexity"], "", "MIKAN"), "--model", "only"),
        (smoke(&["nodes"], "co2", ""), "--set", "cora"),
        (smoke(&[], "iris", ""), "--set", "co2"),
        (smoke(&["regression"], "", "gat"), "--model", "MIKAN"),
        // A title is no name.
        (smoke(&[], "SST", ""), "--set", "sst2"),
        (
            smoke(&["classification"], "mr", ""),
            "--set",
            "mr is run with --scale desk or --scale paper",
        ),
        (
            smoke(&["translation"], "iwslt14-full", ""),
            "--set",
            "is run with --scale paper",
        ),
        (jobs, "--jobs", "at least 1"),
        (epochs, "--epochs", "at least 1"),
    ] {
        let error = begun(config).unwrap_err().to_string();
        let is_named = error.starts_with(&format!("{option} was given as"));
        assert!(is_named && error.contains(expected), "{error}");
    }
}

#[test]
fn suites_run_once_and_in_their_order_if_they_have_a_set_and_a_model_of_these_names_in_any_case() {
    let names = |suites: &[&str], set, model| -> Vec<&'static str> {
        let config = config(suites, set, model, Scale::Paper);
        begun(config).unwrap().suites
    };
    assert_eq!(names(&[], "", ""), suites::names());
    let twice = ["regression", "propositions", "regression"];
    assert_eq!(names(&twice, "", ""), ["propositions", "regression"]);
    for (set, model, has, has_not) in [
        ("CO2", "", "regression", "nodes"),
        ("Citeseer", "", "nodes", "regression"),
        ("", "gcn", "nodes", "regression"),
        ("", "gp (sm)", "regression", "nodes"),
    ] {
        let names = names(&[], set, model);
        assert!(
            names.contains(&has) && !names.contains(&has_not),
            "{names:?}"
        );
    }
}

#[test]
fn shards_divide_the_list_without_rest_or_overlap() {
    let shards: Vec<Shard> = (1..=3).map(|i| format!("{i}/3").parse().unwrap()).collect();
    for place in 0..20 {
        assert_eq!(shards.iter().filter(|s| s.holds(place)).count(), 1);
    }
    for bad in ["0/3", "4/3", "1/0", "1", "a/b", ""] {
        assert!(bad.parse::<Shard>().is_err(), "{bad}");
    }
}

/// The refusal of options on the command line.
fn refused(arguments: &[&str]) -> String {
    let directory = tempfile::tempdir().unwrap();
    let answer = answer(&mut program(arguments, directory.path()));
    assert_ne!(answer.code, Some(0), "{arguments:?}");
    answer.err
}

#[test]
fn a_negative_number_is_the_value_of_its_option() {
    let said = refused(&["--epochs", "-3"]);
    assert!(
        said.contains("invalid value '-3' for '--epochs <N>'"),
        "{said}"
    );
}

/// Names of models hold commas, so that commas between them would not tell them apart.
#[test]
fn names_of_models_are_told_apart() {
    let said = refused(&["regression", "--model", "nothing"]);
    assert!(said.contains("IKA-NS; IKA-S; IKAN; IKAN-direct"), "{said}");
}
