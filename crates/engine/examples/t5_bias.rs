//! T5's position bias: one learnt number for each head and bucket of distances.
//!
//! `cargo run --package bochner-engine --example t5_bias`

#![allow(clippy::print_stdout)]

use bochner_engine::ndarray::{Array2, Array4, ArrayView2};
use bochner_engine::numerics::Real;
use bochner_engine::{Bias, Error, Mask, Settings, Wanted, attend, attend_vjp};

/// Buckets of both directions.
pub const BUCKETS: usize = 16;

/// The distance from which on all share the last bucket of their direction.
pub const FARTHEST: usize = 32;

/// Returns the bucket of a distance from the query back to the key: near distances have buckets of their own, and the
/// widths of the others grow with the distance.
pub fn bucket(distance: i64) -> usize {
    let (half, exact) = (BUCKETS / 2, BUCKETS / 4);
    let direction = if distance < 0 { half } else { 0 };
    let size = distance.unsigned_abs() as usize;
    if size < exact {
        return direction + size;
    }
    let share = (size as f64 / exact as f64).ln() / (FARTHEST as f64 / exact as f64).ln();
    direction + (exact + (share * (half - exact) as f64) as usize).min(half - 1)
}

/// Returns softmax attention with a table of biases, `[heads, BUCKETS]`.
///
/// # Errors
/// For a table with fewer columns, and for numbers that are not finite.
pub fn settings<T: Real>(table: ArrayView2<T>, mask: &Mask) -> Result<Settings<T>, Error> {
    let bias = Some(Bias::by_distance(table, FARTHEST, bucket)?);
    Ok(Settings {
        bias,
        ..Settings::softmax(mask)
    })
}

pub(crate) fn main() -> Result<(), Error> {
    let x = Array4::from_shape_fn((1, 2, 20, 4), |(_, m, t, n)| {
        ((m + t * (n + 2)) as f32).sin()
    });
    let settings = settings(Array2::zeros((2, BUCKETS)).view(), &Mask::none())?;
    let (output, saved) = attend(&settings, x.view(), x.view(), x.view())?;
    let (cotangent, wanted) = (
        &output - &x,
        Wanted {
            bias: true,
            ..Wanted::default()
        },
    );
    let gradients = attend_vjp(
        &settings,
        &saved,
        x.view(),
        x.view(),
        x.view(),
        cotangent.view(),
        wanted,
    )?;
    let distances: Vec<i64> = vec![0, 1, 3, 4, 8, 16, 32, -1, -4, -32];
    let buckets: Vec<usize> = distances.iter().map(|&distance| bucket(distance)).collect();
    println!("distances {distances:?} have the buckets {buckets:?}");
    println!(
        "gradient of the table:\n{:.3}",
        gradients.bias.expect("it was wanted")
    );
    Ok(())
}
