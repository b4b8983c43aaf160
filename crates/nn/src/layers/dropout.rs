//! Dropout.

use crate::{BoxError, Element, Error, Inputs, Mode, Operation, record_one};
use bochner_numerics::{DropoutMask, Real, Seed};
use dfdx::dtypes::Dtype;
use dfdx::nn::tensor_collection::{ModuleVisitor, ScalarOptions, TensorCollection};
use dfdx::nn::{BuildOnDevice, Module, ModuleMut};
use dfdx::shapes::{HasShape, Shape};
use dfdx::tensor::{Cpu, CpuError, NoneTape, OwnedTape, RandomU64, Tape, Tensor};
use dfdx::tensor_ops::Device;
use ndarray::{ArrayD, ArrayViewD};

/// Sets elements to zero with probability `rate` and divides the others by `1 - rate`.
///
/// In evaluation it is the identity. The mask is a function of the seed and the element's index.
///
/// Through dfdx's traits it behaves as dfdx's own: `Module` evaluates and takes no tape,
/// `ModuleMut` trains, takes a tape, and draws the seed from the device.
///
/// ```
/// use bochner_nn::{Dropout, Mode};
/// use bochner_numerics::Seed;
/// use dfdx::prelude::*;
///
/// let dropout = Dropout { rate: 0.5 };
/// let x: Tensor<Rank1<100>, f32, Cpu> = Cpu::default().ones();
/// let y = dropout.apply(x.clone(), Mode::Training(Seed::new(7)))?;
/// assert!(y.array().iter().all(|&y| y == 0.0 || y == 2.0));
/// assert_eq!(dropout.apply(x.clone(), Mode::Evaluation)?.array(), x.array());
/// # Ok::<(), bochner_nn::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Dropout {
    /// The probability of zero, at least 0 and below 1.
    pub rate: f64,
}

impl Default for Dropout {
    fn default() -> Self {
        Self { rate: 0.1 }
    }
}

impl Dropout {
    /// The output; one operation on the tape, or none in evaluation.
    ///
    /// # Errors
    /// [`Error::OutOfRange`] unless `0 <= rate < 1`, [`Error::Empty`] if `x` has no elements.
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
        let Some(mask) = mask(self.rate, mode)? else {
            return Ok(x);
        };
        let shape = *x.shape();
        record_one(Drop(mask), Inputs::<E, T>::new().with(x)?, shape)
    }
}

/// The mask of a pass, if it has one.
pub(super) fn mask(rate: f64, mode: Mode) -> Result<Option<DropoutMask>, Error> {
    let seed = match mode {
        Mode::Evaluation => Seed::new(0),
        Mode::Training(seed) => seed,
    };
    let mask = DropoutMask::new(rate, seed).map_err(|_| Error::OutOfRange {
        what: "the dropout rate",
        got: rate,
        requirement: "at least 0 and below 1",
    })?;
    Ok((mode != Mode::Evaluation && rate > 0.0).then_some(mask))
}

/// [`Dropout`] as an operation on `x`.
struct Drop(DropoutMask);

impl Drop {
    fn scaled<T: Real>(&self, x: &ArrayViewD<'_, T>) -> ArrayD<T> {
        let mut y = x.to_owned();
        self.0
            .scale(0, y.as_slice_mut().expect("a row-major array"));
        y
    }
}

impl<T: Real> Operation<T> for Drop {
    type Saved = ();

    fn forward(
        &self,
        inputs: &[ArrayViewD<'_, T>],
    ) -> Result<(Vec<ArrayD<T>>, Self::Saved), BoxError> {
        Ok((vec![self.scaled(&inputs[0])], ()))
    }

    fn backward(
        &self,
        _: &[ArrayViewD<'_, T>],
        _: &Self::Saved,
        cotangents: &[ArrayViewD<'_, T>],
    ) -> Result<Vec<Option<ArrayD<T>>>, BoxError> {
        Ok(vec![Some(self.scaled(&cotangents[0]))])
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
        visitor.visit_fields(
            <Self as TensorCollection<E, D>>::scalar(
                "rate",
                |s| &s.rate,
                |s| &mut s.rate,
                ScalarOptions::from_default(Self::default().rate),
            ),
            |rate| Dropout { rate },
        )
    }
}
