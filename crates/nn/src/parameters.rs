//! Visiting the parameters of a model, whatever the types of their shapes.

use crate::{Element, Error};
use bochner_numerics::argument;
use bochner_ops::rows::add_to;
use dfdx::optim::UnusedTensors;
use dfdx::shapes::{HasShape, Shape};
use dfdx::tensor::{Cpu, Gradients, OwnedTape, SplitTape, Tensor, Trace, UniqueId, ZerosTensor};

/// A parameter, its shape's type erased.
pub trait Parameter<E: Element> {
    /// The size of each axis.
    fn dims(&self) -> Vec<usize>;

    /// Copies the elements, in row-major order, over what `values` held.
    fn read_into(&self, values: &mut Vec<E>);

    /// The gradient, in row-major order; zero where the backward pass did not reach the parameter.
    ///
    /// # Errors
    /// [`Error::Device`] if the memory for it cannot be had.
    fn gradient<'g>(&self, gradients: &'g mut Gradients<E, Cpu>) -> Result<&'g [E], Error> {
        Ok(self.dense_gradient(gradients)?)
    }

    /// The [`gradient`](Self::gradient), to be written anywhere: for terms that reach every element, such as a
    /// penalty. The gradient of an [`Embedding`](crate::Embedding) is no longer sparse then.
    ///
    /// # Errors
    /// [`Error::Device`] if the memory for it cannot be had.
    fn dense_gradient<'g>(
        &self,
        gradients: &'g mut Gradients<E, Cpu>,
    ) -> Result<&'g mut [E], Error>;

    /// The key under which gradients are kept.
    fn id(&self) -> UniqueId;

    /// Calls `f` with the parts of the gradient that may differ from zero, and the place where each begins.
    /// `f` may change what is not zero.
    ///
    /// # Errors
    /// [`Error::Device`] if the memory for a gradient cannot be had.
    fn gradient_parts(
        &self,
        gradients: &mut Gradients<E, Cpu>,
        f: &mut dyn FnMut(usize, &mut [E]),
    ) -> Result<(), Error> {
        f(0, self.dense_gradient(gradients)?);
        Ok(())
    }

    /// Sets the gradient to zero.
    ///
    /// # Errors
    /// [`Error::Device`] if the memory for it cannot be had.
    fn zero_gradient(&self, gradients: &mut Gradients<E, Cpu>) -> Result<(), Error> {
        self.gradient_parts(gradients, &mut |_, part| part.fill(E::default()))
    }

    /// Adds the gradient to that in `sum`, and sets it to zero.
    ///
    /// # Errors
    /// [`Error::Device`] if the memory for it cannot be had.
    fn drain_gradient(
        &self,
        gradients: &mut Gradients<E, Cpu>,
        sum: &mut Gradients<E, Cpu>,
    ) -> Result<(), Error> {
        add_to(self.dense_gradient(sum)?, self.dense_gradient(gradients)?);
        self.zero_gradient(gradients)
    }

    /// The number of elements.
    fn len(&self) -> usize {
        self.dims().iter().product()
    }

    /// Whether there are no elements.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Whether optimisers change it; if not, it is state that is only saved and restored.
    fn is_trained(&self) -> bool {
        true
    }
}

/// A parameter that can be changed.
pub trait ParameterMut<E: Element>: Parameter<E> {
    /// Replaces the elements, given in row-major order.
    ///
    /// # Panics
    /// If their number is another.
    fn write(&mut self, values: &[E]);

    /// Calls `f` with the elements, which it may change, and their gradient.
    ///
    /// dfdx lends no slice of a tensor's data: its elements are copied to `scratch` and back. A
    /// parameter that keeps its elements itself does without.
    ///
    /// # Errors
    /// [`Error::Device`] if the memory cannot be had.
    fn update(
        &mut self,
        gradients: &mut Gradients<E, Cpu>,
        scratch: &mut Vec<E>,
        f: &mut dyn FnMut(&mut [E], &[E]),
    ) -> Result<(), Error> {
        self.read_into(scratch);
        f(scratch, self.gradient(gradients)?);
        self.write(scratch);
        Ok(())
    }
}

/// A model whose parameters can be visited by name.
///
/// Names are paths, as in PyTorch: `encoder.0.weight`. The order of the visits is fixed and the
/// same in both methods.
///
/// [`visit_fields`](crate::visit_fields) writes both methods for a struct:
///
/// ```
/// use bochner_nn::{Element, Parameters, parameter_count};
/// use bochner_nn::dfdx::prelude::*;
///
/// struct Scale<E: Element> {
///     factor: Tensor<(usize,), E, Cpu>,
/// }
///
/// impl<E: Element> Parameters<E> for Scale<E> {
///     bochner_nn::visit_fields!(E: factor);
/// }
///
/// let layers: Vec<Scale<f32>> = (1..=2)
///     .map(|n| Scale { factor: Cpu::default().zeros_like(&(n,)) })
///     .collect();
/// let mut names = Vec::new();
/// layers.for_each("", &mut |name, _| names.push(name.to_string()));
/// assert_eq!(names, ["0.factor", "1.factor"]);
/// assert_eq!(parameter_count(&layers), 3);
/// ```
pub trait Parameters<E: Element> {
    /// Calls `f` with the name and a view of each parameter.
    fn for_each(&self, prefix: &str, f: &mut dyn FnMut(&str, &dyn Parameter<E>));

    /// Calls `f` with the name and a mutable view of each parameter.
    fn for_each_mut(&mut self, prefix: &str, f: &mut dyn FnMut(&str, &mut dyn ParameterMut<E>));

    /// Calls `f` with the name and the value of each size that decides what the parameters mean and that their shapes do
    /// not show, such as a number of heads. A [`Checkpoint`](crate::Checkpoint) holds these sizes, and is restored only
    /// into a model that has the same.
    fn for_each_size(&self, _prefix: &str, _f: &mut dyn FnMut(&str, usize)) {}
}

/// The methods of [`Parameters`] for a struct: the element type, then the fields with parameters in the order
/// of the visits, each under its own name; after a semicolon the [sizes](Parameters::for_each_size) of the struct itself,
/// as in `visit_fields!(E: query, key; |layer| heads = layer.heads)`.
#[macro_export]
macro_rules! visit_fields {
    ($element:ty: $($field:ident),+ $(,)? $(; |$this:ident| $size:ident = $value:expr)?) => {
        fn for_each(
            &self,
            prefix: &str,
            f: &mut dyn FnMut(&str, &dyn $crate::Parameter<$element>),
        ) {
            $($crate::Parameters::for_each(
                &self.$field,
                &$crate::join(prefix, stringify!($field)),
                f,
            );)+
        }

        fn for_each_mut(
            &mut self,
            prefix: &str,
            f: &mut dyn FnMut(&str, &mut dyn $crate::ParameterMut<$element>),
        ) {
            $($crate::Parameters::for_each_mut(
                &mut self.$field,
                &$crate::join(prefix, stringify!($field)),
                f,
            );)+
        }

        fn for_each_size(&self, prefix: &str, f: &mut dyn FnMut(&str, usize)) {
            $(
                let $this = self;
                f(&$crate::join(prefix, stringify!($size)), $value);
            )?
            $($crate::Parameters::<$element>::for_each_size(
                &self.$field,
                &$crate::join(prefix, stringify!($field)),
                f,
            );)+
        }
    };
}

/// `prefix.name`, or `name` if the prefix is empty.
pub fn join(prefix: &str, name: &str) -> String {
    if prefix.is_empty() {
        name.to_string()
    } else {
        format!("{prefix}.{name}")
    }
}

/// The number of trained parameters: elements, not tensors.
pub fn parameter_count<E: Element>(model: &(impl Parameters<E> + ?Sized)) -> usize {
    let mut count = 0;
    model.for_each("", &mut |_, p| {
        if p.is_trained() {
            count += p.len();
        }
    });
    count
}

/// Zero gradients for all trained parameters; those of everything else are dropped after a
/// backward pass.
///
/// It does what dfdx's `ZeroGrads::alloc_grads` does, also for models with run-time sizes.
///
/// # Errors
/// [`Error::Device`] if the memory cannot be had.
pub fn alloc_gradients<E: Element>(
    model: &(impl Parameters<E> + ?Sized),
) -> Result<Gradients<E, Cpu>, Error> {
    let mut gradients = Gradients::leaky();
    let mut ids = Vec::new();
    try_for_each(model, |_, p| {
        if p.is_trained() {
            p.zero_gradient(&mut gradients)?;
            ids.push(p.id());
        }
        Ok(())
    })?;
    gradients.retain_leafs(&ids);
    Ok(gradients)
}

/// Sets the gradients of all trained parameters to zero.
///
/// # Errors
/// [`Error::Device`] if the memory cannot be had.
pub fn zero_gradients<E: Element>(
    model: &(impl Parameters<E> + ?Sized),
    gradients: &mut Gradients<E, Cpu>,
) -> Result<(), Error> {
    try_for_each(model, |_, p| {
        if p.is_trained() {
            p.zero_gradient(gradients)?;
        }
        Ok(())
    })
}

/// Adds the gradients of all trained parameters to those in `sum`, and sets them to zero: for passes that have
/// gradients of their own.
///
/// # Errors
/// [`Error::Device`] if the memory cannot be had.
pub fn drain_gradients<E: Element>(
    model: &(impl Parameters<E> + ?Sized),
    gradients: &mut Gradients<E, Cpu>,
    sum: &mut Gradients<E, Cpu>,
) -> Result<(), Error> {
    try_for_each(model, |_, p| match p.is_trained() {
        true => p.drain_gradient(gradients, sum),
        false => Ok(()),
    })
}

/// The gradients of all trained parameters as one slice, parameter after parameter in the order of the visits.
///
/// # Errors
/// [`Error::Device`] if the memory cannot be had.
pub fn flat_gradients<E: Element>(
    model: &(impl Parameters<E> + ?Sized),
    gradients: &mut Gradients<E, Cpu>,
) -> Result<Vec<E>, Error> {
    let mut flat = Vec::with_capacity(parameter_count(model));
    try_for_each(model, |_, p| {
        if p.is_trained() {
            flat.extend_from_slice(p.gradient(gradients)?);
        }
        Ok(())
    })?;
    Ok(flat)
}

/// Replaces the gradients of all trained parameters by those in a slice, laid out as by [`flat_gradients`].
///
/// # Errors
/// [`Error::Argument`] unless there is one number for each; [`Error::Device`] if the memory cannot be had.
pub fn set_flat_gradients<E: Element>(
    model: &(impl Parameters<E> + ?Sized),
    gradients: &mut Gradients<E, Cpu>,
    flat: &[E],
) -> Result<(), Error> {
    argument::shape("gradients", &[parameter_count(model)], &[flat.len()])?;
    let mut rest = flat;
    try_for_each(model, |_, p| {
        if p.is_trained() {
            let (own, others) = rest.split_at(p.len());
            p.dense_gradient(gradients)?.copy_from_slice(own);
            rest = others;
        }
        Ok(())
    })
}

/// A tape whose backward pass adds to these gradients: for models that are given no tensor to
/// [`trace`](dfdx::tensor::Trace::trace).
///
/// # Errors
/// [`Error::Device`] if the memory for a tensor cannot be had.
pub fn tape_adding_to<E: Element>(
    gradients: Gradients<E, Cpu>,
) -> Result<OwnedTape<E, Cpu>, Error> {
    let nothing: Tensor<(), E, Cpu> = Cpu::default().try_zeros()?;
    Ok(nothing.traced(gradients).split_tape().1)
}

/// Visits the parameters until `f` fails.
pub(crate) fn try_for_each<E: Element>(
    model: &(impl Parameters<E> + ?Sized),
    mut f: impl FnMut(&str, &dyn Parameter<E>) -> Result<(), Error>,
) -> Result<(), Error> {
    let mut result = Ok(());
    model.for_each("", &mut |name, p| {
        if result.is_ok() {
            result = f(name, p);
        }
    });
    result
}

// The tensors visited are contiguous: no model holds a permuted or broadcast tensor as a parameter.
impl<S: Shape, E: Element> Parameter<E> for Tensor<S, E, Cpu> {
    fn dims(&self) -> Vec<usize> {
        self.shape().concrete().into()
    }

    fn read_into(&self, values: &mut Vec<E>) {
        values.resize(self.shape().num_elements(), E::default());
        self.copy_into(values);
    }

    fn dense_gradient<'g>(
        &self,
        gradients: &'g mut Gradients<E, Cpu>,
    ) -> Result<&'g mut [E], Error> {
        Ok(gradients.get_or_alloc_mut(self)?)
    }

    fn id(&self) -> UniqueId {
        // dfdx hands out a tensor's key only through this list.
        let mut list = UnusedTensors::default();
        list.add(self);
        list.ids[0]
    }
}

impl<S: Shape, E: Element> ParameterMut<E> for Tensor<S, E, Cpu> {
    fn write(&mut self, values: &[E]) {
        self.copy_from(values);
    }
}

impl<S: Shape, E: Element> Parameters<E> for Tensor<S, E, Cpu> {
    fn for_each(&self, prefix: &str, f: &mut dyn FnMut(&str, &dyn Parameter<E>)) {
        f(prefix, self);
    }

    fn for_each_mut(&mut self, prefix: &str, f: &mut dyn FnMut(&str, &mut dyn ParameterMut<E>)) {
        f(prefix, self);
    }
}

impl<E: Element, M: Parameters<E>> Parameters<E> for [M] {
    fn for_each(&self, prefix: &str, f: &mut dyn FnMut(&str, &dyn Parameter<E>)) {
        for (i, part) in self.iter().enumerate() {
            part.for_each(&join(prefix, &i.to_string()), f);
        }
    }

    fn for_each_mut(&mut self, prefix: &str, f: &mut dyn FnMut(&str, &mut dyn ParameterMut<E>)) {
        for (i, part) in self.iter_mut().enumerate() {
            part.for_each_mut(&join(prefix, &i.to_string()), f);
        }
    }

    fn for_each_size(&self, prefix: &str, f: &mut dyn FnMut(&str, usize)) {
        for (i, part) in self.iter().enumerate() {
            part.for_each_size(&join(prefix, &i.to_string()), f);
        }
    }
}

impl<E: Element, M: Parameters<E>> Parameters<E> for Vec<M> {
    fn for_each(&self, prefix: &str, f: &mut dyn FnMut(&str, &dyn Parameter<E>)) {
        self.as_slice().for_each(prefix, f);
    }

    fn for_each_mut(&mut self, prefix: &str, f: &mut dyn FnMut(&str, &mut dyn ParameterMut<E>)) {
        self.as_mut_slice().for_each_mut(prefix, f);
    }

    fn for_each_size(&self, prefix: &str, f: &mut dyn FnMut(&str, usize)) {
        self.as_slice().for_each_size(prefix, f);
    }
}

impl<E: Element, M: Parameters<E>> Parameters<E> for Option<M> {
    fn for_each(&self, prefix: &str, f: &mut dyn FnMut(&str, &dyn Parameter<E>)) {
        if let Some(part) = self {
            part.for_each(prefix, f);
        }
    }

    fn for_each_mut(&mut self, prefix: &str, f: &mut dyn FnMut(&str, &mut dyn ParameterMut<E>)) {
        if let Some(part) = self {
            part.for_each_mut(prefix, f);
        }
    }

    fn for_each_size(&self, prefix: &str, f: &mut dyn FnMut(&str, usize)) {
        if let Some(part) = self {
            part.for_each_size(prefix, f);
        }
    }
}
