//! A decoder at work: position after position, without a tape.

use super::{Decoder, DecoderLayer};
use crate::Error;
use bochner_attention::{Form, Mask, MultiHeadCrossDecoder, MultiHeadDecoder, Pass};
use bochner_nn::{Element, FeedForward, LayerNorm, Parameters};
use bochner_numerics::argument;
use bochner_ops::{Mode, Operation, Slot};
use ndarray::{Array3, ArrayD, ArrayView3, IxDyn};

/// A [`Decoder`] as it stands, which decodes the next position of every sequence of a batch, given all before.
///
/// Each layer remembers the keys and values of its sequence and of the memory, which is mapped once; where its
/// mechanism's own form is linear in time, and for random features unless theirs is not, a state of constant size. The
/// outputs are those of [`Decoder::apply`] in evaluation, to rounding.
#[derive(Clone, Debug)]
pub struct DecoderSteps<E: Element> {
    layers: Vec<LayerSteps<E>>,
    norm: Norm<E>,
}

impl<E: Element> Decoder<E> {
    /// The decoder as it stands, before the first position.
    ///
    /// # Shapes
    /// `memory: [B, Tk, width]`; the mask is that of the memory.
    ///
    /// # Errors
    /// [`Error::Attention`] for a mechanism that does not decode, for a mask that is not key lengths alone, and for
    /// shapes that do not fit.
    pub fn steps(
        &self,
        memory: ArrayView3<E>,
        of_memory: &Mask,
        pass: Pass,
    ) -> Result<DecoderSteps<E>, Error> {
        let layers = self.layers.iter().zip(0..);
        let layers = layers.map(|(layer, i)| LayerSteps::of(layer, memory, of_memory, pass.nth(i)));
        Ok(DecoderSteps {
            layers: layers.collect::<Result<_, _>>()?,
            norm: Norm::of(&self.norm),
        })
    }
}

impl<E: Element> DecoderSteps<E> {
    /// The decoder's output at the next positions.
    ///
    /// # Shapes
    /// `x: [B, n, width]` to the same.
    ///
    /// # Errors
    /// [`Error::Argument`] for another width, [`Error::Attention`] for another number of sequences; nothing is remembered
    /// then.
    pub fn step(&mut self, x: Array3<E>) -> Result<Array3<E>, Error> {
        let (batch, positions, _) = x.dim();
        let width = self.norm.parameters[0].len();
        argument::shape("x", &[batch, positions, width], x.shape())?;
        let mut x = x.as_standard_layout().into_owned();
        for layer in &mut self.layers {
            layer.step(&mut x)?;
        }
        Ok(self.norm.apply(&x))
    }

    /// The number of numbers that all layers hold for keys and values of the sequences, and for those of the memory.
    pub fn held(&self) -> [usize; 2] {
        let layers = self.layers.iter();
        let held = layers.map(|layer| [layer.attention.held(), layer.cross_attention.held()]);
        held.fold([0, 0], |[all, of_memory], [own, of_own]| {
            [all + own, of_memory + of_own]
        })
    }

    /// Sequence `b` becomes what `indices[b]` was, memory included: for beam search, and to leave out what has ended.
    /// There may be more or fewer sequences than before.
    ///
    /// # Errors
    /// [`Error::Attention`] without an index, or for a sequence that is not there.
    pub fn reorder(&mut self, indices: &[usize]) -> Result<(), Error> {
        for layer in &mut self.layers {
            layer.attention.reorder(indices)?;
            layer.cross_attention.reorder(indices)?;
        }
        Ok(())
    }
}

/// One layer at work.
#[derive(Clone, Debug)]
struct LayerSteps<E: Element> {
    attention: MultiHeadDecoder<E>,
    attention_norm: Norm<E>,
    cross_attention: MultiHeadCrossDecoder<E>,
    cross_attention_norm: Norm<E>,
    feed_forward: Maps<E>,
    feed_forward_norm: Norm<E>,
}

impl<E: Element> LayerSteps<E> {
    fn of(
        layer: &DecoderLayer<E>,
        memory: ArrayView3<E>,
        of_memory: &Mask,
        pass: Pass,
    ) -> Result<Self, Error> {
        let (batch, form) = (memory.dim().0, Form::Automatic);
        let cross = &layer.cross_attention;
        Ok(Self {
            attention: layer.attention.decoder(batch, form, pass.nth(0))?,
            attention_norm: Norm::of(&layer.attention_norm),
            cross_attention: cross.cross_decoder(memory, of_memory, form, pass.nth(1))?,
            cross_attention_norm: Norm::of(&layer.cross_attention_norm),
            feed_forward: Maps::of(&layer.feed_forward)?,
            feed_forward_norm: Norm::of(&layer.feed_forward_norm),
        })
    }

    fn step(&mut self, x: &mut Array3<E>) -> Result<(), Error> {
        let normed = self.attention_norm.apply(x);
        *x += &self.attention.step(normed.view())?;
        let normed = self.cross_attention_norm.apply(x);
        *x += &self.cross_attention.step(normed.view())?;
        let normed = self.feed_forward_norm.apply(x);
        *x += &self.feed_forward.apply(&normed);
        Ok(())
    }
}

/// A layer norm's parameters as arrays.
#[derive(Clone, Debug)]
struct Norm<E> {
    operation: bochner_ops::LayerNorm,
    parameters: Vec<ArrayD<E>>,
}

impl<E: Element> Norm<E> {
    fn of(norm: &LayerNorm<usize, E>) -> Self {
        let epsilon = norm.epsilon;
        Self {
            operation: bochner_ops::LayerNorm { epsilon },
            parameters: arrays(norm),
        }
    }

    fn apply(&self, x: &Array3<E>) -> Array3<E> {
        applied(&self.operation, x, &self.parameters)
    }
}

/// The two maps of a feed-forward part as arrays.
#[derive(Clone, Debug)]
struct Maps<E> {
    operation: bochner_ops::FeedForward,
    parameters: Vec<ArrayD<E>>,
}

impl<E: Element> Maps<E> {
    fn of(feed_forward: &FeedForward<usize, usize, usize, E>) -> Result<Self, Error> {
        Ok(Self {
            operation: feed_forward.operation(Mode::Evaluation)?,
            parameters: arrays(feed_forward),
        })
    }

    fn apply(&self, x: &Array3<E>) -> Array3<E> {
        applied(&self.operation, x, &self.parameters)
    }
}

/// What an operation with one output of the sequences' shape makes of them.
fn applied<E: Element>(
    operation: &impl Operation<E>,
    x: &Array3<E>,
    parameters: &[ArrayD<E>],
) -> Array3<E> {
    let inputs = std::iter::once(x.view().into_dyn()).chain(parameters.iter().map(|p| p.view()));
    let inputs: Vec<_> = inputs.collect();
    let mut values = Vec::new();
    let place = vec![Slot::new(&mut values, x.len())];
    let applied = operation.forward(&inputs, place);
    applied.expect("norms and maps take any number");
    let array = Array3::from_shape_vec(x.raw_dim(), values);
    array.expect("as many elements as before")
}

/// The parameters of a part, in their order.
fn arrays<E: Element>(part: &impl Parameters<E>) -> Vec<ArrayD<E>> {
    let mut arrays = Vec::new();
    part.for_each("", &mut |_, parameter| {
        let mut values = Vec::new();
        parameter.read_into(&mut values);
        let array = ArrayD::from_shape_vec(IxDyn(&parameter.dims()), values);
        arrays.push(array.expect("a parameter has the elements of its shape"));
    });
    arrays
}
