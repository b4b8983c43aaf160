//! Learning to fill in the hidden cells of tables.

use super::cells::{CellError, Wanted};
use super::{Column, Npt, NptConfig, Table};
use crate::Error;
use crate::attention::admit_dropout;
use crate::encoder::Logits;
use crate::fingerprint::fingerprint;
use crate::training::{self, Objective};
use bochner_attention::{Pass, mechanism::Inspection};
use bochner_nn::{TapeInputs, record_one, tape_adding_to};
use bochner_numerics::{Seed, argument};
use dfdx::prelude::OwnedTape;
use dfdx::tensor::{Cpu, Gradients};
use rand::Rng;
use rand::seq::SliceRandom;

/// The row and the column of a cell, and what it holds.
pub type Cell = ([usize; 2], f32);

/// A table with hidden cells, some of which are known to whoever trains.
#[derive(Clone, Debug, PartialEq)]
pub struct Example {
    table: Table,
    /// Row and column of the hidden cells that are learnt from in every step, and what they hold.
    wanted: Vec<Cell>,
}

impl Example {
    /// A table, and the hidden cells that are learnt from in every step: row and column, and what they hold.
    ///
    /// # Errors
    /// [`Error::Argument`] for a cell that there is not, one that is known, one that is named twice, and one that holds what
    /// its column does not.
    pub fn new(table: Table, wanted: Vec<Cell>) -> Result<Self, Error> {
        for &([row, column], value) in &wanted {
            argument::index("rows of wanted cells", row, table.rows())?;
            argument::index("columns of wanted cells", column, table.columns().len())?;
            table.columns()[column].check(column, value)?;
            let hidden = !table.is_known()[[row, column]];
            let name = format!("wanted cell of row {row} and column {column}");
            argument::in_range(hidden, name, f64::from(value), "of a hidden cell")?;
        }
        let mut cells: Vec<_> = wanted.iter().map(|(cell, _)| *cell).collect();
        cells.sort_unstable();
        cells.dedup();
        argument::shape("wanted cells, each once", &[cells.len()], &[wanted.len()])?;
        Ok(Self { table, wanted })
    }
}

/// The known cells that training hides besides those that examples hide, and the weights of their errors.
#[derive(Clone, Debug, PartialEq)]
pub struct Masking {
    /// The columns of targets.
    pub targets: Vec<usize>,
    /// The chance that a known target is hidden in a step. Targets that are not hidden stay visible to other cells.
    pub target_rate: f64,
    /// The chance that a known cell of another column is hidden (nine times of ten) or replaced by the value of a row
    /// drawn at random.
    pub feature_rate: f64,
    /// The initial weight of the features' error, from 0 to 1; the error of targets has the remaining weight. It falls
    /// to 0 along a cosine.
    pub feature_weight: f64,
    /// The number of steps after which it is 0.
    pub steps: u64,
}

impl Masking {
    /// Hides only the cells that examples hide.
    pub const NONE: Self = Self {
        targets: Vec::new(),
        target_rate: 0.0,
        feature_rate: 0.0,
        feature_weight: 0.0,
        steps: 1,
    };

    fn validate(&self, columns: usize) -> Result<(), Error> {
        for &column in &self.targets {
            argument::index("targets", column, columns)?;
        }
        for (name, share) in [
            ("target_rate", self.target_rate),
            ("feature_rate", self.feature_rate),
            ("feature_weight", self.feature_weight),
        ] {
            argument::in_range((0.0..=1.0).contains(&share), name, share, "from 0 to 1")?;
        }
        argument::at_least_one("steps", self.steps as usize)?;
        Ok(())
    }

    /// The weight of the features' error after a number of steps.
    fn weight_after(&self, step: u64) -> f64 {
        let share = step.min(self.steps) as f64 / self.steps as f64;
        self.feature_weight * 0.5 * (1.0 + (std::f64::consts::PI * share).cos())
    }
}

/// Tables whose hidden cells are to be filled in: all of one kind, one for each step.
#[derive(Clone, Debug, PartialEq)]
pub struct Task {
    examples: Vec<Example>,
    masking: Masking,
}

/// A non-parametric Transformer in training, with its tables, optimiser and random stream.
///
/// The objective of a table is $(1 - \lambda)$ times the mean error of the hidden targets plus $\lambda$ times that of the
/// hidden features: squared errors of numbers and cross-entropies of classes, each group over its number of cells. Where no
/// feature is hidden $\lambda$ is 0, and where no target is hidden that group adds nothing.
///
/// ```
/// use bochner_models::datapoints::{Between, Column, Example, Masking, NptConfig, Table, Task, Trainer};
/// use bochner_models::training::TrainingConfig;
/// use bochner_numerics::Seed;
/// use bochner_models::ndarray::{Array2, arr2};
///
/// // Rows of a number and its class; the class of the last row is hidden, and wanted.
/// let values = arr2(&[[-1.0, 0.0], [2.0, 1.0], [1.0, 1.0], [-2.0, 0.0], [1.5, 0.0]]);
/// let is_known = Array2::from_shape_fn((5, 2), |cell| cell != (4, 1));
/// let table = Table::new(vec![Column::Number, Column::Class(2)], values, is_known)?;
/// let task = Task::new(vec![Example::new(table.clone(), vec![([4, 1], 1.0)])?], Masking::NONE)?;
/// let config = NptConfig {
///     columns: table.columns().to_vec(),
///     width: 8,
///     heads: 2,
///     blocks: vec![Between::Datapoints, Between::Attributes],
///     attention: None,
///     normalised: Default::default(),
///     dropout: 0.0,
///     epsilon: 1e-12,
/// };
/// let mut trainer = Trainer::new(&config, &TrainingConfig::default(), task, Seed::new(1))?;
/// let first = trainer.epoch()?.error;
/// for _ in 0..20 {
///     trainer.epoch()?;
/// }
/// assert!(trainer.epoch()?.error < first);
/// let logits = trainer.predict(&table, 1)?;
/// assert!(logits[[4, 1]] > logits[[4, 0]]);
/// // Both heads of the first block weigh five rows, those of the second the two columns of each row.
/// let seen = trainer.inspect(&table)?;
/// assert_eq!([0, 1].map(|i| seen[i].weights.dim()), [(1, 2, 5, 5), (5, 2, 2, 2)]);
/// # Ok::<(), bochner_models::Error>(())
/// ```
pub type Trainer = training::Trainer<Task>;

impl Task {
    /// Creates a task of tables with the same columns.
    ///
    /// # Errors
    /// [`Error::Argument`] without examples, for tables with different columns, for an example without a wanted cell in
    /// which no cell of any weight is ever hidden, or for a setting that is out of range.
    pub fn new(examples: Vec<Example>, masking: Masking) -> Result<Self, Error> {
        argument::at_least_one("examples", examples.len())?;
        let columns = examples[0].table.columns();
        for (i, example) in examples.iter().enumerate() {
            let alike = example.table.columns() == columns;
            argument::in_range(
                alike,
                "columns of example",
                i as f64,
                "with the columns of the first",
            )?;
            let hides = !masking.targets.is_empty() && masking.target_rate > 0.0;
            let learns_features = masking.feature_rate > 0.0 && masking.feature_weight > 0.0;
            let learns = hides || learns_features || !example.wanted.is_empty();
            let allowed = "with wanted cells, unless masking hides some that count";
            argument::in_range(learns, "example", i as f64, allowed)?;
        }
        masking.validate(columns.len())?;
        Ok(Self { examples, masking })
    }

    fn columns(&self) -> &[Column] {
        self.examples[0].table.columns()
    }

    /// A table as a step reads it, and the cells that are wanted of it: targets, and other features.
    fn masked(&self, example: &Example, seed: Seed) -> (Table, [Vec<Cell>; 2]) {
        let mut table = example.table.clone();
        let (mut targets, mut features) = (example.wanted.clone(), Vec::new());
        let Masking {
            targets: of_targets,
            target_rate,
            feature_rate,
            ..
        } = &self.masking;
        let mut stream = seed.stream("masking");
        for column in 0..table.columns().len() {
            let is_target = of_targets.contains(&column);
            let rate = if is_target {
                *target_rate
            } else {
                *feature_rate
            };
            if rate == 0.0 {
                continue;
            }
            let known = (0..table.rows()).filter(|&row| example.table.is_known()[[row, column]]);
            let known: Vec<usize> = known.collect();
            for &row in &known {
                if stream.r#gen::<f64>() >= rate {
                    continue;
                }
                let (cell, value) = ([row, column], example.table.values()[[row, column]]);
                if is_target {
                    table.hide(cell);
                    targets.push((cell, value));
                    continue;
                }
                if stream.r#gen::<f64>() < REPLACED {
                    let other = known.choose(&mut stream).expect("this row is known");
                    table.put(cell, example.table.values()[[*other, column]]);
                } else {
                    table.hide(cell);
                }
                features.push((cell, value));
            }
        }
        (table, [targets, features])
    }
}

/// The share of masked features that hold some row's value instead of nothing.
const REPLACED: f64 = 0.1;

impl training::Task for Task {
    type Model = Npt<f32>;
    type Config = NptConfig;
    /// The place of a table.
    type Batch = usize;
    /// The numbers of all cells with the penalty, and the cells that count: targets, and other features.
    type Output = (Logits<f32, OwnedTape<f32, Cpu>>, [Vec<Cell>; 2]);

    const MODEL: &'static str = "non_parametric_transformer";

    fn model(&self, config: &NptConfig, seed: Seed) -> Result<Npt<f32>, Error> {
        let fits = config.columns == self.columns();
        let allowed = "those of the tables";
        argument::in_range(fits, "columns", config.columns.len() as f64, allowed)?;
        if let Some(attention) = &config.attention {
            admit_dropout(attention, config.dropout)?;
        }
        Npt::try_new(&Cpu::default(), config, seed)
    }

    fn fingerprint(&self) -> String {
        let Masking {
            targets,
            target_rate,
            feature_rate,
            feature_weight,
            steps,
        } = &self.masking;
        let rates = [*target_rate, *feature_rate, *feature_weight].map(f64::to_bits);
        let settings = rates
            .into_iter()
            .chain([*steps, targets.len() as u64])
            .chain(targets.iter().map(|&t| t as u64));
        let settings = settings.flat_map(|word| [word as u32, (word >> 32) as u32]);
        let tables = self.examples.iter().flat_map(|example| {
            let cells = example
                .table
                .values()
                .into_iter()
                .zip(example.table.is_known());
            let cells = cells.flat_map(|(value, known)| [value.to_bits(), u32::from(*known)]);
            let wanted = example.wanted.iter();
            let wanted = wanted
                .flat_map(|&([row, column], value)| [row as u32, column as u32, value.to_bits()]);
            let sizes = [example.table.rows() as u32, example.wanted.len() as u32];
            sizes
                .into_iter()
                .chain(cells)
                .chain(wanted)
                .collect::<Vec<_>>()
        });
        fingerprint(settings.chain(tables))
    }

    fn batches(&self, next: &mut dyn FnMut() -> Seed) -> Result<Vec<usize>, Error> {
        let mut order: Vec<usize> = (0..self.examples.len()).collect();
        order.shuffle(&mut next().stream("batches"));
        Ok(order)
    }

    fn examples(&self, _: &usize) -> usize {
        1
    }

    fn forward(
        &self,
        model: &Npt<f32>,
        example: &usize,
        gradients: Gradients<f32, Cpu>,
        seed: Seed,
    ) -> Result<Self::Output, Error> {
        let (table, wanted) = self.masked(&self.examples[*example], seed);
        let dropout = model.config().dropout;
        let pass = Pass::Training { seed, dropout };
        Ok((
            model.apply(&table, tape_adding_to(gradients)?, pass)?,
            wanted,
        ))
    }

    fn objective(
        &self,
        model: &Npt<f32>,
        _: &usize,
        (values, groups): Self::Output,
        part: f64,
    ) -> Result<Objective, Error> {
        let share = model.penalty().share(1, part, self.examples.len());
        let of_features = match groups[1].is_empty() {
            true => 0.0,
            false => self.masking.weight_after(model.step),
        };
        let of_cells = |group: &[Cell], share: f64| {
            let share = share / group.len().max(1) as f64;
            let wanted = group.iter();
            let wanted = wanted.map(|&(cell, value)| Wanted { cell, value, share });
            wanted.collect::<Vec<_>>()
        };
        let columns = self.columns().to_vec();
        let (reported, _) = CellError {
            columns: columns.clone(),
            wanted: of_cells(&groups[0], 1.0),
        }
        .of(&values.output.as_vec());
        let [targets, features] = [1.0 - of_features, of_features];
        let operation = CellError {
            columns,
            wanted: [
                of_cells(&groups[0], targets),
                of_cells(&groups[1], features),
            ]
            .concat(),
        };
        let inputs = TapeInputs::<f32, OwnedTape<f32, Cpu>>::new().with(values.output)?;
        let loss = record_one(operation, inputs, ())?;
        Objective::new(loss, (values.penalty, share), reported)
    }

    fn go_to_step(model: &mut Npt<f32>, step: u64) {
        model.go_to_step(step);
    }
}

impl Trainer {
    /// [`Npt::predict`] by the model as it stands, in evaluation.
    ///
    /// # Errors
    /// The errors of [`Npt::predict`].
    pub fn predict(&self, table: &Table, column: usize) -> Result<ndarray::Array2<f32>, Error> {
        self.model().predict(table, column, self.evaluation_pass())
    }

    /// [`Npt::inspect`] by the model as it stands, in evaluation: weights of every block and head, spectral points and
    /// other inner values of the attention.
    ///
    /// # Errors
    /// The errors of [`Npt::inspect`].
    pub fn inspect(&self, table: &Table) -> Result<Vec<Inspection<f32>>, Error> {
        self.model().inspect(table, self.evaluation_pass())
    }
}
