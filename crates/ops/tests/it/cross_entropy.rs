//! The loss of a classification.

use crate::testing::{gradients_are_right, pull_back, run};
use bochner_numerics::check::{largest, random};
use bochner_ops::{CrossEntropy, Operation};
use ndarray::{ArrayD, Axis, array};

fn plain(labelled: &[(usize, usize)]) -> CrossEntropy {
    smoothed(labelled, 0.0)
}

fn smoothed(labelled: &[(usize, usize)], smoothing: f64) -> CrossEntropy {
    CrossEntropy {
        labelled: labelled.to_vec(),
        smoothing,
    }
}

#[test]
fn gradients_agree_with_finite_differences() {
    // One row counts twice, another not at all.
    for smoothing in [0.0, 0.3, 1.0] {
        let loss = smoothed(&[(0, 2), (2, 0), (2, 1)], smoothing);
        gradients_are_right(loss, &[&[3, 4]]);
    }
}

/// Rows are listed in any order over several pieces; one is listed twice with one label, and one with two labels.
#[test]
fn each_listed_label_counts_by_itself() {
    let (rows, classes) = (20, 1000);
    let logits: ArrayD<f64> = random((rows, classes), "logits").into_dyn();
    let one = [array![1.0].remove_axis(Axis(0)).into_dyn()];
    let of = |loss: &CrossEntropy| {
        let (value, saved) = run(loss, std::slice::from_ref(&logits));
        let logits = std::slice::from_ref(&logits);
        let gradient = pull_back(loss, logits, &saved, &one, vec![Some(Vec::new())]);
        (value[0].sum(), gradient[0].clone().unwrap())
    };
    let labelled = [(17, 5), (3, 999), (19, 0), (3, 7), (9, 4), (9, 4), (0, 1)];
    let (mut want, mut want_gradient) = (0.0, vec![0.0; rows * classes]);
    for alone in labelled {
        let (value, gradient) = of(&smoothed(&[alone], 0.1));
        want += value / labelled.len() as f64;
        let sums = want_gradient.iter_mut().zip(gradient);
        sums.for_each(|(sum, g)| *sum += g / labelled.len() as f64);
    }
    let (got, gradient) = of(&smoothed(&labelled, 0.1));
    assert!((got - want).abs() < 1e-14);
    let off = gradient.iter().zip(&want_gradient).map(|(a, b)| a - b);
    assert!(largest(&off.collect::<Vec<_>>()) < 1e-16);
}

#[test]
fn smoothing_mixes_the_label_with_all_classes_alike() {
    let logits = array![[1.0, 2.0, 4.0], [0.5, -1.0, 0.0]];
    let of_label = |label| plain(&[(0, label)]).of_rows(logits.view()).unwrap()[0];
    let uniform = [0, 1, 2].map(of_label).iter().sum::<f64>() / 3.0;
    let found = smoothed(&[(0, 1)], 0.2).of_rows(logits.view()).unwrap()[0];
    assert!((found - (0.8 * of_label(1) + 0.2 * uniform)).abs() < 1e-12);
}

#[test]
fn without_a_label_the_loss_and_its_gradient_are_zero() {
    let (loss, logits) = (plain(&[]), array![[f64::NAN, 1.0]].into_dyn());
    let (value, saved) = run(&loss, std::slice::from_ref(&logits));
    let one = [array![1.0].remove_axis(Axis(0)).into_dyn()];
    let gradient = pull_back(&loss, &[logits], &saved, &one, vec![Some(Vec::new())]);
    assert_eq!((value[0].sum(), gradient), (0.0, vec![Some(vec![0.0; 2])]));
}

#[test]
fn extreme_logits_have_a_loss_and_a_gradient() {
    let logits = array![[3e38_f32, -3e38], [1e4, 0.0]].into_dyn();
    let loss = plain(&[(0, 0), (1, 1)]);
    let (value, saved) = run(&loss, std::slice::from_ref(&logits));
    assert_eq!(value[0].sum(), 5e3);
    let one = [array![1.0].remove_axis(Axis(0)).into_dyn()];
    let gradient = pull_back(&loss, &[logits], &saved, &one, vec![Some(Vec::new())]);
    assert_eq!(gradient, [Some(vec![0.0, 0.0, 0.5, -0.5])]);
}

/// Beside the 1 of the largest logit, the other's exponential is lost in single precision.
#[test]
fn a_confident_row_keeps_its_small_loss() {
    for logit in [10.0, 14.0, 17.0_f32] {
        let logits = array![[logit, 0.0]].into_dyn();
        let loss = plain(&[(0, 0)]);
        let (value, saved) = run(&loss, std::slice::from_ref(&logits));
        let want = (-f64::from(logit)).exp().ln_1p();
        let off = |got: f32, want: f64| (f64::from(got) / want - 1.0).abs();
        assert!(off(value[0].sum(), want) < 1e-6);
        let one = [array![1.0].remove_axis(Axis(0)).into_dyn()];
        let gradient = pull_back(&loss, &[logits], &saved, &one, vec![Some(Vec::new())]);
        let gradient = gradient[0].as_ref().unwrap();
        let probability = 1.0 / (1.0 + f64::from(logit).exp());
        assert!(gradient.iter().all(|g| off(g.abs(), probability) < 1e-6));
        assert!(gradient[0] < 0.0 && gradient[1] > 0.0);
    }
}

#[test]
fn all_of_the_target_spread_reads_no_label() {
    let logits = array![[1e308, -1e308]];
    let loss = smoothed(&[(0, 1)], 1.0).of_rows(logits.view()).unwrap()[0];
    assert!(!loss.is_nan());
}

#[test]
fn no_loss_of_finite_single_precision_overflows() {
    let logits = array![[3e38_f32, -3e38]];
    let loss = plain(&[(0, 1)]).of_rows(logits.view()).unwrap();
    assert_eq!(loss, [2.0 * f64::from(3e38_f32)]);
}

#[test]
fn the_forward_pass_keeps_two_numbers_a_row_and_no_gradient() {
    let logits = array![[1.0, 2.0, 3.0], [0.0, 0.0, 0.0], [0.5, 0.0, -1.0]].into_dyn();
    let (_, saved) = run(&plain(&[(0, 2), (2, 0)]), &[logits]);
    assert_eq!(saved.len(), 2);
}

#[test]
fn labels_rows_and_smoothing_are_checked() {
    let shapes = |loss: CrossEntropy| Operation::<f64>::output_shapes(&loss, &[&[5, 3]]);
    assert_eq!(shapes(smoothed(&[(1, 2)], 1.0)), Ok(vec![vec![]]));
    for wrong in [
        plain(&[(5, 0)]),
        plain(&[(0, 3)]),
        smoothed(&[], -0.1),
        smoothed(&[], f64::NAN),
    ] {
        assert!(shapes(wrong).is_err());
    }
}
