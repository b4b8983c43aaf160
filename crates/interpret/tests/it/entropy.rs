//! The entropy of attention.

use bochner_interpret::{Error, attention_entropy};
use ndarray::{Array2, Array4};

#[test]
fn entropies_worked_out_by_hand() {
    let rows = [[0.0, 1.0, 0.0, 0.0], [0.25; 4], [0.5, 0.25, 0.25, 0.0]];
    let weights = Array4::from_shape_vec((1, 1, 3, 4), rows.concat()).unwrap();
    let all = Array2::from_elem((1, 3), true);
    let got = attention_entropy(weights.view(), all.view()).unwrap();
    let log2 = 2f64.ln();
    for (got, want) in got.iter().zip([0.0, 2.0 * log2, 1.5 * log2]) {
        assert!((got - want).abs() < 1e-15, "{got} instead of {want}");
    }
}

#[test]
fn a_weight_that_is_refused_is_named_by_its_place() {
    for wrong in [f32::NAN, f32::INFINITY, -1e-40] {
        let mut weights = Array4::from_elem((2, 3, 4, 5), 0.2_f32);
        weights[[1, 2, 0, 3]] = wrong;
        let all = Array2::from_elem((2, 4), true);
        let error = attention_entropy(weights.view(), all.view()).unwrap_err();
        assert!(matches!(error, Error::Argument(_)));
        let error = error.to_string();
        assert!(error.starts_with("`weights[[1, 2, 0, 3]]` is "), "{error}");
        assert!(error.len() < 100, "{error}");
    }
}
