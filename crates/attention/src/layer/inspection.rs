//! Inspection of a layer: its weights, spectral points and correlations.

use super::multi_head::{MultiHead, dims};
use crate::{Error, Mask, Pass, card::Stream, mechanism::Inspection};
use bochner_nn::Element;
use dfdx::shapes::{Dim, HasShape};
use dfdx::tensor::{Cpu, Tensor};
use ndarray::{Array3, ArrayView3};

impl<Embed: Dim, E: Element, Count: Dim, S, Wide: Dim> MultiHead<Embed, E, Cpu, Count, S, Wide> {
    /// Returns the weights of every head, the spectral points and the correlation of the heads.
    ///
    /// For a sequence that attends to itself with padding, give the mask the query lengths too.
    ///
    /// # Errors
    /// The errors of [`MultiHead::attend`].
    pub fn inspect<B: Dim, Q: Dim, K: Dim>(
        &self,
        query: Tensor<(B, Q, Embed), E, Cpu>,
        memory: Tensor<(B, K, Embed), E, Cpu>,
        mask: &Mask,
        pass: Pass,
    ) -> Result<Inspection<E>, Error> {
        let [query, memory] = [array(&query), array(&memory)];
        if query != memory {
            let cross = self.config.variant.card().cross;
            cross.required("attention to another sequence with this mechanism")?;
        }
        self.inspected(query.view(), memory.view(), mask, pass)
    }

    fn inspected(
        &self,
        query: ArrayView3<E>,
        memory: ArrayView3<E>,
        mask: &Mask,
        pass: Pass,
    ) -> Result<Inspection<E>, Error> {
        let packed = self.packed()?;
        packed.with_streams([query, memory], mask, |streams| {
            let seen = packed
                .mechanism
                .inspect(streams, &packed.parameters, &pass)?;
            let asked = packed.mechanism.card().streams;
            let compares = matches!(asked, [Stream::Queries, Stream::Keys, ..]);
            Ok(Inspection {
                heads: compares.then(|| [streams.q(), streams.k()].map(|x| x.to_owned())),
                ..seen
            })
        })
    }

    /// Returns the [inspection](Self::inspect) of a sequence that attends to itself. The mask's key lengths are used as
    /// query lengths unless it has these.
    ///
    /// # Errors
    /// The errors of [`MultiHead::attend_self`].
    pub fn inspect_self<B: Dim, Q: Dim>(
        &self,
        x: Tensor<(B, Q, Embed), E, Cpu>,
        mask: &Mask,
        pass: Pass,
    ) -> Result<Inspection<E>, Error> {
        let x = array(&x);
        self.inspected(x.view(), x.view(), &mask.for_self_attention(), pass)
    }
}

fn array<B: Dim, T: Dim, N: Dim, E: Element>(x: &Tensor<(B, T, N), E, Cpu>) -> Array3<E> {
    Array3::from_shape_vec(dims(x.shape()), x.as_vec()).expect("as many as the shape says")
}
