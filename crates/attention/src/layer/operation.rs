//! The whole layer as one operation on the tape.

use super::config::{Cut, Layout};
use super::heads::{Code, Heads, Mapped, Maps, join};
use super::row_positions::{RowPositions, for_each_place};
use crate::{
    Bias, Mask, Mechanism, Pass,
    card::Stream,
    mechanism::{Cotangents, Forward},
};
use bochner_numerics::memory::zeros;
use bochner_numerics::{ArgumentError, Buffer, Buffers, Real, argument};
use bochner_ops::{BoxError, Operation, Slot, affine_vjp, slots};
use ndarray::{Array4, ArrayView3, ArrayViewD, Ix3, IxDyn};
use std::sync::Arc;

/// A [`MultiHead`](super::MultiHead) layer as an operation. Its inputs are its sequences (one, or queries and memory),
/// the weight and bias of each map with the output map last, the table of a learnt position bias, and the mechanism's
/// parameters, if it has any.
///
/// It has two outputs: the attended values and the penalty, summed over the batch.
///
/// The backward pass of the mechanism gives the gradients of its streams, its parameters and the position bias
/// together. It is skipped if none of them is requested, and so is the backward pass of a map whose gradients are not
/// requested.
#[derive(Clone, Debug)]
pub struct MultiHeadOperation<T: Real> {
    pub(super) mechanism: Arc<dyn Mechanism<T>>,
    pub(super) layout: Layout,
    /// The code of positions in queries and keys.
    pub(super) code: Option<Code<T>>,
    pub(super) mask: Mask,
    pub(super) pass: Pass,
    /// One if a sequence attends to itself, otherwise two.
    pub(super) sequences: usize,
}

/// The values that the backward pass of [`MultiHeadOperation`] needs.
#[derive(Debug)]
pub struct SavedHeads<T> {
    heads: Mapped<T>,
    positions: RowPositions,
    forward: Forward<T>,
    bias: Option<Bias<T>>,
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

    /// The cotangent of a stream before its positions are encoded.
    fn before_code(
        &self,
        mut cotangent: Array4<T>,
        stream: Stream,
        positions: &RowPositions,
    ) -> Array4<T> {
        if let (Some(code), Some(positions)) = (&self.code, positions.of(stream)) {
            let (shape, width) = (cotangent.dim().into(), cotangent.dim().3);
            cotangent = cotangent.as_standard_layout().into_owned();
            let rows = cotangent.as_slice_mut().expect("row-major");
            for_each_place(rows, shape, positions, |positions, rows| {
                code.encode_vjp(positions, width, rows);
            });
        }
        cotangent
    }
}

impl<T: Real> Operation<T> for MultiHeadOperation<T> {
    type Saved = SavedHeads<T>;

    fn output_shapes(&self, inputs: &[&[usize]]) -> Result<Vec<Vec<usize>>, ArgumentError> {
        let (sequences, parameters) = inputs.split_at(self.sequences.min(inputs.len()));
        if let (Some(query), Some(memory)) = (sequences.first(), sequences.last()) {
            self.layout.check_sequences(query, memory)?;
        }
        let given = self.layout.cut(parameters.iter().copied());
        argument::shape("maps", &[self.layout.maps().count()], &[given.maps.len()])?;
        if let Some(table) = self.layout.position_bias.table(self.layout.heads) {
            argument::shape("position_bias", &table, given.table.unwrap_or_default())?;
        }
        for ((_, map), (weight, bias)) in self.layout.maps().zip(given.maps) {
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
        let Cut {
            maps: parameters,
            table,
            kernel,
        } = self.layout.cut(parameters);
        let maps = Maps::new(self.layout, &parameters, table, self.code.clone())?;
        let mut positions = RowPositions::default();
        maps.place(
            &mut positions,
            &self.mask,
            [query, memory].map(|x| x.dim().1),
        );
        let heads = maps.heads(query, memory, &positions, &buffers);
        let streams = (self.layout).gather(&heads, query, &self.mask, maps.bias.as_ref());
        let (mechanism, kernel) = (&self.mechanism, kernel.unwrap_or_default());
        let forward = mechanism.forward(&streams, kernel, &self.pass)?;
        let mut values = zeros(output.len());
        let joined = maps.output(forward.output.view(), &buffers, &mut values)?;
        output.put(values);
        penalty.put(vec![forward.penalty.sum()]);
        Ok(SavedHeads {
            bias: maps.bias.clone(),
            heads,
            positions,
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
        let parameters = self.layout.cut(parameters);
        let of = self.layout.cut(gradients.split_off(self.sequences));
        let of_maps = of.maps.into_iter().map(|(w, b)| [w, b.flatten()]);
        let mut maps: Vec<_> = parameters.maps.into_iter().zip(of_maps).collect();
        let buffers = Buffers::default();
        let (table, kernel) = (of.table.flatten(), of.kernel.flatten());

        let ((weight, _), [dweight, dbias]) = maps.pop().expect("a map to the output");
        let is_wanted = {
            let of_maps = maps.iter().flat_map(|(_, places)| places);
            let places = gradients.iter().chain([&table, &kernel]);
            places.chain(of_maps).any(Option::is_some)
        };
        let dy = cotangents[0].as_slice().expect("a row-major array");
        let mut joined = buffers.empty(saved.joined.len());
        let place = is_wanted.then(|| Slot::new(&mut joined, saved.joined.len()));
        let places = [place, dweight, dbias];
        affine_vjp(&saved.joined, weight, dy, self.layout.embed, places);
        if !is_wanted {
            return Ok(());
        }
        let (batch, heads, time, width) = saved.forward.output.dim();
        let output = Heads::split(joined, [batch, time, heads, width], &buffers);
        let penalty = saved.forward.penalty.mapv(|_| cotangents[1][IxDyn(&[])]);
        let mut streams = self
            .layout
            .gather(&saved.heads, query, &self.mask, saved.bias.as_ref());
        if self.layout.position_bias.table(self.layout.heads).is_some() {
            streams = streams.with_bias_gradient();
        }
        let pulled = self.mechanism.backward(
            &streams,
            parameters.kernel.unwrap_or_default(),
            &self.pass,
            &saved.forward,
            Cotangents {
                output: output.view(),
                penalty: penalty.view(),
            },
        )?;

        let mut maps = maps.into_iter();
        for (gradient, &stream) in pulled.streams.into_iter().zip(self.layout.streams) {
            let (x, i) = match stream.is_of_queries() {
                true => (query, 0),
                false => (memory, self.sequences - 1),
            };
            let dx = gradients[i].as_mut().map(Slot::reborrow);
            let width = self.layout.width(stream);
            if stream != Stream::Input {
                let ((weight, _), [dweight, dbias]) = maps.next().expect("a map a stream");
                let places = [dx, dweight, dbias];
                if places.iter().any(Option::is_some) {
                    let gradient = self.before_code(gradient, stream, &saved.positions);
                    let (x, dy) = (
                        x.to_slice().expect("row-major"),
                        join(gradient.view(), &buffers),
                    );
                    affine_vjp(x, weight, &dy, self.layout.heads_of(stream) * width, places);
                }
            } else if let Some(dx) = dx {
                dx.put(join(gradient.view(), &buffers).to_vec());
            }
        }
        if let (Some(table), Some(bias)) = (table, pulled.bias) {
            table.put(bias.into_iter().collect());
        }
        if let Some(kernel) = kernel {
            kernel.put(pulled.parameters);
        }
        Ok(())
    }
}
