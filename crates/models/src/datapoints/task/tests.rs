//! The cells that a step reads of a table, and the weights of their errors.

use super::*;
use crate::datapoints::Between;
use crate::training::Task as _;
use bochner_nn::alloc_gradients;
use dfdx::tensor::NoneTape;
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

/// Rows of a feature and a target, each with a value of its own; every fourth target is hidden, and the first of these is
/// wanted.
fn example(rows: usize) -> Example {
    let values = Array2::from_shape_fn((rows, 2), |(i, j)| match j {
        0 => i as f32,
        _ => -1.0 - i as f32,
    });
    let is_known = Array2::from_shape_fn((rows, 2), |(i, j)| j == 0 || i % 4 != 3);
    let table = Table::new(vec![Column::Number; 2], values, is_known).unwrap();
    Example::new(table, vec![([3, 1], 7.0)]).unwrap()
}

#[test]
fn what_is_wanted_is_hidden_or_replaced_and_nothing_else_is_changed() {
    let example = example(4000);
    let task = Task::new(vec![example.clone()], masking()).unwrap();
    let (table, [targets, features]) = task.masked(&example, Seed::new(1));
    let whole = &example.table;

    // Half of the 3,000 known targets are wanted, and none of them can be seen.
    assert_eq!(targets[0], ([3, 1], 7.0));
    let share = (targets.len() - 1) as f64 / 3000.0;
    assert!((share - 0.5).abs() < 0.05, "{share}");
    for &([row, column], value) in &targets[1..] {
        assert_eq!((column, value), (1, -1.0 - row as f32));
        assert!(whole.is_known()[[row, 1]] && !table.is_known()[[row, 1]]);
    }

    // A fifth of the features is wanted: nine of ten cannot be seen, the others hold what another row does.
    let share = features.len() as f64 / 4000.0;
    assert!((share - 0.2).abs() < 0.04, "{share}");
    let (mut hidden, mut kept) = (0, 0);
    for &([row, column], value) in &features {
        assert_eq!((column, value), (0, row as f32));
        match table.is_known()[[row, 0]] {
            false => hidden += 1,
            true => kept += usize::from(table.values()[[row, 0]] == value),
        }
    }
    let share = f64::from(hidden) / features.len() as f64;
    assert!((share - 0.9).abs() < 0.06, "{share}");
    assert!(kept < 3, "{kept}");

    let wanted = targets.iter().chain(&features);
    let wanted: BTreeSet<[usize; 2]> = wanted.map(|(cell, _)| *cell).collect();
    for ((i, j), value) in whole.values().indexed_iter() {
        if !wanted.contains(&[i, j]) {
            assert_eq!(table.values()[[i, j]], *value);
            assert_eq!(table.is_known()[[i, j]], whole.is_known()[[i, j]]);
        }
    }
}

#[test]
fn features_count_less_from_step_to_step_and_targets_count_the_rest() {
    for (step, want) in [(0, 0.8), (5, 0.4), (10, 0.0), (11, 0.0)] {
        let weight = masking().weight_after(step);
        assert!((weight - want).abs() < 1e-12, "{step}: {weight}");
    }
    let example = example(200);
    let task = Task::new(vec![example.clone()], masking()).unwrap();
    let config = NptConfig {
        columns: vec![Column::Number; 2],
        width: 4,
        heads: 2,
        blocks: vec![Between::Datapoints, Between::Attributes],
        attention: None,
        normalised: Default::default(),
        dropout: 0.0,
        epsilon: 1e-12,
    };
    let mut model = task.model(&config, Seed::new(2)).unwrap();
    let seed = Seed::new(3);
    let (table, groups) = task.masked(&example, seed);
    for step in [0, 5, 10] {
        model.go_to_step(step);
        let gradients = alloc_gradients(&model).unwrap();
        let output = task.forward(&model, &0, gradients, seed).unwrap();
        let found = task.objective(&model, &0, output, 1.0).unwrap();

        let pass = Pass::Evaluation { seed };
        let values = model.apply(&table, NoneTape, pass).unwrap().output.as_vec();
        let mean = |group: &[Cell]| {
            let squares = group.iter().map(|&([row, column], value)| {
                (f64::from(values[2 * row + column]) - f64::from(value)).powi(2)
            });
            squares.sum::<f64>() / group.len() as f64
        };
        let [targets, features] = [mean(&groups[0]), mean(&groups[1])];
        let weight = masking().weight_after(step);
        let want = (1.0 - weight) * targets + weight * features;
        let loss = f64::from(found.loss.array());
        assert!((loss / want - 1.0).abs() < 1e-4, "{step}: {loss} {want}");
        assert!((found.error / targets - 1.0).abs() < 1e-4, "{step}");
    }
}
