use crate::conformance::common::*;
use bochner_attention::{find, registry};
use std::collections::HashSet;

#[test]
fn the_memory_layout_of_the_inputs_does_not_matter() {
    let mask = Default::default();
    let turned = |x: &ndarray::Array4<f64>| {
        let stored = x.view().permuted_axes([0, 2, 1, 3]);
        let stored = stored.as_standard_layout().into_owned();
        stored.permuted_axes([0, 2, 1, 3])
    };
    for case in cases::<f64>() {
        let example = case.example(5, 6);
        let other = Example {
            q: turned(&example.q),
            k: turned(&example.k),
            v: turned(&example.v),
        };
        assert_ne!(other.q.strides(), example.q.strides());
        let want = case.gradients(&example, &mask, &TRAINING);
        let got = case.gradients(&other, &mask, &TRAINING);
        assert_eq!(got, want, "{}", case.name);
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
    for variant in registry() {
        assert_eq!(find(variant.name()).unwrap(), variant);
    }
    let names: HashSet<_> = registry().iter().map(|variant| variant.name()).collect();
    assert_eq!(names.len(), registry().len());
    assert!(find("no such mechanism").is_none());
}

/// A preset that no example goes by the name of would be tested nowhere.
#[test]
fn every_name_of_the_registry_is_among_the_examples() {
    let examples = examples();
    for variant in registry() {
        let name = variant.name();
        assert!(
            examples.iter().any(|example| example.name() == name),
            "{name}"
        );
    }
}
