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

    fn values_mut(&mut self) -> &mut [E] {
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        Adam, Checkpoint, TapeInputs, alloc_gradients, record_one, tape_adding_to, zero_gradients,
    };
    use bochner_numerics::{ArgumentError, Real};
    use bochner_ops::{AdamConfig, BoxError, Operation, Slot, WeightDecay, slots};
    use dfdx::prelude::*;
    use ndarray::{Array2, ArrayViewD, Ix2};

    /// The sum of the products of two arrays' elements.
    struct Inner;

    impl<T: Real> Operation<T> for Inner {
        type Saved = ();

        fn output_shapes(&self, _: &[&[usize]]) -> Result<Vec<Vec<usize>>, ArgumentError> {
            Ok(vec![Vec::new()])
        }

        fn forward(&self, x: &[ArrayViewD<T>], outputs: Vec<Slot<T>>) -> Result<(), BoxError> {
            let [y] = slots(outputs);
            y.put(vec![(&x[0] * &x[1]).sum()]);
            Ok(())
        }

        fn backward(
            &self,
            x: &[ArrayViewD<T>],
            _: &(),
            cotangents: &[ArrayViewD<T>],
            gradients: Vec<Option<Slot<T>>>,
        ) -> Result<(), BoxError> {
            let dy = cotangents[0].sum();
            for (slot, other) in gradients.into_iter().zip([&x[1], &x[0]]) {
                slot.unwrap().put_array(other.mapv(|x| x * dy));
            }
            Ok(())
        }
    }

    type Value = Tensor<(), f64, Cpu, OwnedTape<f64, Cpu>>;

    fn inner(inputs: TapeInputs<f64, OwnedTape<f64, Cpu>>) -> Value {
        record_one(Inner, inputs, ()).unwrap()
    }

    fn tape(of: &impl Parameters<f64>) -> OwnedTape<f64, Cpu> {
        tape_adding_to(alloc_gradients(of).unwrap()).unwrap()
    }

    fn leaf(values: Array2<f64>) -> Leaf<f64, Ix2> {
        Leaf::new(&Cpu::default(), values).unwrap()
    }

    fn numbers() -> Array2<f64> {
        Array2::from_shape_fn((3, 2), |(i, j)| (i as f64 - 0.7) * (j as f64 + 0.4))
    }

    #[test]
    fn adam_goes_the_way_of_a_tensor() {
        let x = Cpu::default().tensor([1.0, -2.0, 3.0, 0.5, 0.0, -1.0]);
        let mut tensor: Tensor<(usize,), f64, Cpu> =
            Cpu::default().tensor_from_vec(numbers().into_raw_vec_and_offset().0, (6,));
        let mut leaf = leaf(numbers());
        let [mut of_tensor, mut of_leaf] =
            [0; 2].map(|_| Adam::new(AdamConfig::default()).unwrap());
        for _ in 0..3 {
            let other = x.clone().reshape_like(&(6,));
            let inputs = TapeInputs::on(tape(&tensor)).with(tensor.clone()).unwrap();
            let mut gradients = inner(inputs.with(other).unwrap()).square().backward();
            of_tensor.step(&mut tensor, &mut gradients).unwrap();

            let other = x.clone().reshape_like(&(3, 2));
            let inputs = TapeInputs::on(tape(&leaf)).with_leaf(&leaf);
            let mut gradients = inner(inputs.with(other).unwrap()).square().backward();
            of_leaf.step(&mut leaf, &mut gradients).unwrap();
        }
        assert!(leaf.view().iter().eq(&tensor.as_vec()));
        assert_ne!(leaf.view(), numbers());
    }

    #[test]
    fn gradients_of_several_uses_and_passes_add_up_until_they_are_zeroed() {
        for shape in [(3, 2), (1, 1)] {
            let leaf = leaf(Array2::from_elem(shape, 3.0));
            let twice = || {
                inner(
                    TapeInputs::on(tape(&leaf))
                        .with_leaf(&leaf)
                        .with_leaf(&leaf),
                )
            };
            let n = (shape.0 * shape.1) as f64;
            assert_eq!(twice().array(), 9.0 * n);
            let mut gradients = twice().backward();
            assert_eq!(
                leaf.gradient(&mut gradients).unwrap(),
                vec![6.0; n as usize]
            );
            let next = |gradients| {
                let tape = tape_adding_to(gradients).unwrap();
                inner(TapeInputs::on(tape).with_leaf(&leaf).with_leaf(&leaf)).backward()
            };
            gradients = next(gradients);
            assert_eq!(
                leaf.gradient(&mut gradients).unwrap(),
                vec![12.0; n as usize]
            );
            zero_gradients(&leaf, &mut gradients).unwrap();
            assert_eq!(
                leaf.gradient(&mut gradients).unwrap(),
                vec![0.0; n as usize]
            );
            zero_gradients(&leaf, &mut gradients).unwrap();
            gradients = next(gradients);
            assert_eq!(
                leaf.gradient(&mut gradients).unwrap(),
                vec![6.0; n as usize]
            );
        }
    }

    #[test]
    fn a_step_changes_neither_clones_nor_a_pass_that_is_under_way() {
        let mut leaf = leaf(numbers());
        let before = leaf.clone();
        let inputs = TapeInputs::on(tape(&leaf))
            .with_leaf(&leaf)
            .with_leaf(&before);
        let y = inner(inputs);
        leaf.write(&[0.0; 6]);
        assert_eq!(before.view(), numbers());
        let want: Vec<f64> = numbers().iter().map(|x| 2.0 * x).collect();
        assert_eq!(leaf.gradient(&mut y.backward()).unwrap(), want);
    }

    #[test]
    fn it_is_saved_and_restored() {
        let checkpoint = Checkpoint::of("leaf", &leaf(numbers()));
        let mut other = leaf(Array2::zeros((3, 2)));
        checkpoint.restore("leaf", &mut other).unwrap();
        assert_eq!(other.view(), numbers());
        let mut transposed = leaf(Array2::zeros((2, 3)));
        assert!(checkpoint.restore("leaf", &mut transposed).is_err());
    }

    #[test]
    fn values_are_brought_into_row_major_order_and_none_are_refused() {
        let transposed = leaf(numbers().reversed_axes());
        let mut values = Vec::new();
        transposed.read_into(&mut values);
        assert!(numbers().t().iter().eq(&values));
        assert_eq!(transposed.dims(), [2, 3]);
        let nothing = Leaf::new(&Cpu::default(), Array2::<f64>::zeros((0, 3)));
        assert!(matches!(nothing, Err(Error::Argument(_))));
    }

    #[test]
    fn what_no_pass_reached_has_a_gradient_of_zero() {
        let mut leaf = leaf(numbers());
        let mut none = Gradients::leaky();
        assert_eq!(leaf.gradient(&mut none).unwrap(), [0.0; 6]);
        let decay = AdamConfig {
            weight_decay: WeightDecay::Decoupled(0.5),
            ..AdamConfig::default()
        };
        let mut adam = Adam::new(decay).unwrap();
        adam.step(&mut leaf, &mut Gradients::leaky()).unwrap();
        let want = numbers().mapv(|x| x * (1.0 - 0.5 * decay.learning_rate));
        assert_eq!(leaf.view(), want);
    }
}
