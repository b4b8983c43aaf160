//! The loss of a classification whose logits are products with a table.

use crate::testing::{gradients_are_right, pull_back, run};
use bochner_numerics::check::{largest, random};
use bochner_ops::{CrossEntropy, LinearCrossEntropy, Operation};
use ndarray::{ArrayD, Axis, array};

fn loss(labelled: &[(usize, usize)], smoothing: f64) -> CrossEntropy {
    CrossEntropy {
        labelled: labelled.to_vec(),
        smoothing,
    }
}

#[test]
fn gradients_agree_with_finite_differences() {
    // One row counts twice, another not at all.
    for smoothing in [0.0, 0.3] {
        let loss = loss(&[(0, 2), (2, 0), (2, 1)], smoothing);
        gradients_are_right(LinearCrossEntropy(loss), &[&[4, 3], &[5, 3]]);
    }
}

/// Several blocks of rows, and several pieces of each.
#[test]
fn it_is_the_loss_of_the_products() {
    let (rows, classes, width) = (700, 3100, 3);
    let x: ArrayD<f64> = random((rows, width), "x").into_dyn();
    let weight: ArrayD<f64> = random((classes, width), "weight").into_dyn();
    let labelled: Vec<_> = (0..rows - 7).map(|r| (r, r * 31 % classes)).collect();
    let loss = loss(&labelled, 0.1);
    let matrix = |a: &ArrayD<f64>| a.clone().into_dimensionality::<ndarray::Ix2>().unwrap();
    let logits = matrix(&x).dot(&matrix(&weight).t()).into_dyn();
    let (want, of_logits) = run(&loss, std::slice::from_ref(&logits));
    let dloss = [array![2.0].remove_axis(Axis(0)).into_dyn()];
    let dlogits = pull_back(&loss, &[logits], &of_logits, &dloss, vec![Some(Vec::new())]);
    let dlogits = ArrayD::from_shape_vec(vec![rows, classes], dlogits[0].clone().unwrap());
    let dlogits = matrix(&dlogits.unwrap());

    let inputs = [x.clone(), weight.clone()];
    let linear = LinearCrossEntropy(loss);
    let (got, saved) = run(&linear, &inputs);
    assert!((got[0].sum() - want[0].sum()).abs() < 1e-12);
    let start = vec![Some(Vec::new()), Some(Vec::new())];
    let gradients = pull_back(&linear, &inputs, &saved, &dloss, start);
    let want = [dlogits.dot(&matrix(&weight)), dlogits.t().dot(&matrix(&x))];
    for (got, want) in gradients.into_iter().zip(want) {
        let off = got
            .unwrap()
            .iter()
            .zip(&want)
            .map(|(got, want)| got - want)
            .collect::<Vec<_>>();
        assert!(largest(&off) < 1e-14, "{:e}", largest(&off));
    }
}

#[test]
fn shapes_and_labels_are_checked() {
    let shapes = |loss: CrossEntropy, x: &[usize], weight: &[usize]| {
        Operation::<f64>::output_shapes(&LinearCrossEntropy(loss), &[x, weight])
    };
    assert_eq!(
        shapes(loss(&[(1, 4)], 0.0), &[2, 3], &[5, 3]),
        Ok(vec![vec![]])
    );
    assert!(shapes(loss(&[(1, 5)], 0.0), &[2, 3], &[5, 3]).is_err());
    assert!(shapes(loss(&[(2, 0)], 0.0), &[2, 3], &[5, 3]).is_err());
    assert!(shapes(loss(&[], 0.0), &[2, 3], &[5, 4]).is_err());
    assert!(shapes(loss(&[], 0.0), &[2, 3], &[0, 3]).is_err());
    assert!(shapes(loss(&[], 0.0), &[2, 3, 1], &[5, 3]).is_err());
}
