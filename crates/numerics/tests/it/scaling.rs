//! Bounds of numbers that overflow.

use bochner_numerics::scaling::{bounded, rounded};

#[test]
fn what_overflows_is_the_largest_number() {
    let numbers = [-1e39, 1e39, 0.1, f64::INFINITY];
    let want = [f32::MIN, f32::MAX, 0.1, f32::MAX];
    assert_eq!(numbers.map(rounded::<f32>), want);
    assert_eq!(numbers.map(|x| bounded(x as f32)), want);
    assert!(rounded::<f32>(f64::NAN).is_nan() && bounded(f64::NAN).is_nan());
}
