//! One more position of a sequence that T came before, in memory that is there already.
//!
//! Shapes are those of attention: (B, H, T, d, dv, R).

use crate::Error;
use crate::attention::{Kind, mask, squared};
use crate::workload::{Pass, Run, Workload};
use bochner_attention::{
    Form, Magnitude, Settings, Variant,
    engine::{Decoder, DecoderSize},
    kernels,
};
use bochner_numerics::{Seed, standard_normal};
use ndarray::{Array3, Array4, s};
use rand::Rng;
use std::hint::black_box;

/// The workloads whose time a position must stay the same, because their state does not grow.
pub(crate) const CONSTANT: [&str; 2] = ["decode-ika-ns-linear-time", "decode-performer"];

/// The pass of [`STEPS`] positions.
pub(crate) const MANY: &str = "1000 tokens";

/// The numbers of positions before, of decoders that keep keys and values.
const LENGTHS: [usize; 3] = [1024, 4096, 16_384];

/// The numbers of positions before, of decoders whose state does not grow.
pub(crate) const LONG: [usize; 3] = [100, 10_000, 1_000_000];

/// The random features of Performer.
const FEATURES: usize = 256;

/// The most positions that are pushed at a time.
const PIECE: usize = 10_000;

/// The positions that a run of a decoder whose state does not grow takes: one alone is too short to time.
const STEPS: usize = 1_000;

/// Each kind at each length.
pub(crate) fn workloads() -> Vec<Workload> {
    let [squared, performer] = CONSTANT;
    let kinds = [
        ("decode-softmax", Kind::Softmax, LENGTHS, 16),
        ("decode-ika-ns", Kind::Squared(Form::Pairwise), LENGTHS, 16),
        (squared, Kind::Squared(Form::LinearTime), LONG, 16),
        (performer, Kind::Mechanism("performer"), LONG, FEATURES),
    ];
    let all = kinds.into_iter().flat_map(|(name, kind, lengths, points)| {
        lengths.map(|length| workload(name, kind, [1, 8, length, 64, 64, points]))
    });
    all.collect()
}

fn workload(name: &'static str, kind: Kind, shape: [usize; 6]) -> Workload {
    let (operations, numbers) = cost(kind, shape);
    let (pass, steps) = if CONSTANT.contains(&name) {
        (MANY, STEPS)
    } else {
        ("token", 1)
    };
    let [operations, numbers] = [operations, numbers].map(|n| n * steps as f64);
    let passes = vec![Pass::new(pass, 2.0 * operations, 4.0 * numbers)];
    Workload::new(name, shape, passes, move || start(kind, shape, steps))
}

/// Multiplications with additions of one position, and the numbers that it reads or writes; a mechanism of the registry
/// is one of random features, since no other decodes without parameters and in linear time.
fn cost(kind: Kind, shape: [usize; 6]) -> (f64, f64) {
    let [b, h, t, d, dv, r] = shape.map(|n| n as f64);
    let points = 2.0 * r; // w1 and w2
    let sums = r * (2.0 * r + 1.0) * (dv + 1.0);
    let (operations, numbers) = match kind {
        // Read by the query, added to by the key.
        Kind::Squared(Form::LinearTime) => (2.0 * sums + 2.0 * points * d, 2.0 * sums),
        Kind::Squared(_) => (t * (2.0 * r + dv) + 2.0 * points * d, t * (2.0 * r + dv)),
        // The features of the query and of the key, which are read and added to.
        Kind::Mechanism(_) => (2.0 * r * (d + dv + 1.0), 2.0 * r * (dv + 1.0)),
        Kind::Softmax | Kind::RbfOnly => (t * (d + dv), t * (d + dv)),
    };
    (b * h * operations, b * h * (numbers + 2.0 * d + 2.0 * dv))
}

fn start(kind: Kind, shape: [usize; 6], steps: usize) -> Result<Vec<Run>, Error> {
    let [batch, heads, length, width, value_width, points] = shape;
    let mut stream = Seed::new(1).stream("inputs");
    let mut point = || stream.gen_range(-1.0..1.0) / (width as f32).sqrt();
    let [w1, w2] =
        [(); 2].map(|()| Array3::from_shape_simple_fn((heads, points, width), &mut point));
    let mask = mask(true);
    let size = DecoderSize {
        batch,
        heads,
        width,
        value_width,
    };
    let mut decoder = match kind {
        Kind::Squared(form) => {
            let settings = squared(&w1, &w2, form, &mask);
            let settings = settings.with_key_weight(Magnitude::Norm { p: 2.0 });
            Decoder::new(&settings, size)?
        }
        Kind::Mechanism(name) => {
            let variant = name.parse::<Variant>()?;
            let variant = variant.mechanism::<f32>().with_points(points)?;
            let pass = bochner_attention::Pass::Evaluation { seed: Seed::new(1) };
            let mechanism = variant.mechanism::<f32>();
            mechanism.decoder(size, &[], &pass, Form::LinearTime.into())?
        }
        Kind::Softmax => Decoder::new(&Settings::softmax(&mask), size)?,
        Kind::RbfOnly => Decoder::new(&kernels::rbf(&mask), size)?,
    };
    let mut array = |positions, width| {
        Array4::from_shape_simple_fn((batch, heads, positions, width), || {
            standard_normal(&mut stream)
        })
    };
    // A long prefix repeats a piece of itself, which spares the memory of a million positions.
    let piece = length.min(PIECE);
    let (k, v) = (array(piece, width), array(piece, value_width));
    for start in (0..length).step_by(piece) {
        let part = s![.., .., ..piece.min(length - start), ..];
        decoder.push(k.slice(part), v.slice(part))?;
    }
    let (q, k, v) = (array(1, width), array(1, width), array(1, value_width));
    let mut output = Array4::zeros(v.raw_dim());
    let tokens = move || {
        for _ in 0..steps {
            decoder.step_into(q.view(), k.view(), v.view(), output.view_mut())?;
            black_box(&output);
        }
        Ok(())
    };
    Ok(vec![Box::new(tokens)])
}

#[cfg(test)]
mod tests {
    use super::*;
    use bochner_numerics::operations::count;

    /// The formulas leave out what is done once a pair or once a feature, as those of the whole sequence do.
    #[test]
    fn what_is_counted_is_what_the_formulas_say() {
        for kind in [
            Kind::Softmax,
            Kind::Squared(Form::Pairwise),
            Kind::Squared(Form::LinearTime),
            Kind::Mechanism("performer"),
        ] {
            let shape = [1, 2, 500, 64, 64, 16];
            let mut run = start(kind, shape, 1).unwrap().remove(0);
            let (done, counted) = count(&mut run);
            done.unwrap();
            let ratio = counted.multiply_adds as f64 / cost(kind, shape).0;
            assert!((0.98..1.15).contains(&ratio), "{kind:?}: {ratio}");
        }
    }
}
