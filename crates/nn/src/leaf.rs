//! Trained arrays that lend their elements.

use crate::parameters::{Parameter, ParameterMut, Parameters};
use crate::{Element, Error};
use bochner_numerics::argument;
use dfdx::tensor::{Cpu, Gradients, Tensor, UniqueId, ZerosTensor};
use ndarray::{ArcArray, Array, ArrayView, Dimension};

/// A trained array that lends its elements, where a tensor of dfdx lends none.
///
/// An operation reads a leaf where it stands ([`TapeInputs::with_leaf`](crate::TapeInputs::with_leaf)) and
/// [`Adam`](crate::Adam) steps it there, where both copy a tensor: worth it for parameters that are large
/// beside the work that is done with them. What dfdx's own operations work with stays a tensor.
///
/// The gradient stands among those of tensors, see [`Parameter::gradient`]. The first that arrives after
/// [`alloc_gradients`](crate::alloc_gradients) or [`zero_gradients`](crate::zero_gradients) is moved
/// there, not added to zeros. Clones share the place of their gradient, as those of tensors do, and their
/// elements until one of them changes: a step while a clone or a tape is there copies them.
///
/// ```
/// use bochner_nn::{Leaf, Parameter, TapeInputs, record_one};
/// use bochner_ops::Affine;
/// use bochner_nn::dfdx::prelude::*;
/// use bochner_nn::ndarray::array;
///
/// let weight = Leaf::new(&Cpu::default(), array![[3.0_f32, 4.0]])?;
/// let bias = Leaf::new(&Cpu::default(), array![1.0])?;
/// let x = Cpu::default().tensor([[5.0, 6.0]]);
/// let inputs = TapeInputs::new().with(x.leaky_trace())?.with_leaf(&weight).with_leaf(&bias);
/// let y = record_one(Affine, inputs, (Const::<1>, Const::<1>))?;
/// assert_eq!(y.array(), [[40.0]]);
/// let mut gradients = y.sum().backward();
/// assert_eq!(weight.gradient(&mut gradients)?, [5.0, 6.0]);
/// # Ok::<(), bochner_nn::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Leaf<E: Element, D: Dimension> {
    /// In row-major order.
    values: ArcArray<E, D>,
    /// The key under whose number the gradient is kept. The gradient has one element for each value, or none if it is
    /// zero.
    pub(crate) key: Tensor<(usize,), E, Cpu>,
}

impl<E: Element, D: Dimension> Leaf<E, D> {
    /// A leaf with these values. `device` is that of the tensors it meets in operations.
    ///
    /// # Errors
    /// [`Error::Argument`] if there are none; [`Error::Device`] if memory cannot be had.
    pub fn new(device: &Cpu, values: Array<E, D>) -> Result<Self, Error> {
        argument::not_empty("a leaf", values.shape())?;
        let values = if values.is_standard_layout() {
            values
        } else {
            values.as_standard_layout().into_owned()
        };
        Ok(Self {
            values: values.into_shared(),
            key: device.try_zeros_like(&(0,))?,
        })
    }

    /// The values.
    pub fn view(&self) -> ArrayView<'_, E, D> {
        self.values.view()
    }

    /// The values, shared.
    pub(crate) fn shared(&self) -> &ArcArray<E, D> {
        &self.values
    }

    pub(crate) fn values_mut(&mut self) -> &mut [E] {
        let values = self.values.as_slice_mut();
        values.expect("brought to row-major order")
    }
}

impl<E: Element, D: Dimension> Parameter<E> for Leaf<E, D> {
    fn dims(&self) -> Vec<usize> {
        self.values.shape().to_vec()
    }

    fn read_into(&self, values: &mut Vec<E>) {
        values.clear();
        let own = self.values.as_slice();
        values.extend_from_slice(own.expect("brought to row-major order"));
    }

    fn dense_gradient<'g>(
        &self,
        gradients: &'g mut Gradients<E, Cpu>,
    ) -> Result<&'g mut [E], Error> {
        let gradient = gradients.get_or_alloc_mut(&self.key)?;
        if gradient.is_empty() {
            **gradient = vec![E::zero(); self.values.len()];
        }
        Ok(gradient)
    }

    fn id(&self) -> UniqueId {
        self.key.id()
    }

    fn zero_gradient(&self, gradients: &mut Gradients<E, Cpu>) -> Result<(), Error> {
        **gradients.get_or_alloc_mut(&self.key)? = Vec::new();
        Ok(())
    }
}

impl<E: Element, D: Dimension> ParameterMut<E> for Leaf<E, D> {
    fn write(&mut self, values: &[E]) {
        self.values_mut().copy_from_slice(values);
    }

    fn update(
        &mut self,
        gradients: &mut Gradients<E, Cpu>,
        _: &mut Vec<E>,
        f: &mut dyn FnMut(&mut [E], &[E]),
    ) -> Result<(), Error> {
        let gradient = self.gradient(gradients)?;
        f(self.values_mut(), gradient);
        Ok(())
    }
}

impl<E: Element, D: Dimension> Parameters<E> for Leaf<E, D> {
    fn for_each(&self, prefix: &str, f: &mut dyn FnMut(&str, &dyn Parameter<E>)) {
        f(prefix, self);
    }

    fn for_each_mut(&mut self, prefix: &str, f: &mut dyn FnMut(&str, &mut dyn ParameterMut<E>)) {
        f(prefix, self);
    }
}
