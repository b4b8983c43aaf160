//! The linear layer.

use super::EndsWith;
use super::initial::{UniformWithin, tensor};
use crate::{Element, Error, Parameters, TapeInputs, record_one};
use bochner_ops::Affine;
use dfdx::dtypes::Dtype;
use dfdx::nn::tensor_collection::{ModuleVisitor, TensorCollection, TensorOptions};
use dfdx::nn::{BuildModule, BuildOnDevice, Module, NonMutableModule};
use dfdx::shapes::{Const, ConstDim, Dim, HasShape};
use dfdx::tensor::{Cpu, CpuError, Storage, Tape, Tensor};
use dfdx::tensor_ops::Device;
use rand::RngCore;

/// A linear map with a bias, over the last axis.
///
/// $$ y = x W^\top + b $$
///
/// * $x$: the input, last axis `I`, of one to four axes
/// * $W$: `weight`, `[O, I]`
/// * $b$: `bias`, `[O]`
///
/// Weight and bias start uniform in $\pm 1/\sqrt I$, as in PyTorch. The sizes are `Const<N>` (checked by the
/// compiler) or `usize` (checked at run time).
///
/// ```
/// use bochner_nn::Linear;
/// use bochner_numerics::Seed;
/// use bochner_nn::dfdx::prelude::*;
///
/// let device = Cpu::default();
/// let mut rng = Seed::new(1).stream("initial values");
/// let layer: Linear<usize, Const<2>, f32> = Linear::try_new(&device, 3, Const, &mut rng)?;
/// let x: Tensor<(usize, usize), f32, Cpu> = device.ones_like(&(4, 3));
/// let y = layer.apply(x)?;
/// assert_eq!(y.shape(), &(4, Const::<2>));
/// # Ok::<(), bochner_nn::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Linear<I: Dim, O: Dim, E: Dtype, D: Storage<E> = Cpu> {
    /// The matrix $W$.
    pub weight: Tensor<(O, I), E, D>,
    /// The vector $b$.
    pub bias: Tensor<(O,), E, D>,
}

impl<I: Dim, O: Dim, E: Element> Linear<I, O, E> {
    /// A layer with random initial values.
    ///
    /// # Errors
    /// [`Error::Argument`] if a size is zero or the matrix cannot be addressed, [`Error::Device`] if there is
    /// no memory for it.
    pub fn try_new(
        device: &Cpu,
        inputs: I,
        outputs: O,
        rng: &mut (impl RngCore + ?Sized),
    ) -> Result<Self, Error> {
        let distribution = UniformWithin::fan_in(inputs.size());
        Ok(Self {
            weight: tensor(device, (outputs, inputs), &distribution, rng)?,
            bias: tensor(device, (outputs,), &distribution, rng)?,
        })
    }

    /// The output; one operation on the tape.
    ///
    /// # Errors
    /// [`Error::Argument`] if the last axis of `x` is not the layer's, or `x` has no elements.
    pub fn apply<S, T>(
        &self,
        x: Tensor<S, E, Cpu, T>,
    ) -> Result<Tensor<S::With<O>, E, Cpu, T>, Error>
    where
        S: EndsWith<I>,
        T: Tape<E, Cpu>,
    {
        let shape = x.shape().with_last(self.bias.shape().0);
        let inputs = self.add_to(TapeInputs::<E, T>::new().with(x)?)?;
        record_one(Affine, inputs, shape)
    }

    /// Adds `weight` and `bias` to the inputs of an operation.
    ///
    /// # Errors
    /// [`Error::Argument`] if they have no elements.
    pub fn add_to<T: Tape<E, Cpu>>(
        &self,
        inputs: TapeInputs<E, T>,
    ) -> Result<TapeInputs<E, T>, Error> {
        inputs.with(self.weight.clone())?.with(self.bias.clone())
    }
}

impl<I: Dim, O: Dim, E: Element> Parameters<E> for Linear<I, O, E> {
    crate::visit_fields!(E: weight, bias);
}

impl<I: Dim, O: Dim, E: Dtype, D: Storage<E>> NonMutableModule for Linear<I, O, E, D> {}

impl<I, O, E, S, T> Module<Tensor<S, E, Cpu, T>> for Linear<I, O, E>
where
    I: Dim,
    O: Dim,
    E: Element,
    S: EndsWith<I>,
    T: Tape<E, Cpu>,
{
    type Output = Tensor<S::With<O>, E, Cpu, T>;
    type Error = CpuError;

    fn try_forward(&self, x: Tensor<S, E, Cpu, T>) -> Result<Self::Output, CpuError> {
        self.apply(x).map_err(Error::into_device_error)
    }
}

impl<I: ConstDim, O: ConstDim, E: Element, D: Device<E>> TensorCollection<E, D>
    for Linear<I, O, E, D>
{
    type To<E2: Dtype, D2: Device<E2>> = Linear<I, O, E2, D2>;

    fn iter_tensors<V: ModuleVisitor<Self, E, D>>(
        visitor: &mut V,
    ) -> Result<Option<Self::To<V::E2, V::D2>>, V::Err> {
        visitor.visit_fields(
            (
                Self::tensor(
                    "weight",
                    |s| &s.weight,
                    |s| &mut s.weight,
                    TensorOptions::reset_with(|t| {
                        t.try_fill_with_distr(UniformWithin::fan_in(I::SIZE))
                    }),
                ),
                Self::tensor(
                    "bias",
                    |s| &s.bias,
                    |s| &mut s.bias,
                    TensorOptions::reset_with(|t| {
                        t.try_fill_with_distr(UniformWithin::fan_in(I::SIZE))
                    }),
                ),
            ),
            |(weight, bias)| Linear { weight, bias },
        )
    }
}

pub(super) mod builder {
    //! The layer's name without its element type and device.

    /// Builds a [`Linear`](crate::Linear) of compile-time sizes.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct Linear<const I: usize, const O: usize>;
}

impl<const I: usize, const O: usize, E: Element, D: Device<E>> BuildOnDevice<D, E>
    for builder::Linear<I, O>
where
    Linear<Const<I>, Const<O>, E, D>: BuildModule<D, E>,
{
    type Built = Linear<Const<I>, Const<O>, E, D>;
}
