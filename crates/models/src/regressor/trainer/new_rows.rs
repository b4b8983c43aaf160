//! Predictions for rows that are not in the task.

use super::{NoneTape, Trainer};
use crate::Error;
use crate::training::device_error;
use bochner_numerics::argument;
use bochner_numerics::parallel::awake;
use dfdx::tensor::{Cpu, TensorFromVec};
use ndarray::{Array1, ArrayView2};

impl Trainer {
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
        let mut values: Vec<f32> = self.task.inputs().iter().copied().collect();
        values.extend(rows);
        let all = Cpu::default()
            .try_tensor_from_vec(values, (1, known + new, inputs))
            .map_err(device_error)?;
        let predicted = awake(|| self.model.apply::<NoneTape>(all, self.evaluation()))?;
        Ok(predicted.output.as_vec().split_off(known).into())
    }
}

#[cfg(test)]
mod tests {
    use crate::regressor::Task;
    use crate::regressor::trainer::tests::{learning, task, variants};
    use ndarray::{Array2, s};

    /// 24 rows, of which the first 18 are learned from.
    fn whole() -> Task {
        Task::new(
            task().inputs().clone(),
            task().target().to_owned(),
            (0..18).collect(),
        )
        .unwrap()
    }

    /// The first rows of that task.
    fn first(rows: usize) -> Task {
        let (inputs, target) = (whole().inputs().clone(), whole().target().to_owned());
        let (inputs, target) = (
            inputs.slice_move(s![..rows, ..]),
            target.slice_move(s![..rows]),
        );
        Task::new(inputs, target, (0..18).collect()).unwrap()
    }

    #[test]
    fn new_rows_are_read_as_test_rows_are() {
        for variant in variants() {
            let mut trainer = learning(variant.clone(), 0.0, whole());
            for _ in 0..5 {
                trainer.epoch().unwrap();
            }
            let want = trainer.predict().unwrap();
            for known in [18, 20] {
                let mut other = learning(variant.clone(), 0.0, first(known));
                for _ in 0..5 {
                    other.epoch().unwrap();
                }
                other.model = trainer.model.clone();
                let new = whole().inputs().clone().slice_move(s![known.., ..]);
                let got = other.predict_rows(new.view()).unwrap();
                assert_eq!(got, want.slice(s![known..]), "{variant:?}");
            }
        }
    }

    #[test]
    fn rows_asked_for_one_by_one_do_not_see_each_other() {
        for variant in variants() {
            let mut trainer = learning(variant, 0.0, first(18));
            trainer.epoch().unwrap();
            let new = whole().inputs().clone().slice_move(s![18..20, ..]);
            let moved = &new + &ndarray::array![[0.0, 0.0], [0.5, -0.5]];
            let alone = || trainer.predict_rows(new.slice(s![..1, ..])).unwrap()[0];
            let together = |rows: &Array2<f32>| trainer.predict_rows(rows.view()).unwrap()[0];
            let before = alone();
            assert_ne!(together(&new), together(&moved));
            assert_ne!(together(&new), before);
            assert_eq!(alone(), before);
        }
    }

    #[test]
    fn wrong_rows_are_refused_by_type() {
        let trainer = learning(variants()[0].clone(), 0.0, whole());
        let predict = |rows: Array2<f32>| trainer.predict_rows(rows.view()).unwrap_err();
        for (shape, message) in [
            ((0, 2), "`new rows` has shape [0, 2] and so no elements"),
            ((1, 3), "`new rows` has shape [1, 3], but must have [1, 2]"),
        ] {
            let error = predict(Array2::zeros(shape)).to_string();
            assert!(error.starts_with(message), "{error}");
        }
        for value in [f32::NAN, f32::INFINITY] {
            let mut rows = Array2::zeros((2, 2));
            rows[(1, 0)] = value;
            let error = predict(rows).to_string();
            assert!(error.contains("at [1, 0], but must be finite"), "{error}");
        }
    }
}
