//! How far off a vectorised exponential is, and what it saves.
//!
//! `cargo run --release --package bochner-numerics --example exponential`

#![allow(clippy::print_stdout)]

use bochner_numerics::elementary;
use std::hint::black_box;
use std::time::{Duration, Instant};

const COUNT: usize = 1 << 20;

fn main() {
    // From the smallest normal result to the largest.
    let x: Vec<f32> = (0..COUNT)
        .map(|i| -87.0 + 175.0 * i as f32 / COUNT as f32)
        .collect();
    let (mut whole, mut single) = (vec![0.0; COUNT], vec![0.0; COUNT]);
    let slice = best_of_ten(|| {
        whole.copy_from_slice(black_box(&x));
        elementary::exp_in_place(&mut whole);
    });
    let one_by_one = best_of_ten(|| {
        for (y, &x) in single.iter_mut().zip(black_box(&x)) {
            *y = x.exp();
        }
    });
    println!("                          time      largest error");
    for (name, time, y) in [
        ("exp_in_place", slice, &whole),
        ("f32::exp, one by one", one_by_one, &single),
    ] {
        let error = largest_error(&x, y);
        println!("{name:<22} {time:8.2?}    {error:.3} ulp");
    }
}

fn best_of_ten(mut f: impl FnMut()) -> Duration {
    let times = (0..10).map(|_| {
        let start = Instant::now();
        f();
        start.elapsed()
    });
    times.min().unwrap_or_default()
}

/// In units in the last place of the result, against double precision.
fn largest_error(x: &[f32], y: &[f32]) -> f64 {
    let ulp = |y: f32| f64::from(f32::from_bits(y.to_bits() + 1)) - f64::from(y);
    let errors = x.iter().zip(y);
    let errors = errors.map(|(&x, &y)| (f64::from(y) - f64::from(x).exp()).abs() / ulp(y));
    errors.fold(0.0, f64::max)
}
