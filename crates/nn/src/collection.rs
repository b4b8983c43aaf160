//! Models of dfdx as [`Parameters`].

use crate::{Element, Error, Parameter, ParameterMut, Parameters};
use dfdx::nn::tensor_collection::{
    RecursiveWalker, TensorCollection, TensorOptions, TensorVisitor, ViewTensorMut, ViewTensorName,
    ViewTensorRef,
};
use dfdx::shapes::Shape;
use dfdx::tensor::{Cpu, CpuError, Gradients, Tensor, UniqueId};
use dfdx::tensor_ops::Device;
use std::ops::{Deref, DerefMut};

/// Any model of dfdx, seen as [`Parameters`].
///
/// Tensors that dfdx does not train (running statistics) are visited as such: saved, never stepped.
/// Its scalars (a dropout rate, an epsilon) are configuration and not visited.
///
/// ```
/// use bochner_nn::{Collection, parameter_count};
/// use bochner_nn::dfdx::prelude::*;
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

    fn dense_gradient<'g>(
        &self,
        gradients: &'g mut Gradients<E, Cpu>,
    ) -> Result<&'g mut [E], Error> {
        self.0.dense_gradient(gradients)
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
