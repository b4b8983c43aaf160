//! The four parts of a post-LN layer.

use bochner_numerics::Real;
use bochner_ops::{BoxError, Operation, Slot};
use ndarray::{ArrayD, ArrayViewD, IxDyn};

/// Inputs, shapes or gradients, cut into those of each part; values that another part computes are missing.
pub(super) struct Cut<V> {
    /// `x` and the attention's parameters.
    pub(super) attention: V,
    pub(super) attention_norm: V,
    pub(super) feed_forward: V,
    pub(super) feed_forward_norm: V,
}

impl<X> Cut<Vec<X>> {
    pub(super) fn new(all: impl IntoIterator<Item = X>) -> Self {
        let mut attention: Vec<X> = all.into_iter().collect();
        let mut last = |n: usize| attention.split_off(attention.len().saturating_sub(n));
        let (feed_forward_norm, feed_forward, attention_norm) = (last(2), last(4), last(2));
        Self {
            attention,
            attention_norm,
            feed_forward,
            feed_forward_norm,
        }
    }
}

/// The saved values of a part with one output of this shape, and the output.
pub(super) fn run<T: Real, O: Operation<T>>(
    part: &O,
    inputs: &[ArrayViewD<'_, T>],
    shape: &[usize],
) -> Result<(O::Saved, ArrayD<T>), BoxError> {
    let mut values = Vec::new();
    let slot = Slot::new(&mut values, shape.iter().product());
    let saved = part.forward(inputs, vec![slot])?;
    Ok((saved, ArrayD::from_shape_vec(IxDyn(shape), values)?))
}
