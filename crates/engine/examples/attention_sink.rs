//! A learnt attention sink: a score that takes weight away from all keys of a row.
//!
//! `cargo run --package bochner-engine --example attention_sink`

#![allow(clippy::print_stdout)]

use bochner_engine::ndarray::{Array1, Array4, Axis, array};
use bochner_engine::numerics::Real;
use bochner_engine::{Error, Mask, Settings, Wanted, attend, attend_vjp, weights};
use std::sync::Arc;

/// Returns softmax attention with a sink in each head, `[heads]`: $\alpha_{ij} = e^{x_{ij}} / (e^{s} + \sum_l e^{x_{il}})$.
pub fn settings<T: Real>(sink: Array1<T>, mask: &Mask) -> Settings<T> {
    Settings {
        sink: Some(Arc::new(sink)),
        ..Settings::softmax(mask)
    }
}

pub(crate) fn main() -> Result<(), Error> {
    let x = Array4::from_shape_fn((1, 3, 6, 4), |(_, m, t, n)| ((m + t + n * n) as f64).cos());
    // As good as no sink, the "off by one" of a sink at zero, and one that takes nearly all.
    let settings = settings(array![-30.0, 0.0, 5.0], &Mask::causal());
    let sums = weights(&settings, x.view(), x.view())?.sum_axis(Axis(3));
    println!(
        "weights left to the keys, a row for each head:\n{:.3}",
        sums.index_axis(Axis(0), 0)
    );
    let (output, saved) = attend(&settings, x.view(), x.view(), x.view())?;
    let wanted = Wanted {
        sink: true,
        ..Wanted::default()
    };
    let gradients = attend_vjp(
        &settings,
        &saved,
        x.view(),
        x.view(),
        x.view(),
        output.view(),
        wanted,
    )?;
    println!(
        "gradient of |output|^2 / 2 along the sinks: {:.4}",
        gradients.sink.expect("it was wanted")
    );
    Ok(())
}
