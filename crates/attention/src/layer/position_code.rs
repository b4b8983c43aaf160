//! The code of positions in a layer's queries and keys.

use super::heads::Code;
use super::multi_head::MultiHead;
use crate::{Card, Error, card::Stream};
use bochner_engine::PositionCode;
use bochner_nn::Element;
use dfdx::shapes::Dim;
use dfdx::tensor::Cpu;
use std::sync::Arc;

impl<Embed: Dim, E: Element, Count: Dim, S, Wide: Dim> MultiHead<Embed, E, Cpu, Count, S, Wide> {
    /// The layer with a position code of your own, in place of rotary positions.
    ///
    /// Settings and checkpoints do not hold the code.
    ///
    /// # Errors
    /// [`Error::Unsupported`] beside rotary positions, and with a mechanism that does not ask for queries and keys; what
    /// the code's [`check`](PositionCode::check) returns.
    pub fn with_position_code(self, code: impl PositionCode<E> + 'static) -> Result<Self, Error> {
        if self.config.rotary.is_some() {
            return Err(Error::Unsupported {
                what: "a second position code beside rotary positions",
                instead: "settings whose `rotary` is `None`",
            });
        }
        let card = self.config.variant.card();
        admit_code(&code, &card, self.layout.width(Stream::Queries))?;
        let code: Option<Code<E>> = Some(Arc::new(code));
        Ok(Self { code, ..self })
    }

    /// The code of positions in queries and keys, if there is one.
    pub(super) fn code(&self) -> Option<Code<E>> {
        let rotary = || Some(Arc::new(self.config.rotary?) as Code<E>);
        self.code.clone().or_else(rotary)
    }
}

/// Checks that a mechanism compares queries and keys of a width that the code can encode.
pub(super) fn admit_code<T>(
    code: &dyn PositionCode<T>,
    card: &Card,
    key_width: usize,
) -> Result<(), Error> {
    let asked = |stream| card.streams.contains(&stream);
    if !asked(Stream::Queries) || !asked(Stream::Keys) {
        return Err(Error::Unsupported {
            what: "encoding positions into queries and keys with a mechanism that does not ask for these",
            instead: "a mechanism that compares queries and keys, such as softmax attention, or positions in the input",
        });
    }
    Ok(code.check(key_width)?)
}
