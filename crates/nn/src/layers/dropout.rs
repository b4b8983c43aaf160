//! Dropout.

use crate::{Element, Error, TapeInputs, record_one};
use bochner_numerics::{Seed, argument};
use bochner_ops::{Mode, dropout_mask};
use dfdx::dtypes::Dtype;
use dfdx::nn::tensor_collection::{ModuleVisitor, ScalarOptions, TensorCollection};
use dfdx::nn::{BuildOnDevice, Module, ModuleMut};
use dfdx::shapes::{HasShape, Shape};
use dfdx::tensor::{Cpu, CpuError, NoneTape, OwnedTape, RandomU64, Tape, Tensor};
use dfdx::tensor_ops::Device;
use std::cell::Cell;

/// Sets elements to zero with probability `rate` and divides the others by `1 - rate`.
///
/// In evaluation it is the identity. The mask is a function of the seed and the element's index.
///
/// Through dfdx's traits it behaves as dfdx's own: `Module` evaluates and takes no tape,
/// `ModuleMut` trains, takes a tape, and draws the seed from the device.
///
/// ```
/// use bochner_nn::Dropout;
/// use bochner_numerics::Seed;
/// use bochner_ops::Mode;
/// use bochner_nn::dfdx::prelude::*;
///
/// let dropout = Dropout::new(0.5)?;
/// let x: Tensor<Rank1<100>, f32, Cpu> = Cpu::default().ones();
/// let y = dropout.apply(x.clone(), Mode::Training(Seed::new(7)))?;
/// assert!(y.array().iter().all(|&y| y == 0.0 || y == 2.0));
/// assert_eq!(dropout.apply(x.clone(), Mode::Evaluation)?.array(), x.array());
/// # Ok::<(), bochner_nn::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Dropout {
    rate: f64,
}

/// Dropout at the rate 0.1.
impl Default for Dropout {
    fn default() -> Self {
        Self { rate: 0.1 }
    }
}

impl Dropout {
    /// Dropout with the probability `rate` of zero, at least 0 and below 1.
    ///
    /// # Errors
    /// [`Error::Argument`] for another rate.
    pub fn new(rate: f64) -> Result<Self, Error> {
        argument::rate("rate", rate)?;
        Ok(Self { rate })
    }

    /// The probability of zero.
    pub fn rate(&self) -> f64 {
        self.rate
    }

    /// The output; one operation on the tape, or none in evaluation.
    ///
    /// # Errors
    /// [`Error::Argument`] if `x` has no elements, or dfdx has written a rate that is out of range.
    pub fn apply<S, E, T>(
        &self,
        x: Tensor<S, E, Cpu, T>,
        mode: Mode,
    ) -> Result<Tensor<S, E, Cpu, T>, Error>
    where
        S: Shape,
        E: Element,
        T: Tape<E, Cpu>,
    {
        let Some(mask) = dropout_mask(self.rate, mode)? else {
            return Ok(x);
        };
        let shape = *x.shape();
        let inputs = TapeInputs::<E, T>::new().with(x)?;
        record_one(bochner_ops::Dropout(mask), inputs, shape)
    }
}

impl<S: Shape, E: Element> Module<Tensor<S, E, Cpu, NoneTape>> for Dropout {
    type Output = Tensor<S, E, Cpu, NoneTape>;
    type Error = CpuError;

    fn try_forward(&self, x: Tensor<S, E, Cpu, NoneTape>) -> Result<Self::Output, CpuError> {
        self.apply(x, Mode::Evaluation)
            .map_err(Error::into_device_error)
    }
}

impl<S: Shape, E: Element> ModuleMut<Tensor<S, E, Cpu, OwnedTape<E, Cpu>>> for Dropout {
    type Output = Tensor<S, E, Cpu, OwnedTape<E, Cpu>>;
    type Error = CpuError;

    fn try_forward_mut(
        &mut self,
        x: Tensor<S, E, Cpu, OwnedTape<E, Cpu>>,
    ) -> Result<Self::Output, CpuError> {
        let mode = device_mode(x.device());
        self.apply(x, mode).map_err(Error::into_device_error)
    }
}

/// A training pass as dfdx does it: the device is the source of randomness.
pub(super) fn device_mode(device: &Cpu) -> Mode {
    Mode::Training(Seed::new(device.random_u64()))
}

impl<E: Dtype, D: Device<E>> BuildOnDevice<D, E> for Dropout {
    type Built = Dropout;
}

impl<E: Dtype, D: Device<E>> TensorCollection<E, D> for Dropout {
    type To<E2: Dtype, D2: Device<E2>> = Dropout;

    fn iter_tensors<V: ModuleVisitor<Self, E, D>>(
        visitor: &mut V,
    ) -> Result<Option<Self::To<V::E2, V::D2>>, V::Err> {
        // A visitor that builds another layer is handed the defaults of scalars, not their values.
        let own = Cell::new(Self::default().rate);
        visitor.visit_fields(
            <Self as TensorCollection<E, D>>::scalar(
                "rate",
                |s| {
                    own.set(s.rate);
                    &s.rate
                },
                |s| &mut s.rate,
                ScalarOptions::from_default(Self::default().rate),
            ),
            |_| Dropout { rate: own.get() },
        )
    }
}
