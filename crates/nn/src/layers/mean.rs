//! The mean of a sequence.

use crate::{Element, Error, TapeInputs, record_one};
use bochner_ops::MeanOverTime;
use dfdx::shapes::{Dim, HasShape};
use dfdx::tensor::{Cpu, Tape, Tensor};

/// The mean of each sequence over its time, `[B, T, N]` to `[B, N]`: [`MeanOverTime`] as one operation on the
/// tape.
///
/// # Errors
/// [`Error::Argument`] unless there is one length a sequence, from 0 to `T`, or without elements.
pub fn mean_over_time<B: Dim, Q: Dim, N: Dim, E: Element, T: Tape<E, Cpu>>(
    x: Tensor<(B, Q, N), E, Cpu, T>,
    lengths: Option<&[usize]>,
) -> Result<Tensor<(B, N), E, Cpu, T>, Error> {
    let (batch, _, width) = *x.shape();
    let lengths = lengths.map(<[usize]>::to_vec);
    let inputs = TapeInputs::<E, T>::new().with(x)?;
    record_one(MeanOverTime { lengths }, inputs, (batch, width))
}
