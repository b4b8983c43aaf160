//! `shiftmax` and `ternary_neuron`: parts of bipolar attention.

use crate::case::{Case, Done};
use crate::error::Fault;
use bochner_attention::shiftmax::{shiftmax, shiftmax_vjp};
use bochner_numerics::Real;
use bochner_ops::{Spikes, SpikingNeuron};
use ndarray::IxDyn;

/// Weights, exponents and gradients of rows of scores.
pub(super) fn rows<T: Real>(c: &Case<T>) -> Done {
    let (x, mask) = (c.floats("x")?, c.flags("mask")?);
    let shape = x.shape().to_vec();
    if mask.shape() != shape {
        return Err(Fault::shape("in.mask", format!("{shape:?}"), mask.shape()).into());
    }
    let Some((&width, leading)) = shape.split_last() else {
        return Err(Fault::shape("in.x", "of at least 1 axis", &shape).into());
    };
    let rows = (leading.iter().product::<usize>(), width);
    let x = x.into_shape_with_order(rows)?;
    let mask = mask.into_shape_with_order(rows)?;
    let made = shiftmax(x.view(), Some(mask.view()))?;
    c.flat_output("weights", made.weights)?;
    c.flat_output("gamma", made.gamma.mapv(|x| x as f64))?;
    if let Some(g) = c.cotangent::<IxDyn>()? {
        let g = g.into_shape_with_order(rows)?;
        c.flat_gradient("x", shiftmax_vjp(x.view(), Some(mask.view()), g.view())?)?;
    }
    Ok(())
}

/// Spikes and membranes of neurons over the leading axis.
pub(super) fn neuron<T: Real>(c: &Case<T>) -> Done {
    let x = c.floats("x")?;
    let neuron = SpikingNeuron {
        spikes: match c.choice("kind", &["binary", "ternary"])? {
            "binary" => Spikes::Binary,
            _ => Spikes::Ternary,
        },
        threshold: c.number("theta")?,
        reset: c.number("v_reset")?,
        decay: c.number("tau")?,
        ..SpikingNeuron::default()
    };
    let steps = x.shape().first().copied().unwrap_or(0);
    let train = neuron.run(&x.into_iter().collect::<Vec<_>>(), steps)?;
    c.flat_output("spikes", train.spikes)?;
    c.flat_output("membrane", train.membrane)?;
    c.flat_output("held", train.held)
}
