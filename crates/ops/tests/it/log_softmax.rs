//! Logarithms of probabilities.

use bochner_numerics::{Real, Tolerance};
use bochner_ops::log_softmax;

fn is_the_definition<T: Real>(n: usize, scale: f64) {
    let logits = (0..n).map(|i| T::of(scale * (i as f64 * 0.37).sin()));
    let mut row: Vec<T> = logits.clone().collect();
    log_softmax(&mut row);
    let logits = logits.map(|x| x.as_f64());
    let total: f64 = logits.clone().map(f64::exp).sum();
    let want: Vec<f64> = logits.map(|x| x - total.ln()).collect();
    let bound = Tolerance::outputs::<T>().bound(want.iter().copied());
    for (got, want) in row.iter().zip(&want) {
        assert!((got.as_f64() - want).abs() <= bound, "{n}: {got} {want}");
    }
}

/// Pieces and lanes that are whole and that are cut.
#[test]
fn rows_are_those_of_the_definition() {
    for n in [1, 2, 15, 16, 17, 255, 256, 257, 1000] {
        for scale in [0.0, 1.0, 30.0] {
            is_the_definition::<f32>(n, scale);
            is_the_definition::<f64>(n, scale);
        }
    }
}

#[test]
fn what_has_no_probabilities_becomes_nan() {
    let (inf, none) = (f32::INFINITY, f32::NEG_INFINITY);
    for wrong in [f32::NAN, inf] {
        let mut row = [0.0, wrong, 1.0];
        log_softmax(&mut row);
        assert!(row.iter().any(|x| x.is_nan()));
    }
    let mut row = [none; 3];
    log_softmax(&mut row);
    assert!(row.iter().all(|x| x.is_nan()));
    let mut row = [3e38, -3e38];
    log_softmax(&mut row);
    assert_eq!(row, [0.0, none]);
}
