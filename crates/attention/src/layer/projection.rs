//! The linear maps around the heads, as trained tensors.

use super::config::StaticConfig;
use crate::Error;
use bochner_nn::{
    Element, Linear, Parameter, ParameterMut, Parameters, TapeInputs, UniformWithin, join,
};
use dfdx::dtypes::Dtype;
use dfdx::nn::tensor_collection::{ModuleVisitor, TensorCollection, TensorOptions};
use dfdx::shapes::{ConstDim, ConstShape, Dim};
use dfdx::tensor::{Cpu, Storage, Tape, Tensor};
use dfdx::tensor_ops::Device;
use rand::RngCore;
use std::marker::PhantomData;

/// A linear map whose bias is optional: from a sequence to a stream of all heads, or from all heads to the
/// output.
///
/// $$ y = x W^\top + b $$
///
/// * $x$: the input, last axis `I`
/// * $W$: `weight`, `[O, I]`; the rows of one head follow those of the previous one
/// * $b$: `bias`, `[O]`, or nothing
#[derive(Clone, Debug)]
pub struct Projection<I: Dim, O: Dim, E: Dtype, D: Storage<E> = Cpu, S = ()> {
    /// The matrix $W$.
    pub weight: Tensor<(O, I), E, D>,
    /// The vector $b$, if the layer's maps have biases.
    pub bias: Option<Tensor<(O,), E, D>>,
    source: PhantomData<S>,
}

impl<I: Dim, O: Dim, E: Element, S> Projection<I, O, E, Cpu, S> {
    /// A map with the initial values of a [`Linear`]; without a bias the weight starts at the same values.
    pub(super) fn try_new(
        device: &Cpu,
        (inputs, outputs): (I, O),
        bias: bool,
        rng: &mut (impl RngCore + ?Sized),
    ) -> Result<Self, Error> {
        let linear = Linear::try_new(device, inputs, outputs, rng)?;
        Ok(Self {
            weight: linear.weight,
            bias: bias.then_some(linear.bias),
            source: PhantomData,
        })
    }

    /// The values of weight and bias.
    pub(super) fn values(&self) -> (Vec<E>, Option<Vec<E>>) {
        (self.weight.as_vec(), self.bias.as_ref().map(Tensor::as_vec))
    }

    /// Adds weight and bias to the inputs of an operation.
    pub(super) fn add_to<T: Tape<E, Cpu>>(
        &self,
        inputs: TapeInputs<E, T>,
    ) -> Result<TapeInputs<E, T>, bochner_nn::Error> {
        let inputs = inputs.with(self.weight.clone())?;
        match &self.bias {
            Some(bias) => inputs.with(bias.clone()),
            None => Ok(inputs),
        }
    }
}

impl<I: Dim, O: Dim, E: Element, S> Parameters<E> for Projection<I, O, E, Cpu, S> {
    fn for_each(&self, prefix: &str, f: &mut dyn FnMut(&str, &dyn Parameter<E>)) {
        self.weight.for_each(&join(prefix, "weight"), f);
        self.bias.for_each(&join(prefix, "bias"), f);
    }

    fn for_each_mut(&mut self, prefix: &str, f: &mut dyn FnMut(&str, &mut dyn ParameterMut<E>)) {
        self.weight.for_each_mut(&join(prefix, "weight"), f);
        self.bias.for_each_mut(&join(prefix, "bias"), f);
    }
}

impl<I, O, E, D, S> TensorCollection<E, D> for Projection<I, O, E, D, S>
where
    I: ConstDim,
    O: ConstDim,
    E: Element,
    D: Device<E>,
    S: StaticConfig,
{
    type To<E2: Dtype, D2: Device<E2>> = Projection<I, O, E2, D2, S>;

    fn iter_tensors<V: ModuleVisitor<Self, E, D>>(
        visitor: &mut V,
    ) -> Result<Option<Self::To<V::E2, V::D2>>, V::Err> {
        const SAME: &str = "a layer whose settings have a bias, like those of its `StaticConfig`";
        let bias = S::config().bias;
        let check = move |s: &Self| assert_eq!(s.bias.is_some(), bias, "{SAME}");
        let weight = Self::tensor(
            "weight",
            |s| {
                check(s);
                &s.weight
            },
            |s| {
                check(s);
                &mut s.weight
            },
            initial::<I, _, E, D>(),
        );
        let bias = bias.then(|| {
            Self::tensor(
                "bias",
                |s| s.bias.as_ref().expect(SAME),
                |s| s.bias.as_mut().expect(SAME),
                initial::<I, _, E, D>(),
            )
        });
        visitor.visit_fields((weight, Vec::from_iter(bias)), |(weight, mut bias)| {
            Projection {
                weight,
                bias: bias.pop(),
                source: PhantomData,
            }
        })
    }
}

/// Initial values from the device's own generator, as dfdx's layers take them.
fn initial<I: ConstDim, X: ConstShape, E: Element, D: Device<E>>() -> TensorOptions<X, E, D> {
    TensorOptions::reset_with(|x| x.try_fill_with_distr(UniformWithin::fan_in(I::SIZE)))
}
