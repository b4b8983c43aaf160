//! Attention over long sequences in both forms, forward and backward, and what it costs.
//!
//! `cargo run --release --package bochner-attention --no-default-features --example long_sequence`
//!
//! One `[16384, 16384]` array of eight heads alone would take 8.6 GB in f32.

#![allow(clippy::print_stdout)]

use bochner_attention::kernels::{self, Points};
use bochner_attention::ndarray::{Array4, ArrayView4, s};
use bochner_attention::{Error, Form, Magnitude, Mask, Settings, Wanted, attend, attend_vjp};
use bochner_numerics::{Seed, standard_normal};
use std::time::Instant;

const HEADS: usize = 8;
const LENGTHS: [usize; 6] = [512, 1024, 2048, 4096, 8192, 16_384];
const WIDTH: usize = 64;
const POINTS: usize = 16;

fn main() -> Result<(), Error> {
    let mut stream = Seed::new(1).stream("example");
    let mut normal = |length, scale: f32| {
        Array4::from_shape_simple_fn((1, HEADS, length, WIDTH), || {
            scale * standard_normal::<f32>(&mut stream)
        })
    };
    let longest = LENGTHS[LENGTHS.len() - 1];
    let [q, k, v] = [(); 3].map(|()| normal(longest, 1.0));
    let (w1, w2) = (normal(POINTS, 0.1), normal(POINTS, 0.1));
    println!("causal  length  form        forward  backward");
    for mask in [Mask::none(), Mask::none().with_causality()] {
        for length in LENGTHS {
            let cut = |x: &Array4<f32>| x.slice(s![.., .., ..length, ..]).to_owned();
            let inputs = [cut(&q), cut(&k), cut(&v)];
            for form in [Form::LinearTime, Form::Pairwise] {
                let (w1, w2) = (w1.view(), w2.view());
                let points = Points::Nonstationary { w1, w2 };
                let settings = kernels::squared(points, 1e-5, &mask);
                let settings = settings.with_key_weight(Magnitude::Norm { p: 1.5 });
                let settings = Settings { form, ..settings };
                let [forward, backward] = times(inputs.each_ref().map(|x| x.view()), &settings)?;
                let (causal, form) = (mask.is_causal(), format!("{form:?}"));
                println!("{causal:6}  {length:6}  {form:10}  {forward:5.0} ms  {backward:5.0} ms");
            }
        }
    }
    match peak_memory() {
        Some(peak) => println!("peak memory: {peak}"),
        None => println!("peak memory: not told by this system"),
    }
    Ok(())
}

/// Milliseconds forward and backward, the best of three.
fn times([q, k, v]: [ArrayView4<f32>; 3], settings: &Settings<f32>) -> Result<[f64; 2], Error> {
    let mut best = [f64::INFINITY; 2];
    for _ in 0..3 {
        let start = Instant::now();
        let (_, saved) = attend(settings, q, k, v)?;
        best[0] = best[0].min(start.elapsed().as_secs_f64() * 1e3);
        let start = Instant::now();
        let wanted = Wanted {
            kernel: true,
            ..Wanted::default()
        };
        let gradients = attend_vjp(settings, &saved, q, k, v, v, wanted)?;
        best[1] = best[1].min(start.elapsed().as_secs_f64() * 1e3);
        assert!(gradients.q.iter().all(|g| g.is_finite()));
    }
    Ok(best)
}

/// The process's largest resident set, where Linux tells it.
fn peak_memory() -> Option<String> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("VmHWM:"))?;
    Some(line.trim().to_owned())
}
