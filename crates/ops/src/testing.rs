//! Finite differences for operations.

use crate::{Operation, Slot};
use bochner_numerics::{Seed, finite_difference, relative_error, standard_normal};
use ndarray::{ArrayD, ArrayViewD, IxDyn};

/// Outputs and saved values of a forward pass.
pub(crate) fn run<O: Operation<f64>>(
    operation: &O,
    inputs: &[ArrayD<f64>],
) -> (Vec<ArrayD<f64>>, O::Saved) {
    let views: Vec<ArrayViewD<f64>> = inputs.iter().map(|x| x.view()).collect();
    let shapes: Vec<&[usize]> = inputs.iter().map(|x| x.shape()).collect();
    let shapes = operation.output_shapes(&shapes).unwrap();
    let mut outputs: Vec<Vec<f64>> = shapes.iter().map(|_| Vec::new()).collect();
    let slots = outputs.iter_mut().zip(&shapes);
    let slots = slots.map(|(values, shape)| Slot::new(values, shape.iter().product()));
    let saved = operation.forward(&views, slots.collect()).unwrap();
    let arrays = outputs.into_iter().zip(&shapes);
    let arrays =
        arrays.map(|(values, shape)| ArrayD::from_shape_vec(IxDyn(shape), values).unwrap());
    (arrays.collect(), saved)
}

/// Gradients along the inputs that are wanted, added to what `start` holds.
pub(crate) fn pull_back<O: Operation<f64>>(
    operation: &O,
    inputs: &[ArrayD<f64>],
    saved: &O::Saved,
    cotangents: &[ArrayD<f64>],
    mut start: Vec<Option<Vec<f64>>>,
) -> Vec<Option<Vec<f64>>> {
    let views: Vec<ArrayViewD<f64>> = inputs.iter().map(|x| x.view()).collect();
    let cotangents: Vec<ArrayViewD<f64>> = cotangents.iter().map(|x| x.view()).collect();
    let slots = start.iter_mut().zip(inputs);
    let slots = slots.map(|(values, x)| values.as_mut().map(|values| Slot::new(values, x.len())));
    let slots = slots.collect();
    operation
        .backward(&views, saved, &cotangents, slots)
        .unwrap();
    start
}

/// Standard normal arrays.
pub(crate) fn random(shapes: &[&[usize]]) -> Vec<ArrayD<f64>> {
    let mut stream = Seed::new(1).stream("inputs");
    let array = |shape: &&[usize]| {
        ArrayD::from_shape_simple_fn(IxDyn(shape), || standard_normal(&mut stream))
    };
    shapes.iter().map(array).collect()
}

/// Fails unless the gradients along inputs of these shapes are those of finite differences; each also alone,
/// and added to what is there.
#[track_caller]
pub(crate) fn gradients_are_right<O: Operation<f64>>(operation: O, shapes: &[&[usize]]) {
    gradients_at_are_right(operation, random(shapes), shapes.len());
}

/// [`gradients_are_right`] at these inputs, along the first `trained` of them.
#[track_caller]
pub(crate) fn gradients_at_are_right<O: Operation<f64>>(
    operation: O,
    inputs: Vec<ArrayD<f64>>,
    trained: usize,
) {
    let (outputs, saved) = run(&operation, &inputs);
    let mut stream = Seed::new(2).stream("cotangents");
    let cotangents: Vec<_> = outputs
        .iter()
        .map(|y| y.mapv(|_| standard_normal(&mut stream)))
        .collect();
    let wanted = |i: usize| (i < trained).then(Vec::new);
    let all = (0..inputs.len()).map(wanted).collect();
    let all = pull_back(&operation, &inputs, &saved, &cotangents, all);
    for (i, gradient) in all.iter().enumerate().take(trained) {
        let gradient = gradient.as_ref().unwrap();
        let shape = inputs[i].raw_dim();
        let value = |at: &[f64]| {
            let mut inputs = inputs.clone();
            inputs[i] = ArrayD::from_shape_vec(shape.clone(), at.to_vec()).unwrap();
            let (outputs, _) = run(&operation, &inputs);
            let products = outputs
                .iter()
                .zip(&cotangents)
                .map(|(y, dy)| (y * dy).sum());
            products.sum()
        };
        let at: Vec<f64> = inputs[i].iter().copied().collect();
        let error = relative_error(gradient, &finite_difference(&at, value));
        assert!(error < 1e-7, "input {i}: relative error {error:e}");

        let start: Vec<f64> = (0..gradient.len()).map(|j| j as f64).collect();
        let sum: Vec<f64> = start.iter().zip(gradient).map(|(a, b)| a + b).collect();
        for (before, after) in [(Vec::new(), gradient.clone()), (start, sum)] {
            let mut one = vec![None; inputs.len()];
            one[i] = Some(before);
            let one = pull_back(&operation, &inputs, &saved, &cotangents, one);
            assert!(relative_error(one[i].as_ref().unwrap(), &after) < 1e-13);
        }
    }
}
