//! Operations on the tape of dfdx.

use crate::{Element, Error, Leaf};
use bochner_numerics::argument;
use bochner_ops::rows::add_to;
use bochner_ops::{Operation, Slot};
use dfdx::shapes::{HasShape, Shape};
use dfdx::tensor::{Cpu, Gradients, Merge, PutTape, SplitTape, Tape, Tensor, TensorFromVec};
use dfdx::tensor_ops::ReshapeTo;
use ndarray::{ArcArray, ArrayBase, ArrayD, ArrayViewD, Data, Dimension, IxDyn};
use std::any::type_name;

/// A tensor whose shape is only known at run time: contiguous, one axis.
type Flat<E> = Tensor<(usize,), E, Cpu>;

/// The inputs of an operation, whatever their shapes, with their tapes merged.
///
/// Each input either has a gradient, or is a constant (a target, a frozen weight). The operation is told that the
/// gradient of a constant is not requested.
#[derive(Debug)]
pub struct TapeInputs<E: Element, T> {
    values: Vec<ArcArray<E, IxDyn>>,
    /// The tensor under whose number each gradient is kept; `None` for a constant.
    keys: Vec<Option<Flat<E>>>,
    /// The device of the tensors and leaves among the inputs.
    device: Option<Cpu>,
    tape: T,
}

impl<E: Element, T: Tape<E, Cpu>> Default for TapeInputs<E, T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<E: Element, T: Tape<E, Cpu>> TapeInputs<E, T> {
    /// No inputs yet; `T` is the tape of the outputs.
    pub fn new() -> Self {
        Self::on(T::default())
    }

    /// No inputs yet; the outputs go on with this tape.
    pub fn on(tape: T) -> Self {
        Self {
            values: Vec::new(),
            keys: Vec::new(),
            device: None,
            tape,
        }
    }

    /// The number of inputs.
    pub fn len(&self) -> usize {
        self.values.len()
    }

    /// Whether there is no input yet.
    pub fn is_empty(&self) -> bool {
        self.values.is_empty()
    }

    /// Adds an input and merges its tape, if it has one.
    ///
    /// The elements are copied, because dfdx lends no slice of a tensor's data; the copy serves the
    /// backward pass as well. A permuted or broadcast tensor is first brought into row-major order, and
    /// that is recorded on the tape too.
    ///
    /// # Errors
    /// [`ArgumentError::Empty`](bochner_numerics::ArgumentError::Empty) for a tensor without elements.
    pub fn with<S: Shape, R>(self, tensor: Tensor<S, E, Cpu, R>) -> Result<Self, Error>
    where
        T: Merge<R>,
    {
        let (tensor, tape) = tensor.split_tape();
        let shape = *tensor.shape();
        let dims: Vec<usize> = shape.concrete().into();
        argument::not_empty(format!("input {}", self.keys.len()), &dims)?;
        let n = shape.num_elements();
        let device = Some(tensor.device().clone());
        let merged = self.tape.merge(tape);
        let (flat, tape) = tensor
            .put_tape(merged)
            .try_reshape_like(&(n,))?
            .split_tape();
        let (mut values, mut keys) = (self.values, self.keys);
        values.push(shaped(to_vec(&flat), &dims).into_shared());
        keys.push(Some(flat));
        Ok(Self {
            values,
            keys,
            device,
            tape,
        })
    }

    /// Adds a leaf, if there is one. Its elements are shared, not copied.
    pub fn with_leaf<'l, D: Dimension + 'l>(
        mut self,
        leaf: impl Into<Option<&'l Leaf<E, D>>>,
    ) -> Self {
        if let Some(leaf) = leaf.into() {
            self.values.push(leaf.shared().clone().into_dyn());
            self.device = Some(leaf.key.device().clone());
            self.keys.push(Some(leaf.key.clone()));
        }
        self
    }

    /// Adds an array whose gradient is not computed; its elements are shared, not copied, where they are in
    /// row-major order.
    ///
    /// # Errors
    /// [`ArgumentError::Empty`](bochner_numerics::ArgumentError::Empty) for an array without elements.
    pub fn with_constant<D: Dimension>(mut self, array: ArcArray<E, D>) -> Result<Self, Error> {
        argument::not_empty(format!("input {}", self.keys.len()), array.shape())?;
        let array = match array.is_standard_layout() {
            true => array,
            false => array.as_standard_layout().into_owned().into_shared(),
        };
        self.values.push(array.into_dyn());
        self.keys.push(None);
        Ok(self)
    }

    /// Adds what `add` adds, such as the parameters of a layer, as constants: nothing of their gradients is
    /// computed.
    ///
    /// # Errors
    /// The errors of `add`.
    ///
    /// ```
    /// use bochner_nn::{Linear, TapeInputs, record_one};
    /// use bochner_numerics::Seed;
    /// use bochner_ops::Affine;
    /// use bochner_nn::dfdx::prelude::*;
    ///
    /// let (device, mut rng) = (Cpu::default(), Seed::new(1).stream("initial values"));
    /// let frozen: Linear<usize, usize, f32> = Linear::try_new(&device, 3, 2, &mut rng)?;
    /// let x: Tensor<(usize, usize), f32, Cpu> = device.ones_like(&(4, 3));
    /// let inputs = TapeInputs::new().with(x.leaky_trace())?;
    /// let inputs = inputs.with_frozen(|inputs| frozen.add_to(inputs))?;
    /// let gradients = record_one(Affine, inputs, (4, 2))?.sum().backward();
    /// assert_eq!(gradients.get(&x).shape(), &(4, 3));
    /// # Ok::<(), bochner_nn::Error>(())
    /// ```
    pub fn with_frozen<R>(self, add: impl FnOnce(Self) -> Result<Self, R>) -> Result<Self, R> {
        let trained = self.keys.len();
        let mut all = add(self)?;
        all.keys[trained..].fill_with(|| None);
        Ok(all)
    }
}

/// The outputs of an operation, to be taken one after the other.
#[derive(Debug)]
pub struct TapeOutputs<E: Element, T> {
    flats: std::vec::IntoIter<(Vec<usize>, Flat<E>)>,
    tape: T,
    operation: &'static str,
    taken: usize,
}

impl<E: Element, T: Tape<E, Cpu>> TapeOutputs<E, T> {
    /// The next output, as a tensor of the given shape.
    ///
    /// The first one taken carries the tape, the others an empty one: they must meet the first
    /// again (in a sum, a product, ...) before the backward pass, which merges the tapes. dfdx
    /// orders operations by their number, so it does not matter where they meet.
    ///
    /// # Errors
    /// [`ArgumentError::Shape`](bochner_numerics::ArgumentError::Shape) if the output has another shape,
    /// [`Error::OutputCount`] if no output is left.
    pub fn take<S: Shape>(&mut self, shape: S) -> Result<Tensor<S, E, Cpu, T>, Error> {
        let (got, flat) = self.flats.next().ok_or(Error::OutputCount {
            operation: self.operation,
            expected: self.taken + 1,
            got: self.taken,
        })?;
        self.taken += 1;
        let asked: Vec<usize> = shape.concrete().into();
        argument::shape("an output as asked for", &got, &asked)?;
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
/// Tensors among the inputs are copied once ([`TapeInputs::with`]). Outputs and cotangents are moved, not
/// copied. Gradients are written where they stand, added to what is there.
///
/// # Errors
/// [`Error::Argument`] if the shapes of the inputs do not fit the operation, or an output has no elements;
/// [`Error::Operation`] if the forward pass fails.
///
/// # Panics
/// The *backward* pass panics if [`Operation::backward`] fails: a bug of the operation.
pub fn record<E, T, O>(operation: O, inputs: TapeInputs<E, T>) -> Result<TapeOutputs<E, T>, Error>
where
    E: Element,
    T: Tape<E, Cpu>,
    O: Operation<E>,
{
    let TapeInputs {
        values,
        keys,
        device,
        mut tape,
    } = inputs;
    let (name, device) = (type_name::<O>(), device.unwrap_or_default());
    let shapes: Vec<&[usize]> = values.iter().map(|x| x.shape()).collect();
    let shapes = operation.output_shapes(&shapes)?;
    for (place, dims) in shapes.iter().enumerate() {
        // dfdx has no empty tensors.
        argument::not_empty(format!("output {place} of {name}"), dims)?;
    }
    let mut arrays: Vec<Vec<E>> = shapes.iter().map(|_| Vec::new()).collect();
    let slots = arrays.iter_mut().zip(&shapes);
    let slots = slots.map(|(values, dims)| Slot::new(values, dims.iter().product()));
    let saved = operation
        .forward(&views(&values), slots.collect())
        .map_err(|source| Error::Operation {
            operation: name,
            source,
        })?;
    let outputs = arrays.into_iter().zip(shapes).map(|(values, dims)| {
        let n = dims.iter().product();
        assert_eq!(values.len(), n, "bug: {name} left an output unwritten");
        Ok((dims, device.try_tensor_from_vec(values, (n,))?))
    });
    let outputs = outputs.collect::<Result<Vec<_>, Error>>()?;

    if T::OWNS_TAPE {
        let ghost = |key: &Option<Flat<E>>| key.as_ref().map(Tensor::ghost);
        let inputs: Vec<_> = keys.iter().map(ghost).collect();
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
            // Each wanted gradient is taken out of the map, so that all can be written at once.
            let mut wanted = Vec::with_capacity(inputs.len());
            for key in &inputs {
                wanted.push(match key {
                    Some(key) => Some(std::mem::take(&mut **gradients.get_or_alloc_mut(key)?)),
                    None => None,
                });
            }
            let slots = wanted.iter_mut().zip(&values);
            let slots = slots.map(|(gradient, x)| Some(Slot::new(gradient.as_mut()?, x.len())));
            operation
                .backward(
                    &views(&values),
                    &saved,
                    &views(&cotangents),
                    slots.collect(),
                )
                .unwrap_or_else(|error| panic!("bug: the backward pass of {name} failed: {error}"));
            for (key, gradient) in inputs.iter().zip(wanted) {
                if let (Some(key), Some(gradient)) = (key, gradient) {
                    put_back(gradients.get_or_alloc_mut(key)?, gradient);
                }
            }
            // The caller may ask for the gradient of an output: give the borrowed buffer back.
            for ((_, result), cotangent) in results.iter().zip(cotangents) {
                let (values, _) = cotangent.into_raw_vec_and_offset();
                **gradients.get_or_alloc_mut(result)? = values;
            }
            Ok(())
        });
    }
    Ok(TapeOutputs {
        flats: outputs.into_iter(),
        tape,
        operation: name,
        taken: 0,
    })
}

/// [`record`] for an operation with exactly one output, of the given shape.
///
/// # Errors
/// The errors of [`record`] and [`TapeOutputs::take`], and [`Error::OutputCount`] for more than one output.
///
/// # Panics
/// The backward pass panics as that of [`record`] does.
pub fn record_one<E, T, O, S>(
    operation: O,
    inputs: TapeInputs<E, T>,
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

/// Returns a gradient to its place, where there is already one if the input was given twice.
fn put_back<E: Element>(place: &mut Vec<E>, gradient: Vec<E>) {
    if place.is_empty() {
        *place = gradient;
    } else if !gradient.is_empty() {
        add_to(place, &gradient);
    }
}

/// The elements of a contiguous tensor, without the walk over its strides that `as_vec` takes.
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
