//! The whole layer as one operation on the tape.

use super::config::Layout;
use super::heads::{Heads, Mapped, Maps, join};
use crate::{Cotangents, Forward, Mask, Mechanism, Pass};
use bochner_numerics::memory::zeros;
use bochner_numerics::{ArgumentError, Buffer, Buffers, Real, argument};
use bochner_ops::{BoxError, Operation, Slot, affine_vjp, slots};
use ndarray::{ArrayView3, ArrayViewD, Ix3, IxDyn};
use std::sync::Arc;

/// A [`MultiHead`](super::MultiHead) layer as an operation on its sequences (one, or queries and memory), the
/// weight and bias of each map, the one to the output last, and the mechanism's parameters, if it has any.
///
/// It has two outputs: the attended values and the penalty, summed over the batch.
#[derive(Clone, Debug)]
pub struct MultiHeadOperation<T: Real> {
    pub(super) mechanism: Arc<dyn Mechanism<T>>,
    pub(super) layout: Layout,
    pub(super) mask: Mask,
    pub(super) pass: Pass,
    /// One if a sequence attends to itself, otherwise two.
    pub(super) sequences: usize,
}

/// What the backward pass of [`MultiHeadOperation`] needs.
#[derive(Debug)]
pub struct SavedHeads<T> {
    heads: Mapped<T>,
    forward: Forward<T>,
    /// The output of all heads, before the last map.
    joined: Buffer<T>,
}

impl<T: Real> MultiHeadOperation<T> {
    /// The sequences of the queries and of the memory, and the layer's parameters.
    fn cut<'a>(&self, inputs: &'a [ArrayViewD<'_, T>]) -> ([ArrayView3<'a, T>; 2], Vec<&'a [T]>) {
        let (sequences, parameters) = inputs.split_at(self.sequences);
        let sequences = [0, self.sequences - 1].map(|i| {
            let x = sequences[i].view().into_dimensionality::<Ix3>();
            x.expect("checked with the shapes")
        });
        let slice = |x: &'a ArrayViewD<'_, T>| x.as_slice().expect("a row-major array");
        (sequences, parameters.iter().map(slice).collect())
    }
}

impl<T: Real> Operation<T> for MultiHeadOperation<T> {
    type Saved = SavedHeads<T>;

    fn output_shapes(&self, inputs: &[&[usize]]) -> Result<Vec<Vec<usize>>, ArgumentError> {
        let embed = self.layout.embed;
        let (sequences, parameters) = inputs.split_at(self.sequences.min(inputs.len()));
        for x in sequences {
            let [batch, time] = [0, 1].map(|axis| x.get(axis).copied().unwrap_or(0));
            argument::shape("the input", &[batch, time, embed], x)?;
        }
        let (given, _) = self.layout.cut(parameters.iter().copied());
        argument::shape("maps", &[self.layout.maps().count()], &[given.len()])?;
        for ((_, map), (weight, bias)) in self.layout.maps().zip(given) {
            argument::shape("weight", &map, weight)?;
            argument::shape("bias", &map[..1], bias.unwrap_or(&map[..1]))?;
        }
        Ok(vec![inputs[0].to_vec(), Vec::new()])
    }

    fn forward(
        &self,
        inputs: &[ArrayViewD<'_, T>],
        outputs: Vec<Slot<'_, T>>,
    ) -> Result<Self::Saved, BoxError> {
        let ([output, penalty], buffers) = (slots(outputs), Buffers::default());
        let ([query, memory], parameters) = self.cut(inputs);
        let (parameters, kernel) = self.layout.cut(parameters);
        let maps = Maps::new(self.layout, &parameters);
        let heads = maps.heads(query, memory, &buffers);
        let streams = self.layout.gather(&heads, query, &self.mask);
        let (mechanism, kernel) = (&self.mechanism, kernel.unwrap_or_default());
        let forward = mechanism.forward(&streams, kernel, &self.pass)?;
        let mut values = zeros(output.len());
        let joined = maps.output(forward.output.view(), &buffers, &mut values)?;
        output.put(values);
        penalty.put(vec![forward.penalty.sum()]);
        Ok(SavedHeads {
            heads,
            forward,
            joined,
        })
    }

    fn backward(
        &self,
        inputs: &[ArrayViewD<'_, T>],
        saved: &Self::Saved,
        cotangents: &[ArrayViewD<'_, T>],
        mut gradients: Vec<Option<Slot<'_, T>>>,
    ) -> Result<(), BoxError> {
        let ([query, memory], parameters) = self.cut(inputs);
        let (parameters, kernel) = self.layout.cut(parameters);
        let (of_maps, of_kernel) = self.layout.cut(gradients.split_off(self.sequences));
        let of_maps = of_maps.into_iter().map(|(w, b)| [w, b.flatten()]);
        let mut maps: Vec<_> = parameters.into_iter().zip(of_maps).collect();
        let buffers = Buffers::default();

        let ((weight, _), [dweight, dbias]) = maps.pop().expect("a map to the output");
        let dy = cotangents[0].as_slice().expect("a row-major array");
        let mut joined = buffers.empty(saved.joined.len());
        let place = Slot::new(&mut joined, saved.joined.len());
        let places = [Some(place), dweight, dbias];
        affine_vjp(&saved.joined, weight, dy, self.layout.embed, places);
        let (batch, heads, time, width) = saved.forward.output.dim();
        let output = Heads::split(joined, [batch, time, heads, width], &buffers);
        let penalty = saved.forward.penalty.mapv(|_| cotangents[1][IxDyn(&[])]);
        let pulled = self.mechanism.backward(
            &self.layout.gather(&saved.heads, query, &self.mask),
            kernel.unwrap_or_default(),
            &self.pass,
            &saved.forward,
            Cotangents {
                output: output.view(),
                penalty: penalty.view(),
            },
        )?;

        let mut maps = maps.into_iter();
        for (gradient, &stream) in [pulled.q, pulled.k, pulled.v]
            .into_iter()
            .zip(self.layout.streams)
        {
            let (x, i) = match stream.is_of_queries() {
                true => (query, 0),
                false => (memory, self.sequences - 1),
            };
            let dx = gradients[i].as_mut().map(Slot::reborrow);
            if let Some(width) = self.layout.width(stream) {
                let ((weight, _), [dweight, dbias]) = maps.next().expect("a map a stream");
                let (x, dy) = (
                    x.to_slice().expect("row-major"),
                    join(gradient.view(), &buffers),
                );
                affine_vjp(x, weight, &dy, heads * width, [dx, dweight, dbias]);
            } else if let Some(dx) = dx {
                dx.put_array(gradient);
            }
        }
        if let Some(kernel) = of_kernel.flatten() {
            kernel.put(pulled.parameters);
        }
        Ok(())
    }
}
