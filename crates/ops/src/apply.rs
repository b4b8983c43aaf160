//! Operations on whole arrays, for callers without a tape.

use crate::operation::{BoxError, Operation, Slot};
use bochner_numerics::{Real, argument};
use ndarray::{ArrayD, ArrayViewD, CowArray, IxDyn};

/// Returns the outputs of an operation, and the values of the forward pass that [`apply_vjp`] needs.
///
/// A training loop that reuses its memory calls [`Operation::forward`] itself; this function makes new arrays.
/// Arrays may have any order in memory.
///
/// # Errors
/// [`ArgumentError`](bochner_numerics::ArgumentError) for inputs without elements, or of shapes that the operation
/// refuses; otherwise the error of the operation.
///
/// # Example
/// The gradient of a mean through two layers: the gradient of a layer's input is the cotangent of the layer below.
///
/// ```
/// use bochner_ops::{Activation, Affine, apply, apply_vjp};
/// use bochner_ops::ndarray::{ArrayD, arr1, arr2};
///
/// let x = arr2(&[[1.0, -2.0], [0.5, 3.0]]).into_dyn();
/// let (weight, bias) = (arr2(&[[0.5, 1.0]]).into_dyn(), arr1(&[0.1]).into_dyn());
/// let inputs = [x.view(), weight.view(), bias.view()];
/// let (hidden, of_map) = apply(&Affine, &inputs)?;
/// let hidden = [hidden[0].view()];
/// let (outputs, of_relu) = apply(&Activation::Relu, &hidden)?;
///
/// let cotangent = ArrayD::from_elem(outputs[0].raw_dim(), 0.5);
/// let along_hidden = apply_vjp(&Activation::Relu, &hidden, &of_relu, &[cotangent.view()], &[true])?;
/// let along_hidden = along_hidden[0].as_ref().expect("a gradient that was asked for");
/// // The gradient of x is not requested.
/// let wanted = [false, true, true];
/// let gradients = apply_vjp(&Affine, &inputs, &of_map, &[along_hidden.view()], &wanted)?;
/// assert_eq!(gradients[0], None);
/// // The first row's output is -1.4, where the rectifier is flat.
/// assert_eq!(gradients[1], Some(arr2(&[[0.25, 1.5]]).into_dyn()));
/// # Ok::<(), bochner_ops::BoxError>(())
/// ```
pub fn apply<T: Real, O: Operation<T>>(
    operation: &O,
    inputs: &[ArrayViewD<T>],
) -> Result<(Vec<ArrayD<T>>, O::Saved), BoxError> {
    let shapes = output_shapes(operation, inputs)?;
    let mut outputs: Vec<Vec<T>> = vec![Vec::new(); shapes.len()];
    let slots = outputs.iter_mut().zip(&shapes);
    let slots = slots.map(|(values, shape)| Slot::new(values, shape.iter().product()));
    let inputs = row_major(inputs);
    let saved = operation.forward(&views(&inputs), slots.collect())?;
    let outputs = outputs.into_iter().zip(&shapes);
    let outputs = outputs.map(|(values, shape)| shaped(values, shape));
    Ok((outputs.collect(), saved))
}

/// The gradients along the inputs of an operation, given what [`apply`] saved: the vector-Jacobian product.
///
/// There is one entry for each input, `None` where `wanted` is `false`: nothing is computed for these.
///
/// # Shapes
/// `inputs` are those of the forward pass, `cotangents` have the shapes of the outputs.
///
/// # Errors
/// [`ArgumentError`](bochner_numerics::ArgumentError) for cotangents of other shapes than the outputs', or another
/// number of them or of `wanted`, and as [`apply`].
pub fn apply_vjp<T: Real, O: Operation<T>>(
    operation: &O,
    inputs: &[ArrayViewD<T>],
    saved: &O::Saved,
    cotangents: &[ArrayViewD<T>],
    wanted: &[bool],
) -> Result<Vec<Option<ArrayD<T>>>, BoxError> {
    let shapes = output_shapes(operation, inputs)?;
    argument::shape("wanted", &[inputs.len()], &[wanted.len()])?;
    argument::shape("cotangents", &[shapes.len()], &[cotangents.len()])?;
    for (i, (shape, cotangent)) in shapes.iter().zip(cotangents).enumerate() {
        argument::shape(format!("cotangents[{i}]"), shape, cotangent.shape())?;
    }
    let mut gradients: Vec<Option<Vec<T>>> =
        wanted.iter().map(|wanted| wanted.then(Vec::new)).collect();
    let [inputs, cotangents] = [inputs, cotangents].map(row_major);
    add_gradients(
        operation,
        &views(&inputs),
        saved,
        &views(&cotangents),
        &mut gradients,
    )?;
    let gradients = gradients.into_iter().zip(&inputs);
    let gradients = gradients.map(|(values, x)| Some(shaped(values?, x.shape())));
    Ok(gradients.collect())
}

/// Adds the gradients along the inputs to what is there, where there is a place.
pub(crate) fn add_gradients<T: Real, O: Operation<T>>(
    operation: &O,
    inputs: &[ArrayViewD<T>],
    saved: &O::Saved,
    cotangents: &[ArrayViewD<T>],
    gradients: &mut [Option<Vec<T>>],
) -> Result<(), BoxError> {
    let slots = gradients.iter_mut().zip(inputs);
    let slots = slots.map(|(values, x)| Some(Slot::new(values.as_mut()?, x.len())));
    operation.backward(inputs, saved, cotangents, slots.collect())
}

/// The shapes of the outputs, for inputs that all have elements.
fn output_shapes<T: Real, O: Operation<T>>(
    operation: &O,
    inputs: &[ArrayViewD<T>],
) -> Result<Vec<Vec<usize>>, BoxError> {
    for (i, input) in inputs.iter().enumerate() {
        argument::not_empty(format!("inputs[{i}]"), input.shape())?;
    }
    let shapes: Vec<&[usize]> = inputs.iter().map(|x| x.shape()).collect();
    Ok(operation.output_shapes(&shapes)?)
}

fn row_major<'a, T: Real>(arrays: &'a [ArrayViewD<'_, T>]) -> Vec<CowArray<'a, T, IxDyn>> {
    arrays.iter().map(|x| x.as_standard_layout()).collect()
}

fn views<'a, T: Real>(arrays: &'a [CowArray<'_, T, IxDyn>]) -> Vec<ArrayViewD<'a, T>> {
    arrays.iter().map(|x| x.view()).collect()
}

/// Returns the values written into a slot as an array: zeros if the operation left it untouched.
fn shaped<T: Real>(mut values: Vec<T>, shape: &[usize]) -> ArrayD<T> {
    values.resize(shape.iter().product(), T::zero());
    ArrayD::from_shape_vec(IxDyn(shape), values).expect("as many elements as the shape has")
}
