//! A layer as it stands, its weights packed once.

use super::decoder::{MultiHeadCrossDecoder, MultiHeadDecoder};
use super::heads::Maps;
use super::row_positions::RowPositions;
use crate::{
    Error, Form, Mask, Mechanism, Pass,
    engine::{Decoder, DecoderSize},
    mechanism::{Decoding, Streams},
};
use bochner_numerics::{Buffers, Real};
use bochner_spectral::Size;
use ndarray::{Array3, ArrayView3};
use std::sync::Arc;

/// A [`MultiHead`](super::MultiHead) layer as it stands, its weights copied and packed: attention without a tape, and decoders.
///
/// Made by [`MultiHead::packed`](super::MultiHead::packed). Later changes of the layer do not reach it; a clone, and
/// whatever is made of it, reads the weights that it reads.
#[derive(Clone, Debug)]
pub struct PackedMultiHead<T: Real> {
    pub(super) maps: Arc<Maps<T>>,
    pub(super) mechanism: Arc<dyn Mechanism<T>>,
    pub(super) parameters: Arc<Vec<T>>,
}

impl<T: Real> PackedMultiHead<T> {
    /// The layer, decoding `batch` sequences position by position; see [`MultiHead::decoder`](super::MultiHead::decoder).
    ///
    /// # Errors
    /// The errors of [`Mechanism::decoder`](crate::Mechanism::decoder).
    pub fn decoder(
        &self,
        batch: usize,
        form: Form,
        pass: Pass,
    ) -> Result<MultiHeadDecoder<T>, Error> {
        if self.maps.layout.memory != self.maps.layout.embed {
            return Err(Error::Unsupported {
                what: "decoding a sequence by a layer whose memory has another width",
                instead: "`cross_decoder`",
            });
        }
        let decoder = self.empty_decoder(batch, form, pass)?;
        Ok(MultiHeadDecoder::new(Arc::clone(&self.maps), decoder))
    }

    /// The layer, attending to a memory that is mapped once; see
    /// [`MultiHead::cross_decoder`](super::MultiHead::cross_decoder).
    ///
    /// # Shapes
    /// `memory: [B, Tk, Embed]`.
    ///
    /// # Errors
    /// The errors of [`MultiHead::cross_decoder`](super::MultiHead::cross_decoder).
    pub fn cross_decoder(
        &self,
        memory: ArrayView3<T>,
        mask: &Mask,
        form: Form,
        pass: Pass,
    ) -> Result<MultiHeadCrossDecoder<T>, Error> {
        let decoder = self.empty_decoder(memory.dim().0, form, pass)?;
        MultiHeadCrossDecoder::new(Arc::clone(&self.maps), decoder, memory, mask)
    }

    /// Attention of sequences to themselves. The numbers are those of
    /// [`MultiHead::attend_self`](super::MultiHead::attend_self).
    ///
    /// # Shapes
    /// `x: [B, T, Embed]` to the same.
    ///
    /// # Errors
    /// The errors of [`MultiHead::attend_self`](super::MultiHead::attend_self).
    pub fn attend_self(
        &self,
        x: ArrayView3<T>,
        mask: &Mask,
        pass: Pass,
    ) -> Result<Array3<T>, Error> {
        self.attended([x, x], &mask.for_self_attention(), pass)
    }

    /// Attention of sequences to others. The numbers are those of [`MultiHead::attend`](super::MultiHead::attend).
    ///
    /// # Shapes
    /// `query: [B, Tq, Embed]`, `memory: [B, Tk, Embed]` to `[B, Tq, Embed]`.
    ///
    /// # Errors
    /// The errors of [`MultiHead::attend`](super::MultiHead::attend).
    pub fn attend(
        &self,
        query: ArrayView3<T>,
        memory: ArrayView3<T>,
        mask: &Mask,
        pass: Pass,
    ) -> Result<Array3<T>, Error> {
        let cross = self.mechanism.card().cross;
        cross.required("attention to another sequence with this mechanism")?;
        self.attended([query, memory], mask, pass)
    }

    fn attended(
        &self,
        sequences: [ArrayView3<T>; 2],
        mask: &Mask,
        pass: Pass,
    ) -> Result<Array3<T>, Error> {
        self.with_streams(sequences, mask, |streams| {
            let forward = self.mechanism.forward(streams, &self.parameters, &pass)?;
            let mut output = Array3::zeros(sequences[0].raw_dim());
            let attended = forward.output.view();
            let buffers = Buffers::default();
            self.maps.write(attended, &buffers, output.view_mut())?;
            Ok(output)
        })
    }

    /// Calls `f` with the streams of queries and a memory, under the mask of the layer and the call.
    pub(super) fn with_streams<R>(
        &self,
        [query, memory]: [ArrayView3<T>; 2],
        mask: &Mask,
        f: impl FnOnce(&Streams<T>) -> Result<R, Error>,
    ) -> Result<R, Error> {
        let (maps, layout) = (&self.maps, &self.maps.layout);
        layout.check_sequences(query.shape(), memory.shape())?;
        let (mask, mut positions) = (layout.mask(mask.clone()), RowPositions::default());
        maps.place(&mut positions, &mask, [query, memory].map(|x| x.dim().1));
        let heads = maps.heads(query, memory, &positions, &Buffers::default());
        f(&layout.gather(&heads, query, &mask, maps.bias.as_ref()))
    }

    fn empty_decoder(&self, batch: usize, form: Form, pass: Pass) -> Result<Decoder<T>, Error> {
        let layout = &self.maps.layout;
        let Size { heads, width } = layout.size();
        let size = DecoderSize {
            batch,
            heads,
            width,
            value_width: layout.value_width,
        };
        let (mask, bias) = (&layout.mask(Mask::none()), self.maps.bias.as_ref());
        let decoding = Decoding { form, mask, bias };
        (self.mechanism).decoder(size, &self.parameters, &pass, decoding)
    }
}
