//! `shiftmax` and `ternary_neuron`: parts of bipolar attention.

use crate::case::{Case, Done, record, rows as as_rows};
use bochner_attention::shiftmax::{shiftmax, shiftmax_vjp};
use bochner_numerics::Real;
use bochner_ops::SpikingNeuron;
use ndarray::{ArrayD, IxDyn};

/// Weights, exponents and gradients of rows of scores.
pub(super) fn rows<T: Real>(c: &Case<T>) -> Done {
    let (x, mask) = (c.rows("x")?, as_rows("in.mask", c.mask("mask")?)?);
    let made = shiftmax(x.view(), Some(mask.view()))?;
    c.output("weights", made.weights);
    c.output("gamma", made.gamma.mapv(|x| x as f64));
    c.pull(|g: ArrayD<T>| {
        let g = as_rows("cotangent", g)?;
        c.gradient("x", shiftmax_vjp(x.view(), Some(mask.view()), g.view())?);
        Ok(())
    })
}

/// Spikes and membranes of neurons over the leading axis.
pub(super) fn neuron<T: Real>(c: &Case<T>) -> Done {
    let x = c.array::<IxDyn>("x")?;
    let neuron = SpikingNeuron {
        spikes: c.setting("kind")?,
        threshold: c.number("theta")?,
        reset: c.number("v_reset")?,
        decay: c.number("tau")?,
        ..SpikingNeuron::default()
    };
    let steps = x.shape().first().copied().unwrap_or(0);
    let train = neuron.run(&x.into_iter().collect::<Vec<_>>(), steps)?;
    record!(c.output, train => spikes, membrane, held);
    Ok(())
}
