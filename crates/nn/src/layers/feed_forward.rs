//! Two linear layers with an activation and dropout between them.

use super::dropout::device_mode;
use super::{EndsWith, Linear};
use crate::{Element, Error, Parameters, TapeInputs, record_one};
use bochner_numerics::{ArgumentError, argument};
use bochner_ops::{Activation, Mode, dropout_mask};
use dfdx::dtypes::Dtype;
use dfdx::nn::tensor_collection::{ModuleVisitor, ScalarOptions, TensorCollection};
use dfdx::nn::{BuildModule, BuildOnDevice, Module, ModuleMut};
use dfdx::shapes::{Const, ConstDim, Dim, HasShape};
use dfdx::tensor::{Cpu, CpuError, NoneTape, OwnedTape, Storage, Tape, Tensor};
use dfdx::tensor_ops::Device;
use rand::RngCore;
use serde::{Deserialize, Serialize};
use std::cell::Cell;

/// The settings of a [`FeedForward`].
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(
    default,
    deny_unknown_fields,
    rename_all = "kebab-case",
    remote = "Self"
)]
pub struct FeedForwardConfig {
    /// The rate of the dropout on the hidden layer, at least 0 and below 1; 0.1 by default.
    pub dropout: f64,
    /// The function that follows the first linear layer; the rectifier by default, and not written then.
    #[serde(skip_serializing_if = "is_rectifier")]
    pub hidden: Activation,
    /// The function that follows the second linear layer; none by default, as in a Transformer.
    pub activation: Activation,
}

fn is_rectifier(hidden: &Activation) -> bool {
    *hidden == Activation::Relu
}

impl Default for FeedForwardConfig {
    fn default() -> Self {
        Self {
            dropout: 0.1,
            hidden: Activation::Relu,
            activation: Activation::Identity,
        }
    }
}

bochner_numerics::checked_when_read!(FeedForwardConfig);

impl FeedForwardConfig {
    fn validate(&self) -> Result<(), ArgumentError> {
        argument::rate("dropout", self.dropout)?;
        self.hidden.validate()?;
        self.activation.validate()
    }
}

/// Two linear layers with an activation and dropout between them, over the last axis.
///
/// $$ y = \phi\bigl(W_2 \mathrm{dropout}(\psi(W_1 x + b_1)) + b_2\bigr) $$
///
/// * $W_1, b_1$: `first`, from `I` to `H`
/// * $W_2, b_2$: `second`, from `H` to `O`
/// * $\psi$: `config.hidden`, the rectifier by default
/// * $\phi$: `config.activation`; nothing by default
///
/// # Numerics
/// One operation on the tape, see [`bochner_ops::FeedForward`].
#[derive(Clone, Debug)]
pub struct FeedForward<I: Dim, H: Dim, O: Dim, E: Dtype, D: Storage<E> = Cpu> {
    /// The first linear layer.
    pub first: Linear<I, H, E, D>,
    /// The second linear layer.
    pub second: Linear<H, O, E, D>,
    /// Dropout and activation.
    pub config: FeedForwardConfig,
}

impl<I: Dim, H: Dim, O: Dim, E: Element> FeedForward<I, H, O, E> {
    /// A layer with random initial values; `sizes` are those of input, hidden layer, output.
    ///
    /// # Errors
    /// The errors of [`Linear::try_new`]; [`Error::Argument`] unless `0 <= dropout < 1`, or for an activation
    /// whose own number is out of its range.
    pub fn try_new(
        device: &Cpu,
        sizes: (I, H, O),
        config: FeedForwardConfig,
        rng: &mut (impl RngCore + ?Sized),
    ) -> Result<Self, Error> {
        config.validate()?;
        let (inputs, hidden, outputs) = sizes;
        Ok(Self {
            first: Linear::try_new(device, inputs, hidden, rng)?,
            second: Linear::try_new(device, hidden, outputs, rng)?,
            config,
        })
    }

    /// The output; one operation on the tape.
    ///
    /// # Errors
    /// [`Error::Argument`] if the last axis of `x` is not the layer's, `x` has no elements, or the settings are
    /// out of range.
    pub fn apply<S, T>(
        &self,
        x: Tensor<S, E, Cpu, T>,
        mode: Mode,
    ) -> Result<Tensor<S::With<O>, E, Cpu, T>, Error>
    where
        S: EndsWith<I>,
        T: Tape<E, Cpu>,
    {
        let operation = self.operation(mode)?;
        let shape = x.shape().with_last(self.second.bias.shape().0);
        let inputs = self.add_to(TapeInputs::<E, T>::new().with(x)?)?;
        record_one(operation, inputs, shape)
    }

    /// The layer as an operation on `x`, `first` and `second`, each a weight and a bias.
    ///
    /// # Errors
    /// [`Error::Argument`] unless `0 <= dropout < 1`.
    pub fn operation(&self, mode: Mode) -> Result<bochner_ops::FeedForward, Error> {
        Ok(bochner_ops::FeedForward {
            mask: dropout_mask(self.config.dropout, mode)?,
            hidden: self.config.hidden,
            activation: self.config.activation,
        })
    }

    /// Adds the four parameters to the inputs of an operation.
    ///
    /// # Errors
    /// [`Error::Argument`] if they have no elements.
    pub fn add_to<T: Tape<E, Cpu>>(
        &self,
        inputs: TapeInputs<E, T>,
    ) -> Result<TapeInputs<E, T>, Error> {
        self.second.add_to(self.first.add_to(inputs)?)
    }
}

impl<I: Dim, H: Dim, O: Dim, E: Element> Parameters<E> for FeedForward<I, H, O, E> {
    crate::visit_fields!(E: first, second);
}

impl<I, H, O, E, S> Module<Tensor<S, E, Cpu, NoneTape>> for FeedForward<I, H, O, E>
where
    I: Dim,
    H: Dim,
    O: Dim,
    E: Element,
    S: EndsWith<I>,
{
    type Output = Tensor<S::With<O>, E, Cpu, NoneTape>;
    type Error = CpuError;

    fn try_forward(&self, x: Tensor<S, E, Cpu, NoneTape>) -> Result<Self::Output, CpuError> {
        self.apply(x, Mode::Evaluation)
            .map_err(Error::into_device_error)
    }
}

impl<I, H, O, E, S> ModuleMut<Tensor<S, E, Cpu, OwnedTape<E, Cpu>>> for FeedForward<I, H, O, E>
where
    I: Dim,
    H: Dim,
    O: Dim,
    E: Element,
    S: EndsWith<I>,
{
    type Output = Tensor<S::With<O>, E, Cpu, OwnedTape<E, Cpu>>;
    type Error = CpuError;

    fn try_forward_mut(
        &mut self,
        x: Tensor<S, E, Cpu, OwnedTape<E, Cpu>>,
    ) -> Result<Self::Output, CpuError> {
        let mode = device_mode(x.device());
        self.apply(x, mode).map_err(Error::into_device_error)
    }
}

impl<I: ConstDim, H: ConstDim, O: ConstDim, E: Element, D: Device<E>> TensorCollection<E, D>
    for FeedForward<I, H, O, E, D>
{
    type To<E2: Dtype, D2: Device<E2>> = FeedForward<I, H, O, E2, D2>;

    fn iter_tensors<V: ModuleVisitor<Self, E, D>>(
        visitor: &mut V,
    ) -> Result<Option<Self::To<V::E2, V::D2>>, V::Err> {
        let config = FeedForwardConfig::default();
        // A visitor that builds another layer sees fields alone, and of scalars only their defaults.
        let own = Cell::new(config);
        visitor.visit_fields(
            (
                Self::module(
                    "first",
                    |s| {
                        own.set(s.config);
                        &s.first
                    },
                    |s| &mut s.first,
                ),
                Self::module("second", |s| &s.second, |s| &mut s.second),
                Self::scalar(
                    "dropout",
                    |s| &s.config.dropout,
                    |s| &mut s.config.dropout,
                    ScalarOptions::from_default(config.dropout),
                ),
            ),
            |(first, second, _)| FeedForward {
                first,
                second,
                config: own.get(),
            },
        )
    }
}

pub(super) mod builder {
    //! The layer's name without its element type and device.

    /// Builds a [`FeedForward`](crate::FeedForward) of compile-time sizes and default settings.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct FeedForward<const I: usize, const H: usize, const O: usize>;
}

impl<const I: usize, const H: usize, const O: usize, E: Element, D: Device<E>> BuildOnDevice<D, E>
    for builder::FeedForward<I, H, O>
where
    FeedForward<Const<I>, Const<H>, Const<O>, E, D>: BuildModule<D, E>,
{
    type Built = FeedForward<Const<I>, Const<H>, Const<O>, E, D>;
}
