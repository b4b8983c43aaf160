//! The paper's regressor: a data set as one sequence.

mod look_ahead;
mod task;
mod trainer;

pub use bochner_attention::Inspection;
pub use look_ahead::LookAhead;
pub use task::Task;
pub use trainer::{EpochReport, Trainer, TrainingConfig};

use crate::Error;
use bochner_attention::{Attention, Mask, MultiHead, MultiHeadConfig, Pass, Variant};
use bochner_nn::{
    Element, FeedForward, FeedForwardConfig, LayerNorm, Linear, Parameter, ParameterMut,
    Parameters, join,
};
use bochner_numerics::Seed;
use bochner_ops::{Activation, Mode};
use dfdx::tensor::{Cpu, Tape, Tensor};
use dfdx::tensor_ops::TryAdd;
use serde::{Deserialize, Serialize};

/// A sequence of rows, `[1, N, width]`.
type Sequence<E, T> = Tensor<(usize, usize, usize), E, Cpu, T>;

/// Settings of a [`Regressor`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
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
    /// Rate of dropout on attention weights, in the feed-forward part and on both residual
    /// branches.
    pub dropout: f64,
}

impl RegressorConfig {
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
    attention: MultiHead<usize, E>,
    attention_norm: LayerNorm<usize, E>,
    feed_forward: FeedForward<usize, usize, usize, E>,
    feed_forward_norm: LayerNorm<usize, E>,
    output: Linear<usize, usize, E>,
    residual_dropout: bochner_nn::Dropout,
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
        let RegressorConfig {
            inputs,
            width,
            heads,
            hidden,
            dropout,
            ..
        } = *config;
        let stream = |part: &str| seed.child(part).stream("initial values");
        let multi_head = MultiHeadConfig {
            heads,
            variant: config.attention.clone(),
            dropout,
            seed: seed.child("attention"),
            ..MultiHeadConfig::default()
        };
        let feed_forward = FeedForwardConfig {
            dropout,
            activation: Activation::Relu,
        };
        Ok(Self {
            input: Linear::try_new(device, inputs, width, &mut stream("input"))?,
            attention: MultiHead::try_new(device, width, multi_head, &mut stream("attention"))?,
            attention_norm: LayerNorm::try_new(device, width)?,
            feed_forward: FeedForward::try_new(
                device,
                (width, hidden, width),
                feed_forward,
                &mut stream("feed-forward"),
            )?,
            feed_forward_norm: LayerNorm::try_new(device, width)?,
            output: Linear::try_new(device, width, 1, &mut stream("output"))?,
            residual_dropout: bochner_nn::Dropout::new(dropout)?,
        })
    }

    /// Predictions `[1, N, 1]` for the rows `[1, N, inputs]`, and the attention's penalty.
    ///
    /// # Errors
    /// If the rows do not have the regressor's number of inputs.
    #[expect(clippy::type_complexity, reason = "the tensor types of dfdx are long")]
    pub fn apply<T: Tape<E, Cpu>>(
        &self,
        rows: Sequence<E, T>,
        pass: Pass,
    ) -> Result<Attention<Sequence<E, T>, Tensor<(), E, Cpu, T>>, Error> {
        let mode = match pass {
            Pass::Training { seed, .. } => Mode::Training(seed),
            Pass::Evaluation { .. } => Mode::Evaluation,
        };
        let x = self.input.apply(rows)?;
        let attended = self
            .attention
            .attend_self(x.retaped::<T>(), &Mask::none(), pass)?;
        let branch = self
            .residual_dropout
            .apply(attended.output, mode.child("attention"))?;
        let h = self.attention_norm.apply(add(x, branch)?)?;
        let branch = self
            .feed_forward
            .apply(h.retaped::<T>(), mode.child("feed-forward"))?;
        let branch = self
            .residual_dropout
            .apply(branch, mode.child("feed-forward branch"))?;
        let y = self.feed_forward_norm.apply(add(h, branch)?)?;
        Ok(Attention {
            output: self.output.apply(y)?,
            penalty: attended.penalty,
        })
    }

    /// Weights, spectral points and other inner values of the attention on the given rows.
    ///
    /// # Errors
    /// The errors of [`Regressor::apply`].
    pub fn inspect(
        &self,
        rows: Sequence<E, dfdx::tensor::NoneTape>,
        pass: Pass,
    ) -> Result<Inspection<E>, Error> {
        let x = self.input.apply(rows)?;
        Ok(self.attention.inspect(x.clone(), x, &Mask::none(), pass)?)
    }
}

fn add<E: Element, T: Tape<E, Cpu>>(
    a: Sequence<E, T>,
    b: Sequence<E, T>,
) -> Result<Sequence<E, T>, Error> {
    Ok(a.try_add(b).map_err(bochner_nn::Error::from)?)
}

impl<E: Element> Parameters<E> for Regressor<E> {
    fn for_each(&self, prefix: &str, f: &mut dyn FnMut(&str, &dyn Parameter<E>)) {
        self.input.for_each(&join(prefix, "input"), f);
        self.attention.for_each(&join(prefix, "attention"), f);
        self.attention_norm
            .for_each(&join(prefix, "attention_norm"), f);
        self.feed_forward.for_each(&join(prefix, "feed_forward"), f);
        self.feed_forward_norm
            .for_each(&join(prefix, "feed_forward_norm"), f);
        self.output.for_each(&join(prefix, "output"), f);
    }

    fn for_each_mut(&mut self, prefix: &str, f: &mut dyn FnMut(&str, &mut dyn ParameterMut<E>)) {
        self.input.for_each_mut(&join(prefix, "input"), f);
        self.attention.for_each_mut(&join(prefix, "attention"), f);
        self.attention_norm
            .for_each_mut(&join(prefix, "attention_norm"), f);
        self.feed_forward
            .for_each_mut(&join(prefix, "feed_forward"), f);
        self.feed_forward_norm
            .for_each_mut(&join(prefix, "feed_forward_norm"), f);
        self.output.for_each_mut(&join(prefix, "output"), f);
    }
}
