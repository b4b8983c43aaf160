//! A leaf is a parameter like a tensor, read and stepped where it stands.

use bochner_nn::{
    Adam, Checkpoint, Error, Leaf, Parameter, ParameterMut, Parameters, TapeInputs,
    alloc_gradients, record_one, tape_adding_to, zero_gradients,
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
    let [mut of_tensor, mut of_leaf] = [0; 2].map(|_| Adam::new(AdamConfig::default()).unwrap());
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
