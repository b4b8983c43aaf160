//! Visiting the parameters of a model, whatever the types of their shapes.

use crate::{Element, Error};
use dfdx::nn::tensor_collection::{
    RecursiveWalker, TensorCollection, TensorOptions, TensorVisitor, ViewTensorMut, ViewTensorName,
    ViewTensorRef,
};
use dfdx::optim::UnusedTensors;
use dfdx::shapes::{HasShape, Shape};
use dfdx::tensor::{Cpu, CpuError, Gradients, Tensor, UniqueId};
use dfdx::tensor_ops::Device;
use std::ops::{Deref, DerefMut};

/// A parameter tensor, its shape's type erased.
pub trait Parameter<E: Element> {
    /// The size of each axis.
    fn dims(&self) -> Vec<usize>;

    /// Copies the elements, in row-major order, over what `values` held.
    fn read_into(&self, values: &mut Vec<E>);

    /// The gradient, in row-major order; zero where the backward pass did not reach the parameter.
    ///
    /// # Errors
    /// [`Error::Device`] if the memory for it cannot be had.
    fn gradient<'g>(&self, gradients: &'g mut Gradients<E, Cpu>) -> Result<&'g mut [E], Error>;

    /// The key under which gradients are kept.
    fn id(&self) -> UniqueId;

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

/// A parameter tensor that can be changed.
pub trait ParameterMut<E: Element>: Parameter<E> {
    /// Replaces the elements, given in row-major order.
    ///
    /// # Panics
    /// If their number is another.
    fn write(&mut self, values: &[E]);
}

/// A model whose parameters can be visited by name.
///
/// Names are paths, as in PyTorch: `encoder.0.weight`. The order of the visits is fixed and the
/// same in both methods.
///
/// ```
/// use bochner_nn::{Element, Parameter, ParameterMut, Parameters, join, parameter_count};
/// use dfdx::prelude::*;
///
/// struct Scale<E: Element> {
///     factor: Tensor<(usize,), E, Cpu>,
/// }
///
/// impl<E: Element> Parameters<E> for Scale<E> {
///     fn for_each(&self, prefix: &str, f: &mut dyn FnMut(&str, &dyn Parameter<E>)) {
///         self.factor.for_each(&join(prefix, "factor"), f);
///     }
///
///     fn for_each_mut(&mut self, prefix: &str, f: &mut dyn FnMut(&str, &mut dyn ParameterMut<E>)) {
///         self.factor.for_each_mut(&join(prefix, "factor"), f);
///     }
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
/// What dfdx's `ZeroGrads::alloc_grads` does, also for models with run-time sizes.
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
            p.gradient(&mut gradients)?;
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
            p.gradient(gradients)?.fill(E::default());
        }
        Ok(())
    })
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

// Permuting or broadcasting makes no parameter: the tensors visited are contiguous.
impl<S: Shape, E: Element> Parameter<E> for Tensor<S, E, Cpu> {
    fn dims(&self) -> Vec<usize> {
        self.shape().concrete().into()
    }

    fn read_into(&self, values: &mut Vec<E>) {
        values.resize(self.shape().num_elements(), E::default());
        self.copy_into(values);
    }

    fn gradient<'g>(&self, gradients: &'g mut Gradients<E, Cpu>) -> Result<&'g mut [E], Error> {
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
}

impl<E: Element, M: Parameters<E>> Parameters<E> for Vec<M> {
    fn for_each(&self, prefix: &str, f: &mut dyn FnMut(&str, &dyn Parameter<E>)) {
        self.as_slice().for_each(prefix, f);
    }

    fn for_each_mut(&mut self, prefix: &str, f: &mut dyn FnMut(&str, &mut dyn ParameterMut<E>)) {
        self.as_mut_slice().for_each_mut(prefix, f);
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
}

/// Any model of dfdx, seen as [`Parameters`].
///
/// Tensors that dfdx does not train (running statistics) are visited as such: saved, never stepped.
/// Its scalars (a dropout rate, an epsilon) are configuration and not visited.
///
/// ```
/// use bochner_nn::{Collection, parameter_count};
/// use dfdx::prelude::*;
///
/// let device = Cpu::default();
/// let mut model = device.build_module::<(Linear<3, 5>, ReLU, Linear<5, 2>), f32>();
/// assert_eq!(parameter_count(&Collection(&mut model)), 3 * 5 + 5 + 5 * 2 + 2);
/// ```
#[derive(Debug)]
pub struct Collection<'m, M>(pub &'m mut M);

impl<E: Element, M: TensorCollection<E, Cpu>> Parameters<E> for Collection<'_, M>
where
    Cpu: Device<E>,
{
    fn for_each(&self, prefix: &str, f: &mut dyn FnMut(&str, &dyn Parameter<E>)) {
        // Neither visitor returns an error.
        let _ = M::iter_tensors(&mut RecursiveWalker {
            m: (&*self.0, prefix.to_string()),
            f: &mut Reader(f),
        });
    }

    fn for_each_mut(&mut self, prefix: &str, f: &mut dyn FnMut(&str, &mut dyn ParameterMut<E>)) {
        let _ = M::iter_tensors(&mut RecursiveWalker {
            m: (&mut *self.0, prefix.to_string()),
            f: &mut Writer(f),
        });
    }
}

struct Reader<'f, E: Element>(&'f mut dyn FnMut(&str, &dyn Parameter<E>));

impl<E: Element> TensorVisitor<E, Cpu> for Reader<'_, E>
where
    Cpu: Device<E>,
{
    type Viewer = (ViewTensorRef, ViewTensorName);
    type Err = CpuError;
    type E2 = E;
    type D2 = Cpu;

    fn visit<S: Shape>(
        &mut self,
        options: TensorOptions<S, E, Cpu>,
        (tensor, name): (&Tensor<S, E, Cpu>, String),
    ) -> Result<Option<Tensor<S, E, Cpu>>, CpuError> {
        if options.do_gradient_update {
            (self.0)(&name, tensor);
        } else {
            (self.0)(&name, &Untrained(tensor));
        }
        Ok(None)
    }
}

struct Writer<'f, E: Element>(&'f mut dyn FnMut(&str, &mut dyn ParameterMut<E>));

impl<E: Element> TensorVisitor<E, Cpu> for Writer<'_, E>
where
    Cpu: Device<E>,
{
    type Viewer = (ViewTensorMut, ViewTensorName);
    type Err = CpuError;
    type E2 = E;
    type D2 = Cpu;

    fn visit<S: Shape>(
        &mut self,
        options: TensorOptions<S, E, Cpu>,
        (tensor, name): (&mut Tensor<S, E, Cpu>, String),
    ) -> Result<Option<Tensor<S, E, Cpu>>, CpuError> {
        if options.do_gradient_update {
            (self.0)(&name, tensor);
        } else {
            (self.0)(&name, &mut Untrained(tensor));
        }
        Ok(None)
    }
}

/// A tensor that no optimiser may touch.
struct Untrained<P>(P);

impl<E: Element, P: Deref<Target: Parameter<E>>> Parameter<E> for Untrained<P> {
    fn dims(&self) -> Vec<usize> {
        self.0.dims()
    }

    fn read_into(&self, values: &mut Vec<E>) {
        self.0.read_into(values);
    }

    fn gradient<'g>(&self, gradients: &'g mut Gradients<E, Cpu>) -> Result<&'g mut [E], Error> {
        self.0.gradient(gradients)
    }

    fn id(&self) -> UniqueId {
        self.0.id()
    }

    fn is_trained(&self) -> bool {
        false
    }
}

impl<E: Element, P: DerefMut<Target: ParameterMut<E>>> ParameterMut<E> for Untrained<P> {
    fn write(&mut self, values: &[E]) {
        self.0.write(values);
    }
}

#[cfg(test)]
mod tests {
    use super::{Collection, Parameters, alloc_gradients, parameter_count, zero_gradients};
    use dfdx::prelude::*;

    type Model = (Linear<2, 3>, BatchNorm2D<4>);

    #[test]
    fn tensors_dfdx_does_not_train_are_visited_as_such() {
        let mut model = Cpu::default().build_module::<Model, f32>();
        let trainable = model.num_trainable_params();
        let mut collection = Collection(&mut model);
        assert_eq!(parameter_count(&collection), trainable);
        let mut names = Vec::new();
        collection.for_each("model", &mut |name, p| {
            names.push((name.to_string(), p.is_trained()));
        });
        let mut again = Vec::new();
        collection.for_each_mut("model", &mut |name, p| {
            again.push((name.to_string(), p.is_trained()));
        });
        assert_eq!(names, again);
        assert!(names.contains(&("model.0.weight".to_string(), true)));
        assert!(names.contains(&("model.1.running_mean".to_string(), false)));
    }

    #[test]
    fn what_is_written_is_read_back() {
        let mut model = Cpu::default().build_module::<Model, f32>();
        Collection(&mut model).for_each_mut("", &mut |_, p| {
            let values: Vec<f32> = (0..p.len()).map(|i| i as f32).collect();
            p.write(&values);
            let mut read = vec![7.0; 100];
            p.read_into(&mut read);
            assert_eq!(read, values);
        });
        assert_eq!(model.0.weight.array(), [[0.0, 1.0], [2.0, 3.0], [4.0, 5.0]]);
        assert_eq!(model.1.running_var.array(), [0.0, 1.0, 2.0, 3.0]);
    }

    #[test]
    fn only_the_gradients_of_parameters_are_kept() {
        let x: Tensor<(usize,), f64, Cpu> = Cpu::default().tensor_from_vec(vec![1.0, 2.0], (2,));
        let y = x.trace(alloc_gradients(&x).unwrap()).square();
        let inner = y.retaped::<NoneTape>();
        let mut gradients = y.sum().backward();
        assert_eq!(gradients.get(&x).as_vec(), [2.0, 4.0]);
        // Allocated afresh: the pass has dropped it.
        let inner = gradients.get_or_alloc_mut(&inner).unwrap();
        assert_eq!(**inner, [0.0, 0.0]);
        zero_gradients(&x, &mut gradients).unwrap();
        assert_eq!(gradients.get(&x).as_vec(), [0.0, 0.0]);
    }
}
