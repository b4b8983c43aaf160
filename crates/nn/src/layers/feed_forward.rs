//! Two linear layers with a rectifier and dropout between them.

use super::dropout::{device_mode, mask};
use super::{EndsWith, Linear};
use crate::parameters::{Parameter, ParameterMut, Parameters, join};
use crate::rows::{affine, affine_vjp};
use crate::{BoxError, Element, Error, Inputs, Mode, Operation, record_one};
use bochner_numerics::instructions::{self, Arithmetic, Task};
use bochner_numerics::{DropoutMask, Real};
use dfdx::dtypes::Dtype;
use dfdx::nn::tensor_collection::{ModuleVisitor, ScalarOptions, TensorCollection};
use dfdx::nn::{BuildModule, BuildOnDevice, Module, ModuleMut};
use dfdx::shapes::{Const, ConstDim, Dim, HasShape};
use dfdx::tensor::{Cpu, CpuError, NoneTape, OwnedTape, Storage, Tape, Tensor};
use dfdx::tensor_ops::Device;
use ndarray::{ArrayD, ArrayViewD};
use rand::Rng;
use serde::{Deserialize, Serialize};

/// What follows a linear layer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Activation {
    /// Nothing: $x$.
    Identity,
    /// The rectifier: $\max(x, 0)$.
    #[default]
    Relu,
}

/// The settings of a [`FeedForward`]; by default dropout at the rate 0.1 and a rectifier on the output,
/// unlike in other libraries.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct FeedForwardConfig {
    /// The rate of the dropout on the hidden layer, at least 0 and below 1.
    pub dropout: f64,
    /// What follows the second linear layer.
    pub activation: Activation,
}

impl Default for FeedForwardConfig {
    fn default() -> Self {
        Self {
            dropout: 0.1,
            activation: Activation::Relu,
        }
    }
}

/// Two linear layers with a rectifier and dropout between them, over the last axis.
///
/// $$ y = \phi\bigl(W_2\, \mathrm{dropout}(\max(W_1 x + b_1, 0)) + b_2\bigr) $$
///
/// * $W_1, b_1$: `first`, from `I` to `H`
/// * $W_2, b_2$: `second`, from `H` to `O`
/// * $\phi$: `config.activation`; the rectifier by default, as in the paper's regressor; the
///   identity makes it the feed-forward layer of a Transformer
///
/// Note the defaults, which are those of the regressor and not of other libraries: a rectifier on the
/// *output* too, so that it is never negative, and dropout at the rate 0.1 in training. The layer that
/// is called so elsewhere is
/// `FeedForwardConfig { dropout: 0.0, activation: Activation::Identity }`.
///
/// # Numerics
/// One operation on the tape. Its backward pass keeps the hidden layer and, for a rectifier at the
/// end, one byte for each output.
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
    /// Those of [`Linear::try_new`]; [`Error::OutOfRange`] unless `0 <= dropout < 1`.
    pub fn try_new(
        device: &Cpu,
        sizes: (I, H, O),
        config: FeedForwardConfig,
        rng: &mut impl Rng,
    ) -> Result<Self, Error> {
        mask(config.dropout, Mode::Evaluation)?;
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
    /// [`Error::ShapeMismatch`] if the last axis of `x` is not the layer's, [`Error::Empty`] if `x`
    /// has no elements, [`Error::OutOfRange`] unless `0 <= dropout < 1`.
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
        let shape = super::checked(*x.shape(), self.first.weight.shape().1)?;
        let inputs = self.add_to(Inputs::<E, T>::new().with(x)?)?;
        let outputs = self.second.bias.shape().0;
        record_one(operation, inputs, shape.with_last(outputs))
    }

    /// The layer as an operation on `x`, `first` and `second`, each a weight and a bias.
    ///
    /// # Errors
    /// [`Error::OutOfRange`] unless `0 <= dropout < 1`.
    pub fn operation(&self, mode: Mode) -> Result<TwoLayers, Error> {
        Ok(TwoLayers {
            rate: self.config.dropout,
            mask: mask(self.config.dropout, mode)?,
            activation: self.config.activation,
        })
    }

    /// Adds the four parameters to the inputs of an operation.
    ///
    /// # Errors
    /// [`Error::Empty`] if they have no elements.
    pub fn add_to<T: Tape<E, Cpu>>(&self, inputs: Inputs<E, T>) -> Result<Inputs<E, T>, Error> {
        self.second.add_to(self.first.add_to(inputs)?)
    }
}

/// [`FeedForward`] as an operation on `x` and the four parameters.
#[derive(Clone, Copy, Debug)]
pub struct TwoLayers {
    rate: f64,
    mask: Option<DropoutMask>,
    activation: Activation,
}

/// What the backward pass of [`TwoLayers`] needs.
#[derive(Clone, Debug)]
pub struct HiddenLayer<T> {
    hidden: Vec<T>,
    /// Which outputs the last rectifier let through.
    positive: Option<Vec<bool>>,
}

impl TwoLayers {
    /// Rectifies a piece of the hidden layer and drops from it.
    fn finish_hidden<T: Real>(&self, start: usize, piece: &mut [T]) {
        rectify(piece);
        if let Some(mask) = &self.mask {
            mask.scale(start as u64, piece);
        }
    }

    /// The factor of all elements that were not dropped.
    fn kept<T: Real>(&self) -> T {
        T::of(match self.mask {
            Some(_) => 1.0 / (1.0 - self.rate),
            None => 1.0,
        })
    }
}

impl<T: Real> Operation<T> for TwoLayers {
    type Saved = HiddenLayer<T>;

    fn forward(
        &self,
        inputs: &[ArrayViewD<'_, T>],
    ) -> Result<(Vec<ArrayD<T>>, Self::Saved), BoxError> {
        let [x, w1, b1, w2, b2] = super::slices(inputs);
        let hidden = affine(x, w1, b1, |start, piece| self.finish_hidden(start, piece));
        let rectified = self.activation == Activation::Relu;
        let y = affine(&hidden, w2, b2, |_, piece| {
            if rectified {
                rectify(piece);
            }
        });
        let positive = rectified.then(|| y.iter().map(|&y| y > T::zero()).collect());
        let shape = super::with_last(inputs[0].shape(), b2.len());
        Ok((
            vec![ArrayD::from_shape_vec(shape, y)?],
            HiddenLayer { hidden, positive },
        ))
    }

    fn backward(
        &self,
        inputs: &[ArrayViewD<'_, T>],
        HiddenLayer { hidden, positive }: &Self::Saved,
        cotangents: &[ArrayViewD<'_, T>],
    ) -> Result<Vec<Option<ArrayD<T>>>, BoxError> {
        let [x, w1, b1, w2, b2] = super::slices(inputs);
        let [dy] = super::slices(cotangents);
        let through = positive.as_ref().map(|positive| {
            let pairs = dy.iter().zip(positive);
            pairs.map(|(&dy, &p)| if p { dy } else { T::zero() })
        });
        let through: Option<Vec<T>> = through.map(Iterator::collect);
        let dy = through.as_deref().unwrap_or(dy);
        // A hidden value is zero if it was dropped or cut off; all others have one factor.
        let kept = self.kept();
        let finish = |start: usize, piece: &mut [T]| {
            let hidden = &hidden[start..start + piece.len()];
            instructions::run(RectifierVjp {
                d: piece,
                hidden,
                kept,
            });
        };
        let (dhidden, dw2, db2) = affine_vjp(hidden, w2, dy, b2.len(), finish);
        let (dx, dw1, db1) = affine_vjp(x, w1, &dhidden, b1.len(), |_, _| ());
        super::gradients(inputs, [dx, dw1, db1, dw2, db2])
    }
}

/// $\max(x, 0)$ that lets NaN through, so that it is seen.
fn rectify<T: Real>(values: &mut [T]) {
    instructions::run(Rectifier(values));
}

struct Rectifier<'a, T>(&'a mut [T]);

impl<T: Real> Task for Rectifier<'_, T> {
    #[inline(always)]
    fn run<A: Arithmetic>(self, _: A) {
        for x in self.0 {
            *x = if *x < T::zero() { T::zero() } else { *x };
        }
    }
}

/// The gradient before rectifier and dropout in place of the one behind them.
struct RectifierVjp<'a, T> {
    d: &'a mut [T],
    hidden: &'a [T],
    kept: T,
}

impl<T: Real> Task for RectifierVjp<'_, T> {
    #[inline(always)]
    fn run<A: Arithmetic>(self, _: A) {
        for (d, &h) in self.d.iter_mut().zip(self.hidden) {
            *d = if h > T::zero() {
                *d * self.kept
            } else {
                T::zero()
            };
        }
    }
}

impl<I: Dim, H: Dim, O: Dim, E: Element> Parameters<E> for FeedForward<I, H, O, E> {
    fn for_each(&self, prefix: &str, f: &mut dyn FnMut(&str, &dyn Parameter<E>)) {
        self.first.for_each(&join(prefix, "first"), f);
        self.second.for_each(&join(prefix, "second"), f);
    }

    fn for_each_mut(&mut self, prefix: &str, f: &mut dyn FnMut(&str, &mut dyn ParameterMut<E>)) {
        self.first.for_each_mut(&join(prefix, "first"), f);
        self.second.for_each_mut(&join(prefix, "second"), f);
    }
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
        visitor.visit_fields(
            (
                Self::module("first", |s| &s.first, |s| &mut s.first),
                Self::module("second", |s| &s.second, |s| &mut s.second),
                Self::scalar(
                    "dropout",
                    |s| &s.config.dropout,
                    |s| &mut s.config.dropout,
                    ScalarOptions::from_default(config.dropout),
                ),
            ),
            |(first, second, dropout)| FeedForward {
                first,
                second,
                config: FeedForwardConfig { dropout, ..config },
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
