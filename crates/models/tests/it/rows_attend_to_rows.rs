//! A block of attention between datapoints does not care for the order of the rows, has the gradients of finite
//! differences, and refuses what does not fit.

use crate::common::{self, Sequences as Table, assert_gradients};
use bochner_attention::{Pass, Primal, find, mechanism::PrimalWeights};
use bochner_models::datapoints::{Between, Block, BlockConfig, Normalised};
use bochner_numerics::{Seed, relative_error};
use dfdx::prelude::*;

const SHAPE: [usize; 3] = [4, 3, 2];

fn table(rows: usize, value: impl FnMut(usize) -> f64) -> Table {
    let [_, columns, width] = SHAPE;
    let values = (0..rows * columns * width).map(value).collect();
    Cpu::default().tensor_from_vec(values, (rows, columns, width))
}

fn random(purpose: &str) -> Table {
    common::random(SHAPE.into(), purpose)
}

fn config(between: Between, normalised: Normalised) -> BlockConfig {
    BlockConfig {
        columns: SHAPE[1],
        width: SHAPE[2],
        heads: 2,
        between,
        attention: None,
        normalised,
        dropout: 0.0,
        epsilon: 1e-12,
    }
}

const ALL: [(Between, Normalised); 5] = [
    (Between::Nothing, Normalised::All),
    (Between::Datapoints, Normalised::All),
    (Between::Datapoints, Normalised::Queries),
    (Between::Attributes, Normalised::All),
    (Between::Attributes, Normalised::Queries),
];

fn block(config: &BlockConfig) -> Block<f64> {
    Block::try_new(&Cpu::default(), config, Seed::new(5)).unwrap()
}

const PASS: fn() -> Pass = || Pass::Evaluation { seed: Seed::new(2) };

/// The block's output for the rows of `x` in this order.
fn of_rows(block: &Block<f64>, x: &Table, rows: &[usize]) -> Vec<f64> {
    let (values, each) = (x.as_vec(), SHAPE[1] * SHAPE[2]);
    let x = table(rows.len(), |i| values[rows[i / each] * each + i % each]);
    block.apply(x, PASS()).unwrap().output.as_vec()
}

#[test]
fn permuted_rows_give_permuted_rows() {
    let (x, order, each) = (random("x"), [2, 0, 3, 1], SHAPE[1] * SHAPE[2]);
    let primal = Primal {
        rank: 2,
        weights: PrimalWeights::Parameters,
        ..Primal::default()
    };
    let of_primal = BlockConfig {
        attention: Some(primal.into()),
        ..config(Between::Datapoints, Normalised::All)
    };
    let softmax = ALL.map(|(between, normalised)| config(between, normalised));
    for config in softmax.iter().chain([&of_primal]) {
        let (block, between, normalised) = (block(config), config.between, config.normalised);
        let straight = of_rows(&block, &x, &[0, 1, 2, 3]);
        let want: Vec<f64> = (order.iter())
            .flat_map(|&row| straight[row * each..(row + 1) * each].to_vec())
            .collect();
        let error = relative_error(&of_rows(&block, &x, &order), &want);
        assert!(error < 1e-13, "{between:?}, {normalised:?}: {error:e}");
        // What another row holds matters to attention between rows alone, and to Primal attention only through weights
        // that are made of the data.
        let alone = of_rows(&block, &x, &[0]);
        let apart = relative_error(&alone, &straight[..each]);
        let looks = between == Between::Datapoints && config.attention.is_none();
        assert_eq!(apart > 1e-3, looks, "{apart:e}");
        // Attention to copies of oneself is attention to oneself.
        let error = relative_error(&of_rows(&block, &x, &[0, 0])[..each], &alone);
        assert!(error < 1e-13, "{between:?}, {normalised:?}: {error:e}");
    }
}

#[test]
fn gradients_are_those_of_finite_differences() {
    for ((between, normalised), dropout) in ALL.into_iter().zip([0.3, 0.0, 0.3, 0.3, 0.0]) {
        let config = BlockConfig {
            dropout,
            ..config(between, normalised)
        };
        let (x, cotangent) = (random("x"), random("cotangent"));
        let seed = Seed::new(7);
        assert_gradients(&block(&config), [&x], |block, [x]| {
            let pass = Pass::Training { seed, dropout };
            (block.apply(x, pass).unwrap().output * cotangent.clone()).sum()
        });
    }
}

#[test]
fn what_does_not_fit_is_named() {
    let refused = |config: BlockConfig| {
        let block = Block::<f64>::try_new(&Cpu::default(), &config, Seed::new(1));
        block.unwrap_err().to_string()
    };
    let config = config(Between::Datapoints, Normalised::Queries);
    let three = BlockConfig {
        heads: 4,
        ..config.clone()
    };
    assert!(refused(three).contains("heads"));
    let none = BlockConfig {
        columns: 0,
        ..config.clone()
    };
    assert!(refused(none).contains("columns"));
    let narrow = table(1, |_| 0.0).reshape_like(&(1, SHAPE[2], SHAPE[1]));
    let got = block(&config)
        .apply(narrow, PASS())
        .unwrap_err()
        .to_string();
    assert!(got.contains("table"), "{got}");
    // CAT sees the order of what it attends to: columns have one, rows have none.
    let cat = |between, normalised| {
        let attention = find("cat");
        let config = BlockConfig {
            between,
            normalised,
            attention,
            ..config.clone()
        };
        Block::<f64>::try_new(&Cpu::default(), &config, Seed::new(1))
    };
    for normalised in [Normalised::All, Normalised::Queries] {
        let got = cat(Between::Datapoints, normalised)
            .unwrap_err()
            .to_string();
        assert!(got.contains("order"), "{got}");
    }
    // It attends to its own sequence alone; keys and values of another one are refused.
    let block = cat(Between::Attributes, Normalised::All).unwrap();
    assert!(block.apply(random("x"), PASS()).is_ok());
    let got = cat(Between::Attributes, Normalised::Queries).unwrap_err();
    assert!(got.to_string().contains("another sequence"), "{got}");
}
