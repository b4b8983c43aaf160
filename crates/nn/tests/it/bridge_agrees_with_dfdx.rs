//! Operations recorded through the bridge have the values and gradients of dfdx's own.

use crate::common::{close, random, values};
use bochner_nn::{Element, Error, Linear, TapeInputs, record, record_one};
use bochner_numerics::{ArgumentError, Real, Seed, operations};
use bochner_ops::{Affine, BoxError, Operation, Slot, given, slots};
use dfdx::prelude::*;
use ndarray::{Array2, ArrayViewD, Ix2};
use std::sync::Arc;

/// Two outputs of different shapes: the product `A B` and the sum of `A`'s columns.
struct ProductAndSum;

impl<T: Real + ndarray::LinalgScalar> Operation<T> for ProductAndSum {
    type Saved = ();

    fn output_shapes(&self, inputs: &[&[usize]]) -> Result<Vec<Vec<usize>>, ArgumentError> {
        let [a, b] = given(inputs)?;
        Ok(vec![vec![a[0], b[1]], vec![a[0]]])
    }

    fn forward(&self, inputs: &[ArrayViewD<T>], outputs: Vec<Slot<T>>) -> Result<(), BoxError> {
        let ((a, b), [product, sum]) = (matrices(inputs)?, slots(outputs));
        if a.ncols() != b.nrows() {
            return Err(format!("{} columns, {} rows", a.ncols(), b.nrows()).into());
        }
        product.put_array(a.dot(&b));
        sum.put_array(a.sum_axis(ndarray::Axis(1)));
        Ok(())
    }

    fn backward(
        &self,
        inputs: &[ArrayViewD<T>],
        _: &(),
        cotangents: &[ArrayViewD<T>],
        gradients: Vec<Option<Slot<T>>>,
    ) -> Result<(), BoxError> {
        let ((a, b), [da, db]) = (matrices(inputs)?, slots(gradients));
        let d = cotangents[0].view().into_dimensionality::<Ix2>()?;
        let e = cotangents[1].view().insert_axis(ndarray::Axis(1));
        if let Some(da) = da {
            da.put_array(d.dot(&b.t()).into_dyn() + e);
        }
        if let Some(db) = db {
            // Column-major on purpose: the slot has to put it in order.
            db.put_array(d.t().dot(&a).reversed_axes());
        }
        Ok(())
    }
}

type Matrices<'a, T> = (ndarray::ArrayView2<'a, T>, ndarray::ArrayView2<'a, T>);

fn matrices<'a, T>(inputs: &'a [ArrayViewD<'_, T>]) -> Result<Matrices<'a, T>, BoxError> {
    Ok((
        inputs[0].view().into_dimensionality()?,
        inputs[1].view().into_dimensionality()?,
    ))
}

fn inputs<E: Element, R: Shape, S: Shape, T: Tape<E, Cpu>>(
    a: Tensor<R, E, Cpu, T>,
    b: Tensor<S, E, Cpu>,
) -> TapeInputs<E, T> {
    TapeInputs::new().with(a).unwrap().with(b).unwrap()
}

#[test]
fn values_and_gradients_agree() {
    let a = random::<f64, _>((3, Const::<4>), "a");
    let b = random::<f64, _>((Const::<4>, 5), "b");
    let weights = random::<f64, _>((3, 5), "weights");
    let offsets = random::<f64, _>((3,), "offsets");

    let mut outputs = record(ProductAndSum, inputs(a.leaky_trace(), b.clone())).unwrap();
    let product = outputs.take((3, 5)).unwrap();
    let sum = outputs.take((3,)).unwrap();
    let loss = (product * weights.clone()).sum() + (sum * offsets.clone()).sum();

    let product = a.leaky_trace().matmul(b.clone());
    let sum = a
        .retaped::<OwnedTape<f64, Cpu>>()
        .sum::<(usize,), Axis<1>>();
    let want = (product * weights).sum() + (sum * offsets).sum();
    close(&values(&loss), &values(&want), 1e-12);
    let (got, want) = (loss.backward(), want.backward());
    close(&values(&got.get(&a)), &values(&want.get(&a)), 1e-12);
    close(&values(&got.get(&b)), &values(&want.get(&b)), 1e-12);
}

#[test]
fn strided_inputs_and_unused_outputs_are_served() {
    // `a` permuted, with its tape; `b` broadcast (stride 0), without one.
    let a = random::<f64, _>((4, 3), "a");
    let b = random::<f64, _>((5,), "b");
    let weights = random::<f64, _>((3, 5), "weights");

    let permuted = a.leaky_trace().permute::<_, Axes2<1, 0>>();
    let broadcast = b.leaky_trace().broadcast_like::<_, Axis<0>>(&(4, 5));
    let merged = TapeInputs::<f64, OwnedTape<f64, Cpu>>::new()
        .with(permuted)
        .unwrap()
        .with(broadcast)
        .unwrap();
    let mut outputs = record(ProductAndSum, merged).unwrap();
    // The sum is not used: its cotangent is zero.
    let loss = (outputs.take((3, 5)).unwrap() * weights.clone()).sum();

    let permuted = a.leaky_trace().permute::<_, Axes2<1, 0>>();
    let broadcast = b.leaky_trace().broadcast_like::<_, Axis<0>>(&(4, 5));
    let want = (permuted.matmul(broadcast) * weights).sum();
    close(&values(&loss), &values(&want), 1e-12);
    let (got, want) = (loss.backward(), want.backward());
    close(&values(&got.get(&a)), &values(&want.get(&a)), 1e-12);
    close(&values(&got.get(&b)), &values(&want.get(&b)), 1e-12);
}

#[test]
fn a_tensor_may_be_given_twice() {
    let a = random::<f64, _>((4, 4), "a");
    let mut outputs = record(ProductAndSum, inputs(a.leaky_trace(), a.clone())).unwrap();
    let got = outputs.take((4, 4)).unwrap().sum().backward();
    // dfdx's own product refuses one tensor twice: give it two, and add.
    let b = Cpu::default().tensor_from_vec(a.as_vec(), (4, 4));
    let want = a.leaky_trace().matmul(b.clone()).sum().backward();
    let want = want.get(&a) + want.get(&b);
    close(&values(&got.get(&a)), &values(&want), 1e-12);
}

#[test]
fn gradients_are_added_to_those_there() {
    let (a, b) = (random::<f64, _>((2, 3), "a"), random::<f64, _>((3, 2), "b"));
    let pass = |gradients| {
        let mut outputs = record(ProductAndSum, inputs(a.trace(gradients), b.clone())).unwrap();
        outputs.take((2, 2)).unwrap().square().sum().backward()
    };
    let once = pass(Gradients::leaky());
    let twice = pass(pass(bochner_nn::alloc_gradients(&a).unwrap()));
    let doubled: Vec<f64> = values(&once.get(&a)).iter().map(|x| 2.0 * x).collect();
    close(&values(&twice.get(&a)), &doubled, 1e-12);
}

#[test]
fn the_gradient_of_an_output_can_be_read() {
    let (a, b) = (random::<f64, _>((2, 3), "a"), random::<f64, _>((3, 2), "b"));
    let mut outputs = record(ProductAndSum, inputs(a.leaky_trace(), b)).unwrap();
    let (product, tape) = outputs.take((2, 2)).unwrap().split_tape();
    let gradients = product.clone().put_tape(tape).square().sum().backward();
    let want: Vec<f64> = values(&product).iter().map(|x| 2.0 * x).collect();
    close(&values(&gradients.get(&product)), &want, 1e-14);
}

/// Keeps a token alive as long as what it saved; its output is as long as the input, or has this shape.
struct Keep(Arc<()>, Option<Vec<usize>>);

impl Operation<f32> for Keep {
    type Saved = Arc<()>;

    fn output_shapes(&self, inputs: &[&[usize]]) -> Result<Vec<Vec<usize>>, ArgumentError> {
        Ok(vec![self.1.clone().unwrap_or(inputs[0].to_vec())])
    }

    fn forward(
        &self,
        inputs: &[ArrayViewD<f32>],
        outputs: Vec<Slot<f32>>,
    ) -> Result<Arc<()>, BoxError> {
        let [y] = slots(outputs);
        y.put_array(inputs[0].to_owned());
        Ok(self.0.clone())
    }

    fn backward(
        &self,
        _: &[ArrayViewD<f32>],
        _: &Arc<()>,
        _: &[ArrayViewD<f32>],
        _: Vec<Option<Slot<f32>>>,
    ) -> Result<(), BoxError> {
        Ok(())
    }
}

#[test]
fn without_a_tape_nothing_is_kept() {
    let (token, x) = (Arc::new(()), random::<f32, _>((2,), "x"));
    let untaped = TapeInputs::<f32, NoneTape>::new().with(x.clone()).unwrap();
    let y = record_one(Keep(token.clone(), None), untaped, (2,)).unwrap();
    assert_eq!(Arc::strong_count(&token), 1);
    drop(y);
    let taped = TapeInputs::new().with(x.leaky_trace()).unwrap();
    let y = record_one(Keep(token.clone(), None), taped, (2,)).unwrap();
    assert!(Arc::strong_count(&token) > 1);
    // What the operation leaves untouched is zero.
    let gradients = y.sum().backward();
    assert_eq!(Arc::strong_count(&token), 1);
    assert_eq!(values(&gradients.get(&x)), [0.0, 0.0]);
}

#[test]
fn constants_have_no_gradient() {
    let (a, b) = (random::<f64, _>((2, 3), "a"), random::<f64, _>((3, 2), "b"));
    let product = |inputs| {
        let mut outputs = record(ProductAndSum, inputs).unwrap();
        outputs.take((2, 2)).unwrap().square().sum().backward()
    };
    let wanted = || TapeInputs::new().with(a.leaky_trace()).unwrap();
    let all = product(wanted().with(b.clone()).unwrap());
    let array = Array2::from_shape_vec((3, 2), b.as_vec()).unwrap();
    let transposed = array.t().as_standard_layout().into_owned();
    let some = [
        wanted()
            .with_frozen(|inputs| inputs.with(b.clone()))
            .unwrap(),
        wanted().with_constant(array.into_shared()).unwrap(),
        wanted()
            .with_constant(transposed.reversed_axes().into_shared())
            .unwrap(),
    ];
    for inputs in some {
        let gradients = product(inputs);
        assert_eq!(values(&gradients.get(&a)), values(&all.get(&a)));
        let found = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| gradients.get(&b)));
        assert!(found.is_err(), "a gradient appeared from nowhere");
    }
    let empty = Array2::<f64>::zeros((0, 2)).into_shared();
    assert!(wanted().with_constant(empty).is_err());
}

#[test]
fn the_gradients_of_frozen_weights_and_constants_are_not_computed() {
    let mut rng = Seed::new(1).stream("initial values");
    let layer: Linear<usize, usize, f64> =
        Linear::try_new(&Cpu::default(), 5, 7, &mut rng).unwrap();
    let x = random::<f64, _>((11, 5), "x");
    let cost = |inputs| {
        let loss = record_one(Affine, inputs, (11, 7)).unwrap().sum();
        operations::count(|| loss.backward()).1.multiply_adds
    };
    let start = || TapeInputs::<f64, OwnedTape<f64, Cpu>>::new();
    let traced = || start().with(x.leaky_trace()).unwrap();
    let constant = || {
        start()
            .with_frozen(|inputs| inputs.with(x.clone()))
            .unwrap()
    };
    let product = 11 * 5 * 7;
    assert_eq!(cost(layer.add_to(traced()).unwrap()), 2 * product);
    assert_eq!(cost(layer.add_to(constant()).unwrap()), product);
    let frozen = |inputs: TapeInputs<_, _>| inputs.with_frozen(|inputs| layer.add_to(inputs));
    assert_eq!(cost(frozen(traced()).unwrap()), product);
    assert_eq!(cost(frozen(constant()).unwrap()), 0);
}

/// [`Affine`] reads its inputs as slices.
#[test]
fn constants_are_brought_to_row_major_order() {
    let mut rng = Seed::new(1).stream("initial values");
    let layer: Linear<usize, usize, f64> =
        Linear::try_new(&Cpu::default(), 5, 7, &mut rng).unwrap();
    let columns = Array2::from_shape_vec((5, 11), random::<f64, _>((5, 11), "x").as_vec()).unwrap();
    let output = |x: Array2<f64>| {
        let inputs = TapeInputs::<f64, NoneTape>::new().with_constant(x.into_shared());
        let inputs = layer.add_to(inputs.unwrap()).unwrap();
        record_one(Affine, inputs, (11, 7)).unwrap().as_vec()
    };
    let rows = columns.t().as_standard_layout().into_owned();
    assert_eq!(output(columns.reversed_axes()), output(rows));
}

#[test]
fn wrong_uses_are_typed_errors() {
    let (a, b) = (random::<f32, _>((2, 3), "a"), random::<f32, _>((2, 2), "b"));
    let error = record(ProductAndSum, inputs(a.clone(), b.clone())).unwrap_err();
    assert!(matches!(error, Error::Operation { .. }));
    assert!(error.to_string().contains("3 columns, 2 rows"), "{error}");

    let product = inputs(b.clone(), b.clone());
    let error = record_one(ProductAndSum, product, (2, 2)).unwrap_err();
    assert!(matches!(
        error,
        Error::OutputCount {
            expected: 1,
            got: 2,
            ..
        }
    ));

    let mut outputs = record(ProductAndSum, inputs(b.clone(), b)).unwrap();
    let error = outputs.take((4, 1)).unwrap_err();
    assert!(matches!(
        error,
        Error::Argument(ArgumentError::Shape { .. })
    ));
    outputs.take((2,)).unwrap();
    let error = outputs.take((2,)).unwrap_err();
    assert!(matches!(
        error,
        Error::OutputCount {
            expected: 3,
            got: 2,
            ..
        }
    ));

    let none = record(ProductAndSum, TapeInputs::<f32, NoneTape>::new()).unwrap_err();
    assert!(matches!(none, Error::Argument(ArgumentError::Shape { .. })));
    let empty: Tensor<(usize, usize), f32, _> = Cpu::default().zeros_like(&(0, 3));
    let one = TapeInputs::<f32, NoneTape>::new().with(random::<f32, _>((2,), "one"));
    let error = one.unwrap().with(empty).unwrap_err().to_string();
    assert_eq!(
        error,
        "`input 1` has shape [0, 3] and so no elements: give at least one along every axis"
    );
    let one = TapeInputs::<f32, NoneTape>::new().with(random::<f32, _>((2,), "one"));
    let nothing = Keep(Arc::new(()), Some(vec![0, 2]));
    let error = record(nothing, one.unwrap()).unwrap_err().to_string();
    assert!(
        error.starts_with("`output 0 of ") && error.contains("Keep` has shape [0, 2]"),
        "{error}"
    );
}
