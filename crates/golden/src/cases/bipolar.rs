//! `bipolar_attention`, `shiftmax`, `ternary_neuron`: bipolar attention and what it is made of.

use super::{attention as all, reshaped};
use crate::case_file::CaseFile;
use crate::comparison::Computed;
use crate::error::Fault;
use bochner_attention::{
    Bipolar,
    mechanism::Streams,
    shiftmax::{shiftmax, shiftmax_vjp},
};
use bochner_numerics::Real;
use bochner_ops::{Spikes, SpikingNeuron};
use ndarray::{Array4, ArrayD, Ix2, IxDyn};

/// Outputs, weights and gradients of attention.
pub(super) fn attention<T: Real>(file: &CaseFile) -> Result<Computed, Fault> {
    let [q, k, v]: [Array4<T>; 3] = [file.array("q")?, file.array("k")?, file.array("v")?];
    let mask = &all::mask(file)?;
    let mechanism = Bipolar {
        threshold: file.number("theta")?,
        surrogate_width: file.number("width")?,
    };
    let inputs = Streams::new([q.view(), k.view(), v.view()], mask);
    all::without_points(file, &mechanism, &inputs)
}

/// Weights, exponents and gradients of rows of scores.
pub(super) fn of_rows<T: Real>(file: &CaseFile) -> Result<Computed, Fault> {
    let (x, mask): (ArrayD<T>, _) = (file.floats("x")?, file.flags("mask")?);
    let shape = x.shape().to_vec();
    let (&width, leading) = shape.split_last().ok_or_else(|| Fault::Shape {
        tensor: "in.x".to_owned(),
        expected: "of at least 1 axis".to_owned(),
        got: Vec::new(),
    })?;
    let rows = [leading.iter().product(), width];
    let as_rows = |x: ArrayD<T>| reshaped(x, &rows).into_dimensionality::<Ix2>();
    let x = as_rows(x).expect("two axes");
    let mask = mask.into_shape_with_order(rows).map_err(|_| Fault::Shape {
        tensor: "in.mask".to_owned(),
        expected: format!("{shape:?}"),
        got: Vec::new(),
    })?;
    let made = shiftmax(x.view(), Some(mask.view())).map_err(Fault::refused)?;
    let mut computed = Computed::default();
    computed.output("weights", &reshaped(made.weights.into_dyn(), &shape));
    let gamma = made.gamma.into_shape_with_order(IxDyn(leading));
    computed.integers("gamma", &gamma.expect("one a row"));
    if let Some(g) = file.cotangent()? {
        let g = as_rows(g).expect("two axes");
        let g = shiftmax_vjp(x.view(), Some(mask.view()), g.view()).map_err(Fault::refused)?;
        computed.gradient("x", &reshaped(g.into_dyn(), &shape));
    }
    Ok(computed)
}

/// What neurons do over the leading axis.
pub(super) fn neuron<T: Real>(file: &CaseFile) -> Result<Computed, Fault> {
    let x: ArrayD<T> = file.floats("x")?;
    let neuron = SpikingNeuron {
        spikes: match file.choice("kind", &["binary", "ternary"])? {
            "binary" => Spikes::Binary,
            _ => Spikes::Ternary,
        },
        threshold: file.number("theta")?,
        reset: file.number("v_reset")?,
        decay: file.number("tau")?,
        ..SpikingNeuron::default()
    };
    let x = x.as_standard_layout();
    let steps = x.shape().first().copied().unwrap_or(0);
    let train = neuron.run(x.as_slice().expect("row-major"), steps);
    let train = train.map_err(Fault::refused)?;
    let mut computed = Computed::default();
    for (name, values) in [
        ("spikes", train.spikes),
        ("membrane", train.membrane),
        ("held", train.held),
    ] {
        let values = ArrayD::from_shape_vec(x.raw_dim(), values);
        computed.output(name, &values.expect("as many numbers"));
    }
    Ok(computed)
}
