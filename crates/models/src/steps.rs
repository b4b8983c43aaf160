//! Layers at work: position after position, without a tape.

use crate::Error;
use crate::decoder::{Decoder, DecoderLayer};
use crate::encoder::{Encoder, EncoderLayer, NormPlacement};
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
    /// The norm behind the last layer, if there is one.
    norm: Option<Norm<E>>,
    width: usize,
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
        let states = layers.map(|(layer, i)| {
            let (attention, cross_attention) = layer.each_state(memory, of_memory, pass.nth(i));
            Ok::<_, Error>(LayerStates {
                attention: attention?,
                cross_attention: Some(cross_attention?),
            })
        });
        Ok(DecoderSteps {
            weights: self.clone(),
            states: states.collect::<Result<_, _>>()?,
            numbers: Buffers::default(),
        })
    }
}

impl<E: Element> Encoder<E> {
    /// The encoder as it stands, before the first position of `batch` sequences, as the decoder of a language model: its
    /// outputs are those of [`apply`](Self::apply) in evaluation under a causal mask, to rounding.
    ///
    /// # Errors
    /// [`Error::Attention`] for a mechanism that does not decode.
    pub fn causal_steps(&self, batch: usize, pass: Pass) -> Result<DecoderSteps<E>, Error> {
        let layers = self.layers.iter().map(LayerWeights::of_encoder);
        let layers: Vec<_> = layers.collect::<Result<_, _>>()?;
        let states = layers.iter().zip(0..).map(|(layer, i)| {
            let attention = (layer.attention).decoder(batch, Form::Automatic, pass.nth(i))?;
            Ok::<_, Error>(LayerStates {
                attention,
                cross_attention: None,
            })
        });
        Ok(DecoderSteps {
            states: states.collect::<Result<_, _>>()?,
            weights: PackedDecoder(Arc::new(Weights {
                width: layers[0].attention_norm.gamma.len(),
                layers,
                norm: self.norm.as_ref().map(Norm::of),
            })),
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
        let norm = Norm::of(&self.norm);
        Ok(PackedDecoder(Arc::new(Weights {
            layers: layers.collect::<Result<_, _>>()?,
            width: norm.gamma.len(),
            norm: Some(norm),
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
        let Weights {
            layers,
            norm,
            width,
        } = &*self.weights.0;
        let (batch, positions, _) = x.dim();
        let shape = [batch, positions, *width];
        argument::shape("x", &shape, x.shape())?;
        argument::shape("the output", &shape, output.shape())?;
        let mut rows = self.numbers.any(x.len());
        view_mut(shape, &mut rows).assign(&x);
        for (layer, states) in layers.iter().zip(&mut self.states) {
            states.step(layer, &mut rows, shape, &self.numbers)?;
        }
        if let Some(norm) = norm {
            norm.apply_in_place(&mut rows, &self.numbers);
        }
        output.assign(&view(shape, &rows));
        Ok(())
    }

    /// The number of numbers that all layers hold for keys and values of the sequences, and for those of the memory.
    pub fn held(&self) -> [usize; 2] {
        let states = self.states.iter();
        let held = states.map(|states| {
            let of_memory = states.cross_attention.as_ref();
            [
                states.attention.held(),
                of_memory.map_or(0, MultiHeadCrossDecoder::held),
            ]
        });
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
            if let Some(cross_attention) = &mut states.cross_attention {
                cross_attention.reorder(indices)?;
            }
        }
        Ok(())
    }
}

/// The weights of one layer.
#[derive(Debug)]
struct LayerWeights<E: Element> {
    attention: PackedMultiHead<E>,
    attention_norm: Norm<E>,
    /// The attention to the memory and its norm; encoders have none.
    cross_attention: Option<(PackedMultiHead<E>, Norm<E>)>,
    feed_forward: PackedFeedForward<E>,
    feed_forward_norm: Norm<E>,
    norm: NormPlacement,
}

impl<E: Element> LayerWeights<E> {
    fn of(layer: &DecoderLayer<E>) -> Result<Self, Error> {
        Ok(Self {
            attention: layer.attention.packed()?,
            attention_norm: Norm::of(&layer.attention_norm),
            cross_attention: Some((
                layer.cross_attention.packed()?,
                Norm::of(&layer.cross_attention_norm),
            )),
            feed_forward: feed_forward(&layer.feed_forward)?,
            feed_forward_norm: Norm::of(&layer.feed_forward_norm),
            norm: NormPlacement::Pre,
        })
    }

    fn of_encoder(layer: &EncoderLayer<E>) -> Result<Self, Error> {
        Ok(Self {
            attention: layer.attention.packed()?,
            attention_norm: Norm::of(&layer.attention_norm),
            cross_attention: None,
            feed_forward: feed_forward(&layer.feed_forward)?,
            feed_forward_norm: Norm::of(&layer.feed_forward_norm),
            norm: layer.norm,
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
        let (cross, _) = (self.cross_attention.as_ref()).expect("the layer of a decoder");
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
    /// State of the attention to the memory, if there is one.
    cross_attention: Option<MultiHeadCrossDecoder<E>>,
}

impl<E: Element> LayerStates<E> {
    /// Adds the layer's branches to the rows of sequences of this shape.
    fn step(
        &mut self,
        weights: &LayerWeights<E>,
        x: &mut [E],
        shape: [usize; 3],
        numbers: &Buffers<E>,
    ) -> Result<(), Error> {
        let placement = weights.norm;
        add_branch(placement, &weights.attention_norm, x, numbers, |x, y| {
            let output = view_mut(shape, y);
            Ok(self.attention.step_into(view(shape, x), None, output)?)
        })?;
        if let (Some((_, norm)), Some(states)) =
            (&weights.cross_attention, &mut self.cross_attention)
        {
            add_branch(placement, norm, x, numbers, |x, y| {
                Ok(states.step_into(view(shape, x), None, view_mut(shape, y))?)
            })?;
        }
        add_branch(placement, &weights.feed_forward_norm, x, numbers, |x, y| {
            weights.feed_forward.apply(x, numbers, y);
            Ok(())
        })
    }
}

/// Adds a branch to rows, with its norm before the branch or behind the sum.
fn add_branch<E: Element>(
    placement: NormPlacement,
    norm: &Norm<E>,
    x: &mut [E],
    numbers: &Buffers<E>,
    branch: impl FnOnce(&[E], &mut [E]) -> Result<(), Error>,
) -> Result<(), Error> {
    let mut y = numbers.any(x.len());
    match placement {
        NormPlacement::Pre => {
            let mut normed = numbers.any(x.len());
            norm.apply(x, &mut normed);
            branch(&normed, &mut y)?;
            add(x, &y);
        }
        NormPlacement::Post => {
            branch(x, &mut y)?;
            add(x, &y);
            norm.apply_in_place(x, numbers);
        }
    }
    Ok(())
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

    fn apply_in_place(&self, x: &mut [E], numbers: &Buffers<E>) {
        let mut copy = numbers.empty(x.len());
        copy.extend_from_slice(x);
        self.apply(&copy, x);
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
