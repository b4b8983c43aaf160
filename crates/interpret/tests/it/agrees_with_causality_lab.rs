//! What IntelLabs' causality-lab finds in attention and in exact correlations, by the same search and the same test.

use bochner_interpret::{CausalStructure, Correlations, FisherZ, ValueCovariance};
use ndarray::Array2;
use serde_json::Value;

#[test]
fn structures_are_those_of_causality_lab() {
    let golden: Value = serde_json::from_str(include_str!("causality_lab.json")).unwrap();
    let cases = golden["cases"].as_array().unwrap();
    assert_eq!(cases.len(), 28);
    let mut differing = Vec::new();
    for case in cases {
        let rows = case["a"].as_array().unwrap();
        let numbers = rows.iter().flat_map(|row| row.as_array().unwrap());
        let numbers = numbers.map(|x| x.as_f64().unwrap()).collect();
        let a = Array2::from_shape_vec((rows.len(), rows.len()), numbers).unwrap();
        let correlations = Correlations::of_attention(a.view(), ValueCovariance::Identity);
        let correlations = correlations.unwrap();
        let samples = case["samples"].as_u64().unwrap() as usize;
        let level = case["level"].as_f64().unwrap();
        let fisher = FisherZ::new(&correlations, samples, level).unwrap();
        let found = CausalStructure::find(&fisher, None).unwrap();
        let found = found.graph.to_string();
        if found != case["edges"] {
            differing.push(format!(
                "{}: {found} instead of {}",
                case["name"], case["edges"]
            ));
        }
    }
    assert!(differing.is_empty(), "{differing:#?}");
}
