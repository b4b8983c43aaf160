//! The loss of a classification.

use crate::log_softmax::largest_and_total;
use crate::operation::{BoxError, Operation, Slot, given, slices, slots};
use crate::rows::{PIECE, sum};
use bochner_numerics::elementary::exp_in_place;
use bochner_numerics::{ArgumentError, Real, argument, parallel};
use ndarray::{ArrayView2, ArrayViewD};

/// The mean cross-entropy of softmax probabilities over some rows, each with its label: an operation on
/// `logits`, `[N, C]`, with one number as its output.
///
/// $$ \frac{1}{|S|} \sum_{(r, l) \in S} \Bigl( \log \sum_{c=1}^{C} e^{x_{rc}} - (1 - s) x_{rl} -
///    \frac{s}{C} \sum_{c=1}^{C} x_{rc} \Bigr) $$
///
/// * $x$: `logits`, `[N, C]`
/// * $S$: `labelled`, pairs of a row below `N` and its label below `C`; other rows are not read. Without any the loss
///   is 0
/// * $s$: `smoothing`, in `0..=1`: the share of each target that is spread over all classes, the label's own included,
///   which therefore keeps $1 - s + s/C$
///
/// # Numerics
/// The loss is taken relative to the largest logit of a row. Logits are subtracted in the type, and their exponentials are
/// the type's, below an ulp off; their sum, the loss, and the gradient along a label's logit are in double precision, so that
/// a confident row keeps a loss down to the 1e-16 of that precision. No loss of finite `f32` logits overflows in [`of_rows`](Self::of_rows).
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
        let rows = logits.as_standard_layout();
        let rows = rows.as_slice().expect("rows one after the other");
        let losses = self.of_all(rows, logits.ncols()).into_iter();
        Ok(losses.map(|(loss, _)| loss).collect())
    }

    /// [`CrossEntropy::of_row`] of all labelled rows, in their order.
    fn of_all<T: Real>(&self, logits: &[T], classes: usize) -> Vec<(f64, Saved<T>)> {
        let some = rows_at_a_time(classes);
        let pieces: Vec<_> = self.labelled.chunks(some).collect();
        let of_piece = |piece: usize| -> Vec<_> {
            let rows = pieces[piece].iter();
            rows.map(|&(r, label)| self.of_row(&logits[r * classes..][..classes], label))
                .collect()
        };
        parallel::map(pieces.len(), of_piece).concat()
    }

    /// The loss of a row, and what its gradient needs.
    pub(super) fn of_row<T: Real>(&self, row: &[T], label: usize) -> (f64, Saved<T>) {
        let (largest, total) = largest_and_total(row);
        let below = |x: T| largest.as_f64() - x.as_f64();
        let mut loss = total.ln();
        // A share of 0 of an infinite difference is 0.
        if self.smoothing < 1.0 {
            loss += (1.0 - self.smoothing) * below(row[label]);
        }
        if self.smoothing > 0.0 {
            let all = sum(row.len(), |i| below(row[i]));
            loss += self.smoothing / row.len() as f64 * all;
        }
        (loss, Saved { largest, total })
    }

    /// Replaces a row of logits by the gradient of its losses for some labels, each with the weight `share`.
    pub(super) fn pull_back<T: Real>(
        &self,
        row: &mut [T],
        Saved { largest, total }: Saved<T>,
        labels: &[usize],
        share: f64,
    ) {
        for x in &mut *row {
            *x -= largest;
        }
        exp_in_place(row);
        let count = labels.len() as f64;
        for (i, &label) in labels.iter().enumerate() {
            if labels[..i].contains(&label) {
                continue;
            }
            let times = labels.iter().filter(|&&other| other == label).count() as f64;
            let (e, times) = (row[label].as_f64(), times * (1.0 - self.smoothing));
            // Written with total - e instead of 1 - p, so that nothing cancels where p is close to 1.
            row[label] = T::of(((count - times) * e - times * (total - e)) / count);
        }
        let of_all = share * count;
        let factor = T::of(of_all / total);
        let each = T::of(of_all * self.smoothing / row.len() as f64);
        for x in row {
            *x = *x * factor - each;
        }
    }

    pub(super) fn check(&self, (rows, classes): (usize, usize)) -> Result<(), ArgumentError> {
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

    /// The weight of each labelled row.
    pub(super) fn share(&self) -> f64 {
        1.0 / self.labelled.len().max(1) as f64
    }
}

/// The values that the gradient of a row needs besides the row.
#[derive(Clone, Copy, Debug)]
pub struct Saved<T> {
    largest: T,
    /// The sum of the exponentials relative to it.
    total: f64,
}

/// The number of rows that a thread takes at a time.
pub(super) fn rows_at_a_time(classes: usize) -> usize {
    PIECE.div_ceil(classes.max(1))
}

impl<T: Real> Operation<T> for CrossEntropy {
    /// One for each labelled row.
    type Saved = Vec<Saved<T>>;

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
        let all = self.of_all(logits, inputs[0].shape()[1]);
        let loss: f64 = all.iter().map(|(loss, _)| self.share() * loss).sum();
        output.put(vec![T::of(loss)]);
        Ok(all.into_iter().map(|(_, saved)| saved).collect())
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
        let share = self.share() * dloss[0].as_f64();
        // By row, since one may count more than once.
        let labels = self.labelled.iter().zip(saved);
        let mut labels: Vec<_> = labels
            .map(|(&(r, label), saved)| (r, label, saved))
            .collect();
        labels.sort_by_key(|&(r, ..)| r);
        let by_row: Vec<_> = labels.chunk_by(|a, b| a.0 == b.0).collect();
        let mut gradient = vec![T::zero(); logits.len()];
        let some = rows_at_a_time(classes);
        parallel::for_each_chunk(&mut gradient, some * classes.max(1), |piece, rows| {
            let first = piece * some;
            let from = by_row.partition_point(|labels| labels[0].0 < first);
            for labels in by_row[from..]
                .iter()
                .take_while(|labels| labels[0].0 < first + some)
            {
                let (r, _, saved) = labels[0];
                let row = &mut rows[(r - first) * classes..][..classes];
                row.copy_from_slice(&logits[r * classes..][..classes]);
                let labels: Vec<usize> = labels.iter().map(|&(_, label, _)| label).collect();
                self.pull_back(row, *saved, &labels, share);
            }
        });
        dlogits.put(gradient);
        Ok(())
    }
}
