//! Forward and backward passes of operations for tests, and finite differences.

use bochner_numerics::check::{assert_gradient, random};
use bochner_numerics::{Real, relative_error};
use bochner_ops::{Operation, Slot, apply};
use ndarray::{ArrayD, ArrayViewD, IxDyn};

fn views<T: Real>(arrays: &[ArrayD<T>]) -> Vec<ArrayViewD<'_, T>> {
    arrays.iter().map(|x| x.view()).collect()
}

/// Outputs and saved values of a forward pass.
pub(crate) fn run<T: Real, O: Operation<T>>(
    operation: &O,
    inputs: &[ArrayD<T>],
) -> (Vec<ArrayD<T>>, O::Saved) {
    apply(operation, &views(inputs)).unwrap()
}

/// Gradients along the inputs that are wanted, added to what `start` holds.
pub(crate) fn pull_back<T: Real, O: Operation<T>>(
    operation: &O,
    inputs: &[ArrayD<T>],
    saved: &O::Saved,
    cotangents: &[ArrayD<T>],
    mut start: Vec<Option<Vec<T>>>,
) -> Vec<Option<Vec<T>>> {
    let [inputs, cotangents] = [inputs, cotangents].map(views);
    let slots = start.iter_mut().zip(&inputs);
    let slots = slots.map(|(values, x)| Some(Slot::new(values.as_mut()?, x.len())));
    let all = slots.collect();
    operation
        .backward(&inputs, saved, &cotangents, all)
        .unwrap();
    start
}

/// Fails unless the gradients along inputs of these shapes are those of finite differences; each also alone,
/// and added to what is there.
#[track_caller]
pub(crate) fn gradients_are_right<O: Operation<f64>>(operation: O, shapes: &[&[usize]]) {
    let arrays = |purpose: &str, shapes: &[&[usize]]| -> Vec<ArrayD<f64>> {
        let named = shapes.iter().enumerate();
        let named = named.map(|(i, shape)| random(IxDyn(shape), &format!("{purpose} {i}")));
        named.collect()
    };
    let inputs = arrays("input", shapes);
    let (outputs, saved) = run(&operation, &inputs);
    let shapes: Vec<&[usize]> = outputs.iter().map(|y| y.shape()).collect();
    let cotangents = arrays("cotangent", &shapes);
    let all = vec![Some(Vec::new()); inputs.len()];
    let all = pull_back(&operation, &inputs, &saved, &cotangents, all);
    for (i, gradient) in all.into_iter().enumerate() {
        let gradient = gradient.unwrap();
        let shaped = ArrayD::from_shape_vec(inputs[i].raw_dim(), gradient.clone()).unwrap();
        assert_gradient(&shaped, &inputs[i], |at| {
            let mut inputs = inputs.clone();
            inputs[i] = at.to_owned();
            let outputs = run(&operation, &inputs).0.into_iter().zip(&cotangents);
            outputs.map(|(y, dy)| (y * dy).sum()).sum()
        });

        let start: Vec<f64> = (0..gradient.len()).map(|j| j as f64).collect();
        let sum: Vec<f64> = start.iter().zip(&gradient).map(|(a, b)| a + b).collect();
        for (before, after) in [(Vec::new(), gradient), (start, sum)] {
            let mut one = vec![None; inputs.len()];
            one[i] = Some(before);
            let one = pull_back(&operation, &inputs, &saved, &cotangents, one);
            assert!(relative_error(one[i].as_ref().unwrap(), &after) < 1e-13);
        }
    }
}
