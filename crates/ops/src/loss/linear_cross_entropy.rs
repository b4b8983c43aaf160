//! The loss of a classification whose logits are products with a table.

use super::CrossEntropy;
use super::cross_entropy::rows_at_a_time;
use crate::affine::{PackedAffine, affine_vjp};
use crate::operation::{BoxError, Operation, Slot, given, slices, slots};
use crate::rows::add;
use bochner_numerics::{ArgumentError, Buffers, Real, argument, parallel};
use ndarray::ArrayViewD;

/// [`CrossEntropy`] of the logits $x W^\top$, which are never held all at once: an operation on `x`, `[N, D]`, and
/// `weight`, `[C, D]`, with one number as its output.
///
/// Labelled rows are taken some at a time: their logits become the loss and, in place, its gradient, which is pulled
/// back to both inputs while it is still in the cache. Rows without a label cost nothing, and no array of `[N, C]` is
/// held: when C is a vocabulary, these rows and that array are most of a step's time and memory. Use it for training:
/// the forward pass always computes both gradients, even if they are not requested.
///
/// ```
/// use bochner_ops::{CrossEntropy, LinearCrossEntropy, Operation, Slot};
/// use bochner_ops::ndarray::array;
///
/// let loss = CrossEntropy { labelled: vec![(0, 1)], smoothing: 0.0 };
/// let (x, weight) = (array![[1.0, 0.0]].into_dyn(), array![[0.0, 0.0], [0.0, 1.0]].into_dyn());
/// let mut value = Vec::new();
/// let output = vec![Slot::new(&mut value, 1)];
/// LinearCrossEntropy(loss).forward(&[x.view(), weight.view()], output)?;
/// assert_eq!(value, [2_f64.ln()]);
/// # Ok::<(), bochner_ops::BoxError>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LinearCrossEntropy(pub CrossEntropy);

/// The logits that are held at a time.
const HELD: usize = 1 << 21;

impl<T: Real> Operation<T> for LinearCrossEntropy {
    /// The gradients along `x` and `weight`.
    type Saved = [Vec<T>; 2];

    fn output_shapes(&self, inputs: &[&[usize]]) -> Result<Vec<Vec<usize>>, ArgumentError> {
        let [x, weight] = given(inputs)?;
        let (&[rows, width], &[classes, _]) = (x, weight) else {
            let got = [x.len(), weight.len()];
            argument::shape("axes of x and weight", &[2, 2], &got)?;
            unreachable!("other numbers of axes were refused");
        };
        argument::shape("weight", &[classes, width], weight)?;
        argument::not_empty("weight", weight)?;
        self.0.check((rows, classes))?;
        Ok(vec![Vec::new()])
    }

    fn forward(
        &self,
        inputs: &[ArrayViewD<'_, T>],
        outputs: Vec<Slot<'_, T>>,
    ) -> Result<Self::Saved, BoxError> {
        let ([x, weight], [output]) = (slices(inputs), slots(outputs));
        let (classes, width) = (inputs[1].shape()[0], inputs[1].shape()[1]);
        let Self(loss) = self;
        let (share, some) = (loss.share(), rows_at_a_time(classes));
        let logits_of = PackedAffine::new(weight, classes, None);
        let mut dx = vec![T::zero(); x.len()];
        let mut dweight = vec![T::zero(); weight.len()];
        let (mut total, mut logits, buffers) = (0.0, Vec::new(), Buffers::default());
        for labelled in loss.labelled.chunks(HELD.div_ceil(classes)) {
            let of_row = |&(r, _): &(usize, usize)| &x[r * width..][..width];
            let rows = labelled.iter().map(of_row).collect::<Vec<_>>().concat();
            logits.resize(labelled.len() * classes, T::zero());
            logits_of.apply(&rows, &buffers, &mut logits, |_| ());
            let losses = parallel::map_chunks(&mut logits, some * classes, |piece, logits| {
                let labels = labelled[piece * some..].iter();
                let rows = logits.chunks_exact_mut(classes).zip(labels);
                let of_row = |(row, &(_, label)): (&mut [T], &(usize, usize))| {
                    let (of_row, saved) = loss.of_row(row, label);
                    loss.pull_back(row, saved, &[label], share);
                    of_row
                };
                rows.map(of_row).collect::<Vec<f64>>()
            });
            total += share * losses.iter().flatten().sum::<f64>();
            let (mut drows, n) = (Vec::new(), dweight.len());
            let places = [
                Some(Slot::new(&mut drows, rows.len())),
                Some(Slot::new(&mut dweight, n)),
                None,
            ];
            affine_vjp(&rows, weight, &logits, classes, places);
            for (&(r, _), gradient) in labelled.iter().zip(drows.chunks_exact(width)) {
                add(&mut dx[r * width..][..width], gradient);
            }
        }
        output.put(vec![T::of(total)]);
        Ok([dx, dweight])
    }

    fn backward(
        &self,
        _inputs: &[ArrayViewD<'_, T>],
        saved: &Self::Saved,
        cotangents: &[ArrayViewD<'_, T>],
        gradients: Vec<Option<Slot<'_, T>>>,
    ) -> Result<(), BoxError> {
        let [dloss] = slices(cotangents);
        for (gradient, slot) in saved.iter().zip(gradients) {
            if let Some(slot) = slot {
                slot.put(gradient.iter().map(|&g| g * dloss[0]).collect());
            }
        }
        Ok(())
    }
}
