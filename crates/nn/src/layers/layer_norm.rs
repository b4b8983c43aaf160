//! Layer normalisation.

use super::initial::{count, draws};
use super::{Dropout, EndsWith};
use crate::{Element, Error, Parameters, TapeInputs, record_one};
use bochner_ops::{Mode, ResidualNorm, dropout_mask};
use dfdx::dtypes::Dtype;
use dfdx::nn::tensor_collection::{ModuleVisitor, ScalarOptions, TensorCollection, TensorOptions};
use dfdx::nn::{BuildModule, BuildOnDevice, Module, NonMutableModule};
use dfdx::shapes::{Const, ConstDim, Dim, HasShape};
use dfdx::tensor::{Cpu, CpuError, Merge, Storage, Tape, Tensor, TensorFromVec};
use dfdx::tensor_ops::Device;
use std::cell::Cell;

const EPSILON: f64 = 1e-5;

/// Normalises the last axis to mean 0 and variance 1, then scales and shifts it.
///
/// $$ y = \gamma \odot \frac{x - \mu}{\sqrt{\sigma^2 + \epsilon}} + \beta $$
///
/// * $\mu, \sigma^2$: mean and (biased) variance of $x$ over its last axis, `N`
/// * $\gamma$: `gamma`, `[N]`, starts at 1
/// * $\beta$: `beta`, `[N]`, starts at 0
/// * $\epsilon$: `epsilon`, `1e-5` by default
///
/// See [`bochner_ops::LayerNorm`] for rows whose squares overflow.
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
    /// [`Error::Argument`] if the size is zero or cannot be addressed, [`Error::Device`] if there is no
    /// memory.
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
    /// [`Error::Argument`] if the last axis of `x` is not the layer's, `x` has no elements, or `epsilon` is
    /// not positive in the type of `x` too.
    pub fn apply<S, T>(&self, x: Tensor<S, E, Cpu, T>) -> Result<Tensor<S, E, Cpu, T>, Error>
    where
        S: EndsWith<N>,
        T: Tape<E, Cpu>,
    {
        let epsilon = self.epsilon;
        let shape = *x.shape();
        let inputs = self.add_to(TapeInputs::<E, T>::new().with(x)?)?;
        record_one(bochner_ops::LayerNorm { epsilon }, inputs, shape)
    }

    /// The end of a residual branch, $\mathrm{LN}(x + \mathrm{dropout}(r))$; one operation on the
    /// tape.
    ///
    /// # Errors
    /// The errors of [`apply`](Self::apply), also if `branch` has another shape than `x`.
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
        let shape = *x.shape();
        let inputs = self.add_to(TapeInputs::<E, T>::new().with(x)?.with(branch)?)?;
        record_one(operation, inputs, shape)
    }

    /// [`apply_residual`](Self::apply_residual) as an operation on `x`, the branch, `gamma`,
    /// `beta`.
    ///
    /// # Errors
    /// [`Error::Argument`] unless the rate of the dropout is at least 0 and below 1.
    pub fn residual(&self, dropout: Dropout, mode: Mode) -> Result<ResidualNorm, Error> {
        Ok(ResidualNorm {
            epsilon: self.epsilon,
            mask: dropout_mask(dropout.rate(), mode)?,
        })
    }

    /// Adds `gamma` and `beta` to the inputs of an operation.
    ///
    /// # Errors
    /// [`Error::Argument`] if they have no elements.
    pub fn add_to<T: Tape<E, Cpu>>(
        &self,
        inputs: TapeInputs<E, T>,
    ) -> Result<TapeInputs<E, T>, Error> {
        inputs.with(self.gamma.clone())?.with(self.beta.clone())
    }
}

impl<N: Dim, E: Element> Parameters<E> for LayerNorm<N, E> {
    crate::visit_fields!(E: gamma, beta);
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
        // A visitor that builds another layer is handed the defaults of scalars, not their values.
        let own = Cell::new(EPSILON);
        let epsilon = ScalarOptions::from_default(EPSILON);
        visitor.visit_fields(
            (
                Self::tensor(
                    "gamma",
                    |s| {
                        own.set(s.epsilon);
                        &s.gamma
                    },
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
            |(gamma, beta, _)| LayerNorm {
                gamma,
                beta,
                epsilon: own.get(),
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
