//! Dynamic dispatch, once a call: [`Attend`] hides the kernel's type from settings and decoders, and the engine behind it
//! is compiled for each kernel.

use super::decode::HeadMemory;
use super::{Arguments, attend, decode, pull_back, with_weights};
use crate::Error;
use crate::Form;
use crate::attend::AttentionGradients;
use crate::score::{LinearForm, PairKernel};
use bochner_numerics::Real;
use bochner_numerics::memory::Unwritten;
use ndarray::{Array4, ArrayView4};
use std::any::Any;
use std::fmt::Debug;
use std::ops::Range;
use std::sync::Arc;

/// What a forward pass keeps for the backward pass.
pub(crate) type State = Box<dyn Any + Send + Sync>;

/// Attention with a kernel whose type the caller does not know. Each method runs over all heads of a call.
pub(crate) trait Attend<T: Real>: Debug + Send + Sync {
    /// The kernel itself, for what one kernel alone can do.
    fn any(&self) -> &dyn Any;
    fn validate(&self, batch: usize, heads: usize, width: usize) -> Result<(), Error>;
    fn linear_form(&self) -> Option<LinearForm>;

    /// Whether a magnitude of the keys or a bias can be added to the logits.
    fn has_logits(&self) -> bool {
        true
    }

    /// Whether the kernel drops something of its own.
    fn has_dropout(&self) -> bool {
        false
    }

    /// Writes the attended values; keeps nothing for a backward pass.
    fn attend_once(&self, call: &Arguments<T>, output: Unwritten<T>);

    /// Writes the attended values.
    fn attend(&self, call: &Arguments<T>, output: Unwritten<T>) -> State;

    /// The normalised weights, before dropout.
    fn weights(&self, call: &Arguments<T>) -> Array4<T>;

    /// Writes the attended values, and gives the weights too.
    fn attend_with_weights(&self, call: &Arguments<T>, output: Unwritten<T>) -> (State, Array4<T>) {
        (self.attend(call, output), self.weights(call))
    }

    fn pull_back(
        &self,
        call: &Arguments<T>,
        state: &State,
        output: ArrayView4<T>,
        cotangent: ArrayView4<T>,
    ) -> AttentionGradients<T>;

    /// What a decoder remembers of a head before the first position.
    fn memory(&self, width: usize, form: Form) -> Box<dyn Memory<T>>;

    /// Whether heads of queries that read the same keys share what a decoder remembers of these.
    fn shares_memory(&self, _form: Form) -> bool {
        false
    }

    /// Remembers the next positions of some heads, which share one memory; with an output, of one head after the
    /// other, attends from them.
    fn decode(
        &self,
        call: &Arguments<T>,
        heads: Range<usize>,
        memory: &mut dyn Memory<T>,
        out: Option<&mut [T]>,
    );

    /// The kernel of a batch whose example `b` is what `indices[b]` was, if that is another one.
    fn reordered(&self, indices: &[usize]) -> Option<Arc<dyn Attend<T>>>;
}

/// What a decoder remembers of one head, or of all that share it.
pub(crate) trait Memory<T>: Any + Send + Sync {
    /// The number of positions.
    fn length(&self) -> usize;

    /// The first position that is held by itself: those before it are forgotten, or have gone into sums.
    fn first(&self) -> usize;

    /// The number of numbers held.
    fn size(&self) -> usize;

    /// Forgets all positions but the first ones, if there are more; the others must be held by themselves.
    fn truncate(&mut self, length: usize);

    fn copy(&self) -> Box<dyn Memory<T>>;

    /// Becomes a copy of what the same kernel remembers of another head; sums are written over those that are there.
    fn copy_from(&mut self, other: &dyn Memory<T>);

    /// Whether it holds positions that are not all on one path, of which [`keep`](Self::keep) leaves some.
    #[cfg(feature = "dfdx")]
    fn can_branch(&self) -> bool {
        false
    }

    /// Forgets the positions that are not marked, if it can branch.
    #[cfg(feature = "dfdx")]
    fn keep(&mut self, _marks: &[bool]) {}
}

impl<T: 'static> Clone for Box<dyn Memory<T>> {
    fn clone(&self) -> Self {
        (**self).copy()
    }
}

/// A kernel that the engine weighs pair by pair, a block of pairs at a time.
#[derive(Debug)]
pub(crate) struct Tiled<K>(pub(crate) K);

impl<T: Real, K: PairKernel<T>> Attend<T> for Tiled<K> {
    fn any(&self) -> &dyn Any {
        &self.0
    }

    fn validate(&self, batch: usize, heads: usize, width: usize) -> Result<(), Error> {
        PairKernel::validate(&self.0, batch, heads, width)
    }

    fn linear_form(&self) -> Option<LinearForm> {
        PairKernel::linear_form(&self.0)
    }

    fn attend_once(&self, call: &Arguments<T>, output: Unwritten<T>) {
        drop(attend::attend(&self.0, call, false, output));
    }

    fn attend(&self, call: &Arguments<T>, output: Unwritten<T>) -> State {
        Box::new(attend::attend(&self.0, call, true, output))
    }

    fn weights(&self, call: &Arguments<T>) -> Array4<T> {
        with_weights::weights(&self.0, call)
    }

    fn attend_with_weights(&self, call: &Arguments<T>, output: Unwritten<T>) -> (State, Array4<T>) {
        // A head in linear time has no pairs to share.
        if (0..call.all_heads()).any(|h| call.at(h).form() == Form::LinearTime) {
            return (self.attend(call, output), self.weights(call));
        }
        let (kept, weights) = with_weights::attend(&self.0, call, output);
        (Box::new(kept), weights)
    }

    fn pull_back(
        &self,
        call: &Arguments<T>,
        state: &State,
        output: ArrayView4<T>,
        cotangent: ArrayView4<T>,
    ) -> AttentionGradients<T> {
        let state = state.downcast_ref().expect("kept by this kernel");
        pull_back::pull_back(&self.0, call, state, output, cotangent)
    }

    fn memory(&self, width: usize, form: Form) -> Box<dyn Memory<T>> {
        Box::new(HeadMemory::<T, K::Score>::new(width, form))
    }

    fn shares_memory(&self, form: Form) -> bool {
        !K::HAS_OWN_OPERANDS && form != Form::LinearTime
    }

    fn decode(
        &self,
        call: &Arguments<T>,
        heads: Range<usize>,
        memory: &mut dyn Memory<T>,
        out: Option<&mut [T]>,
    ) {
        let memory: &mut dyn Any = memory;
        let memory = memory.downcast_mut().expect("made by this kernel");
        decode::decode(&self.0, call, heads, memory, out);
    }

    fn reordered(&self, indices: &[usize]) -> Option<Arc<dyn Attend<T>>> {
        let reordered = PairKernel::reordered(&self.0, indices)?;
        Some(Arc::new(Tiled(reordered)))
    }
}
