//! The loss of a classification.

use crate::operation::{BoxError, Operation, Slot, given, slices, slots};
use bochner_numerics::{ArgumentError, Real, argument};
use ndarray::ArrayViewD;

/// The mean cross-entropy of softmax probabilities over some rows, each with its label: an operation on
/// `logits`, `[N, C]`, with one number as its output.
///
/// $$ \frac{1}{|S|} \sum_{(r, l) \in S} \Bigl( \log \sum_{c=1}^{C} e^{x_{rc}} - x_{rl} \Bigr) $$
///
/// * $x$: `logits`, `[N, C]`
/// * $S$: `labelled`, pairs of a row below `N` and its label below `C`; other rows are not read
///
/// # Numerics
/// The loss is taken relative to the largest logit of a row, in double precision: no finite logits overflow.
#[derive(Clone, Debug)]
pub struct CrossEntropy {
    /// The rows that count, at least one, each with its label.
    pub labelled: Vec<(usize, usize)>,
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
        argument::at_least_one("number of labels", self.labelled.len())?;
        for &(row, label) in &self.labelled {
            argument::index("the labelled rows", row, rows)?;
            argument::index("the labels", label, classes)?;
        }
        Ok(vec![Vec::new()])
    }

    fn forward(
        &self,
        inputs: &[ArrayViewD<'_, T>],
        outputs: Vec<Slot<'_, T>>,
    ) -> Result<Self::Saved, BoxError> {
        let ([logits], [output]) = (slices(inputs), slots(outputs));
        let classes = inputs[0].shape()[1];
        let (mut loss, share) = (0.0, 1.0 / self.labelled.len() as f64);
        let of_row = |&(r, label): &(usize, usize)| {
            let row = &logits[r * classes..(r + 1) * classes];
            let largest = row.iter().fold(f64::NEG_INFINITY, |m, x| m.max(x.as_f64()));
            let total: f64 = row.iter().map(|x| (x.as_f64() - largest).exp()).sum();
            loss += share * (total.ln() + (largest - row[label].as_f64()));
            [largest, total]
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
        let share = 1.0 / self.labelled.len() as f64;
        for (&(r, label), &[largest, total]) in self.labelled.iter().zip(saved) {
            let places = r * classes..(r + 1) * classes;
            let own = &mut gradient[places.clone()];
            for (g, x) in own.iter_mut().zip(&logits[places]) {
                *g += (x.as_f64() - largest).exp() * (share / total);
            }
            own[label] -= share;
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

    #[test]
    fn gradients_agree_with_finite_differences() {
        // One row counts twice, another not at all.
        let labelled = vec![(0, 2), (2, 0), (2, 1)];
        gradients_are_right(CrossEntropy { labelled }, &[&[3, 4]]);
    }

    #[test]
    fn extreme_logits_have_a_loss_and_a_gradient() {
        let logits = array![[3e38_f32, -3e38], [1e4, 0.0]].into_dyn();
        let loss = CrossEntropy {
            labelled: vec![(0, 0), (1, 1)],
        };
        let (value, saved) = run(&loss, std::slice::from_ref(&logits));
        assert_eq!(value[0].sum(), 5e3);
        let one = [array![1.0].remove_axis(Axis(0)).into_dyn()];
        let gradient = pull_back(&loss, &[logits], &saved, &one, vec![Some(Vec::new())]);
        assert_eq!(gradient, [Some(vec![0.0, 0.0, 0.5, -0.5])]);
    }

    #[test]
    fn the_forward_pass_keeps_two_numbers_a_row_and_no_gradient() {
        let labelled = vec![(0, 2), (2, 0)];
        let logits = array![[1.0, 2.0, 3.0], [0.0, 0.0, 0.0], [0.5, 0.0, -1.0]].into_dyn();
        let (_, saved) = run(&CrossEntropy { labelled }, &[logits]);
        assert_eq!(saved.len(), 2);
    }

    #[test]
    fn labels_and_rows_are_checked() {
        let shapes = |labelled: &[(usize, usize)]| {
            let labelled = labelled.to_vec();
            Operation::<f64>::output_shapes(&CrossEntropy { labelled }, &[&[5, 3]])
        };
        assert_eq!(shapes(&[(1, 2)]), Ok(vec![vec![]]));
        for wrong in [&[][..], &[(5, 0)], &[(0, 3)]] {
            assert!(shapes(wrong).is_err());
        }
    }
}
