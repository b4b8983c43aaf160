//! A decoder at work: position after position, without a tape.

use super::{Decoder, DecoderLayer};
use crate::Error;
use bochner_attention::{
    Form, Mask, Pass,
    layer::{MultiHeadCrossDecoder, MultiHeadDecoder, PackedMultiHead},
};
use bochner_nn::{Element, FeedForward, LayerNorm, Linear};
use bochner_numerics::{Buffers, Seed, argument};
use bochner_ops::rows::add;
use bochner_ops::{Mode, PackedAffine, PackedFeedForward};
use ndarray::{Array3, ArrayView3, ArrayViewMut3};
use std::sync::Arc;

/// A [`Decoder`] as it stands, its weights copied and packed once for everything that is decoded with it.
///
/// A clone reads the weights that it reads.
#[derive(Clone, Debug)]
pub struct PackedDecoder<E: Element>(Arc<Weights<E>>);

#[derive(Debug)]
struct Weights<E: Element> {
    layers: Vec<LayerWeights<E>>,
    norm: Norm<E>,
}

impl<E: Element> PackedDecoder<E> {
    /// The decoder before the first position; see [`Decoder::steps`].
    ///
    /// # Shapes
    /// `memory: [B, Tk, width]`; the mask is that of the memory.
    ///
    /// # Errors
    /// The errors of [`Decoder::steps`].
    pub fn steps(
        &self,
        memory: ArrayView3<E>,
        of_memory: &Mask,
        pass: Pass,
    ) -> Result<DecoderSteps<E>, Error> {
        let layers = self.0.layers.iter().zip(0..);
        let states = layers.map(|(layer, i)| layer.states(memory, of_memory, pass.nth(i)));
        Ok(DecoderSteps {
            weights: self.clone(),
            states: states.collect::<Result<_, _>>()?,
            numbers: Buffers::default(),
        })
    }
}

/// A [`Decoder`] as it stands, which decodes the next position of every sequence of a batch, given all before.
///
/// Each layer maps the memory once, and remembers keys and values of the memory and of its sequence. A mechanism whose
/// settings ask for [`Form::LinearTime`] remembers a state of constant size instead; random features do so with
/// [`Form::Automatic`] too. The outputs are those of [`Decoder::apply`] in evaluation, to rounding.
#[derive(Clone, Debug)]
pub struct DecoderSteps<E: Element> {
    weights: PackedDecoder<E>,
    states: Vec<LayerStates<E>>,
    numbers: Buffers<E>,
}

impl<E: Element> Decoder<E> {
    /// The decoder as it stands, its weights packed.
    ///
    /// # Errors
    /// [`Error::Attention`] for a parameter that does not fit.
    pub fn packed(&self) -> Result<PackedDecoder<E>, Error> {
        let layers = self.layers.iter().map(LayerWeights::of);
        Ok(PackedDecoder(Arc::new(Weights {
            layers: layers.collect::<Result<_, _>>()?,
            norm: Norm::of(&self.norm),
        })))
    }

    /// Refuses mechanisms that cannot decode position by position.
    pub(crate) fn expect_steps(&self) -> Result<(), Error> {
        use bochner_attention::Error::Unsupported;
        // All layers have the same mechanisms.
        let weights = LayerWeights::of(&self.layers[0])?;
        let memory = Array3::zeros((1, 1, weights.attention_norm.gamma.len()));
        let pass = Pass::Evaluation { seed: Seed::new(0) };
        let whats = [
            "decoding token by token with this mechanism in the decoder's attention to itself",
            "decoding token by token with this mechanism in the decoder's attention to the source",
        ];
        let (own, cross) = weights.each_state(memory.view(), &Mask::none(), pass);
        for (error, what) in [own.err(), cross.err()].into_iter().zip(whats) {
            match error {
                Some(Unsupported { instead, .. }) => {
                    return Err(Error::Unsupported { what, instead });
                }
                Some(error) => return Err(error.into()),
                None => (),
            }
        }
        Ok(())
    }

    /// The decoder as it stands, before the first position; [`PackedDecoder::steps`] is for several batches.
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
        self.packed()?.steps(memory, of_memory, pass)
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
        let mut output = Array3::zeros(x.raw_dim());
        self.step_into(x.view(), output.view_mut())?;
        Ok(output)
    }

    /// [`step`](Self::step) into an array that is there already. On one thread nothing is allocated once a step with as
    /// many sequences and positions has gone before, but where what the layers remember grows: see
    /// [`Decoder`](bochner_attention::engine::Decoder).
    ///
    /// # Errors
    /// The errors of [`step`](Self::step), also for an output of another shape.
    pub fn step_into(
        &mut self,
        x: ArrayView3<E>,
        mut output: ArrayViewMut3<E>,
    ) -> Result<(), Error> {
        let Weights { layers, norm } = &*self.weights.0;
        let (batch, positions, _) = x.dim();
        let shape = [batch, positions, norm.gamma.len()];
        argument::shape("x", &shape, x.shape())?;
        argument::shape("the output", &shape, output.shape())?;
        let mut rows = self.numbers.any(x.len());
        view_mut(shape, &mut rows).assign(&x);
        for (layer, states) in layers.iter().zip(&mut self.states) {
            states.step(layer, &mut rows, shape, &self.numbers)?;
        }
        let mut normed = self.numbers.any(x.len());
        norm.apply(&rows, &mut normed);
        output.assign(&view(shape, &normed));
        Ok(())
    }

    /// The number of numbers that all layers hold for keys and values of the sequences, and for those of the memory.
    pub fn held(&self) -> [usize; 2] {
        let states = self.states.iter();
        let held = states.map(|states| [states.attention.held(), states.cross_attention.held()]);
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
        for states in &mut self.states {
            states.attention.reorder(indices)?;
            states.cross_attention.reorder(indices)?;
        }
        Ok(())
    }
}

/// The weights of one layer.
#[derive(Debug)]
struct LayerWeights<E: Element> {
    attention: PackedMultiHead<E>,
    attention_norm: Norm<E>,
    cross_attention: PackedMultiHead<E>,
    cross_attention_norm: Norm<E>,
    feed_forward: PackedFeedForward<E>,
    feed_forward_norm: Norm<E>,
}

impl<E: Element> LayerWeights<E> {
    fn of(layer: &DecoderLayer<E>) -> Result<Self, Error> {
        Ok(Self {
            attention: layer.attention.packed()?,
            attention_norm: Norm::of(&layer.attention_norm),
            cross_attention: layer.cross_attention.packed()?,
            cross_attention_norm: Norm::of(&layer.cross_attention_norm),
            feed_forward: feed_forward(&layer.feed_forward)?,
            feed_forward_norm: Norm::of(&layer.feed_forward_norm),
        })
    }

    fn states(
        &self,
        memory: ArrayView3<E>,
        of_memory: &Mask,
        pass: Pass,
    ) -> Result<LayerStates<E>, Error> {
        let (attention, cross_attention) = self.each_state(memory, of_memory, pass);
        Ok(LayerStates {
            attention: attention?,
            cross_attention: cross_attention?,
        })
    }

    /// Returns the cache of each of the two attentions before the first position, or the reason that it cannot decode.
    fn each_state(
        &self,
        memory: ArrayView3<E>,
        of_memory: &Mask,
        pass: Pass,
    ) -> (
        Result<MultiHeadDecoder<E>, bochner_attention::Error>,
        Result<MultiHeadCrossDecoder<E>, bochner_attention::Error>,
    ) {
        let (batch, form) = (memory.dim().0, Form::Automatic);
        let cross = &self.cross_attention;
        (
            self.attention.decoder(batch, form, pass.nth(0)),
            cross.cross_decoder(memory, of_memory, form, pass.nth(1)),
        )
    }
}

/// The caches of one layer.
#[derive(Clone, Debug)]
struct LayerStates<E: Element> {
    attention: MultiHeadDecoder<E>,
    cross_attention: MultiHeadCrossDecoder<E>,
}

impl<E: Element> LayerStates<E> {
    /// Adds the layer's three branches to the rows of sequences of this shape.
    fn step(
        &mut self,
        weights: &LayerWeights<E>,
        x: &mut [E],
        shape: [usize; 3],
        numbers: &Buffers<E>,
    ) -> Result<(), Error> {
        let (mut normed, mut branch) = (numbers.any(x.len()), numbers.any(x.len()));
        weights.attention_norm.apply(x, &mut normed);
        let output = view_mut(shape, &mut branch);
        self.attention.step_into(view(shape, &normed), output)?;
        add(x, &branch);
        weights.cross_attention_norm.apply(x, &mut normed);
        let output = view_mut(shape, &mut branch);
        (self.cross_attention).step_into(view(shape, &normed), output)?;
        add(x, &branch);
        weights.feed_forward_norm.apply(x, &mut normed);
        weights.feed_forward.apply(&normed, numbers, &mut branch);
        add(x, &branch);
        Ok(())
    }
}

/// A layer norm's parameters as slices.
#[derive(Debug)]
struct Norm<E> {
    operation: bochner_ops::LayerNorm,
    gamma: Vec<E>,
    beta: Vec<E>,
}

impl<E: Element> Norm<E> {
    fn of(norm: &LayerNorm<usize, E>) -> Self {
        let epsilon = norm.epsilon;
        Self {
            operation: bochner_ops::LayerNorm { epsilon },
            gamma: norm.gamma.as_vec(),
            beta: norm.beta.as_vec(),
        }
    }

    fn apply(&self, x: &[E], y: &mut [E]) {
        self.operation.apply(x, [&self.gamma, &self.beta], y);
    }
}

/// A feed-forward part, packed.
fn feed_forward<E: Element>(
    part: &FeedForward<usize, usize, usize, E>,
) -> Result<PackedFeedForward<E>, Error> {
    let packed = |map: &Linear<usize, usize, E>| {
        let bias = map.bias.as_vec();
        PackedAffine::new(&map.weight.as_vec(), bias.len(), Some(&bias))
    };
    let maps = [&part.first, &part.second].map(packed);
    let operation = part.operation(Mode::Evaluation)?;
    Ok(PackedFeedForward::new(maps, &operation))
}

/// Rows as sequences.
fn view<E>(shape: [usize; 3], rows: &[E]) -> ArrayView3<'_, E> {
    ArrayView3::from_shape(shape, rows).expect("as many numbers as the shape says")
}

fn view_mut<E>(shape: [usize; 3], rows: &mut [E]) -> ArrayViewMut3<'_, E> {
    ArrayViewMut3::from_shape(shape, rows).expect("as many numbers as the shape says")
}
