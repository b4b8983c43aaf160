//! Softmax attention: an RBF similarity times the magnitude at p = 2 (Proposition 1).

use crate::attend::{State, attend, weights};
use crate::error::Error;
use crate::mechanism::{
    Cotangents, Forward, Gradients, Inputs, Inspection, Mechanism, Named, ParameterSpec, Pass, Size,
};
use crate::registry::Described;
use crate::{Magnitude, Settings, Similarity};
use bochner_numerics::Real;
use rand::RngCore;
use serde::{Deserialize, Serialize};

/// Softmax attention; it has neither settings nor parameters.
///
/// $$\alpha_{ij} \propto \exp(q_i \cdot k_j / \sqrt d)$$
///
/// # Reference
/// Vaswani et al. 2017; as a kernel, Song et al. 2021, equation 8.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Softmax {}

impl Described for Softmax {
    const NAME: &'static str = "softmax";
    const SUMMARY: &'static str = "an RBF similarity times exp(|k|^2 / (2 sqrt d))";
    const REFERENCE: &'static str = "Vaswani et al. 2017";
}

fn settings<'a, T: Real>(inputs: &Inputs<'a, T>, pass: &Pass) -> Result<Settings<'a, T>, Error> {
    Ok(Settings {
        similarity: Similarity::Rbf,
        magnitude: Magnitude::Norm { p: 2.0 },
        mask: inputs.mask,
        dropout: pass.weight_dropout()?,
    })
}

impl<T: Real> Mechanism<T> for Softmax {
    fn validate(&self) -> Result<(), Error> {
        Ok(())
    }

    fn parameters(&self, _: Size) -> Vec<ParameterSpec> {
        Vec::new()
    }

    fn initial(&self, _: Size, _: &mut dyn RngCore) -> Result<Vec<T>, Error> {
        Ok(Vec::new())
    }

    fn forward(&self, inputs: &Inputs<T>, flat: &[T], pass: &Pass) -> Result<Forward<T>, Error> {
        Named::new(Self::NAME, Vec::new(), flat)?;
        let attended = attend(inputs.q, inputs.k, inputs.v, &settings(inputs, pass)?)?;
        Ok(Forward::unpenalised(attended.output, attended.state))
    }

    fn backward(
        &self,
        inputs: &Inputs<T>,
        _: &[T],
        pass: &Pass,
        forward: &Forward<T>,
        cotangent: Cotangents<T>,
    ) -> Result<Gradients<T>, Error> {
        let state: &State<T> = forward.saved(Self::NAME)?;
        let settings = settings(inputs, pass)?;
        let Inputs { q, k, v, .. } = *inputs;
        let output = forward.output.view();
        let g = state.pull_back(q, k, v, &settings, output, cotangent.output)?;
        Ok(Gradients {
            q: g.q,
            k: g.k,
            v: g.v,
            parameters: Vec::new(),
        })
    }

    fn inspect(&self, inputs: &Inputs<T>, _: &[T], pass: &Pass) -> Result<Inspection<T>, Error> {
        Ok(Inspection {
            weights: weights(inputs.q, inputs.k, &settings(inputs, pass)?)?,
            points: None,
            correlation: None,
        })
    }
}
