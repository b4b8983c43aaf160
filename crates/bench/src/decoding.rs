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
    let Cost {
        operations,
        numbers,
        is_constant,
    } = cost(variant, shape);
    let (pass, steps) = match is_constant {
        true => ("1000 tokens", STEPS),
        false => ("token", 1),
    };
    let [operations, numbers] = [operations, numbers].map(|n| n * steps as f64);
    let passes = vec![Pass::new(pass, 2.0 * operations, 4.0 * numbers)];
    let variant = variant.clone();
    Workload::new(name, shape, passes, move || start(&variant, shape, steps))
}

/// The cost of one position.
struct Cost {
    /// Multiplications with additions.
    operations: f64,
    /// Numbers that are read or written.
    numbers: f64,
    /// Whether it is the same for each position.
    is_constant: bool,
}

fn cost(variant: &Variant, shape: Shape) -> Cost {
    let [b, h, t, d, dv, r] = shape.map(|n| n as f64);
    let features = 4.0 * r * d;
    let (operations, numbers, is_constant) = match variant {
        // Read by the query, added to by the key.
        Variant::IkanDirect(IkanDirect {
            form: Form::LinearTime,
            ..
        }) => {
            let sums = 2.0 * r * (2.0 * r + 1.0) * (dv + 1.0);
            (sums + features, sums, true)
        }
        Variant::IkanDirect(_) => {
            let pairs = t * (2.0 * r + dv);
            (pairs + features, pairs, false)
        }
        // The features of the query and of the key, which are read and added to.
        Variant::Performer(_) => (2.0 * r * (d + dv + 1.0), 2.0 * r * (dv + 1.0), true),
        _ => (t * (d + dv), t * (d + dv), false),
    };
    Cost {
        operations: b * h * operations,
        numbers: b * h * (numbers + 2.0 * d + 2.0 * dv),
        is_constant,
    }
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

#[cfg(test)]
mod tests {
    use super::*;
    use bochner_numerics::operations::count;

    /// The formulas leave out what is done once a pair or once a feature, as those of the whole sequence do.
    #[test]
    fn what_is_counted_is_what_the_formulas_say() {
        let mut kinds = workloads();
        kinds.dedup_by_key(|workload| workload.name);
        for workload in kinds {
            let mut run = (workload.start)().unwrap().remove(0);
            let (done, counted) = count(&mut run);
            done.unwrap();
            let ratio = 2.0 * counted.multiply_adds as f64 / workload.passes[0].operations;
            assert!((0.98..1.15).contains(&ratio), "{}: {ratio}", workload.name);
        }
    }
}
