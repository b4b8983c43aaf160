use crate::conformance::common::*;
use bochner_attention::{REGISTRY, find};
use std::collections::HashSet;

#[test]
fn outputs_weights_and_gradients_have_the_shapes_of_the_inputs() {
    for (queries, keys) in [(1, 1), (5, 6), (6, 2)] {
        let mask = Default::default();
        let example = Example::<f64>::new(queries, keys);
        for case in cases::<f64>() {
            let forward = case.forward(&example, &mask, &EVALUATION).unwrap();
            let shape = [BATCH, HEADS, queries, VALUE_WIDTH];
            assert_eq!(forward.output.shape(), shape, "{}", case.name);
            assert_eq!(forward.penalty.shape(), [BATCH]);
            let weights = case.weights(&example, &mask, &EVALUATION);
            assert_eq!(weights.shape(), [BATCH, HEADS, queries, keys]);
            let gradients = case.gradients(&example, &mask, &TRAINING);
            assert_eq!(gradients.q.shape(), example.q.shape());
            assert_eq!(gradients.k.shape(), example.k.shape());
            assert_eq!(gradients.v.shape(), example.v.shape());
            assert_eq!(gradients.parameters.len(), case.parameters.len());
        }
    }
}

#[test]
fn the_memory_layout_of_the_inputs_does_not_matter() {
    let mask = Default::default();
    let example = Example::<f64>::new(5, 6);
    let turned = |x: &ndarray::Array4<f64>| {
        let stored = x.view().permuted_axes([0, 2, 1, 3]);
        let stored = stored.as_standard_layout().into_owned();
        stored.permuted_axes([0, 2, 1, 3])
    };
    let other = Example {
        q: turned(&example.q),
        k: turned(&example.k),
        v: turned(&example.v),
    };
    assert_ne!(other.q.strides(), example.q.strides());
    for case in cases::<f64>() {
        let want = case.gradients(&example, &mask, &TRAINING);
        assert_eq!(
            case.gradients(&other, &mask, &TRAINING),
            want,
            "{}",
            case.name
        );
    }
}

#[test]
fn parameters_are_as_specified() {
    for case in cases::<f64>() {
        let specs = case.mechanism().parameters(size());
        let count: usize = specs.iter().map(|spec| spec.count()).sum();
        assert_eq!(count, case.parameters.len(), "{}", case.name);
        let names: HashSet<_> = specs.iter().map(|spec| spec.name.as_str()).collect();
        assert_eq!(names.len(), specs.len(), "{}", case.name);
    }
}

#[test]
fn the_registry_finds_each_mechanism_by_its_name() {
    for entry in REGISTRY {
        assert_eq!((entry.default)().name(), entry.name);
        assert_eq!(find(entry.name).unwrap().name, entry.name);
    }
    let names: HashSet<_> = REGISTRY.iter().map(|entry| entry.name).collect();
    assert_eq!(names.len(), REGISTRY.len());
    assert!(find("no such mechanism").is_none());
}

/// The cases of these tests are made of the registry: none may get lost on the way.
#[test]
fn every_mechanism_preset_and_copula_is_among_the_cases() {
    let names: Vec<String> = cases::<f64>().into_iter().map(|case| case.name).collect();
    let has = |part: &str| names.iter().any(|name| name.contains(part));
    for entry in REGISTRY {
        let settings = serde_json::to_value((entry.default)()).unwrap();
        assert!(
            has(settings["mechanism"].as_str().unwrap()),
            "{}",
            entry.name
        );
    }
    for part in [
        "paper",
        "released",
        "independent",
        "free",
        "amortised",
        "0.5",
        "3.0",
    ] {
        assert!(has(part), "{part}");
    }
}
