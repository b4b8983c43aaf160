//! Analytic operations on the tape of dfdx.

use crate::{BoxError, Element, Error, Leaf};
use bochner_numerics::Real;
use dfdx::shapes::{HasShape, Shape};
use dfdx::tensor::{Cpu, Gradients, Merge, PutTape, SplitTape, Tape, Tensor, TensorFromVec};
use dfdx::tensor_ops::ReshapeTo;
use ndarray::{ArcArray, ArrayBase, ArrayD, ArrayViewD, Data, Dimension, IxDyn};
use std::any::type_name;

/// A function of arrays with its vector-Jacobian product, free of any tensor framework.
///
/// All that can be wrong with the inputs has to be found in [`forward`](Self::forward): when
/// [`backward`](Self::backward) runs, there is no caller left who could act on an error, hence an
/// error there counts as a bug of the operation and panics.
pub trait Operation<T: Real>: 'static {
    /// What the backward pass needs besides the inputs.
    type Saved: 'static;

    /// The outputs, and what the backward pass needs.
    ///
    /// # Errors
    /// Whatever the operation cannot work with.
    fn forward(
        &self,
        inputs: &[ArrayViewD<'_, T>],
    ) -> Result<(Vec<ArrayD<T>>, Self::Saved), BoxError>;

    /// For each input the gradient, of the input's shape; `None` where there is none.
    ///
    /// There is one cotangent for each output, of the output's shape; it is zero where the output
    /// was not used.
    ///
    /// # Errors
    /// Only through a bug: see [`Operation`].
    fn backward(
        &self,
        inputs: &[ArrayViewD<'_, T>],
        saved: &Self::Saved,
        cotangents: &[ArrayViewD<'_, T>],
    ) -> Result<Vec<Option<ArrayD<T>>>, BoxError>;
}

/// A tensor whose shape is only known at run time: contiguous, one axis.
type Flat<E> = Tensor<(usize,), E, Cpu>;

/// The inputs of an operation, whatever their shapes, with their tapes merged.
#[derive(Debug)]
pub struct Inputs<E: Element, T> {
    values: Vec<ArcArray<E, IxDyn>>,
    /// Under whose number the gradient of each is kept.
    keys: Vec<Flat<E>>,
    tape: T,
}

impl<E: Element, T: Tape<E, Cpu>> Default for Inputs<E, T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<E: Element, T: Tape<E, Cpu>> Inputs<E, T> {
    /// No inputs yet; `T` is the tape of the outputs.
    pub fn new() -> Self {
        Self::on(T::default())
    }

    /// No inputs yet; the outputs go on with this tape.
    pub fn on(tape: T) -> Self {
        Self {
            values: Vec::new(),
            keys: Vec::new(),
            tape,
        }
    }

    /// Adds an input and merges its tape, if it has one.
    ///
    /// The elements are copied, because dfdx lends no slice of a tensor's data; the copy serves the
    /// backward pass as well. A permuted or broadcast tensor is first brought into row-major order, and
    /// that is recorded on the tape too.
    ///
    /// # Errors
    /// [`Error::Empty`] for a tensor without elements.
    pub fn with<S: Shape, R>(self, tensor: Tensor<S, E, Cpu, R>) -> Result<Self, Error>
    where
        T: Merge<R>,
    {
        let (tensor, tape) = tensor.split_tape();
        let shape = *tensor.shape();
        let n = shape.num_elements();
        if n == 0 {
            let (place, shape) = (self.keys.len(), shape.concrete());
            let what =
                format!("input {place} (counted from 0) of the operation, of shape {shape:?},");
            return Err(Error::Empty { what });
        }
        let merged = self.tape.merge(tape);
        let (flat, tape) = tensor
            .put_tape(merged)
            .try_reshape_like(&(n,))?
            .split_tape();
        let dims: Vec<usize> = shape.concrete().into();
        let (mut values, mut keys) = (self.values, self.keys);
        values.push(shaped(to_vec(&flat), &dims).into_shared());
        keys.push(flat);
        Ok(Self { values, keys, tape })
    }

    /// Adds a leaf, whose elements are shared, not copied.
    pub fn with_leaf<D: Dimension>(mut self, leaf: &Leaf<E, D>) -> Self {
        self.values.push(leaf.shared().clone().into_dyn());
        self.keys.push(leaf.key.clone());
        self
    }
}

/// The outputs of an operation, to be taken one after the other.
#[derive(Debug)]
pub struct Outputs<E: Element, T> {
    flats: std::vec::IntoIter<(Vec<usize>, Flat<E>)>,
    tape: T,
    operation: &'static str,
    taken: usize,
}

impl<E: Element, T: Tape<E, Cpu>> Outputs<E, T> {
    /// The next output, as a tensor of the given shape.
    ///
    /// The first one taken carries the tape, the others an empty one: they must meet the first
    /// again (in a sum, a product, ...) before the backward pass, which merges the tapes. dfdx
    /// orders operations by their number, so it does not matter where they meet.
    ///
    /// # Errors
    /// [`Error::ShapeMismatch`] if the operation returned another shape, [`Error::OutputCount`] if
    /// no output is left.
    pub fn take<S: Shape>(&mut self, shape: S) -> Result<Tensor<S, E, Cpu, T>, Error> {
        let (got, flat) = self.flats.next().ok_or(Error::OutputCount {
            operation: self.operation,
            expected: self.taken + 1,
            got: self.taken,
        })?;
        self.taken += 1;
        let expected: Vec<usize> = shape.concrete().into();
        if got != expected {
            return Err(Error::ShapeMismatch {
                what: "an output",
                expected,
                got,
            });
        }
        let tensor = flat.try_reshape_like(&shape)?;
        Ok(tensor.put_tape(std::mem::take(&mut self.tape)))
    }
}

/// Runs an operation and puts it on the tape as one step.
///
/// Works for `f32` and `f64`, any number of inputs and outputs of any shapes, the same tensor given
/// twice, and inputs with or without a tape. Without a tape nothing is kept and nothing recorded.
///
/// # Numerics
/// Tensors among the inputs are copied once ([`Inputs::with`]). Outputs and cotangents are moved, not
/// copied. The gradients are added to those that are already there.
///
/// # Errors
/// [`Error::Operation`] if the forward pass fails, [`Error::Empty`] without inputs.
///
/// # Panics
/// The *backward* pass panics if [`Operation::backward`] fails or returns wrong shapes: a bug of
/// the operation.
pub fn record<E, T, O>(operation: O, inputs: Inputs<E, T>) -> Result<Outputs<E, T>, Error>
where
    E: Element,
    T: Tape<E, Cpu>,
    O: Operation<E>,
{
    let Inputs {
        values,
        keys,
        mut tape,
    } = inputs;
    let device = match keys.first() {
        Some(key) => key.device().clone(),
        None => {
            let what = "the list of inputs".into();
            return Err(Error::Empty { what });
        }
    };
    let (arrays, saved) =
        operation
            .forward(&views(&values))
            .map_err(|source| Error::Operation {
                operation: type_name::<O>(),
                source,
            })?;
    let outputs = arrays
        .into_iter()
        .enumerate()
        .map(|(place, array)| into_flat::<O, E>(&device, place, array))
        .collect::<Result<Vec<_>, _>>()?;

    if T::OWNS_TAPE {
        let inputs: Vec<_> = keys.iter().map(|key| key.ghost()).collect();
        let results: Vec<_> = outputs
            .iter()
            .map(|(dims, flat)| (dims.clone(), flat.ghost()))
            .collect();
        tape.add_backward_op(move |gradients: &mut Gradients<E, Cpu>| {
            let mut cotangents = Vec::with_capacity(results.len());
            for (dims, result) in &results {
                let gradient = std::mem::take(&mut **gradients.get_or_alloc_mut(result)?);
                cotangents.push(shaped(gradient, dims));
            }
            let found = pull_back(&operation, &values, &saved, &cotangents);
            // The caller may ask for the gradient of an output: give the borrowed buffer back.
            for ((_, result), cotangent) in results.iter().zip(cotangents) {
                **gradients.get_or_alloc_mut(result)? = into_vec(cotangent);
            }
            for (input, gradient) in inputs.iter().zip(found) {
                if let Some(gradient) = gradient {
                    accumulate(gradients.get_or_alloc_mut(input)?, gradient);
                }
            }
            Ok(())
        });
    }
    Ok(Outputs {
        flats: outputs.into_iter(),
        tape,
        operation: type_name::<O>(),
        taken: 0,
    })
}

/// [`record`] for an operation with exactly one output, of the given shape.
///
/// # Errors
/// Those of [`record`] and [`Outputs::take`]; [`Error::OutputCount`] for more than one output.
///
/// # Panics
/// As [`record`].
pub fn record_one<E, T, O, S>(
    operation: O,
    inputs: Inputs<E, T>,
    shape: S,
) -> Result<Tensor<S, E, Cpu, T>, Error>
where
    E: Element,
    T: Tape<E, Cpu>,
    O: Operation<E>,
    S: Shape,
{
    let mut outputs = record(operation, inputs)?;
    if outputs.flats.len() != 1 {
        return Err(Error::OutputCount {
            operation: outputs.operation,
            expected: 1,
            got: outputs.flats.len(),
        });
    }
    outputs.take(shape)
}

/// [`Operation::backward`], with its promises checked.
fn pull_back<E: Element, O: Operation<E>>(
    operation: &O,
    values: &[ArcArray<E, IxDyn>],
    saved: &O::Saved,
    cotangents: &[ArrayD<E>],
) -> Vec<Option<ArrayD<E>>> {
    let name = type_name::<O>();
    let found = operation
        .backward(&views(values), saved, &views(cotangents))
        .unwrap_or_else(|error| panic!("bug: the backward pass of {name} failed: {error}"));
    assert_eq!(
        found.len(),
        values.len(),
        "bug: number of gradients of {name}"
    );
    for (gradient, value) in found.iter().zip(values) {
        if let Some(gradient) = gradient {
            assert_eq!(
                gradient.shape(),
                value.shape(),
                "bug: shape of a gradient of {name}"
            );
        }
    }
    found
}

/// Adds to what is there; nothing there is a leaf's gradient of zero.
fn accumulate<E: Element>(total: &mut Vec<E>, gradient: ArrayD<E>) {
    let gradient = into_vec(gradient);
    if total.is_empty() {
        *total = gradient;
    } else {
        crate::rows::add_to(total, &gradient);
    }
}

fn to_vec<E: Element>(flat: &Flat<E>) -> Vec<E> {
    let mut values = vec![E::default(); flat.shape().0];
    flat.copy_into(&mut values);
    values
}

fn shaped<E: Element>(values: Vec<E>, dims: &[usize]) -> ArrayD<E> {
    ArrayD::from_shape_vec(IxDyn(dims), values).expect("as many values as the shape holds")
}

fn views<E: Element, S: Data<Elem = E>>(arrays: &[ArrayBase<S, IxDyn>]) -> Vec<ArrayViewD<'_, E>> {
    arrays.iter().map(|array| array.view()).collect()
}

/// An output of an operation; dfdx has no empty tensors.
fn into_flat<O, E: Element>(
    device: &Cpu,
    place: usize,
    array: ArrayD<E>,
) -> Result<(Vec<usize>, Flat<E>), Error> {
    let dims = array.shape().to_vec();
    let values = into_vec(array);
    let n = values.len();
    if n == 0 {
        let operation = type_name::<O>();
        let what = format!("output {place} (counted from 0) of {operation}, of shape {dims:?},");
        return Err(Error::Empty { what });
    }
    Ok((dims, device.try_tensor_from_vec(values, (n,))?))
}

/// The elements in row-major order; moved where they already lie so.
fn into_vec<E: Element>(array: ArrayD<E>) -> Vec<E> {
    let n = array.len();
    if !array.is_standard_layout() {
        return array.iter().copied().collect();
    }
    let (values, offset) = array.into_raw_vec_and_offset();
    let start = offset.unwrap_or(0);
    if start == 0 && values.len() == n {
        values
    } else {
        values[start..start + n].to_vec()
    }
}
