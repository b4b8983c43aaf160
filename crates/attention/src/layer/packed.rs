//! A layer as it stands, its weights packed once for all decoders that are made of it.

use super::decoder::{MultiHeadCrossDecoder, MultiHeadDecoder};
use super::heads::Maps;
use super::inference::MultiHeadInference;
use crate::{
    Error, Form, Mask, Mechanism, Pass,
    engine::{Decoder, DecoderSize},
    mechanism::Decoding,
};
use bochner_numerics::Real;
use bochner_spectral::Size;
use ndarray::ArrayView3;
use std::sync::Arc;

/// A [`MultiHead`](super::MultiHead) layer as it stands, its weights copied and packed: what decoders and inference share.
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

    /// The layer, for attention without a tape; see [`MultiHead::inference`](super::MultiHead::inference).
    ///
    /// # Errors
    /// The errors of [`MultiHead::inference`](super::MultiHead::inference).
    pub fn inference(&self, pass: Pass) -> Result<MultiHeadInference<T>, Error> {
        MultiHeadInference::new(self.clone(), pass)
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
