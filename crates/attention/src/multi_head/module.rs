//! The layer as a module of dfdx and as a collection of parameters.

use super::{MultiHead, StaticConfig};
use crate::mechanism::Pass;
use crate::{Error, Mask};
use bochner_nn::{Element, Parameter, ParameterMut, Parameters, join};
use bochner_numerics::Seed;
use dfdx::dtypes::Dtype;
use dfdx::nn::tensor_collection::{ModuleVisitor, TensorCollection, TensorOptions};
use dfdx::nn::{Module, ModuleMut};
use dfdx::shapes::{ConstDim, Dim, HasShape};
use dfdx::tensor::{Cpu, Tape, Tensor};
use dfdx::tensor_ops::Device;
use std::cell::RefCell;
use std::marker::PhantomData;

impl<Embed: Dim, E: Element, Count: Dim, S> Parameters<E> for MultiHead<Embed, E, Cpu, Count, S> {
    fn for_each(&self, prefix: &str, f: &mut dyn FnMut(&str, &dyn Parameter<E>)) {
        self.query.for_each(&join(prefix, "query"), f);
        self.key.for_each(&join(prefix, "key"), f);
        self.value.for_each(&join(prefix, "value"), f);
        self.output.for_each(&join(prefix, "output"), f);
        if self.kernel.shape().0.size() > 0 {
            self.kernel.for_each(&join(prefix, "kernel"), f);
        }
    }

    fn for_each_mut(&mut self, prefix: &str, f: &mut dyn FnMut(&str, &mut dyn ParameterMut<E>)) {
        self.query.for_each_mut(&join(prefix, "query"), f);
        self.key.for_each_mut(&join(prefix, "key"), f);
        self.value.for_each_mut(&join(prefix, "value"), f);
        self.output.for_each_mut(&join(prefix, "output"), f);
        if self.kernel.shape().0.size() > 0 {
            self.kernel.for_each_mut(&join(prefix, "kernel"), f);
        }
    }
}

impl<Embed: Dim, E: Element, Count: Dim, S> MultiHead<Embed, E, Cpu, Count, S> {
    /// Refuses to record a mechanism with a penalty: a module of dfdx has one output, so the loss would
    /// miss the penalty, and nobody would notice. Without a tape there is no loss.
    fn check_penalty<T: Tape<E, Cpu>>(&self) -> Result<(), Error> {
        if T::OWNS_TAPE && self.config.variant.mechanism::<E>().has_penalty() {
            return Err(Error::Unsupported {
                what: "training a mechanism that has a penalty through dfdx's `Module` or `ModuleMut`, which \
                       return the output alone,",
                instead: "`MultiHead::attend_self`, and add its `penalty` to the loss (or set `beta` to 0)",
            });
        }
        Ok(())
    }
}

/// # Errors
/// [`Error::Unsupported`] on a tape for a mechanism with a penalty, which the loss would miss.
impl<Embed, E, Count, S, B, Q, T> Module<Tensor<(B, Q, Embed), E, Cpu, T>>
    for MultiHead<Embed, E, Cpu, Count, S>
where
    Embed: Dim,
    E: Element,
    Count: Dim,
    B: Dim,
    Q: Dim,
    T: Tape<E, Cpu>,
{
    type Output = Tensor<(B, Q, Embed), E, Cpu, T>;
    type Error = Error;

    /// Self-attention without a mask, in evaluation.
    fn try_forward(&self, x: Tensor<(B, Q, Embed), E, Cpu, T>) -> Result<Self::Output, Error> {
        self.check_penalty::<T>()?;
        let pass = Pass::Evaluation {
            seed: self.config.seed,
        };
        Ok(self.attend_self(x, &Mask::none(), pass)?.output)
    }
}

/// # Errors
/// [`Error::Unsupported`] on a tape for a mechanism with a penalty, which the loss would miss.
impl<Embed, E, Count, S, B, Q, T> ModuleMut<Tensor<(B, Q, Embed), E, Cpu, T>>
    for MultiHead<Embed, E, Cpu, Count, S>
where
    Embed: Dim,
    E: Element,
    Count: Dim,
    B: Dim,
    Q: Dim,
    T: Tape<E, Cpu>,
{
    type Output = Tensor<(B, Q, Embed), E, Cpu, T>;
    type Error = Error;

    /// Self-attention without a mask, in training; the seed changes with every call.
    fn try_forward_mut(
        &mut self,
        x: Tensor<(B, Q, Embed), E, Cpu, T>,
    ) -> Result<Self::Output, Error> {
        self.check_penalty::<T>()?;
        let seed = self.config.seed.child("training").nth(self.steps);
        self.steps += 1;
        let pass = Pass::Training {
            seed,
            dropout: self.config.dropout,
        };
        Ok(self.attend_self(x, &Mask::none(), pass)?.output)
    }
}

impl<Embed, E, D, Count, S> TensorCollection<E, D> for MultiHead<Embed, E, D, Count, S>
where
    Embed: ConstDim,
    E: Element,
    D: Device<E>,
    Count: ConstDim,
    S: StaticConfig,
{
    type To<E2: Dtype, D2: Device<E2>> = MultiHead<Embed, E2, D2, Count, S>;

    fn iter_tensors<V: ModuleVisitor<Self, E, D>>(
        visitor: &mut V,
    ) -> Result<Option<Self::To<V::E2, V::D2>>, V::Err> {
        // A visitor that builds another layer sees the fields alone.
        let own = RefCell::new((S::config(), 0));
        visitor.visit_fields(
            (
                Self::module(
                    "query",
                    |s| {
                        own.replace((s.config.clone(), s.steps));
                        &s.query
                    },
                    |s| &mut s.query,
                ),
                Self::module("key", |s| &s.key, |s| &mut s.key),
                Self::module("value", |s| &s.value, |s| &mut s.value),
                Self::module("output", |s| &s.output, |s| &mut s.output),
                Self::tensor(
                    "kernel",
                    |s| &s.kernel,
                    |s| &mut s.kernel,
                    TensorOptions::reset_with(reset_kernel::<Embed, E, D, Count, S>),
                ),
            ),
            |(query, key, value, output, kernel)| {
                let (config, steps) = own.borrow().clone();
                MultiHead {
                    query,
                    key,
                    value,
                    output,
                    kernel,
                    config,
                    steps,
                    source: PhantomData,
                }
            },
        )
    }
}

/// Initial values from the device's own generator, as dfdx's layers take them.
///
/// # Panics
/// If the settings do not fit the sizes: they are constants of the program.
fn reset_kernel<Embed, E, D, Count, S>(kernel: &mut Tensor<(Count,), E, D>) -> Result<(), D::Err>
where
    Embed: ConstDim,
    E: Element,
    D: Device<E>,
    Count: ConstDim,
    S: StaticConfig,
{
    let config = S::config();
    let mut rng = Seed::new(kernel.device().random_u64()).stream("initial values");
    let values = config
        .size(Embed::SIZE)
        .and_then(|size| config.variant.mechanism::<E>().initial(size, &mut rng))
        .unwrap_or_else(|error| panic!("the settings of this layer: {error}"));
    assert_eq!(
        values.len(),
        Count::SIZE,
        "the number of the mechanism's own parameters"
    );
    kernel.copy_from(&values);
    Ok(())
}
