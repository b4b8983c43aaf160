//! Activations of tensors.

use crate::{Element, Error, TapeInputs, record_one};
use bochner_ops::Activation;
use dfdx::shapes::{HasShape, Shape};
use dfdx::tensor::{Cpu, Tape, Tensor};

/// The activation of each element; one operation on the tape.
///
/// # Errors
/// [`Error::Argument`] without elements, or for an activation whose own number is out of its range.
///
/// ```
/// use bochner_nn::activate;
/// use bochner_ops::Activation;
/// use bochner_nn::dfdx::prelude::*;
///
/// let x = Cpu::default().tensor([-1.0_f64, 0.0, 2.0]);
/// let y = activate(x.leaky_trace(), Activation::Elu)?;
/// let (e, dx) = ((-1.0_f64).exp(), y.sum().backward().get(&x).array());
/// assert!((dx[0] - e).abs() < 1e-15);
/// assert_eq!(dx[1..], [1.0, 1.0]);
/// # Ok::<(), bochner_nn::Error>(())
/// ```
pub fn activate<S: Shape, E: Element, T: Tape<E, Cpu>>(
    x: Tensor<S, E, Cpu, T>,
    activation: Activation,
) -> Result<Tensor<S, E, Cpu, T>, Error> {
    let shape = *x.shape();
    record_one(activation, TapeInputs::<E, T>::new().with(x)?, shape)
}
