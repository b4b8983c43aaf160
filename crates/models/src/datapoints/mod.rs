//! Attention between datapoints: tables whose rows, and whose columns, attend to one another.
//!
//! A [`Table`] holds inputs and targets alike; what is to be predicted is hidden. The [model](Npt) reads the whole table at
//! once, so that the prediction of one row can rest on the targets of others.

mod block;
mod cells;
mod table;
mod task;

pub use block::{Between, Block, BlockConfig, Normalised};
pub use table::{Column, Table};
pub use task::{Cell, Example, Masking, Task, Trainer};

use crate::Error;
use crate::encoder::{Encoded, Logits, Sequences};
use bochner_attention::{Pass, Variant, card::Penalty, layer::Attention, mechanism::Inspection};
use bochner_nn::{Element, Parameters, TapeInputs, record_one};
use bochner_numerics::{ArgumentError, Seed, argument, standard_normal};
use cells::{Decode, Encode, starts};
use dfdx::shapes::HasShape;
use dfdx::tensor::{Cpu, Merge, NoneTape, Tape, Tensor, TensorFromVec, ZerosTensor};
use dfdx::tensor_ops::{TryAdd, TryMul};
use ndarray::{Array2, s};
use serde::{Deserialize, Serialize};

/// Settings of an [`Npt`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", remote = "Self")]
pub struct NptConfig {
    /// The contents of the columns of a table.
    pub columns: Vec<Column>,
    /// The width e of a cell.
    pub width: usize,
    /// Number of heads; must divide the widths of a row and of a cell, as far as blocks attend between them.
    pub heads: usize,
    /// The tokens that each block attends between, for at least one block. The paper alternates rows and columns, rows
    /// first.
    pub blocks: Vec<Between>,
    /// The attention mechanism of all blocks; see [`BlockConfig::attention`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub attention: Option<Variant>,
    /// The inputs of attention that are normalised.
    #[serde(default)]
    pub normalised: Normalised,
    /// Rate of dropout; see [`BlockConfig::dropout`].
    #[serde(default)]
    pub dropout: f64,
    /// The number that all norms add to the variance, above 0.
    #[serde(default = "block::epsilon")]
    pub epsilon: f64,
}

bochner_numerics::checked_when_read!(NptConfig);

/// Numbers and classes of all columns together, at most.
const LARGEST: usize = 1 << 24;

impl NptConfig {
    fn validate(&self) -> Result<(), ArgumentError> {
        argument::at_least_one("columns", self.columns.len())?;
        argument::at_least_one("blocks", self.blocks.len())?;
        let mut sizes = 0_usize;
        for column in &self.columns {
            argument::at_least_one("classes of a column", column.size())?;
            sizes = sizes.saturating_add(column.size().saturating_add(1));
        }
        let fits = sizes <= LARGEST;
        argument::in_range(fits, "classes of all columns", sizes as f64, "at most 2^24")?;
        self.blocks
            .iter()
            .try_for_each(|&between| self.block(between).validate())
    }

    fn block(&self, between: Between) -> BlockConfig {
        BlockConfig {
            columns: self.columns.len(),
            width: self.width,
            heads: self.heads,
            between,
            attention: self.attention.clone(),
            normalised: self.normalised,
            dropout: self.dropout,
            epsilon: self.epsilon,
        }
    }
}

/// A non-parametric Transformer: cells become vectors, blocks of attention between rows and between columns follow one
/// another, and from each vector what stands in its cell is inferred.
///
/// $$h_{ij} = W_j x_{ij} + b_j, \qquad H' = \mathrm{Block}\_L(\dots \mathrm{Block}\_1(H)), \qquad y_{ij} = U_j h'\_{ij} + c_j$$
///
/// where $x_{ij}$ is a number, or a class as a unit vector, with a further coordinate that says hidden. The embeddings of a
/// column's index and of its kind, which the paper adds, are in $b_j$. Permuted rows give permuted predictions.
///
/// # Reference
/// Kossen et al., *Self-Attention Between Datapoints: Going Beyond Individual Input-Output Pairs in Deep Learning*, 2021.
#[derive(Clone, Debug)]
pub struct Npt<E: Element> {
    /// W of all columns, `[sizes + columns, e]`: for each column the rows of its values, then that of a hidden cell.
    pub cell_weight: Tensor<(usize, usize), E, Cpu>,
    /// b, `[columns, e]`.
    pub cell_bias: Tensor<(usize, usize), E, Cpu>,
    /// The blocks.
    pub blocks: Vec<Block<E>>,
    /// U of all columns, `[sizes, e]`.
    pub value_weight: Tensor<(usize, usize), E, Cpu>,
    /// c of all columns, `[sizes]`.
    pub value_bias: Tensor<(usize,), E, Cpu>,
    config: NptConfig,
    /// The number of training steps taken, which determines the weight of the features.
    step: u64,
}

impl<E: Element> Npt<E> {
    /// A model with random initial values.
    ///
    /// # Errors
    /// A setting that is out of range is refused.
    pub fn try_new(device: &Cpu, config: &NptConfig, seed: Seed) -> Result<Self, Error> {
        config.validate()?;
        let (e, columns) = (config.width, config.columns.len());
        let normal = |part: &str, rows: usize, scale: f64| {
            let mut stream = seed.child(part).stream("initial values");
            let value = || E::of(scale * standard_normal::<f64>(&mut stream));
            let values = std::iter::repeat_with(value).take(rows * e).collect();
            device
                .try_tensor_from_vec(values, (rows, e))
                .map_err(bochner_nn::Error::from)
        };
        let (_, sizes) = starts(&config.columns, 0);
        let blocks = config.blocks.iter().zip(0..).map(|(&between, i)| {
            let seed = seed.child("block").nth(i);
            Block::try_new(device, &config.block(between), seed)
        });
        Ok(Self {
            cell_weight: normal("cells", sizes + columns, 1.0)?,
            cell_bias: normal("columns", columns, 1.0)?,
            blocks: blocks.collect::<Result<_, _>>()?,
            value_weight: normal("values", sizes, (e as f64).sqrt().recip())?,
            value_bias: device
                .try_zeros_like(&(sizes,))
                .map_err(bochner_nn::Error::from)?,
            config: config.clone(),
            step: 0,
        })
    }

    /// The settings.
    pub fn config(&self) -> &NptConfig {
        &self.config
    }

    /// Predicts every cell of a table, known cells included: numbers, and the logits of classes, `[n, sizes]`, column
    /// after column. Returns the attention's penalty too.
    ///
    /// # Errors
    /// [`Error::Argument`] for a table with other columns; the errors of [`Block::apply`].
    pub fn apply<T: Tape<E, Cpu> + Merge<T>>(
        &self,
        table: &Table,
        tape: T,
        pass: Pass,
    ) -> Result<Logits<E, T>, Error> {
        let columns = &self.config.columns;
        let h = self.vectors(table, tape)?;
        let Encoded { output: h, penalty } = self.through_blocks(h, pass)?;
        let inputs = TapeInputs::<E, T>::new()
            .with(h)?
            .with(self.value_weight.clone())?
            .with(self.value_bias.clone())?;
        let (_, sizes) = starts(columns, 0);
        let output = record_one(Decode(columns.clone()), inputs, (table.rows(), sizes))?;
        Ok(Attention { output, penalty })
    }

    /// The vectors of all cells, `[n, columns, width]`.
    fn vectors<T: Tape<E, Cpu>>(&self, table: &Table, tape: T) -> Result<Sequences<E, T>, Error> {
        let columns = &self.config.columns;
        let fits = table.columns() == &columns[..];
        let allowed = "those that the model was made for, in their order";
        argument::in_range(
            fits,
            "columns of the table",
            table.columns().len() as f64,
            allowed,
        )?;
        let shape = (table.rows(), columns.len(), self.config.width);
        let inputs = TapeInputs::on(tape)
            .with(self.cell_weight.clone())?
            .with(self.cell_bias.clone())?;
        Ok(record_one(Encode::new(table), inputs, shape)?)
    }

    fn through_blocks<T: Tape<E, Cpu> + Merge<T>>(
        &self,
        mut h: Sequences<E, T>,
        pass: Pass,
    ) -> Result<Encoded<E, T>, Error> {
        let mut penalty = None;
        for (block, i) in self.blocks.iter().zip(0..) {
            let through = block.apply(h, pass.nth(i))?;
            h = through.output;
            // Blocks that take each row for an example have a sum over the rows; a table is one example.
            let examples = match block.config().between {
                Between::Datapoints => 1,
                Between::Attributes | Between::Nothing => h.shape().0,
            };
            let share = E::of((examples as f64).recip());
            let own = (through.penalty.try_mul(share)).map_err(bochner_nn::Error::from)?;
            penalty = Some(match penalty.take() {
                None => own,
                Some(sum) => own.try_add(sum).map_err(bochner_nn::Error::from)?,
            });
        }
        let penalty = penalty.expect("at least one block");
        Ok(Attention { output: h, penalty })
    }

    /// Weights of every head, spectral points and other inner values of each block's attention to a table of n rows.
    ///
    /// # Shapes
    /// The weights of a block are those of [`Block::inspect`]: `[1, heads, n, n]` between datapoints,
    /// `[n, heads, columns, columns]` between attributes.
    ///
    /// # Errors
    /// The errors of [`apply`](Self::apply), and of [`Block::inspect`].
    pub fn inspect(&self, table: &Table, pass: Pass) -> Result<Vec<Inspection<E>>, Error> {
        let mut h = self.vectors(table, NoneTape)?;
        let mut seen = Vec::with_capacity(self.blocks.len());
        for (block, i) in self.blocks.iter().zip(0..) {
            seen.push(block.inspect(h.clone(), pass.nth(i))?);
            h = block.apply(h, pass.nth(i))?.output;
        }
        Ok(seen)
    }

    /// Predicts a column: numbers, `[n, 1]`, or the logits of classes, `[n, classes]`.
    ///
    /// # Errors
    /// [`Error::Argument`] for a column that does not exist; the errors of [`apply`](Self::apply).
    pub fn predict(&self, table: &Table, column: usize, pass: Pass) -> Result<Array2<E>, Error> {
        argument::index("column", column, self.config.columns.len())?;
        let values = self.apply(table, NoneTape, pass)?.output.as_vec();
        let (starts, sizes) = starts(&self.config.columns, 0);
        let values = Array2::from_shape_vec((table.rows(), sizes), values);
        let values = values.expect("a tensor has the elements of its shape");
        let own = starts[column]..starts[column] + self.config.columns[column].size();
        Ok(values.slice(s![.., own]).to_owned())
    }

    /// Goes to another step of training; see [`MultiHead::go_to_step`](bochner_attention::MultiHead::go_to_step).
    pub fn go_to_step(&mut self, step: u64) {
        self.step = step;
        self.blocks
            .iter_mut()
            .for_each(|block| block.go_to_step(step));
    }

    /// The kind of the attention's penalty.
    fn penalty(&self) -> Penalty {
        self.config
            .attention
            .as_ref()
            .map_or(Penalty::None, |variant| variant.card().penalty)
    }
}

impl<E: Element> Parameters<E> for Npt<E> {
    bochner_nn::visit_fields!(E: cell_weight, cell_bias, blocks, value_weight, value_bias);
}
