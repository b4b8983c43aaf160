//! One block: attention between the rows of a table, or between its columns.

use crate::Error;
use crate::encoder::{Encoded, Sequences, check_layer, pre_norm};
use bochner_attention::{
    Mask, MultiHead, MultiHeadConfig, Pass, Softmax, Variant, layer::Attention,
    mechanism::Inspection,
};
use bochner_nn::{
    Dropout, Element, FeedForward, FeedForwardConfig, LayerNorm, Linear, Parameters, TapeInputs,
    record_one,
};
use bochner_numerics::{ArgumentError, Seed, argument};
use bochner_ops::{Activation, Mode};
use dfdx::shapes::HasShape;
use dfdx::tensor::{Cpu, Merge, NoneTape, Tape, WithEmptyTape};
use dfdx::tensor_ops::{ReshapeTo, TryAdd};
use serde::{Deserialize, Serialize};

/// The tokens that a [`Block`] attends between.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Between {
    /// Between the rows (ABD): a token is a whole row, of the width of all its columns together.
    Datapoints,
    /// Between the columns of each row (ABA): a token is a cell.
    Attributes,
    /// Between nothing: every row is a token by itself, as in [`Between::Datapoints`] with a single row. A control: the same
    /// parameters without attention between rows.
    Nothing,
}

/// The inputs of attention that a [`Block`] normalises.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Normalised {
    /// Normalises the inputs of queries, keys and values, as the paper says.
    #[default]
    All,
    /// Normalises the inputs of queries alone, as the authors' code does. Keys and values read the table as it is.
    Queries,
}

/// Settings of a [`Block`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", remote = "Self")]
pub struct BlockConfig {
    /// The number of columns.
    pub columns: usize,
    /// The width e of a cell.
    pub width: usize,
    /// Number of heads; must divide the width of a token.
    pub heads: usize,
    /// The tokens that the block attends between.
    pub between: Between,
    /// The attention mechanism; `None` for softmax attention with the scale $1 / \sqrt h$, where h is the width of a token,
    /// not of a head, as in the paper.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub attention: Option<Variant>,
    /// The inputs of attention that are normalised.
    #[serde(default)]
    pub normalised: Normalised,
    /// Rate of dropout on the hidden layer and on both branches; that on attention weights, where the mechanism has any,
    /// comes with the [`Pass`].
    #[serde(default)]
    pub dropout: f64,
    /// The number that both norms add to the variance, above 0.
    #[serde(default = "epsilon")]
    pub epsilon: f64,
}

/// The authors' number.
pub(super) fn epsilon() -> f64 {
    1e-12
}

bochner_numerics::checked_when_read!(BlockConfig);

impl BlockConfig {
    /// The width h of a token.
    pub fn token(&self) -> usize {
        match self.between {
            Between::Datapoints | Between::Nothing => self.columns.saturating_mul(self.width),
            Between::Attributes => self.width,
        }
    }

    pub(super) fn validate(&self) -> Result<(), ArgumentError> {
        argument::at_least_one("columns", self.columns)?;
        argument::at_least_one("width", self.width)?;
        argument::positive("epsilon", self.epsilon)?;
        check_layer([self.token(), self.heads, 1], self.dropout)
    }

    fn variant(&self) -> Variant {
        let scale = Some((self.token() as f64).sqrt().recip());
        let softmax = || Softmax { scale }.into();
        self.attention.clone().unwrap_or_else(softmax)
    }
}

/// Attention between the rows of a table or between its columns, and a feed-forward part.
///
/// $$Y = H W_r^\top + b_r + \mathrm{MultiHead}(\mathrm{LN}_0(H)), \qquad
/// H' = Y + W_2 \mathrm{GELU}(W_1 \mathrm{LN}_1(Y) + b_1) + b_2$$
///
/// where H holds one token a row: whole rows of the table, $[n, d e]$, or for each row its cells, $[d, e]$. The hidden layer
/// is four times as wide as a token. Whatever permutes the rows of a table permutes those of the output.
///
/// # Reference
/// Kossen et al., *Self-Attention Between Datapoints*, 2021, section 2; [`Normalised`] says where text and code differ.
#[derive(Clone, Debug)]
pub struct Block<E: Element> {
    /// The attention.
    pub attention: MultiHead<usize, E>,
    /// The norm before the attention.
    pub attention_norm: LayerNorm<usize, E>,
    /// The map of what passes by the attention.
    pub residual: Linear<usize, usize, E>,
    /// The feed-forward part.
    pub feed_forward: FeedForward<usize, usize, usize, E>,
    /// The norm before the feed-forward part.
    pub feed_forward_norm: LayerNorm<usize, E>,
    /// The settings.
    config: BlockConfig,
    dropout: Dropout,
}

impl<E: Element> Block<E> {
    /// A block with random initial values.
    ///
    /// # Errors
    /// A setting that is out of range is refused; [`Error::Unsupported`] for attention between rows with a mechanism that
    /// sees their order, which a table does not have; [`Error::Attention`] for a mechanism that does not attend to a second
    /// sequence with [`Normalised::Queries`].
    pub fn try_new(device: &Cpu, config: &BlockConfig, seed: Seed) -> Result<Self, Error> {
        config.validate()?;
        let card = config.variant().card();
        let sees_order = card.symmetry.sees_order();
        if config.between == Between::Datapoints && sees_order {
            return Err(Error::Unsupported {
                what: "attention between the rows of a table that sees their order: they have none",
                instead: "a mechanism whose card says `Symmetry::Permutations` or `Symmetry::JointPermutations`",
            });
        }
        if config.normalised == Normalised::Queries {
            // Keys and values read the table as it is, which is another sequence than the queries'.
            let what = "attention to another sequence with this mechanism";
            card.cross.required(what)?;
        }
        let (token, dropout) = (config.token(), config.dropout);
        let stream = |part: &str| seed.child(part).stream("initial values");
        let multi_head = MultiHeadConfig {
            heads: config.heads,
            variant: config.variant(),
            dropout,
            seed: seed.child("attention"),
            ..MultiHeadConfig::default()
        };
        let feed_forward = FeedForwardConfig {
            dropout,
            hidden: Activation::Gelu,
            ..FeedForwardConfig::default()
        };
        let sizes = (token, token.saturating_mul(4), token);
        let norm = || -> Result<_, Error> {
            let mut norm = LayerNorm::try_new(device, token)?;
            norm.epsilon = config.epsilon;
            Ok(norm)
        };
        Ok(Self {
            attention: MultiHead::try_new(device, token, multi_head, &mut stream("attention"))?,
            attention_norm: norm()?,
            residual: Linear::try_new(device, token, token, &mut stream("residual"))?,
            feed_forward: FeedForward::try_new(
                device,
                sizes,
                feed_forward,
                &mut stream("feed-forward"),
            )?,
            feed_forward_norm: norm()?,
            config: config.clone(),
            dropout: Dropout::new(dropout)?,
        })
    }

    /// The settings.
    pub fn config(&self) -> &BlockConfig {
        &self.config
    }

    /// The table behind the block, and the attention's penalty.
    ///
    /// # Shapes
    /// `table: [n, columns, width]` to the same.
    ///
    /// # Errors
    /// [`Error::Argument`] for another number of columns or another width, [`Error::Attention`] for what the attention
    /// refuses: the pass's dropout rate.
    pub fn apply<T: Tape<E, Cpu> + Merge<T>>(
        &self,
        table: Sequences<E, T>,
        pass: Pass,
    ) -> Result<Encoded<E, T>, Error> {
        let shape = *table.shape();
        let table = self.tokens(table)?;
        let mode = Mode::from(pass);
        let pass = pass.for_card(&self.config.variant().card());
        let normed = self.attention_norm.apply(table.with_empty_tape())?;
        let attended = match self.config.normalised {
            Normalised::All => self.attention.attend_self(normed, &Mask::none(), pass)?,
            Normalised::Queries => {
                let memory = table.with_empty_tape();
                self.attention.attend(normed, memory, &Mask::none(), pass)?
            }
        };
        let branch = self
            .dropout
            .apply(attended.output, mode.child("attention"))?;
        let middle = self
            .residual
            .apply(table)?
            .try_add(branch)
            .map_err(bochner_nn::Error::from)?;
        let output = self
            .fed_forward(middle, mode)?
            .try_reshape_like(&shape)
            .map_err(bochner_nn::Error::from)?;
        Ok(Attention {
            output,
            penalty: attended.penalty,
        })
    }

    /// The table as the attention reads it.
    fn tokens<T: Tape<E, Cpu>>(&self, table: Sequences<E, T>) -> Result<Sequences<E, T>, Error> {
        let BlockConfig { columns, width, .. } = self.config;
        let shape @ (rows, ..) = *table.shape();
        let (_, got_columns, got_width) = shape;
        argument::shape(
            "table",
            &[rows, columns, width],
            &[rows, got_columns, got_width],
        )?;
        let tokens = match self.config.between {
            Between::Datapoints => (1, rows, columns * width),
            Between::Attributes => shape,
            Between::Nothing => (rows, 1, columns * width),
        };
        let table = table.try_reshape_like(&tokens);
        Ok(table.map_err(bochner_nn::Error::from)?)
    }

    /// Weights of every head, spectral points and other inner values of the attention.
    ///
    /// # Shapes
    /// `table: [n, columns, width]` to weights `[1, heads, n, n]` between the rows, `[n, heads, columns, columns]` between
    /// the columns of each row, or `[n, heads, 1, 1]` of each row to itself.
    ///
    /// # Errors
    /// The errors of [`apply`](Self::apply); [`Error::Attention`] for a mechanism that shows no weights.
    pub fn inspect(
        &self,
        table: Sequences<E, NoneTape>,
        pass: Pass,
    ) -> Result<Inspection<E>, Error> {
        let table = self.tokens(table)?;
        let normed = self.attention_norm.apply(table.clone())?;
        let attention = &self.attention;
        let pass = pass.for_card(&self.config.variant().card());
        Ok(match self.config.normalised {
            Normalised::All => attention.inspect_self(normed, &Mask::none(), pass)?,
            Normalised::Queries => attention.inspect(normed, table, &Mask::none(), pass)?,
        })
    }

    /// The second half of the block.
    fn fed_forward<T: Tape<E, Cpu>>(
        &self,
        middle: Sequences<E, T>,
        mode: Mode,
    ) -> Result<Sequences<E, T>, Error> {
        let operation = pre_norm(
            &self.feed_forward_norm,
            self.feed_forward.operation(mode.child("feed-forward"))?,
            self.dropout,
            mode.child("feed-forward branch"),
        )?;
        let shape = *middle.shape();
        let inputs = TapeInputs::<E, T>::new().with(middle)?;
        let inputs = self.feed_forward.add_to(inputs)?;
        let inputs = self.feed_forward_norm.add_to(inputs)?;
        Ok(record_one(operation, inputs, shape)?)
    }

    /// Goes to another step of training; see [`MultiHead::go_to_step`].
    pub fn go_to_step(&mut self, step: u64) {
        self.attention.go_to_step(step);
    }
}

impl<E: Element> Parameters<E> for Block<E> {
    bochner_nn::visit_fields!(E: attention, attention_norm, residual, feed_forward, feed_forward_norm);
}
