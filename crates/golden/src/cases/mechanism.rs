//! Mechanisms on the streams and parameters of a file: `bipolar_attention`, `cat`, `primal` and those of `attention`
//! without points.

use super::attention::{self, PAIR_BY_PAIR, in_forms};
use crate::case::{Case, Done};
use crate::error::Failure;
use crate::tensor::ranked;
use bochner_attention::{
    Bipolar, Cat, Mask, Mechanism, Pass, Primal,
    card::Stream,
    mechanism::{Cotangents, Forward, PrimalWeights, Streams},
};
use bochner_numerics::{Real, Seed};
use ndarray::{Array1, Array4, ArrayD, Axis, Ix2, Ix3, IxDyn};

/// Records output, loss, weights and gradients, and the output in every form of attention by settings.
///
/// The loss is the penalty's sum over the number of examples that are kept.
pub(super) fn run<T: Real>(
    c: &Case<T>,
    mechanism: &dyn Mechanism<T>,
    mask: &Mask,
    parameters: &[&str],
    kept: usize,
) -> Result<Forward<T>, Failure> {
    let names = mechanism.card().streams.iter().map(|stream| match stream {
        Stream::Queries => "q",
        Stream::Keys => "k",
        Stream::Values => "v",
        Stream::Scores => "z",
        Stream::Input => "x",
    });
    let names: Vec<&str> = names.collect();
    let read = |&name: &&str| -> Result<Array4<T>, Failure> {
        let mut x = c.array::<IxDyn>(name)?;
        if name == "z" {
            x.insert_axis_inplace(Axis(3));
        }
        Ok(ranked(&format!("in.{name}"), x)?)
    };
    let streams: Vec<_> = names.iter().map(read).collect::<Result<_, _>>()?;
    let inputs = Streams::new(streams.iter().map(|x| x.view()), mask);
    let mut flat = Vec::new();
    for name in parameters {
        flat.extend(c.array::<IxDyn>(name)?);
    }
    let pass = &Pass::Evaluation { seed: Seed::new(0) };
    let forward = mechanism.forward(&inputs, &flat, pass)?;
    let share = T::of(1.0 / kept.max(1) as f64);
    c.output("output", forward.output.iter().copied());
    c.output("loss", [forward.penalty.sum() * share]);
    if c.asks_for("weights") {
        c.output("weights", mechanism.inspect(&inputs, &flat, pass)?.weights);
    }
    c.pull(|g: ArrayD<T>| {
        let (output, penalty) = match c.word("cotangent_of")? {
            "loss" => {
                let along = forward.penalty.mapv(|_| g.sum() * share);
                (Array4::zeros(forward.output.raw_dim()), along)
            }
            _ => (
                ranked("cotangent", g)?,
                Array1::zeros(forward.penalty.len()),
            ),
        };
        let cotangents = Cotangents {
            output: output.view(),
            penalty: penalty.view(),
        };
        let g = mechanism.backward(&inputs, &flat, pass, &forward, cotangents)?;
        for (name, g) in names.iter().zip(g.streams) {
            c.gradient(name, g);
        }
        c.gradients(parameters, g.parameters)
    })?;
    if let (Ok(settings), [q, k, v]) = (mechanism.settings(&inputs, &flat, pass), &streams[..]) {
        in_forms(c, PAIR_BY_PAIR, &settings, [q, k, v], &[])?;
    }
    Ok(forward)
}

/// Bipolar attention.
pub(super) fn bipolar<T: Real>(c: &Case<T>) -> Done {
    let mechanism = Bipolar {
        threshold: c.number("theta")?,
        surrogate_width: c.number("width")?,
    };
    run(c, &mechanism, &attention::mask(c)?, &[], 1).map(drop)
}

/// Every form of circular-convolutional attention.
pub(super) fn cat<T: Real>(c: &Case<T>) -> Done {
    let mechanism = Cat {
        form: c.setting("form")?,
    };
    run(c, &mechanism, &attention::key_lengths(c)?, &[], 1).map(drop)
}

/// Outputs, scores and the loss of Primal-Attention.
pub(super) fn primal<T: Real>(c: &Case<T>) -> Done {
    let (_, rows, _) = c.array::<Ix3>("we")?.dim();
    let trace = c.setting("trace")?;
    let mechanism = Primal {
        rank: c.array::<Ix2>("lambda")?.ncols(),
        weights: match c.choice("weights", &["data", "parameters"])? {
            "data" => PrimalWeights::Data { rows, trace },
            _ => PrimalWeights::Parameters,
        },
        reduction: c.setting("reduction")?,
        eta: 1.0,
        value_width: Some(c.array::<Ix3>("wc")?.dim().1),
    };
    let mut mask = attention::key_lengths(c)?;
    if c.choice("causal", &["true", "false"])? == "true" {
        mask = mask.with_causality();
    }
    // The loss is the mean over the examples that are not empty, whose penalty is zero.
    let kept = match c.word("mask")? {
        "lengths" => c.counts("lengths")?.iter().filter(|&&n| n > 0).count(),
        _ => c.array::<IxDyn>("q")?.len_of(Axis(0)),
    };
    let forward = run(c, &mechanism, &mask, &["we", "wr", "lambda", "wc"], kept)?;
    let scores = mechanism.scores_of(&forward)?;
    c.output("e", scores.e.iter().copied());
    c.output("r", scores.r.iter().copied());
    Ok(())
}
