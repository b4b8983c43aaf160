//! The whole layer as one operation on the tape.

use crate::Mask;
use crate::mechanism::Variant;
use crate::mechanism::{Cotangents, Forward, Inputs, Pass};
use bochner_numerics::memory::{Unwritten, written_by};
use bochner_numerics::{ArgumentError, Real, argument, parallel};
use bochner_ops::{BoxError, Operation, Slot, affine, affine_vjp, filled, slots};
use ndarray::{Array4, ArrayView4, ArrayViewD, IxDyn};

/// A [`MultiHead`](super::MultiHead) layer as an operation on its sequences (one, or queries and
/// memory), weights and biases of the four maps, and the kernel's parameters, if it has any.
///
/// It has two outputs: the attended values and the penalty, summed over the batch.
#[derive(Clone, Debug)]
pub struct MultiHeadOperation {
    pub(super) variant: Variant,
    pub(super) heads: usize,
    pub(super) mask: Mask,
    pub(super) pass: Pass,
    /// One if a sequence attends to itself, otherwise two.
    pub(super) sequences: usize,
}

/// What the backward pass of [`MultiHeadOperation`] needs.
#[derive(Debug)]
pub struct SavedHeads<T> {
    /// Queries, keys and values, split into heads.
    sequences: [Array4<T>; 3],
    forward: Forward<T>,
    /// The output of all heads, before the last map.
    joined: Vec<T>,
}

impl MultiHeadOperation {
    fn inputs<'a, T: Real>(&'a self, sequences: &'a [Array4<T>; 3]) -> Inputs<'a, T> {
        let [q, k, v] = sequences.each_ref().map(|x| x.view());
        Inputs {
            q,
            k,
            v,
            mask: &self.mask,
        }
    }

    /// The sequence that is mapped to queries, keys and values, by number.
    fn source(&self, map: usize) -> usize {
        map.min(self.sequences - 1)
    }

    fn cut<'a, T>(&self, inputs: &'a [ArrayViewD<'_, T>]) -> Cut<'a, T> {
        let all: Vec<&[T]> = inputs
            .iter()
            .map(|x| x.as_slice().expect("a row-major array"))
            .collect();
        let (sequences, parameters) = all.split_at(self.sequences);
        Cut {
            sequences: [0, 1, 2].map(|map| sequences[self.source(map)]),
            maps: [0, 1, 2, 3].map(|map| [parameters[2 * map], parameters[2 * map + 1]]),
            kernel: parameters.get(8).copied().unwrap_or_default(),
        }
    }
}

/// The inputs of a [`MultiHeadOperation`].
struct Cut<'a, T> {
    /// What is mapped to queries, keys and values.
    sequences: [&'a [T]; 3],
    /// Weight and bias of the maps to queries, keys, values and the output.
    maps: [[&'a [T]; 2]; 4],
    kernel: &'a [T],
}

impl<T: Real> Operation<T> for MultiHeadOperation {
    type Saved = SavedHeads<T>;

    fn output_shapes(&self, inputs: &[&[usize]]) -> Result<Vec<Vec<usize>>, ArgumentError> {
        let (sequences, parameters) = inputs.split_at(self.sequences.min(inputs.len()));
        let width = match sequences {
            [[_, _, width], ..] => *width,
            _ => 0,
        };
        for x in sequences {
            let [batch, time] = [0, 1].map(|axis| x.get(axis).copied().unwrap_or(0));
            argument::shape("the input", &[batch, time, width], x)?;
        }
        argument::shape("parameters", &[8], &[parameters.len().min(8)])?;
        for map in parameters[..8].chunks(2) {
            argument::shape("weight", &[width, width], map[0])?;
            argument::shape("bias", &[width], map[1])?;
        }
        Ok(vec![inputs[0].to_vec(), Vec::new()])
    }

    fn forward(
        &self,
        inputs: &[ArrayViewD<'_, T>],
        outputs: Vec<Slot<'_, T>>,
    ) -> Result<Self::Saved, BoxError> {
        let cut = self.cut(inputs);
        let sequences = [0, 1, 2].map(|map| {
            let ([weight, bias], x) = (cut.maps[map], cut.sequences[map]);
            let [mapped] = filled([x.len()], |[y]| affine(x, weight, bias, y, |_, _| ()));
            split_heads(&mapped, inputs[self.source(map)].shape(), self.heads)
        });
        let mechanism = self.variant.mechanism::<T>();
        let forward = mechanism.forward(&self.inputs(&sequences), cut.kernel, &self.pass)?;
        let joined = join_heads(forward.output.view());
        let ([weight, bias], [output, penalty]) = (cut.maps[3], slots(outputs));
        affine(&joined, weight, bias, output, |_, _| ());
        penalty.put(vec![forward.penalty.sum()]);
        Ok(SavedHeads {
            sequences,
            forward,
            joined,
        })
    }

    fn backward(
        &self,
        inputs: &[ArrayViewD<'_, T>],
        saved: &Self::Saved,
        cotangents: &[ArrayViewD<'_, T>],
        gradients: Vec<Option<Slot<'_, T>>>,
    ) -> Result<(), BoxError> {
        let cut = self.cut(inputs);
        let mut wanted = gradients.into_iter();
        let mut along: Vec<_> = wanted.by_ref().take(self.sequences).collect();
        let mut maps = [0, 1, 2, 3].map(|_| [0, 1].map(|_| wanted.next().flatten()));
        let output = cotangents[0].as_slice().expect("a row-major array");
        let ([weight, bias], [dweight, dbias]) = (cut.maps[3], std::mem::take(&mut maps[3]));
        let [output] = filled([saved.joined.len()], |[joined]| {
            let gradients = [Some(joined), dweight, dbias];
            affine_vjp(&saved.joined, weight, output, bias.len(), gradients);
        });
        let output = split_heads(&output, inputs[0].shape(), self.heads);
        let penalty = saved.forward.penalty.mapv(|_| cotangents[1][IxDyn(&[])]);
        let gradients = self.variant.mechanism::<T>().backward(
            &self.inputs(&saved.sequences),
            cut.kernel,
            &self.pass,
            &saved.forward,
            Cotangents {
                output: output.view(),
                penalty: penalty.view(),
            },
        )?;
        let [q, k, v] = [gradients.q, gradients.k, gradients.v];
        for (map, (gradient, [dweight, dbias])) in [q, k, v].iter().zip(maps).enumerate() {
            let ([weight, bias], x) = (cut.maps[map], cut.sequences[map]);
            let gradient = join_heads(gradient.view());
            let dx = along[self.source(map)].as_mut().map(Slot::reborrow);
            affine_vjp(x, weight, &gradient, bias.len(), [dx, dweight, dbias]);
        }
        if let Some(kernel) = wanted.next().flatten() {
            kernel.put(gradients.parameters);
        }
        Ok(())
    }
}

/// `[B, T, M w]` to `[B, M, T, w]`.
pub(super) fn split_heads<T: Real>(x: &[T], shape: &[usize], heads: usize) -> Array4<T> {
    let [batch, time, width] = [shape[0], shape[1], shape[2] / heads];
    let size = time * width * heads;
    let split = by_examples(x, [size, width], |i| {
        let (head, at) = (i / time, i % time);
        at * heads + head
    });
    Array4::from_shape_vec((batch, heads, time, width), split).expect("as many as before")
}

/// `[B, M, T, w]` to `[B, T, M w]`.
pub(super) fn join_heads<T: Real>(x: ArrayView4<'_, T>) -> Vec<T> {
    let (_, heads, time, width) = x.dim();
    let x = x.as_standard_layout();
    let x = x.as_slice().expect("contiguous");
    by_examples(x, [time * width * heads, width], |i| {
        let (at, head) = (i / heads, i % heads);
        head * time + at
    })
}

/// The examples of an array, `size` numbers each, with rows of `width` numbers in another order: row
/// `i` is what was row `from(i)`.
fn by_examples<T: Real>(
    x: &[T],
    [size, width]: [usize; 2],
    from: impl Fn(usize) -> usize + Sync + Send,
) -> Vec<T> {
    let [out] = written_by([x.len()], |[out]| {
        let examples = x.chunks_exact(size).zip(out.chunks(size)).collect();
        parallel::for_each(examples, |(x, out): (&[T], Unwritten<T>)| {
            out.copies_of((0..size / width).map(|i| &x[from(i) * width..][..width]));
        });
    });
    out
}
