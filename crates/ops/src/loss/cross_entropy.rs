//! The loss of a classification.

use crate::operation::{BoxError, Operation, Slot, given, slices, slots};
use bochner_numerics::{ArgumentError, Real, argument};
use ndarray::{ArrayView2, ArrayViewD};

/// The mean cross-entropy of softmax probabilities over some rows, each with its label: an operation on
/// `logits`, `[N, C]`, with one number as its output.
///
/// $$ \frac{1}{|S|} \sum_{(r, l) \in S} \Bigl( \log \sum_{c=1}^{C} e^{x_{rc}} - (1 - s)\, x_{rl}
///    - \frac{s}{C} \sum_{c=1}^{C} x_{rc} \Bigr) $$
///
/// * $x$: `logits`, `[N, C]`
/// * $S$: `labelled`, pairs of a row below `N` and its label below `C`; other rows are not read. Without any the loss
///   is 0
/// * $s$: `smoothing`, in `0..=1`: the share of each target that is spread over all classes, the label's own included,
///   which therefore keeps $1 - s + s/C$
///
/// # Numerics
/// The loss is taken relative to the largest logit of a row, in double precision: no finite `f32` logits overflow.
///
/// # Reference
/// Szegedy et al., *Rethinking the Inception Architecture for Computer Vision*, 2016, section 7, for label smoothing.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CrossEntropy {
    /// The rows that count, each with its label.
    pub labelled: Vec<(usize, usize)>,
    /// The share of each target that is spread over all classes; 0 for none.
    pub smoothing: f64,
}

impl CrossEntropy {
    /// The losses of the labelled rows, in their order; the operation's output is their mean.
    ///
    /// # Errors
    /// A row or a label that is not among those of `logits`, and a `smoothing` outside `0..=1`.
    pub fn of_rows<T: Real>(&self, logits: ArrayView2<'_, T>) -> Result<Vec<f64>, ArgumentError> {
        self.check(logits.dim())?;
        let of_row = |&(r, label): &(usize, usize)| {
            let row = logits.row(r);
            self.of_row(row.iter().map(|x| x.as_f64()), label).0
        };
        Ok(self.labelled.iter().map(of_row).collect())
    }

    /// The loss of a row, and with it the largest logit and the sum of the exponentials relative to it.
    fn of_row(&self, row: impl Iterator<Item = f64> + Clone, label: usize) -> (f64, [f64; 2]) {
        let largest = row.clone().fold(f64::NEG_INFINITY, f64::max);
        let total: f64 = row.clone().map(|x| (x - largest).exp()).sum();
        let below = |x: f64| largest - x;
        let own = row.clone().nth(label).map_or(0.0, below);
        let mut loss = total.ln() + (1.0 - self.smoothing) * own;
        if self.smoothing > 0.0 {
            let classes = row.clone().count() as f64;
            loss += self.smoothing / classes * row.map(below).sum::<f64>();
        }
        (loss, [largest, total])
    }

    fn check(&self, (rows, classes): (usize, usize)) -> Result<(), ArgumentError> {
        let spread = self.smoothing;
        argument::in_range(
            (0.0..=1.0).contains(&spread),
            "smoothing",
            spread,
            "in 0..=1",
        )?;
        for &(row, label) in &self.labelled {
            argument::index("the labelled rows", row, rows)?;
            argument::index("the labels", label, classes)?;
        }
        Ok(())
    }

    /// What each row counts.
    fn share(&self) -> f64 {
        1.0 / self.labelled.len().max(1) as f64
    }
}

impl<T: Real> Operation<T> for CrossEntropy {
    /// The largest logit of each labelled row, and the sum of the exponentials relative to it.
    type Saved = Vec<[f64; 2]>;

    fn output_shapes(&self, inputs: &[&[usize]]) -> Result<Vec<Vec<usize>>, ArgumentError> {
        let [logits] = given(inputs)?;
        let &[rows, classes] = logits else {
            let (name, expected, got) = ("shape of logits".into(), vec![2], vec![logits.len()]);
            return Err(ArgumentError::Shape {
                name,
                expected,
                got,
            });
        };
        self.check((rows, classes))?;
        Ok(vec![Vec::new()])
    }

    fn forward(
        &self,
        inputs: &[ArrayViewD<'_, T>],
        outputs: Vec<Slot<'_, T>>,
    ) -> Result<Self::Saved, BoxError> {
        let ([logits], [output]) = (slices(inputs), slots(outputs));
        let classes = inputs[0].shape()[1];
        let mut loss = 0.0;
        let of_row = |&(r, label): &(usize, usize)| {
            let row = logits[r * classes..(r + 1) * classes].iter();
            let (of_row, saved) = self.of_row(row.map(|x| x.as_f64()), label);
            loss += self.share() * of_row;
            saved
        };
        let saved = self.labelled.iter().map(of_row).collect();
        output.put(vec![T::of(loss)]);
        Ok(saved)
    }

    fn backward(
        &self,
        inputs: &[ArrayViewD<'_, T>],
        saved: &Self::Saved,
        cotangents: &[ArrayViewD<'_, T>],
        gradients: Vec<Option<Slot<'_, T>>>,
    ) -> Result<(), BoxError> {
        let ([dloss], [Some(dlogits)]) = (slices(cotangents), slots(gradients)) else {
            return Ok(());
        };
        let ([logits], classes) = (slices(inputs), inputs[0].shape()[1]);
        let mut gradient = vec![0.0; logits.len()];
        let share = self.share();
        let each = share * self.smoothing / classes as f64;
        for (&(r, label), &[largest, total]) in self.labelled.iter().zip(saved) {
            let places = r * classes..(r + 1) * classes;
            let own = &mut gradient[places.clone()];
            for (g, x) in own.iter_mut().zip(&logits[places]) {
                *g += (x.as_f64() - largest).exp() * (share / total) - each;
            }
            own[label] -= share * (1.0 - self.smoothing);
        }
        dlogits.put(gradient.iter().map(|&g| T::of(g) * dloss[0]).collect());
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{gradients_are_right, pull_back, run};
    use ndarray::{Axis, array};

    fn plain(labelled: &[(usize, usize)]) -> CrossEntropy {
        smoothed(labelled, 0.0)
    }

    fn smoothed(labelled: &[(usize, usize)], smoothing: f64) -> CrossEntropy {
        CrossEntropy {
            labelled: labelled.to_vec(),
            smoothing,
        }
    }

    #[test]
    fn gradients_agree_with_finite_differences() {
        // One row counts twice, another not at all.
        for smoothing in [0.0, 0.3, 1.0] {
            let loss = smoothed(&[(0, 2), (2, 0), (2, 1)], smoothing);
            gradients_are_right(loss, &[&[3, 4]]);
        }
    }

    #[test]
    fn smoothing_mixes_the_label_with_all_classes_alike() {
        let logits = array![[1.0, 2.0, 4.0], [0.5, -1.0, 0.0]];
        let of_label = |label| plain(&[(0, label)]).of_rows(logits.view()).unwrap()[0];
        let uniform = [0, 1, 2].map(of_label).iter().sum::<f64>() / 3.0;
        let found = smoothed(&[(0, 1)], 0.2).of_rows(logits.view()).unwrap()[0];
        assert!((found - (0.8 * of_label(1) + 0.2 * uniform)).abs() < 1e-12);
    }

    #[test]
    fn without_a_label_the_loss_and_its_gradient_are_zero() {
        let (loss, logits) = (plain(&[]), array![[f64::NAN, 1.0]].into_dyn());
        let (value, saved) = run(&loss, std::slice::from_ref(&logits));
        let one = [array![1.0].remove_axis(Axis(0)).into_dyn()];
        let gradient = pull_back(&loss, &[logits], &saved, &one, vec![Some(Vec::new())]);
        assert_eq!((value[0].sum(), gradient), (0.0, vec![Some(vec![0.0; 2])]));
    }

    #[test]
    fn extreme_logits_have_a_loss_and_a_gradient() {
        let logits = array![[3e38_f32, -3e38], [1e4, 0.0]].into_dyn();
        let loss = plain(&[(0, 0), (1, 1)]);
        let (value, saved) = run(&loss, std::slice::from_ref(&logits));
        assert_eq!(value[0].sum(), 5e3);
        let one = [array![1.0].remove_axis(Axis(0)).into_dyn()];
        let gradient = pull_back(&loss, &[logits], &saved, &one, vec![Some(Vec::new())]);
        assert_eq!(gradient, [Some(vec![0.0, 0.0, 0.5, -0.5])]);
    }

    #[test]
    fn the_forward_pass_keeps_two_numbers_a_row_and_no_gradient() {
        let logits = array![[1.0, 2.0, 3.0], [0.0, 0.0, 0.0], [0.5, 0.0, -1.0]].into_dyn();
        let (_, saved) = run(&plain(&[(0, 2), (2, 0)]), &[logits]);
        assert_eq!(saved.len(), 2);
    }

    #[test]
    fn labels_rows_and_smoothing_are_checked() {
        let shapes = |loss: CrossEntropy| Operation::<f64>::output_shapes(&loss, &[&[5, 3]]);
        assert_eq!(shapes(smoothed(&[(1, 2)], 1.0)), Ok(vec![vec![]]));
        for wrong in [
            plain(&[(5, 0)]),
            plain(&[(0, 3)]),
            smoothed(&[], -0.1),
            smoothed(&[], f64::NAN),
        ] {
            assert!(shapes(wrong).is_err());
        }
    }
}
