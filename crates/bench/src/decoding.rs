//! One more position of a sequence that T came before, in memory that is there already.
//!
//! Shapes are those of attention: (B, H, T, d, dv, R).

use crate::Error;
use crate::attention::{Shape, sized};
use crate::workload::{Pass, Run, Workload};
use bochner_attention::{
    Form, IkanDirect, Mechanism, Performer, Softmax, Variant, engine::DecoderSize, mechanism::Size,
};
use bochner_numerics::{Seed, standard_normal};
use ndarray::{Array4, s};
use std::hint::black_box;

/// The most positions that are pushed at a time.
const PIECE: usize = 10_000;

/// The positions that a run of a decoder takes whose state does not grow: one alone is too short to time.
const STEPS: usize = 1000;

/// Each kind at each length: decoders that keep keys and values, then those of constant state.
pub(crate) fn workloads() -> Vec<Workload> {
    let squared = |form| {
        Variant::from(IkanDirect {
            form,
            ..IkanDirect::default()
        })
    };
    let (lengths, long) = ([1024, 4096, 16_384], [100, 10_000, 1_000_000]);
    let kinds = [
        ("decode-softmax", Softmax::default().into(), lengths, 16),
        ("decode-ika-ns", squared(Form::Pairwise), lengths, 16),
        (
            "decode-ika-ns-linear-time",
            squared(Form::LinearTime),
            long,
            16,
        ),
        ("decode-performer", Performer::default().into(), long, 256),
    ];
    let all = kinds
        .into_iter()
        .flat_map(|(name, variant, lengths, points)| {
            let variant = sized(&variant, points);
            lengths.map(|length| workload(name, &variant, [1, 8, length, 64, 64, points]))
        });
    all.collect()
}

fn workload(name: &'static str, variant: &Variant, shape: Shape) -> Workload {
    let (numbers, is_constant) = numbers(variant, shape);
    let (pass, steps) = match is_constant {
        true => ("1000 tokens", STEPS),
        false => ("token", 1),
    };
    let passes = vec![Pass::new(pass, 4.0 * numbers * steps as f64)];
    let variant = variant.clone();
    Workload::new(name, shape, passes, move || start(&variant, shape, steps))
}

/// The numbers that one position reads or writes, and whether they are as many for each position.
fn numbers(variant: &Variant, shape: Shape) -> (f64, bool) {
    let [b, h, t, d, dv, r] = shape.map(|n| n as f64);
    let (numbers, is_constant) = match variant {
        Variant::IkanDirect(IkanDirect {
            form: Form::LinearTime,
            ..
        }) => (2.0 * r * (2.0 * r + 1.0) * (dv + 1.0), true),
        Variant::IkanDirect(_) => (t * (2.0 * r + dv), false),
        Variant::Performer(_) => (2.0 * r * (dv + 1.0), true),
        _ => (t * (d + dv), false),
    };
    (b * h * (numbers + 2.0 * d + 2.0 * dv), is_constant)
}

fn start(variant: &Variant, shape: Shape, steps: usize) -> Result<Vec<Run>, Error> {
    let [batch, heads, length, width, value_width, _] = shape;
    let size = DecoderSize {
        batch,
        heads,
        width,
        value_width,
    };
    let mechanism: &dyn Mechanism<f32> = variant.mechanism();
    let mut stream = Seed::new(1).stream("inputs");
    let parameters = mechanism.initial(Size { heads, width }, &mut stream)?;
    let pass = bochner_attention::Pass::Evaluation { seed: Seed::new(1) };
    let mut decoder = mechanism.decoder(size, &parameters, &pass, Form::Automatic.into())?;
    let mut array = |positions, width| {
        let shape = (batch, heads, positions, width);
        Array4::from_shape_simple_fn(shape, || standard_normal(&mut stream))
    };
    // A long prefix is one piece over and over, which spares the memory of a million positions.
    let piece = length.min(PIECE);
    let (k, v) = (array(piece, width), array(piece, value_width));
    for start in (0..length).step_by(piece) {
        let part = s![.., .., ..piece.min(length - start), ..];
        decoder.push(k.slice(part), v.slice(part), None)?;
    }
    let (q, k, v) = (array(1, width), array(1, width), array(1, value_width));
    let mut output = Array4::zeros(v.raw_dim());
    Ok(vec![Box::new(move || {
        for _ in 0..steps {
            decoder.step_into(
                [q.view(), k.view(), v.view()],
                None,
                None,
                output.view_mut(),
            )?;
            black_box(&output);
        }
        Ok(())
    })])
}
