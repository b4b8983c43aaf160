//! Diversity and spread of heads.

use bochner_interpret::{head_diversity, head_spread};
use ndarray::{Array2, Array4};

fn weights(rows: &[&[f64]]) -> Array4<f64> {
    let flat = rows.concat();
    Array4::from_shape_vec((1, rows.len(), 1, rows[0].len()), flat).unwrap()
}

fn of(rows: &[&[f64]]) -> [f64; 2] {
    let (weights, all) = (weights(rows), Array2::from_elem((1, 1), true));
    let diversity = head_diversity(weights.view(), all.view()).unwrap()[0];
    [
        diversity,
        head_spread(weights.view(), all.view()).unwrap()[0],
    ]
}

#[test]
fn heads_worked_out_by_hand() {
    assert_eq!(of(&[&[0.25, 0.75], &[0.25, 0.75]]), [0.0, 0.0]);
    assert_eq!(of(&[&[0.25, 0.75]]), [0.0, 0.0]);
    let [diversity, spread] = of(&[&[1.0, 0.0], &[0.0, 1.0]]);
    assert!((diversity - 2f64.ln()).abs() < 1e-15 && spread == 1.0);
    // Two of the three pairs are disjoint.
    let [diversity, _] = of(&[&[1.0, 0.0], &[0.0, 1.0], &[0.0, 1.0]]);
    assert!((diversity - 2.0 / 3.0 * 2f64.ln()).abs() < 1e-15);
    // H(3/4) - (H(1/2) + 0) / 2.
    let [diversity, spread] = of(&[&[0.5, 0.5], &[1.0, 0.0]]);
    let want = -(0.75 * 0.75f64.ln() + 0.25 * 0.25f64.ln()) - 0.5 * 2f64.ln();
    assert!((diversity - want).abs() < 1e-15 && (spread - 0.5).abs() < 1e-15);
}
