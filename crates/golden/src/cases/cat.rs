//! `cat`: every form of circular-convolutional attention.

use crate::case_file::CaseFile;
use crate::comparison::Computed;
use crate::error::Fault;
use bochner_attention::{
    Cat, Mask, Mechanism, Pass,
    mechanism::{CatForm, Cotangents, Streams},
};
use bochner_numerics::{Real, Seed};
use ndarray::{Array3, Array4, Axis, Ix4};

/// Outputs, weights and gradients.
pub(super) fn cat<T: Real>(file: &CaseFile) -> Result<Computed, Fault> {
    let words = ["correlation", "convolution", "causal", "averaged_key"];
    let (form, names): (_, &[&str]) = match file.choice("form", &words)? {
        "convolution" => (CatForm::Convolution, &["z", "v"]),
        "causal" => (CatForm::Causal, &["z", "v"]),
        "averaged_key" => (CatForm::AveragedKey, &["q", "k", "v"]),
        _ => (CatForm::Correlation, &["z", "v"]),
    };
    let read = |&name: &&str| -> Result<Array4<T>, Fault> {
        if name != "z" {
            return file.array(name);
        }
        let scores: Array3<T> = file.array(name)?;
        Ok(scores.insert_axis(Axis(3)))
    };
    let streams: Vec<_> = names.iter().map(read).collect::<Result<_, _>>()?;
    let mask = match file.choice("mask", &["none", "lengths"])? {
        "lengths" => Mask::none().with_key_lengths(file.lengths("lengths")?),
        _ => Mask::none(),
    };
    let streams = Streams::new(streams.iter().map(|x| x.view()), &mask);
    let mechanism: &dyn Mechanism<T> = &Cat { form };
    let pass = &Pass::Evaluation { seed: Seed::new(0) };
    let forward = mechanism.forward(&streams, &[], pass);
    let forward = forward.map_err(Fault::refused)?;
    let mut computed = Computed::default();
    computed.output("output", &forward.output);
    if file.asks_for("weights") {
        let shown = mechanism.inspect(&streams, &[], pass);
        computed.output("weights", &shown.map_err(Fault::refused)?.weights);
    }
    if let Some(g) = file.ranked_cotangent::<T, Ix4>()? {
        let cotangents = Cotangents {
            output: g.view(),
            penalty: forward.penalty.view(),
        };
        let g = mechanism.backward(&streams, &[], pass, &forward, cotangents);
        for (&name, g) in names.iter().zip(g.map_err(Fault::refused)?.streams) {
            match name {
                "z" => computed.gradient(name, &g.index_axis_move(Axis(3), 0)),
                _ => computed.gradient(name, &g),
            }
        }
    }
    Ok(computed)
}
