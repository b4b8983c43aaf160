//! Operations recorded through the bridge have the values and gradients of dfdx's own.

use crate::common::{close, random, values};
use bochner_nn::{BoxError, Element, Error, Inputs, Operation, record, record_one};
use bochner_numerics::Real;
use dfdx::prelude::*;
use ndarray::{ArrayD, ArrayViewD, Ix2};
use std::rc::Rc;

/// Two outputs of different shapes: the product `A B` and the sum of `A`'s columns.
struct ProductAndSum;

impl<T: Real + ndarray::LinalgScalar> Operation<T> for ProductAndSum {
    type Saved = ();

    fn forward(&self, inputs: &[ArrayViewD<T>]) -> Result<(Vec<ArrayD<T>>, ()), BoxError> {
        let (a, b) = matrices(inputs)?;
        if a.ncols() != b.nrows() {
            return Err(format!("{} columns, {} rows", a.ncols(), b.nrows()).into());
        }
        let sum = a.sum_axis(ndarray::Axis(1)).into_dyn();
        Ok((vec![a.dot(&b).into_dyn(), sum], ()))
    }

    fn backward(
        &self,
        inputs: &[ArrayViewD<T>],
        _: &(),
        cotangents: &[ArrayViewD<T>],
    ) -> Result<Vec<Option<ArrayD<T>>>, BoxError> {
        let (a, b) = matrices(inputs)?;
        let d = cotangents[0].view().into_dimensionality::<Ix2>()?;
        let e = cotangents[1].view().insert_axis(ndarray::Axis(1));
        let da = (d.dot(&b.t()).into_dyn() + e).into_dyn();
        // Column-major on purpose: the bridge has to put it in order.
        let db = d.t().dot(&a).reversed_axes().into_dyn();
        Ok(vec![Some(da), Some(db)])
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
) -> Inputs<E, T> {
    Inputs::new().with(a).unwrap().with(b).unwrap()
}

macro_rules! both_types {
    ($name:ident, $check:ident) => {
        #[test]
        fn $name() {
            $check!(f32, 1e-5);
            $check!(f64, 1e-12);
        }
    };
}

macro_rules! contiguous {
    ($E:ty, $tolerance:expr) => {
        let a = random::<$E, _>((3, Const::<4>), "a");
        let b = random::<$E, _>((Const::<4>, 5), "b");
        let weights = random::<$E, _>((3, 5), "weights");
        let offsets = random::<$E, _>((3,), "offsets");

        let mut outputs = record(ProductAndSum, inputs(a.leaky_trace(), b.clone())).unwrap();
        let product = outputs.take((3, 5)).unwrap();
        let sum = outputs.take((3,)).unwrap();
        let loss = (product * weights.clone()).sum() + (sum * offsets.clone()).sum();

        let product = a.leaky_trace().matmul(b.clone());
        let sum = a.retaped::<OwnedTape<$E, Cpu>>().sum::<(usize,), Axis<1>>();
        let want = (product * weights).sum() + (sum * offsets).sum();
        close(&values(&loss), &values(&want), $tolerance);
        let (got, want) = (loss.backward(), want.backward());
        close(&values(&got.get(&a)), &values(&want.get(&a)), $tolerance);
        close(&values(&got.get(&b)), &values(&want.get(&b)), $tolerance);
    };
}
both_types!(values_and_gradients_agree, contiguous);

macro_rules! strided {
    ($E:ty, $tolerance:expr) => {
        // `a` permuted, with its tape; `b` broadcast (stride 0), without one.
        let a = random::<$E, _>((4, 3), "a");
        let b = random::<$E, _>((5,), "b");
        let weights = random::<$E, _>((3, 5), "weights");

        let permuted = a.leaky_trace().permute::<_, Axes2<1, 0>>();
        let broadcast = b.leaky_trace().broadcast_like::<_, Axis<0>>(&(4, 5));
        let merged = Inputs::<$E, OwnedTape<$E, Cpu>>::new()
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
        close(&values(&loss), &values(&want), $tolerance);
        let (got, want) = (loss.backward(), want.backward());
        close(&values(&got.get(&a)), &values(&want.get(&a)), $tolerance);
        close(&values(&got.get(&b)), &values(&want.get(&b)), $tolerance);
    };
}
both_types!(strided_inputs_and_unused_outputs_are_served, strided);

macro_rules! twice {
    ($E:ty, $tolerance:expr) => {
        let a = random::<$E, _>((4, 4), "a");
        let mut outputs = record(ProductAndSum, inputs(a.leaky_trace(), a.clone())).unwrap();
        let got = outputs.take((4, 4)).unwrap().sum().backward();
        // dfdx's own product refuses one tensor twice: give it two, and add.
        let b = Cpu::default().tensor_from_vec(a.as_vec(), (4, 4));
        let want = a.leaky_trace().matmul(b.clone()).sum().backward();
        let want = want.get(&a) + want.get(&b);
        close(&values(&got.get(&a)), &values(&want), $tolerance);
    };
}
both_types!(a_tensor_may_be_given_twice, twice);

macro_rules! accumulated {
    ($E:ty, $tolerance:expr) => {
        let (a, b) = (random::<$E, _>((2, 3), "a"), random::<$E, _>((3, 2), "b"));
        let pass = |gradients| {
            let mut outputs = record(ProductAndSum, inputs(a.trace(gradients), b.clone())).unwrap();
            outputs.take((2, 2)).unwrap().square().sum().backward()
        };
        let once = pass(Gradients::leaky());
        let twice = pass(pass(bochner_nn::alloc_gradients(&a).unwrap()));
        let doubled: Vec<f64> = values(&once.get(&a)).iter().map(|x| 2.0 * x).collect();
        close(&values(&twice.get(&a)), &doubled, $tolerance);
    };
}
both_types!(gradients_are_added_to_those_there, accumulated);

#[test]
fn the_gradient_of_an_output_can_be_read() {
    let (a, b) = (random::<f64, _>((2, 3), "a"), random::<f64, _>((3, 2), "b"));
    let mut outputs = record(ProductAndSum, inputs(a.leaky_trace(), b)).unwrap();
    let (product, tape) = outputs.take((2, 2)).unwrap().split_tape();
    let gradients = product.clone().put_tape(tape).square().sum().backward();
    let want: Vec<f64> = values(&product).iter().map(|x| 2.0 * x).collect();
    close(&values(&gradients.get(&product)), &want, 1e-14);
}

/// Keeps a token alive as long as what it saved.
struct Keep(Rc<()>);

impl Operation<f32> for Keep {
    type Saved = Rc<()>;

    fn forward(&self, inputs: &[ArrayViewD<f32>]) -> Result<(Vec<ArrayD<f32>>, Rc<()>), BoxError> {
        Ok((vec![inputs[0].to_owned()], self.0.clone()))
    }

    fn backward(
        &self,
        inputs: &[ArrayViewD<f32>],
        _: &Rc<()>,
        _: &[ArrayViewD<f32>],
    ) -> Result<Vec<Option<ArrayD<f32>>>, BoxError> {
        Ok(vec![None; inputs.len()])
    }
}

#[test]
fn without_a_tape_nothing_is_kept() {
    let (token, x) = (Rc::new(()), random::<f32, _>((2,), "x"));
    let untaped = Inputs::<f32, NoneTape>::new().with(x.clone()).unwrap();
    let y = record_one(Keep(token.clone()), untaped, (2,)).unwrap();
    assert_eq!(Rc::strong_count(&token), 1);
    drop(y);
    let taped = Inputs::new().with(x.leaky_trace()).unwrap();
    let y = record_one(Keep(token.clone()), taped, (2,)).unwrap();
    assert!(Rc::strong_count(&token) > 1);
    // An input without a gradient is left alone.
    let gradients = y.sum().backward();
    assert_eq!(Rc::strong_count(&token), 1);
    let found = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| gradients.get(&x)));
    assert!(found.is_err(), "a gradient appeared from nowhere");
}

/// An output without elements.
struct Nothing;

impl Operation<f32> for Nothing {
    type Saved = ();

    fn forward(&self, _: &[ArrayViewD<f32>]) -> Result<(Vec<ArrayD<f32>>, ()), BoxError> {
        Ok((vec![ArrayD::zeros(vec![0, 2])], ()))
    }

    fn backward(
        &self,
        _: &[ArrayViewD<f32>],
        _: &(),
        _: &[ArrayViewD<f32>],
    ) -> Result<Vec<Option<ArrayD<f32>>>, BoxError> {
        Ok(vec![None])
    }
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
    assert!(matches!(error, Error::ShapeMismatch { .. }));
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

    let none = record(ProductAndSum, Inputs::<f32, NoneTape>::new()).unwrap_err();
    assert!(matches!(none, Error::Empty { .. }));
    let empty: Tensor<(usize, usize), f32, _> = Cpu::default().zeros_like(&(0, 3));
    let one = Inputs::<f32, NoneTape>::new().with(random::<f32, _>((2,), "one"));
    let error = one.unwrap().with(empty).unwrap_err().to_string();
    assert_eq!(
        error,
        "input 1 (counted from 0) of the operation, of shape [0, 3], must have at least one element, \
         but has none"
    );
    let one = Inputs::<f32, NoneTape>::new().with(random::<f32, _>((2,), "one"));
    let error = record(Nothing, one.unwrap()).unwrap_err().to_string();
    assert!(
        error.starts_with("output 0 (counted from 0) of ")
            && error.contains("Nothing, of shape [0, 2],"),
        "{error}"
    );
}
