//! A layer without a tape: its parameters copied and packed, its memory used again.

use super::maps::Maps;
use crate::error::same_shape;
use crate::mechanism::Variant;
use crate::mechanism::{Inputs, Pass};
use crate::{Error, Mask, Settings, Workspace, attend_into};
use bochner_numerics::Real;
use ndarray::{ArrayView3, ArrayViewMut3};

/// A [`MultiHead`](super::MultiHead) layer as it stands, without a tape.
///
/// Made by [`MultiHead::inference`](super::MultiHead::inference). It gives the numbers of the layer
/// itself; from the second call with the same shapes and [`Workspace`] on nothing is allocated on one
/// thread, except by spectral points that are inferred from the sequence: these are drawn anew each
/// time, in O(B M R d) memory. (See [`Workspace`] for several threads.)
#[derive(Clone, Debug)]
pub struct MultiHeadInference<T> {
    maps: Maps<T>,
    variant: Variant,
    parameters: Vec<T>,
    pass: Pass,
    known: Known<T>,
}

/// What is known of the kernel before the sequence.
#[derive(Clone, Debug)]
enum Known<T> {
    Nothing,
    /// Everything, given how many sequences there are.
    Of(usize, Settings<T>),
}

impl<T: Real> MultiHeadInference<T> {
    pub(super) fn new(
        maps: Maps<T>,
        variant: Variant,
        parameters: Vec<T>,
        pass: Pass,
    ) -> Result<Self, Error> {
        let mut layer = Self {
            maps,
            variant,
            parameters,
            pass,
            known: Known::Nothing,
        };
        match layer.know(1) {
            // It depends on the sequence.
            Err(Error::CausalLeak) => {}
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
    /// As [`MultiHeadInference::attend`].
    pub fn attend_self(
        &mut self,
        x: ArrayView3<T>,
        mask: &Mask,
        workspace: &Workspace<T>,
        output: ArrayViewMut3<T>,
    ) -> Result<(), Error> {
        self.attend_from(x, None, mask, workspace, output)
    }

    /// Attention of sequences to others.
    ///
    /// # Shapes
    /// `query` and `output: [B, Tq, Embed]`, `memory: [B, Tk, Embed]`.
    ///
    /// # Errors
    /// Whatever does not fit: shapes, the mask.
    pub fn attend(
        &mut self,
        query: ArrayView3<T>,
        memory: ArrayView3<T>,
        mask: &Mask,
        workspace: &Workspace<T>,
        output: ArrayViewMut3<T>,
    ) -> Result<(), Error> {
        self.attend_from(query, Some(memory), mask, workspace, output)
    }

    /// Attention of sequences to others, or to themselves.
    fn attend_from(
        &mut self,
        query: ArrayView3<T>,
        memory: Option<ArrayView3<T>>,
        mask: &Mask,
        workspace: &Workspace<T>,
        output: ArrayViewMut3<T>,
    ) -> Result<(), Error> {
        let (to_itself, memory) = (memory.is_none(), memory.unwrap_or(query));
        let (batch, queries, _) = query.dim();
        let (keys, width) = (memory.dim().1, self.maps.width());
        same_shape("the input", &[batch, queries, width], query.shape())?;
        same_shape("the memory", &[batch, keys, width], memory.shape())?;
        same_shape("the output", &[batch, queries, width], output.shape())?;
        let numbers = &workspace.numbers;
        let [q, k, v] = [(0, query), (1, memory), (2, memory)]
            .map(|(map, x)| self.maps.heads_of(map, x, numbers));
        let mut attended = self.maps.empty_heads(batch, queries, numbers);
        let inputs = Inputs {
            q: q.view(),
            k: k.view(),
            v: v.view(),
            mask,
        };
        if let Known::Of(known, _) = self.known
            && known != batch
        {
            self.know(batch)?;
        }
        let inferred;
        let settings = match &self.known {
            Known::Of(_, settings) => settings,
            Known::Nothing => {
                let mechanism = self.variant.mechanism::<T>();
                let own = to_itself.then(|| mask.of_itself());
                let inputs = Inputs {
                    mask: own.as_ref().unwrap_or(mask),
                    ..inputs
                };
                inferred = mechanism.settings(&inputs, &self.parameters, &self.pass)?;
                &inferred
            }
        };
        let settings = Settings {
            mask: mask.clone(),
            ..settings.clone()
        };
        let Inputs { q, k, v, .. } = inputs;
        attend_into(q, k, v, &settings, workspace, attended.view_mut())?;
        self.maps.join(&attended, numbers, output);
        Ok(())
    }

    /// Draws what does not depend on the sequences but for their number.
    fn know(&mut self, batch: usize) -> Result<(), Error> {
        let mechanism = self.variant.mechanism::<T>();
        let none = Inputs::none(batch, self.maps.size());
        let settings = mechanism.settings(&Inputs::unseen(&none), &self.parameters, &self.pass)?;
        self.known = Known::Of(batch, settings);
        Ok(())
    }
}
