//! The layer as a module of dfdx and as a collection of parameters.

use super::config::{Layout, StaticConfig};
use super::multi_head::MultiHead;
use crate::{Error, Mask, Pass, card::Penalty};
use bochner_nn::{Element, Parameter, ParameterMut, Parameters, join};
use bochner_numerics::Seed;
use dfdx::dtypes::Dtype;
use dfdx::nn::tensor_collection::{ModuleVisitor, ScalarOptions, TensorCollection, TensorOptions};
use dfdx::nn::{Module, ModuleMut};
use dfdx::shapes::{ConstDim, Dim, HasShape};
use dfdx::tensor::{Cpu, Tape, Tensor, ZerosTensor};
use dfdx::tensor_ops::Device;
use std::cell::RefCell;
use std::marker::PhantomData;

impl<Embed: Dim, E: Element, Count: Dim, S, Wide: Dim> Parameters<E>
    for MultiHead<Embed, E, Cpu, Count, S, Wide>
{
    fn for_each(&self, prefix: &str, f: &mut dyn FnMut(&str, &dyn Parameter<E>)) {
        for ((name, _), map) in self.layout.maps().zip(self.maps.iter()) {
            map.for_each(&join(prefix, name), f);
        }
        self.output.for_each(&join(prefix, "output"), f);
        self.position_bias
            .for_each(&join(prefix, "position_bias"), f);
        if self.kernel.shape().0.size() > 0 {
            self.kernel.for_each(&join(prefix, "kernel"), f);
        }
    }

    fn for_each_mut(&mut self, prefix: &str, f: &mut dyn FnMut(&str, &mut dyn ParameterMut<E>)) {
        for ((name, _), map) in self.layout.maps().zip(self.maps.iter_mut()) {
            map.for_each_mut(&join(prefix, name), f);
        }
        self.output.for_each_mut(&join(prefix, "output"), f);
        self.position_bias
            .for_each_mut(&join(prefix, "position_bias"), f);
        if self.kernel.shape().0.size() > 0 {
            self.kernel.for_each_mut(&join(prefix, "kernel"), f);
        }
    }

    fn for_each_size(&self, prefix: &str, f: &mut dyn FnMut(&str, usize)) {
        f(&join(prefix, "heads"), self.config.heads);
    }
}

impl<Embed: Dim, E: Element, Count: Dim, S, Wide: Dim> MultiHead<Embed, E, Cpu, Count, S, Wide> {
    /// Refuses to record a mechanism with a penalty: a module of dfdx has one output, so the penalty would be missing
    /// from the loss without an error. Without a tape there is no loss.
    fn check_penalty<T: Tape<E, Cpu>>(&self) -> Result<(), Error> {
        if T::OWNS_TAPE && self.config.variant.card().penalty != Penalty::None {
            return Err(Error::Unsupported {
                what: "training a mechanism that has a penalty through dfdx's `Module` or `ModuleMut`, which \
                       return the output alone,",
                instead: "`MultiHead::attend_self`, and add its `penalty` to the loss",
            });
        }
        Ok(())
    }
}
impl<Embed: Dim, E: Element, Count: Dim, S, Wide: Dim, B: Dim, Q: Dim, T: Tape<E, Cpu>>
    Module<Tensor<(B, Q, Embed), E, Cpu, T>> for MultiHead<Embed, E, Cpu, Count, S, Wide>
{
    type Output = Tensor<(B, Q, Embed), E, Cpu, T>;
    type Error = Error;

    /// Self-attention in evaluation, under the mask that is given with the sequences, if there is one.
    fn try_forward(&self, x: Tensor<(B, Q, Embed), E, Cpu, T>) -> Result<Self::Output, Error> {
        self.check_penalty::<T>()?;
        let pass = Pass::Evaluation {
            seed: self.config.seed,
        };
        Ok(self.attend_self(x, &Mask::none(), pass)?.output)
    }
}

/// # Errors
/// [`Error::Unsupported`] on a tape for a mechanism with a penalty, which the loss would miss; otherwise
/// the errors of [`MultiHead::attend`].
impl<Embed: Dim, E: Element, Count: Dim, S, Wide: Dim, B: Dim, Q: Dim, T: Tape<E, Cpu>>
    ModuleMut<Tensor<(B, Q, Embed), E, Cpu, T>> for MultiHead<Embed, E, Cpu, Count, S, Wide>
{
    type Output = Tensor<(B, Q, Embed), E, Cpu, T>;
    type Error = Error;

    /// Self-attention in training, under the mask that is given with the sequences, if there is one; the
    /// seed changes with every call.
    fn try_forward_mut(
        &mut self,
        x: Tensor<(B, Q, Embed), E, Cpu, T>,
    ) -> Result<Self::Output, Error> {
        self.check_penalty::<T>()?;
        let seed = self.config.seed.child("training").nth(self.step);
        let dropout = self.config.dropout;
        let pass = Pass::Training { seed, dropout };
        let attended = self.attend_self(x, &Mask::none(), pass)?;
        self.go_to_step(self.step + 1);
        Ok(attended.output)
    }
}

impl<Embed, E, D, Count, S, Wide> TensorCollection<E, D> for MultiHead<Embed, E, D, Count, S, Wide>
where
    Embed: ConstDim,
    E: Element,
    D: Device<E>,
    Count: ConstDim,
    S: StaticConfig,
    Wide: ConstDim,
{
    type To<E2: Dtype, D2: Device<E2>> = MultiHead<Embed, E2, D2, Count, S, Wide>;

    fn iter_tensors<V: ModuleVisitor<Self, E, D>>(
        visitor: &mut V,
    ) -> Result<Option<Self::To<V::E2, V::D2>>, V::Err> {
        let layout = static_layout::<Embed, Wide, S>();
        let names: Vec<_> = layout.maps().map(|(name, _)| name).collect();
        let maps = names.iter().enumerate().take(names.len() - 1);
        let maps =
            maps.map(|(i, name)| Self::module(name, move |s| &s.maps[i], move |s| &mut s.maps[i]));
        // A visitor that builds another layer sees the fields alone.
        let config = S::config();
        let mechanism = config.variant.at_step(0, layout.size());
        let own = RefCell::new((config, mechanism, 0, false));
        let output = Self::module(
            "output",
            |s| {
                assert!(s.position_bias.is_none(), "{LEARNT}");
                own.replace((
                    s.config.clone(),
                    s.mechanism.clone(),
                    s.drawn_at,
                    s.code.is_some(),
                ));
                &s.output
            },
            |s| &mut s.output,
        );
        let kernel = (Count::SIZE > 0).then(|| {
            let options = TensorOptions::reset_with(reset_kernel::<Embed, E, D, Count, S, Wide>);
            Self::tensor("kernel", |s| &s.kernel, |s| &mut s.kernel, options)
        });
        let step = Self::scalar(
            "step",
            |s| &s.step,
            |s| &mut s.step,
            ScalarOptions::from_default(0),
        );
        visitor.visit_fields(
            (Vec::from_iter(maps), output, Vec::from_iter(kernel), step),
            |(maps, output, mut kernel, step)| {
                let (config, mechanism, drawn_at, has_own_code) = own.borrow().clone();
                assert!(!has_own_code, "{OWN_CODE}");
                let zeros = || output.weight.device().zeros();
                MultiHead {
                    kernel: kernel.pop().unwrap_or_else(zeros),
                    maps,
                    output,
                    position_bias: None,
                    config,
                    layout,
                    code: None,
                    step,
                    drawn_at,
                    mechanism,
                    source: PhantomData,
                }
            },
        )
    }
}

/// Explains that dfdx cannot build this layer: no parameter of such layers has a size that only settings know.
const LEARNT: &str = "a learnt position bias needs `MultiHead::try_new` and `Parameters`";

/// Explains that a position code cannot be carried over to another element type or device.
const OWN_CODE: &str = "a position code of your own does not follow a layer to another type or device: change the \
                        layer's first, then give it the code by `with_position_code`";

/// The sizes of a layer built by dfdx.
///
/// # Panics
/// If the settings do not fit the sizes: they are constants of the program.
fn static_layout<Embed: ConstDim, Wide: ConstDim, S: StaticConfig>() -> Layout {
    let config = S::config();
    let layout = config.layout(Embed::SIZE, &config.variant.card());
    let layout = layout.unwrap_or_else(|error| panic!("the settings of this layer: {error}"));
    let table = layout.position_bias.table(layout.heads);
    assert!(table.is_none(), "the settings of this layer: {LEARNT}");
    for (name, size) in layout.maps() {
        let (wide, embed) = (Wide::SIZE, Embed::SIZE);
        let given = if name == "output" {
            [embed, wide]
        } else {
            [wide, embed]
        };
        assert_eq!(
            size, given,
            "the settings of this layer: size of the map `{name}`"
        );
    }
    layout
}

/// Initial values of the mechanism's own parameters, from a seed of the device's generator.
///
/// # Panics
/// If the settings do not fit the sizes: they are constants of the program.
fn reset_kernel<Embed, E, D, Count, S, Wide>(
    kernel: &mut Tensor<(Count,), E, D>,
) -> Result<(), D::Err>
where
    Embed: ConstDim,
    E: Element,
    D: Device<E>,
    Count: ConstDim,
    S: StaticConfig,
    Wide: ConstDim,
{
    let (config, size) = (S::config(), static_layout::<Embed, Wide, S>().size());
    let mut rng = Seed::new(kernel.device().random_u64()).stream("initial values");
    let values = config.variant.mechanism::<E>().initial(size, &mut rng);
    let values = values.unwrap_or_else(|error| panic!("the settings of this layer: {error}"));
    assert_eq!(
        values.len(),
        Count::SIZE,
        "the number of the mechanism's own parameters"
    );
    kernel.copy_from(&values);
    Ok(())
}
