//! The paper's regressor: a data set as one sequence.

mod look_ahead;
mod task;
mod trainer;

pub use crate::training::{EpochReport, TrainingConfig};
pub use bochner_attention::mechanism::Inspection;
pub use look_ahead::LookAhead;
pub use task::Task;
pub use trainer::Trainer;

use crate::Error;
use crate::encoder::{Encoded, EncoderLayer, EncoderLayerConfig, NormPlacement, Sequences};
use bochner_attention::{Mask, Pass, Variant, layer::Attention};
use bochner_nn::{Element, Linear, Parameter, ParameterMut, Parameters, join};
use bochner_numerics::{Seed, argument};
use bochner_ops::Activation;
use dfdx::tensor::{Cpu, NoneTape, Tape};
use serde::{Deserialize, Serialize};

/// Settings of a [`Regressor`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, remote = "Self")]
pub struct RegressorConfig {
    /// Number of inputs of a row.
    pub inputs: usize,
    /// Width of the encoder.
    pub width: usize,
    /// Number of heads; must divide the width.
    pub heads: usize,
    /// Width of the feed-forward part's hidden layer.
    pub hidden: usize,
    /// The attention mechanism.
    pub attention: Variant,
    /// Rate of dropout on attention weights, if the mechanism has any, in the feed-forward part and on both
    /// residual branches.
    pub dropout: f64,
}

bochner_numerics::checked_when_read!(RegressorConfig);

impl RegressorConfig {
    fn validate(&self) -> Result<(), Error> {
        argument::at_least_one("inputs", self.inputs)?;
        self.layer().validate()
    }

    /// The settings of the block.
    fn layer(&self) -> EncoderLayerConfig {
        EncoderLayerConfig {
            width: self.width,
            heads: self.heads,
            hidden: self.hidden,
            attention: self.attention.clone(),
            dropout: self.dropout,
            norm: NormPlacement::Post,
            ..Default::default()
        }
    }

    /// The paper's sizes (width 64, eight heads, no dropout) for rows of `inputs` numbers.
    pub fn new(inputs: usize, attention: Variant) -> Self {
        Self {
            inputs,
            width: 64,
            heads: 8,
            hidden: 64,
            attention,
            dropout: 0.0,
        }
    }
}

/// Regression with attention over the whole data set.
///
/// A row's prediction attends to every other row's inputs: a linear map to the encoder, one
/// post-norm block, a linear map to the target. Labels are never inputs.
///
/// $$h = \mathrm{LN}(x + \mathrm{MultiHead}(x)), \qquad
/// y = \mathrm{Linear}(\mathrm{LN}(h + \mathrm{FFN}(h)))$$
///
/// where FFN is two linear maps with a rectifier behind *each*, as in the authors' released code.
#[derive(Clone, Debug)]
pub struct Regressor<E: Element> {
    input: Linear<usize, usize, E>,
    layer: EncoderLayer<E>,
    output: Linear<usize, usize, E>,
}

impl<E: Element> Regressor<E> {
    /// A regressor with random initial values.
    ///
    /// Each part draws from a stream of its own: regressors that differ in the attention mechanism
    /// alone share the initial values of everything else.
    ///
    /// # Errors
    /// A setting that is out of range is refused.
    pub fn try_new(device: &Cpu, config: &RegressorConfig, seed: Seed) -> Result<Self, Error> {
        config.validate()?;
        let RegressorConfig { inputs, width, .. } = *config;
        let stream = |part: &str| seed.child(part).stream("initial values");
        let layer = config.layer();
        Ok(Self {
            input: Linear::try_new(device, inputs, width, &mut stream("input"))?,
            layer: EncoderLayer::with_activation(device, &layer, Activation::Relu, seed)?,
            output: Linear::try_new(device, width, 1, &mut stream("output"))?,
        })
    }

    /// Goes to another step of training; see [`MultiHead::go_to_step`](bochner_attention::MultiHead::go_to_step).
    pub fn go_to_step(&mut self, step: u64) {
        self.layer.go_to_step(step);
    }

    /// Predictions `[1, N, 1]` for the rows `[1, N, inputs]`, and the attention's penalty.
    ///
    /// # Errors
    /// [`Error::Nn`] if the rows do not have the regressor's number of inputs.
    pub fn apply<T: Tape<E, Cpu>>(
        &self,
        rows: Sequences<E, T>,
        pass: Pass,
    ) -> Result<Encoded<E, T>, Error> {
        let encoded = self
            .layer
            .apply(self.input.apply(rows)?, &Mask::none(), pass)?;
        Ok(Attention {
            output: self.output.apply(encoded.output)?,
            penalty: encoded.penalty,
        })
    }

    /// Weights, spectral points and other inner values of the attention on the given rows.
    ///
    /// # Errors
    /// The errors of [`Regressor::apply`].
    pub fn inspect(
        &self,
        rows: Sequences<E, NoneTape>,
        pass: Pass,
    ) -> Result<Inspection<E>, Error> {
        self.layer
            .inspect(self.input.apply(rows)?, &Mask::none(), pass)
    }
}

impl<E: Element> Parameters<E> for Regressor<E> {
    fn for_each(&self, prefix: &str, f: &mut dyn FnMut(&str, &dyn Parameter<E>)) {
        self.input.for_each(&join(prefix, "input"), f);
        self.layer.for_each(prefix, f);
        self.output.for_each(&join(prefix, "output"), f);
    }

    fn for_each_mut(&mut self, prefix: &str, f: &mut dyn FnMut(&str, &mut dyn ParameterMut<E>)) {
        self.input.for_each_mut(&join(prefix, "input"), f);
        self.layer.for_each_mut(prefix, f);
        self.output.for_each_mut(&join(prefix, "output"), f);
    }

    fn for_each_size(&self, prefix: &str, f: &mut dyn FnMut(&str, usize)) {
        self.layer.for_each_size(prefix, f);
    }
}
