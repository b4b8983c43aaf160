use crate::conformance::common::*;
use ndarray::{Array4, s};

fn weighted(weights: &Array4<f64>, v: &Array4<f64>) -> Array4<f64> {
    let (batch, heads, queries, _) = weights.dim();
    let mut output = Array4::zeros((batch, heads, queries, v.dim().3));
    for b in 0..batch {
        for m in 0..heads {
            let product = weights
                .slice(s![b, m, .., ..])
                .dot(&v.slice(s![b, m, .., ..]));
            output.slice_mut(s![b, m, .., ..]).assign(&product);
        }
    }
    output
}

/// Rows sum to one over the kept keys, and outputs are the weighted values.
pub(crate) fn rows_sum_to_one(case: &Case<f64>) {
    for (queries, keys) in [(5, 6), (6, 3)] {
        case.with_every_mask(queries, keys, check);
    }
}

fn check(case: &Case<f64>, example: &Example<f64>, mask: &bochner_attention::Mask, label: &str) {
    let weights = case.weights(example, mask, &EVALUATION);
    let (batch, heads, queries, keys) = weights.dim();
    for b in 0..batch {
        for i in 0..queries {
            let kept: Vec<bool> = (0..keys)
                .map(|j| mask.keeps(b, i, j, queries, keys))
                .collect();
            let want = if kept.contains(&true) { 1.0 } else { 0.0 };
            for m in 0..heads {
                let row = weights.slice(s![b, m, i, ..]);
                assert!((row.sum() - want).abs() < 1e-12, "{label}: {row}");
                let fits = |(&w, &kept): (&f64, &bool)| w == 0.0 || (kept && w > 0.0);
                assert!(row.iter().zip(&kept).all(fits), "{label}: {row}");
            }
        }
    }
    let want = weighted(&weights, &example.v);
    assert_close(&case.output(example, mask, &EVALUATION), &want, label);
}

#[test]
fn rows_sum_to_one_and_outputs_are_weighted_values() {
    cases().iter().for_each(rows_sum_to_one);
}

#[test]
fn across_blocks() {
    let (queries, keys) = (130, 515);
    for case in few_cases() {
        case.with_every_mask(queries, keys, check);
    }
}
