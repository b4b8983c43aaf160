//! The cells that a step hides and wants, and the weights of their errors.

use crate::common::change;
use crate::tiny;
use bochner_attention::Pass;
use bochner_models::datapoints::{
    Between, Cell, Column, Example, Masking, Npt, NptConfig, Table, Task,
};
use bochner_models::training::{Objective, Task as _};
use bochner_nn::alloc_gradients;
use bochner_numerics::Seed;
use dfdx::prelude::*;
use ndarray::Array2;
use std::collections::BTreeSet;

fn masking() -> Masking {
    Masking {
        targets: vec![1],
        target_rate: 0.5,
        feature_rate: 0.2,
        feature_weight: 0.8,
        steps: 10,
    }
}

fn config(columns: &[Column]) -> NptConfig {
    tiny::npt(columns, &[Between::Attributes], None)
}

/// Rows of a feature and a target, each with a value of its own; every fourth target is hidden, and the first of these is
/// wanted.
fn table(rows: usize) -> Table {
    let values = Array2::from_shape_fn((rows, 2), |(i, j)| match j {
        0 => i as f32,
        _ => -1.0 - i as f32,
    });
    let is_known = Array2::from_shape_fn((rows, 2), |(i, j)| j == 0 || i % 4 != 3);
    Table::new(vec![Column::Number; 2], values, is_known).unwrap()
}

fn task(table: Table, wanted: Vec<Cell>, masking: Masking) -> Task {
    let example = Example::new(table, wanted).unwrap();
    Task::new(vec![example], masking).unwrap()
}

const SEED: Seed = Seed::new(3);

/// The values that a step predicts from what it reads, and the cells that it wants.
fn pass(task: &Task, model: &Npt<f32>) -> (Vec<f32>, [Vec<Cell>; 2]) {
    let gradients = alloc_gradients(model).unwrap();
    let (values, wanted) = task.forward(model, &0, gradients, SEED).unwrap();
    (values.output.as_vec(), wanted)
}

fn objective(task: &Task, model: &Npt<f32>) -> Objective {
    let gradients = alloc_gradients(model).unwrap();
    let output = task.forward(model, &0, gradients, SEED).unwrap();
    task.objective(model, &0, output, 1.0).unwrap()
}

/// A model that does not look at other rows shows by its predictions what was read of each.
#[test]
fn what_is_wanted_is_hidden_or_replaced_and_nothing_else_is_changed() {
    let whole = table(4000);
    let task = task(whole.clone(), vec![([3, 1], 7.0)], masking());
    let model = task.model(&config(&[Column::Number; 2]), SEED).unwrap();
    let (read, [targets, features]) = pass(&task, &model);

    // Half of the 3,000 known targets are wanted.
    assert_eq!(targets[0], ([3, 1], 7.0));
    let share = (targets.len() - 1) as f64 / 3000.0;
    assert!((share - 0.5).abs() < 0.05, "{share}");
    for &([row, column], value) in &targets[1..] {
        assert_eq!((column, value), (1, -1.0 - row as f32));
        assert!(whole.is_known()[[row, 1]]);
    }
    // A fifth of the features is.
    let share = features.len() as f64 / 4000.0;
    assert!((share - 0.2).abs() < 0.04, "{share}");
    for &([row, column], value) in &features {
        assert_eq!((column, value), (0, row as f32));
    }

    let mut is_known = whole.is_known().to_owned();
    for &(cell, _) in targets.iter().chain(&features) {
        is_known[cell] = false;
    }
    let hidden = Table::new(
        whole.columns().to_vec(),
        whole.values().to_owned(),
        is_known,
    );
    let evaluated = Pass::Evaluation { seed: SEED };
    let of = |table: &Table| {
        let values = model.apply(table, NoneTape, evaluated);
        values.unwrap().output.as_vec()
    };
    // No wanted target can be seen, and nine of ten features cannot: the others hold what another row does.
    let (of_hidden, of_whole) = (of(&hidden.unwrap()), of(&whole));
    let replaced: BTreeSet<usize> = (0..4000)
        .filter(|row| read[2 * row..][..2] != of_hidden[2 * row..][..2])
        .collect();
    let wanted: BTreeSet<usize> = features.iter().map(|&([row, _], _)| row).collect();
    assert!(replaced.is_subset(&wanted));
    let share = replaced.len() as f64 / features.len() as f64;
    assert!((share - 0.1).abs() < 0.06, "{share}");
    let of_target: BTreeSet<usize> = targets.iter().map(|&([row, _], _)| row).collect();
    let kept = replaced.difference(&of_target);
    let kept = kept.filter(|row| read[2 * **row..][..2] == of_whole[2 * **row..][..2]);
    assert!(kept.count() < 3);
}

#[test]
fn features_count_less_from_step_to_step_and_targets_count_the_rest() {
    let task = task(table(200), vec![([3, 1], 7.0)], masking());
    let mut model = task.model(&config(&[Column::Number; 2]), SEED).unwrap();
    let (values, groups) = pass(&task, &model);
    let [targets, features] = groups.map(|group| {
        let squares = group.iter().map(|&([row, column], value)| {
            (f64::from(values[2 * row + column]) - f64::from(value)).powi(2)
        });
        squares.sum::<f64>() / group.len() as f64
    });
    for (step, weight) in [(0, 0.8), (5, 0.4), (10, 0.0), (11, 0.0)] {
        model.go_to_step(step);
        let found = objective(&task, &model);
        let want = (1.0 - weight) * targets + weight * features;
        let loss = f64::from(found.loss.array());
        assert!((loss / want - 1.0).abs() < 1e-4, "{step}: {loss} {want}");
        assert!((found.error / targets - 1.0).abs() < 1e-4, "{step}");
    }
}

/// The gradient along the bias of each value is the sum of the errors' slopes.
#[test]
fn errors_are_squares_and_cross_entropies() {
    let columns = vec![Column::Number, Column::Class(3)];
    let values = Array2::from_shape_fn((5, 2), |(i, _)| (i % 3) as f32);
    let is_known = Array2::from_shape_fn((5, 2), |(i, j)| i + j < 4);
    let table = Table::new(columns.clone(), values, is_known).unwrap();
    let wanted = vec![([4, 0], 0.3), ([3, 1], 2.0), ([4, 1], 1.0)];
    let task = task(table, wanted.clone(), Masking::NONE);
    let mut model = task.model(&config(&columns), SEED).unwrap();

    let (values, _) = pass(&task, &model);
    let (mut error, mut squares, mut slopes) = (0.0, 0.0, [0.0; 4]);
    for ([row, column], value) in wanted {
        let y: Vec<f64> = values[4 * row..][..4].iter().map(|&y| y.into()).collect();
        if column == 0 {
            let apart = y[0] - f64::from(value);
            (error, squares) = (error + apart * apart / 3.0, squares + apart * apart / 3.0);
            slopes[0] += 2.0 * apart / 3.0;
            continue;
        }
        let total: f64 = y[1..].iter().map(|y| y.exp()).sum();
        error += (total.ln() - y[1 + value as usize]) / 3.0;
        for class in 0..3 {
            let off = y[1 + class].exp() / total - f64::from(u8::from(class == value as usize));
            (squares, slopes[1 + class]) =
                (squares + off * off / 3.0, slopes[1 + class] + off / 3.0);
        }
    }
    let found = objective(&task, &model);
    let mut got = vec![found.error, found.squared_error, found.loss.array().into()];
    let gradients = found.loss.backward();
    let gradient = gradients.get(&model.value_bias).as_vec();
    got.extend(gradient.into_iter().map(f64::from));
    let want = [&[error, squares, error][..], &slopes].concat();
    for (got, want) in got.into_iter().zip(want) {
        assert!(
            (got - want).abs() < 1e-5 * want.abs().max(1.0),
            "{got} {want}"
        );
    }

    // Huge logits have a finite error.
    change(&mut model, |name, values: &mut [f32]| {
        if name == "value_bias" {
            values[1..].copy_from_slice(&[1e30, -1e30, -1e30]);
        }
    });
    let found = objective(&task, &model);
    let huge = 4e30 / 3.0;
    assert!((found.error / huge - 1.0).abs() < 1e-5, "{}", found.error);
    let slope = found.loss.backward().get(&model.value_bias).as_vec();
    assert!(slope[1..].iter().all(|x| x.is_finite()), "{slope:?}");
}
