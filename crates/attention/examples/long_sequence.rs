//! Attention over a long sequence, forward and backward, and what it costs.
//!
//! `cargo run --release --package bochner-attention --no-default-features --example long_sequence`
//!
//! One `[16384, 16384]` array of eight heads alone would take 8.6 GB in f32.

use bochner_attention::{
    Error, Form, Magnitude, Mask, Points, Settings, Similarity, attend, attend_vjp,
};
use bochner_numerics::{Seed, standard_normal};
use ndarray::Array4;
use std::time::Instant;

const HEADS: usize = 8;
const LENGTH: usize = 16_384;
const WIDTH: usize = 64;
const POINTS: usize = 16;

fn main() -> Result<(), Error> {
    let mut stream = Seed::new(1).stream("example");
    let mut normal = |length, scale: f32| {
        Array4::from_shape_simple_fn((1, HEADS, length, WIDTH), || {
            scale * standard_normal::<f32>(&mut stream)
        })
    };
    let (q, k, v) = (
        normal(LENGTH, 1.0),
        normal(LENGTH, 1.0),
        normal(LENGTH, 1.0),
    );
    let (w1, w2) = (normal(POINTS, 0.1), normal(POINTS, 0.1));
    let settings = Settings {
        similarity: Similarity::Squared {
            points: Points::Nonstationary {
                w1: w1.view(),
                w2: w2.view(),
            },
            floor: 1e-5,
        },
        magnitude: Magnitude::Norm { p: 1.5 },
        mask: &Mask::none(),
        dropout: None,
        form: Form::Automatic,
    };

    let start = Instant::now();
    let attended = attend(q.view(), k.view(), v.view(), &settings)?;
    println!("forward   {:.1} s", start.elapsed().as_secs_f64());
    let start = Instant::now();
    let gradients = attend_vjp(q.view(), k.view(), v.view(), &settings, &attended, v.view())?;
    println!("backward  {:.1} s", start.elapsed().as_secs_f64());
    assert!(gradients.q.iter().all(|g| g.is_finite()));
    match peak_memory() {
        Some(peak) => println!("peak      {peak}"),
        None => println!("peak      not told by this system"),
    }
    Ok(())
}

/// The process's largest resident set, where Linux tells it.
fn peak_memory() -> Option<String> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("VmHWM:"))?;
    Some(line.trim().to_owned())
}
