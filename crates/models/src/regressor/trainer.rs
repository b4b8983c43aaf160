//! Training a regressor, one full-batch step an epoch.

use super::{Regressor, RegressorConfig, Task};
use crate::Error;
use crate::attention::admit_dropout;
use crate::encoder::{Encoded, Sequences};
use crate::fingerprint::fingerprint;
use crate::training::{self, Objective, device_error};
use bochner_attention::{Card, Pass, card::Draws, mechanism::Inspection};
use bochner_nn::mean_squared_error;
use bochner_numerics::parallel::awake;
use bochner_numerics::{Seed, argument};
use bochner_ops::Rows;
use dfdx::prelude::{AsArray, OwnedTape, ReshapeTo, Trace};
use dfdx::tensor::{Cpu, Gradients, NoneTape, Tape, Tensor, TensorFromVec};
use ndarray::{Array1, ArrayView2, Axis, concatenate};

/// A regressor in training, with its data, optimiser and random stream.
///
/// The objective is $\mathrm{MSE} + \beta \mathrm{KL} / N_\text{train}$ over the training rows, and an epoch is one
/// full-batch step. A penalty that is a loss of the one sequence, such as
/// [`Primal`](bochner_attention::Primal)'s, is not divided.
///
/// ```
/// use bochner_attention::Softmax;
/// use bochner_models::regressor::{RegressorConfig, Task, Trainer, TrainingConfig};
/// use bochner_numerics::Seed;
/// use bochner_models::ndarray::{Array1, Array2};
///
/// let x = Array2::from_shape_fn((20, 1), |(i, _)| i as f32 / 10.0 - 1.0);
/// let y: Array1<f32> = x.column(0).mapv(|x| (2.0 * x).sin());
/// let task = Task::new(x, y, (0..20).filter(|i| i % 4 != 0).collect())?;
/// let config = RegressorConfig::new(1, Softmax::default().into());
/// let mut trainer = Trainer::new(&config, &TrainingConfig::regression(), task, Seed::new(1))?;
///
/// let first = trainer.epoch()?.error;
/// for _ in 0..30 {
///     trainer.epoch()?;
/// }
/// assert!(trainer.epoch()?.error < 0.5 * first);
/// assert_eq!(trainer.predict()?.len(), 20);
/// # Ok::<(), bochner_models::Error>(())
/// ```
pub type Trainer = training::Trainer<Task>;

/// Predictions with the tape of their forward pass, and the penalty.
pub(super) type Predicted = Encoded<f32, OwnedTape<f32, Cpu>>;

impl training::Task for Task {
    type Model = Regressor<f32>;
    type Config = RegressorConfig;
    /// All rows, which are one sequence.
    type Batch = ();
    type Output = Predicted;

    const MODEL: &'static str = "regressor";

    fn model(&self, config: &RegressorConfig, seed: Seed) -> Result<Regressor<f32>, Error> {
        let inputs = self.inputs().ncols();
        argument::shape("a row's inputs", &[config.inputs], &[inputs])?;
        admit_dropout(&config.attention, config.dropout)?;
        Regressor::try_new(&Cpu::default(), config, seed)
    }

    fn fingerprint(&self) -> String {
        let (rows, columns) = self.inputs().dim();
        let sizes = [rows, columns].into_iter();
        let numbers = sizes.chain(self.train().iter().copied());
        let values = self.inputs().iter().chain(self.target());
        let values = values.map(|value| value.to_bits());
        fingerprint(numbers.map(|number| number as u32).chain(values))
    }

    fn batches(&self, _: &mut dyn FnMut() -> Seed) -> Result<Vec<()>, Error> {
        Ok(vec![()])
    }

    fn examples(&self, (): &()) -> usize {
        self.train().len()
    }

    fn forward(
        &self,
        model: &Regressor<f32>,
        (): &(),
        gradients: Gradients<f32, Cpu>,
        seed: Seed,
    ) -> Result<Predicted, Error> {
        let dropout = model.layer.attention.config().dropout;
        self.read(model, gradients, Pass::Training { seed, dropout })
    }

    fn objective(
        &self,
        model: &Regressor<f32>,
        (): &(),
        predicted: Predicted,
        part: f64,
    ) -> Result<Objective, Error> {
        let share = model.card().penalty.share(1, part, self.train().len());
        let error = self.squared_error(predicted.output)?;
        let mse = f64::from(error.array());
        Objective::new(error, (predicted.penalty, share), [mse; 2])
    }

    fn go_to_step(model: &mut Regressor<f32>, step: u64) {
        model.go_to_step(step);
    }
}

impl Task {
    /// A forward pass with a tape.
    fn read(
        &self,
        model: &Regressor<f32>,
        gradients: Gradients<f32, Cpu>,
        pass: Pass,
    ) -> Result<Predicted, Error> {
        model.apply(sequence(self.inputs().view())?.trace(gradients), pass)
    }

    fn squared_error<T: Tape<f32, Cpu>>(
        &self,
        predicted: Sequences<f32, T>,
    ) -> Result<Tensor<(), f32, Cpu, T>, Error> {
        let n = self.target().len();
        let flat = predicted.try_reshape_like(&(n,)).map_err(device_error)?;
        let target = self.target().clone();
        Ok(mean_squared_error(flat, target, Rows::At(self.train()))?)
    }
}

/// Rows as one sequence, `[1, N, inputs]`.
fn sequence(rows: ArrayView2<f32>) -> Result<Sequences<f32, NoneTape>, Error> {
    let (n, inputs) = rows.dim();
    let flat = rows.iter().copied().collect();
    let rows = Cpu::default().try_tensor_from_vec(flat, (1, n, inputs));
    rows.map_err(device_error)
}

impl Regressor<f32> {
    /// The card of its attention.
    fn card(&self) -> Card {
        self.layer.attention.config().variant.card()
    }

    /// Whether training and evaluation predict alike.
    pub(super) fn is_deterministic(&self) -> bool {
        self.layer.attention.config().dropout == 0.0 && self.card().draws == Draws::Nothing
    }
}

impl Trainer {
    /// Predictions for all rows of the task, in evaluation; for others there is
    /// [`predict_rows`](Self::predict_rows).
    ///
    /// # Errors
    /// The errors of [`Trainer::epoch`](training::Trainer::epoch), apart from those of the gradient.
    pub fn predict(&self) -> Result<Array1<f32>, Error> {
        Ok(self.predict_all(self.task.inputs().view())?.into())
    }

    /// The predictions of [`predict`](Self::predict) if the rows were read in another order: `order` has the places of all
    /// rows, each once, and the prediction of a row stays at its own place. They differ if the attention sees the order.
    ///
    /// # Errors
    /// [`Error::Argument`] unless each row is named once; the errors of [`predict`](Self::predict).
    pub fn predict_in_order(&self, order: &[usize]) -> Result<Array1<f32>, Error> {
        let n = self.task.inputs().nrows();
        let mut sorted = order.to_vec();
        sorted.sort_unstable();
        sorted.dedup();
        argument::shape("order", &[n], &[order.len()])?;
        argument::shape("order, each row once", &[n], &[sorted.len()])?;
        argument::index("order", sorted[n - 1], n)?;
        let inputs = self.task.inputs().select(Axis(0), order);
        let mut predicted = Array1::zeros(n);
        for (&row, value) in order.iter().zip(self.predict_all(inputs.view())?) {
            predicted[row] = value;
        }
        Ok(predicted)
    }

    /// Weights, spectral points and other inner values of the attention on all rows, in evaluation.
    ///
    /// # Errors
    /// The errors of [`predict`](Self::predict).
    pub fn inspect(&self) -> Result<Inspection<f32>, Error> {
        let rows = sequence(self.task.inputs().view())?;
        self.model.inspect(rows, self.evaluation())
    }

    /// Predictions for new rows, `[K, inputs]` to `[K]`, in evaluation.
    ///
    /// The regressor reads whole data sets: the new rows, which the caller has scaled as those of the
    /// task, are put behind these, and everything is read as one sequence. This is how the rows of the test part
    /// are read in training, so that a task which had held the new rows among its own, not to be
    /// learned from, would have the same predictions for them with the same parameters.
    ///
    /// Rows that are asked for together attend to each other: a prediction depends, if mostly little,
    /// on the other new rows. Ask for them one by one where it must not.
    ///
    /// # Errors
    /// [`Error::Argument`] without rows, if they do not have the regressor's number of inputs, or if a number is
    /// not finite.
    ///
    /// ```
    /// use bochner_attention::Softmax;
    /// use bochner_models::regressor::{RegressorConfig, Task, Trainer, TrainingConfig};
    /// use bochner_numerics::Seed;
    /// use bochner_models::ndarray::{Array2, array};
    ///
    /// let x = Array2::from_shape_fn((20, 1), |(i, _)| i as f32 / 10.0 - 1.0);
    /// let y = x.column(0).mapv(|x| (2.0 * x).sin());
    /// let task = Task::new(x, y, (0..20).collect())?;
    /// let config = RegressorConfig::new(1, Softmax::default().into());
    /// let mut trainer = Trainer::new(&config, &TrainingConfig::regression(), task, Seed::new(1))?;
    /// for _ in 0..60 {
    ///     trainer.epoch()?;
    /// }
    /// let predicted = trainer.predict_rows(array![[-0.53], [0.07], [0.61]].view())?;
    /// let wanted = [-0.53_f32, 0.07, 0.61].map(|x| (2.0 * x).sin());
    /// assert!(predicted.iter().zip(wanted).all(|(y, wanted)| (y - wanted).abs() < 0.3));
    /// # Ok::<(), bochner_models::Error>(())
    /// ```
    pub fn predict_rows(&self, rows: ArrayView2<'_, f32>) -> Result<Array1<f32>, Error> {
        let (known, inputs) = self.task.inputs().dim();
        let (new, got) = rows.dim();
        argument::shape("new rows", &[new, inputs], &[new, got])?;
        argument::not_empty("new rows", &[new, got])?;
        argument::finite("new rows", &[new, got], rows)?;
        let all = concatenate![Axis(0), self.task.inputs().view(), rows];
        Ok(self.predict_all(all.view())?.split_off(known).into())
    }

    /// Predictions for rows, in evaluation.
    fn predict_all(&self, rows: ArrayView2<'_, f32>) -> Result<Vec<f32>, Error> {
        let rows = sequence(rows)?;
        let predicted = awake(|| self.model.apply::<NoneTape>(rows, self.evaluation()))?;
        Ok(predicted.output.as_vec())
    }

    /// Predictions in evaluation, with a tape from which a step can go on.
    pub(super) fn evaluate_ahead(&mut self) -> Result<Predicted, Error> {
        let (gradients, pass) = (self.descent.gradients(&self.model)?, self.evaluation());
        self.task.read(&self.model, gradients, pass)
    }

    /// The pass of an evaluation: one fixed draw, or, as the released code has it, a new one after every epoch.
    pub(super) fn evaluation(&self) -> Pass {
        let pass = self.evaluation_pass();
        match self.model.card().draws {
            Draws::InEveryPassAnew => pass.nth(self.stands_at),
            _ => pass,
        }
    }
}
