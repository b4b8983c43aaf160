//! What the closed forms do not depend on, to the bit, in single precision.

use crate::conformance::common::*;
use crate::conformance::plain::Similarity;
use crate::conformance::plain::with;
use bochner_attention::{Magnitude, Mask};
use crate::conformance::plain::{attend, attend_vjp, weights};
use ndarray::{Array4, s};

/// Multiples of 1/64: their sums with a thousand are exact.
fn grid(time: usize, purpose: &str) -> Array4<f32> {
    let x: Array4<f32> = random((BATCH, HEADS, time, WIDTH), purpose);
    x.mapv(|x| (x * 64.0).round() / 64.0)
}

fn linear(q: &Array4<f32>, k: &Array4<f32>, mask: &Mask) -> Array4<f32> {
    let settings = with(Similarity::Linear, Magnitude::None, mask, None);
    weights(q.view(), k.view(), &settings.settings()).unwrap()
}

#[test]
fn the_linear_kernel_has_no_scale() {
    let (q, k) = (grid(5, "q"), grid(6, "k"));
    for (name, mask) in masks(5, 6) {
        let want = linear(&q, &k, &mask);
        for [left, right] in [[100, 100], [-100, -100], [100, -100], [-60, 90]] {
            let scaled = |x: &Array4<f32>, power: i32| x * 2.0_f32.powi(power);
            let (q, k) = (scaled(&q, left), scaled(&k, right));
            let got = linear(&q, &k, &mask);
            assert_eq!(got, want, "2^{left}, 2^{right}, mask: {name}");
        }
    }
}

#[test]
fn the_periodic_kernel_has_no_scale_but_its_period() {
    let (q, k, mask) = (grid(5, "q"), grid(6, "k"), Mask::none());
    let weights_at = |power: i32| {
        let factor = 2.0_f32.powi(power);
        let (q, k) = (&q * factor, &k * factor);
        let period = 1.5 * f64::from(factor);
        let settings = with(Similarity::Expsin { period }, Magnitude::None, &mask, None);
        weights(q.view(), k.view(), &settings.settings()).unwrap()
    };
    for power in [-90, 90] {
        assert_eq!(weights_at(power), weights_at(0), "2^{power}");
    }
}

#[test]
fn a_late_huge_key_leaves_the_rows_before_it_alone() {
    let (q, k, mask) = (grid(6, "q"), grid(6, "k"), Mask::none().with_causality());
    let early = s![.., .., ..5, ..];
    let want = linear(&q, &k, &mask);
    let mut k = k;
    k.slice_mut(s![.., .., 5, ..]).fill(1e30);
    let got = linear(&q, &k, &mask);
    assert_eq!(got.slice(early), want.slice(early));
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
        let g = attend_vjp(&attended, cotangent.view());
        (attended.output, g.unwrap())
    };
    assert_eq!(results(1024.0), results(0.0));
}
