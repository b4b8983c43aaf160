//! Symmetries of the closed forms, in single precision.

use crate::conformance::common::*;
use crate::conformance::plain::Similarity;
use crate::conformance::plain::with;
use crate::conformance::plain::{attend, attend_vjp};
use bochner_attention::{Magnitude, Mask};
use ndarray::Array4;

/// Multiples of 1/64: their sums with a thousand are exact.
fn grid(time: usize, purpose: &str) -> Array4<f32> {
    let x: Array4<f32> = random((BATCH, HEADS, time, WIDTH), purpose);
    x.mapv(|x| (x * 64.0).round() / 64.0)
}

#[test]
fn expsin_depends_on_differences_alone() {
    let (q, k, mask) = (grid(5, "q"), grid(6, "k"), Mask::none());
    let v: Array4<f32> = random((BATCH, HEADS, 6, VALUE_WIDTH), "v");
    let cotangent: Array4<f32> = random((BATCH, HEADS, 5, VALUE_WIDTH), "output cotangent");
    let settings = with(
        Similarity::Expsin { period: 1.0 },
        Magnitude::None,
        &mask,
        None,
    );
    let results = |shift: f32| {
        let (q, k) = (&q + shift, &k + shift);
        let (q, k) = (q.view(), k.view());
        let attended = attend(q, k, v.view(), &settings.settings()).unwrap();
        let g = attend_vjp(&attended, cotangent.view()).unwrap();
        [attended.output, g.q, g.k, g.v]
    };
    for (moved, own) in results(1024.0).iter().zip(&results(0.0)) {
        assert!(
            (moved - own).iter().all(|x| x.abs() < 1e-4),
            "{moved} {own}"
        );
    }
}
