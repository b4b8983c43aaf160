//! The four parts of an encoder layer, which both orders of them are made of.

use bochner_numerics::{DropoutMask, Real};
use bochner_ops::rows::{add, for_each_piece};
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

/// Inputs that another part computes, and after them a part's parameters.
pub(super) fn chain<X: Clone, const N: usize>(own: [X; N], parameters: &[X]) -> Vec<X> {
    own.into_iter().chain(parameters.iter().cloned()).collect()
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

/// Elements that one thread drops from, or adds, at a time.
const PIECE: usize = 1 << 13;
/// Multiplications that take as long as drawing one element of a mask.
const DRAW: usize = 8;

/// Drops from a branch in place.
pub(super) fn drop_from<T: Real>(branch: &mut [T], mask: Option<&DropoutMask>) {
    let Some(mask) = mask else { return };
    let work = branch.len() * DRAW;
    let pieces = branch.chunks_mut(PIECE).enumerate();
    for_each_piece(pieces, work, |(i, piece)| {
        mask.scale((i * PIECE) as u64, piece);
    });
}

/// The end of a residual branch, $x + \mathrm{dropout}(r)$, in the memory of the branch.
pub(super) fn add_residual<T: Real>(x: &[T], branch: &mut [T], mask: Option<&DropoutMask>) {
    let work = branch.len() * mask.map_or(1, |_| DRAW);
    let pieces = branch.chunks_mut(PIECE).zip(x.chunks(PIECE)).enumerate();
    for_each_piece(pieces, work, |(i, (piece, x))| {
        if let Some(mask) = mask {
            mask.scale((i * PIECE) as u64, piece);
        }
        add(piece, x);
    });
}
