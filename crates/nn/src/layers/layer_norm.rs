//! Layer normalisation.

mod normalise;

use super::dropout::mask;
use super::initial::{count, draws};
use super::{Dropout, EndsWith};
use crate::parameters::{Parameter, ParameterMut, Parameters, join};
use crate::rows::by_blocks;
use crate::{BoxError, Element, Error, Inputs, Mode, Operation, record_one};
use bochner_numerics::{DropoutMask, Real};
use dfdx::dtypes::Dtype;
use dfdx::nn::tensor_collection::{ModuleVisitor, ScalarOptions, TensorCollection, TensorOptions};
use dfdx::nn::{BuildModule, BuildOnDevice, Module, NonMutableModule};
use dfdx::shapes::{Const, ConstDim, Dim, HasShape};
use dfdx::tensor::{Cpu, CpuError, Merge, Storage, Tape, Tensor, TensorFromVec};
use dfdx::tensor_ops::Device;
use ndarray::{ArrayD, ArrayViewD};
pub use normalise::Normalised;
use normalise::{Rows, normalise, normalise_vjp};

const EPSILON: f64 = 1e-5;
/// Multiplications that take as long as drawing one element of a mask.
const DRAW: usize = 8;

/// Normalises the last axis to mean 0 and variance 1, then scales and shifts it.
///
/// $$ y = \gamma \odot \frac{x - \mu}{\sqrt{\sigma^2 + \epsilon}} + \beta $$
///
/// * $\mu, \sigma^2$: mean and (biased) variance of $x$ over its last axis, `N`
/// * $\gamma$: `gamma`, `[N]`, starts at 1
/// * $\beta$: `beta`, `[N]`, starts at 0
/// * $\epsilon$: `epsilon`, `1e-5` by default
///
/// # Numerics
/// Any finite row is normalised, and its gradient is that of the formula. Where a sum or a square
/// overflows (in single precision with numbers from about 1e18), the row is done again times a power of
/// two that brings its largest number near one; so it is where a residual branch overflows the sum. All
/// other rows pay one comparison for it. Squares that underflow are nothing beside $\epsilon$.
///
/// # Reference
/// Ba, Kiros, Hinton, *Layer Normalization*, 2016.
#[derive(Clone, Debug)]
pub struct LayerNorm<N: Dim, E: Dtype, D: Storage<E> = Cpu> {
    /// The scale $\gamma$.
    pub gamma: Tensor<(N,), E, D>,
    /// The shift $\beta$.
    pub beta: Tensor<(N,), E, D>,
    /// The number $\epsilon$, positive.
    pub epsilon: f64,
}

impl<N: Dim, E: Element> LayerNorm<N, E> {
    /// A layer that starts as the plain normalisation.
    ///
    /// # Errors
    /// [`Error::Empty`] if the size is zero, [`Error::OutOfRange`] if it cannot be addressed,
    /// [`Error::Device`] if there is no memory.
    pub fn try_new(device: &Cpu, size: N) -> Result<Self, Error> {
        let n = count::<E>(&[size.size()])?;
        Ok(Self {
            gamma: device.try_tensor_from_vec(draws(n, E::one)?, (size,))?,
            beta: device.try_tensor_from_vec(draws(n, E::zero)?, (size,))?,
            epsilon: EPSILON,
        })
    }

    /// The output; one operation on the tape.
    ///
    /// # Errors
    /// [`Error::ShapeMismatch`] if the last axis of `x` is not the layer's, [`Error::OutOfRange`]
    /// unless `epsilon` is positive in the type of `x` too, [`Error::Empty`] if `x` has no elements.
    pub fn apply<S, T>(&self, x: Tensor<S, E, Cpu, T>) -> Result<Tensor<S, E, Cpu, T>, Error>
    where
        S: EndsWith<N>,
        T: Tape<E, Cpu>,
    {
        let operation = Normalise(self.checked_epsilon()?);
        let shape = super::checked(*x.shape(), self.gamma.shape().0)?;
        let inputs = self.add_to(Inputs::<E, T>::new().with(x)?)?;
        record_one(operation, inputs, shape)
    }

    /// The end of a residual branch, $\mathrm{LN}(x + \mathrm{dropout}(r))$; one operation on the
    /// tape.
    ///
    /// # Errors
    /// Those of [`apply`](Self::apply), and [`Error::OutOfRange`] unless `0 <= rate < 1`.
    pub fn apply_residual<S, T>(
        &self,
        x: Tensor<S, E, Cpu, T>,
        branch: Tensor<S, E, Cpu, T>,
        dropout: Dropout,
        mode: Mode,
    ) -> Result<Tensor<S, E, Cpu, T>, Error>
    where
        S: EndsWith<N>,
        T: Tape<E, Cpu> + Merge<T>,
    {
        let operation = self.residual(dropout, mode)?;
        let shape = super::checked(*x.shape(), self.gamma.shape().0)?;
        if *branch.shape() != shape {
            return Err(Error::ShapeMismatch {
                what: "the residual branch",
                expected: shape.concrete().into(),
                got: branch.shape().concrete().into(),
            });
        }
        let inputs = self.add_to(Inputs::<E, T>::new().with(x)?.with(branch)?)?;
        record_one(operation, inputs, shape)
    }

    /// [`apply_residual`](Self::apply_residual) as an operation on `x`, the branch, `gamma`,
    /// `beta`.
    ///
    /// # Errors
    /// [`Error::OutOfRange`] unless `epsilon` is positive and `0 <= rate < 1`.
    pub fn residual(&self, dropout: Dropout, mode: Mode) -> Result<ResidualNorm, Error> {
        Ok(ResidualNorm {
            epsilon: self.checked_epsilon()?,
            mask: mask(dropout.rate, mode)?,
        })
    }

    /// Adds `gamma` and `beta` to the inputs of an operation.
    ///
    /// # Errors
    /// [`Error::Empty`] if they have no elements.
    pub fn add_to<T: Tape<E, Cpu>>(&self, inputs: Inputs<E, T>) -> Result<Inputs<E, T>, Error> {
        inputs.with(self.gamma.clone())?.with(self.beta.clone())
    }

    fn checked_epsilon(&self) -> Result<f64, Error> {
        // In single precision 1e-50 is zero, and a constant row would be zero over zero.
        if self.epsilon > 0.0 && E::of(self.epsilon).is_normal() {
            return Ok(self.epsilon);
        }
        Err(Error::OutOfRange {
            what: "epsilon",
            got: self.epsilon,
            requirement: "positive, and neither too small nor too large for the layer's numbers",
        })
    }
}

/// [`LayerNorm`] as an operation on `x`, `gamma`, `beta`; its $\epsilon$.
struct Normalise(f64);

/// [`LayerNorm::apply_residual`] as an operation on `x`, the branch, `gamma`, `beta`.
#[derive(Clone, Copy, Debug)]
pub struct ResidualNorm {
    epsilon: f64,
    mask: Option<DropoutMask>,
}

impl<T: Real> Operation<T> for Normalise {
    type Saved = Normalised<T>;

    fn forward(
        &self,
        inputs: &[ArrayViewD<'_, T>],
    ) -> Result<(Vec<ArrayD<T>>, Self::Saved), BoxError> {
        let [x, gamma, beta] = super::slices(inputs);
        let (y, saved) = normalise(&Rows { x, branch: None }, gamma, beta, self.0);
        Ok((vec![ArrayD::from_shape_vec(inputs[0].raw_dim(), y)?], saved))
    }

    fn backward(
        &self,
        inputs: &[ArrayViewD<'_, T>],
        saved: &Self::Saved,
        cotangents: &[ArrayViewD<'_, T>],
    ) -> Result<Vec<Option<ArrayD<T>>>, BoxError> {
        let [_, gamma, _] = super::slices(inputs);
        let [dy] = super::slices(cotangents);
        super::gradients(inputs, normalise_vjp(dy, gamma, saved))
    }
}

impl<T: Real> Operation<T> for ResidualNorm {
    type Saved = Normalised<T>;

    fn forward(
        &self,
        inputs: &[ArrayViewD<'_, T>],
    ) -> Result<(Vec<ArrayD<T>>, Self::Saved), BoxError> {
        let [x, branch, gamma, beta] = super::slices(inputs);
        let branch = Some((branch, self.mask.as_ref()));
        let (y, saved) = normalise(&Rows { x, branch }, gamma, beta, self.epsilon);
        Ok((vec![ArrayD::from_shape_vec(inputs[0].raw_dim(), y)?], saved))
    }

    fn backward(
        &self,
        inputs: &[ArrayViewD<'_, T>],
        saved: &Self::Saved,
        cotangents: &[ArrayViewD<'_, T>],
    ) -> Result<Vec<Option<ArrayD<T>>>, BoxError> {
        let [_, _, gamma, _] = super::slices(inputs);
        let [dy] = super::slices(cotangents);
        let [dx, dgamma, dbeta] = normalise_vjp(dy, gamma, saved);
        let width = gamma.len();
        let rows = dx.len() / width;
        let [dbranch] = by_blocks(rows, [width], dx.len() * DRAW, |range, [piece]| {
            let start = range.start * width;
            let piece = piece.copy_of(&dx[start..range.end * width]);
            if let Some(mask) = &self.mask {
                mask.scale(start as u64, piece);
            }
        });
        super::gradients(inputs, [dx, dbranch, dgamma, dbeta])
    }
}

impl<N: Dim, E: Element> Parameters<E> for LayerNorm<N, E> {
    fn for_each(&self, prefix: &str, f: &mut dyn FnMut(&str, &dyn Parameter<E>)) {
        self.gamma.for_each(&join(prefix, "gamma"), f);
        self.beta.for_each(&join(prefix, "beta"), f);
    }

    fn for_each_mut(&mut self, prefix: &str, f: &mut dyn FnMut(&str, &mut dyn ParameterMut<E>)) {
        self.gamma.for_each_mut(&join(prefix, "gamma"), f);
        self.beta.for_each_mut(&join(prefix, "beta"), f);
    }
}

impl<N: Dim, E: Dtype, D: Storage<E>> NonMutableModule for LayerNorm<N, E, D> {}

impl<N, E, S, T> Module<Tensor<S, E, Cpu, T>> for LayerNorm<N, E>
where
    N: Dim,
    E: Element,
    S: EndsWith<N>,
    T: Tape<E, Cpu>,
{
    type Output = Tensor<S, E, Cpu, T>;
    type Error = CpuError;

    fn try_forward(&self, x: Tensor<S, E, Cpu, T>) -> Result<Self::Output, CpuError> {
        self.apply(x).map_err(Error::into_device_error)
    }
}

impl<N: ConstDim, E: Element, D: Device<E>> TensorCollection<E, D> for LayerNorm<N, E, D> {
    type To<E2: Dtype, D2: Device<E2>> = LayerNorm<N, E2, D2>;

    fn iter_tensors<V: ModuleVisitor<Self, E, D>>(
        visitor: &mut V,
    ) -> Result<Option<Self::To<V::E2, V::D2>>, V::Err> {
        let epsilon = ScalarOptions::from_default(EPSILON);
        visitor.visit_fields(
            (
                Self::tensor(
                    "gamma",
                    |s| &s.gamma,
                    |s| &mut s.gamma,
                    TensorOptions::reset_to_ones(),
                ),
                Self::tensor(
                    "beta",
                    |s| &s.beta,
                    |s| &mut s.beta,
                    TensorOptions::reset_to_zeros(),
                ),
                Self::scalar("epsilon", |s| &s.epsilon, |s| &mut s.epsilon, epsilon),
            ),
            |(gamma, beta, epsilon)| LayerNorm {
                gamma,
                beta,
                epsilon,
            },
        )
    }
}

pub(super) mod builder {
    //! The layer's name without its element type and device.

    /// Builds a [`LayerNorm`](crate::LayerNorm) of compile-time size.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct LayerNorm<const N: usize>;
}

impl<const N: usize, E: Element, D: Device<E>> BuildOnDevice<D, E> for builder::LayerNorm<N>
where
    LayerNorm<Const<N>, E, D>: BuildModule<D, E>,
{
    type Built = LayerNorm<Const<N>, E, D>;
}
