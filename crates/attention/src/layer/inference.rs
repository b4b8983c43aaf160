//! A layer without a tape: its parameters copied and packed, its memory used again.

use super::heads::Heads;
use super::packed::PackedMultiHead;
use super::row_positions::RowPositions;
use crate::{Error, Mask, Pass, Settings, Workspace, engine::attend_into, mechanism::Streams};
use bochner_numerics::{Real, argument};
use ndarray::{ArrayView3, ArrayViewMut3};

/// A [`MultiHead`](super::MultiHead) layer with its present parameters, without a tape.
///
/// Made by [`MultiHead::inference`](super::MultiHead::inference). It gives the numbers of the layer itself. From the
/// second call with the same shapes and [`Workspace`] on nothing is allocated on one thread, with two exceptions:
/// spectral points that are inferred from the sequence (they are drawn again in each call, in O(B M R d) memory), and a
/// mechanism whose forward pass is not [`attend`](crate::attend) by some settings, such as an average over draws. (See
/// [`Workspace`] for several threads.)
#[derive(Clone, Debug)]
pub struct MultiHeadInference<T: Real> {
    layer: PackedMultiHead<T>,
    pass: Pass,
    /// Settings that depend on the number of sequences alone, and that number.
    known: Option<(usize, Settings<T>)>,
    positions: RowPositions,
}

impl<T: Real> MultiHeadInference<T> {
    pub(super) fn new(layer: PackedMultiHead<T>, pass: Pass) -> Result<Self, Error> {
        let mut layer = Self {
            layer,
            pass,
            known: None,
            positions: RowPositions::default(),
        };
        match layer.know(1) {
            // They depend on the sequences, or there are none.
            Err(Error::Unsupported { .. }) => {}
            result => result?,
        }
        Ok(layer)
    }

    /// Attention of sequences to themselves.
    ///
    /// # Shapes
    /// `x` and `output: [B, T, Embed]`.
    ///
    /// # Errors
    /// The errors of [`MultiHeadInference::attend`].
    pub fn attend_self(
        &mut self,
        x: ArrayView3<T>,
        mask: &Mask,
        workspace: &Workspace<T>,
        output: ArrayViewMut3<T>,
    ) -> Result<(), Error> {
        self.attend_of(x, x, &mask.for_self_attention(), workspace, output)
    }

    /// Attention of sequences to others.
    ///
    /// # Shapes
    /// `query` and `output: [B, Tq, Embed]`, `memory: [B, Tk, Embed]`.
    ///
    /// # Errors
    /// Whatever does not fit: shapes, the mask; [`Error::Unsupported`] for a mechanism of one sequence.
    pub fn attend(
        &mut self,
        query: ArrayView3<T>,
        memory: ArrayView3<T>,
        mask: &Mask,
        workspace: &Workspace<T>,
        output: ArrayViewMut3<T>,
    ) -> Result<(), Error> {
        let cross = self.layer.mechanism.card().cross;
        cross.required("attention to another sequence with this mechanism")?;
        self.attend_of(query, memory, mask, workspace, output)
    }

    fn attend_of(
        &mut self,
        query: ArrayView3<T>,
        memory: ArrayView3<T>,
        mask: &Mask,
        workspace: &Workspace<T>,
        output: ArrayViewMut3<T>,
    ) -> Result<(), Error> {
        let (layout, numbers) = (self.layer.maps.layout, &workspace.numbers());
        let ((batch, queries, _), keys) = (query.dim(), memory.dim().1);
        layout.check_sequences(query.shape(), memory.shape())?;
        argument::shape("the output", query.shape(), output.shape())?;
        if let Some((known, _)) = self.known
            && known != batch
        {
            self.know(batch)?;
        }
        let mask = layout.mask(mask.clone());
        let PackedMultiHead {
            maps,
            mechanism,
            parameters,
        } = &self.layer;
        maps.place(&mut self.positions, &mask, [queries, keys]);
        let heads = maps.heads(query, memory, &self.positions, numbers);
        let streams = layout.gather(&heads, query, &mask, maps.bias.as_ref());
        let mut attended = Heads::any([batch, layout.heads, queries, layout.value_width], numbers);
        let pass = &self.pass;
        let inferred;
        let settings = match &self.known {
            Some((_, settings)) => Some(settings),
            None => match mechanism.settings(&streams, parameters, pass) {
                Ok(settings) => {
                    inferred = settings;
                    Some(&inferred)
                }
                // The mechanism is not attention by some settings.
                Err(Error::Unsupported { .. }) => None,
                Err(error) => return Err(error),
            },
        };
        match settings {
            Some(settings) => {
                let [q, k, v] = streams.get()?;
                let settings = Settings {
                    mask: mask.clone(),
                    ..settings.clone()
                };
                attend_into(&settings, q, k, v, workspace, attended.view_mut())?;
                maps.write(attended.view(), numbers, output)
            }
            None => {
                let forward = mechanism.forward(&streams, parameters, pass)?;
                maps.write(forward.output.view(), numbers, output)
            }
        }
    }

    /// Prepares the settings that depend on the sequences only by their number, and draws them.
    fn know(&mut self, batch: usize) -> Result<(), Error> {
        let PackedMultiHead {
            maps,
            mechanism,
            parameters,
        } = &self.layer;
        let none = Streams::none(batch, maps.layout.size());
        let unseen = Streams::unseen(&none, Mask::CAUSAL).with_bias(maps.bias.as_ref());
        let settings = mechanism.settings(&unseen, parameters, &self.pass)?;
        self.known = Some((batch, settings));
        Ok(())
    }
}
