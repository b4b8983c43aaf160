//! A lookup copies the rows asked for, its gradient reaches those alone, and clearing it clears
//! all that was written.

use crate::common::{close, values};
use bochner_nn::{
    Adam, Embedding, Error, Parameter, ParameterMut, alloc_gradients, classification_loss,
    clip_by_norm, drain_gradients, zero_gradients,
};
use bochner_numerics::{ArgumentError, Seed, finite_difference};
use bochner_ops::{AdamConfig, CrossEntropy};
use dfdx::prelude::*;

const WORDS: [usize; 6] = [3, 0, 3, 6, 3, 0];

fn table() -> Embedding<f64> {
    let mut rng = Seed::new(3).stream("initial values");
    Embedding::try_new(&Cpu::default(), 7, 2, &mut rng).unwrap()
}

/// The rows of the gradient that may differ from zero, each with the place where it begins.
fn rows_of(table: &Embedding<f64>, gradients: &mut Gradients<f64, Cpu>) -> Vec<(usize, Vec<f64>)> {
    let mut rows = Vec::new();
    let f = &mut |start, row: &mut [f64]| rows.push((start, row.to_vec()));
    table.gradient_parts(gradients, f).unwrap();
    rows
}

fn words() -> Tensor<(usize, usize), usize, Cpu> {
    Cpu::default().tensor_from_vec(WORDS.to_vec(), (2, 3))
}

fn loss(
    table: &Embedding<f64>,
    gradients: Gradients<f64, Cpu>,
) -> Tensor<(), f64, Cpu, OwnedTape<f64, Cpu>> {
    let y = table.apply(words().trace(gradients)).unwrap();
    y.exp().sum()
}

#[test]
fn words_may_come_in_any_layout() {
    let (table, words) = (table(), words().permute::<_, Axes2<1, 0>>());
    let y = values(&table.apply(words).unwrap());
    for (word, y) in [3, 6, 0, 3, 3, 0].into_iter().zip(y.chunks(2)) {
        assert_eq!(y, table.row(word));
    }
}

#[test]
fn gradients_are_those_of_finite_differences_and_zero_elsewhere() {
    let table = table();
    let mut gradients = loss(&table, alloc_gradients(&table).unwrap()).backward();
    let mut at = Vec::new();
    table.read_into(&mut at);
    let want = finite_difference(&at, |point| {
        let mut table = table.clone();
        table.write(point);
        loss(&table, Gradients::leaky()).array()
    });
    let got = table.gradient(&mut gradients).unwrap();
    close(got, &want, 1e-6);
    for word in [1, 2, 4, 5] {
        assert_eq!(got[2 * word..2 * word + 2], [0.0, 0.0]);
    }
}

#[test]
fn passes_add_up_until_the_gradient_is_cleared() {
    let table = table();
    let once = loss(&table, alloc_gradients(&table).unwrap()).backward();
    let mut twice = loss(&table, once.clone()).backward();
    let mut once = once;
    let want: Vec<f64> = table
        .gradient(&mut once)
        .unwrap()
        .iter()
        .map(|g| 2.0 * g)
        .collect();
    assert_eq!(table.gradient(&mut twice).unwrap(), want);
    // A term that reached every row is cleared as well.
    table.dense_gradient(&mut twice).unwrap()[9] = 5.0;
    zero_gradients(&table, &mut twice).unwrap();
    let mut again = loss(&table, twice).backward();
    assert_eq!(
        table.gradient(&mut again).unwrap(),
        table.gradient(&mut once).unwrap()
    );
}

#[test]
fn reading_and_clipping_leave_it_sparse() {
    let table = table();
    let mut gradients = loss(&table, alloc_gradients(&table).unwrap()).backward();
    let rows = |gradients: &mut _| rows_of(&table, gradients);
    table.gradient(&mut gradients).unwrap();
    let before = rows(&mut gradients);
    assert_eq!(
        before.iter().map(|(start, _)| *start).collect::<Vec<_>>(),
        [0, 6, 12]
    );
    let norm = clip_by_norm(&table, &mut gradients, 1e-3).unwrap();
    let after = rows(&mut gradients);
    let want: Vec<(usize, Vec<f64>)> = before
        .iter()
        .map(|(start, row)| {
            (
                *start,
                row.iter().map(|x| x * (1e-3 / (norm + 1e-6))).collect(),
            )
        })
        .collect();
    assert_eq!(after, want);
}

/// A gradient that is drained into a sum leaves zeros, and marks in the sum only the rows that it has.
#[test]
fn gradients_that_are_drained_leave_it_sparse() {
    let table = table();
    let one = || loss(&table, alloc_gradients(&table).unwrap()).backward();
    let rows = |gradients: &mut _| rows_of(&table, gradients);
    let (mut gradients, mut sum) = (one(), alloc_gradients(&table).unwrap());
    let want = rows(&mut gradients);
    drain_gradients(&table, &mut gradients, &mut sum).unwrap();
    assert_eq!(
        (rows(&mut sum), rows(&mut gradients)),
        (want.clone(), vec![])
    );
    drain_gradients(&table, &mut one(), &mut sum).unwrap();
    let twice = want
        .into_iter()
        .map(|(start, row)| (start, row.iter().map(|x| 2.0 * x).collect()));
    assert_eq!(rows(&mut sum), twice.collect::<Vec<_>>());
    assert!(
        table
            .gradient(&mut gradients)
            .unwrap()
            .iter()
            .all(|&x| x == 0.0)
    );
}

#[test]
fn products_with_all_rows_reach_all_rows() {
    let table = table();
    let x = Cpu::default().tensor_from_vec(vec![1.0, -2.0], (1, 1, 2));
    let logits = table.logits(x.trace(alloc_gradients(&table).unwrap()));
    let mut gradients = logits.unwrap().exp().sum().backward();
    let rows = rows_of(&table, &mut gradients);
    assert_eq!(rows.len(), 7);
    for (word, (start, row)) in rows.into_iter().enumerate() {
        let product = (table.row(word)[0] - 2.0 * table.row(word)[1]).exp();
        assert_eq!(start, 2 * word);
        close(&row, &[product, -2.0 * product], 1e-12);
    }
}

#[test]
fn a_gradient_that_is_not_finite_is_found_in_its_row() {
    let (mut table, mut adam) = (table(), Adam::new(AdamConfig::default()).unwrap());
    let mut gradients = loss(&table, alloc_gradients(&table).unwrap()).backward();
    adam.step(&mut table, &mut gradients).unwrap();
    for (i, wrong) in [(6, f64::NAN), (7, f64::INFINITY), (13, f64::NEG_INFINITY)] {
        let mut gradients = gradients.clone();
        table.dense_gradient(&mut gradients).unwrap()[i] = wrong;
        let before = table.row(3).to_vec();
        let error = adam.step(&mut table, &mut gradients).unwrap_err();
        assert!(
            matches!(error, Error::NonFiniteGradient { index, .. } if index == i),
            "{error}"
        );
        assert_eq!(table.row(3), before);
    }
    // The gradient of the tape is infinite for the vector of one word.
    let words = Cpu::default().tensor_from_vec(vec![5], (1, 1));
    let y = table
        .apply(words.trace(alloc_gradients(&table).unwrap()))
        .unwrap();
    let mut gradients = (y * f64::INFINITY).sum().backward();
    let error = adam.step(&mut table, &mut gradients).unwrap_err();
    assert!(
        matches!(error, Error::NonFiniteGradient { index: 10, .. }),
        "{error}"
    );
}

#[test]
fn words_outside_the_table_are_refused() {
    let far: Tensor<(usize, usize), usize, Cpu> = Cpu::default().tensor_from_vec(vec![7], (1, 1));
    let error = table().apply(far).unwrap_err();
    assert!(matches!(
        error,
        Error::Argument(ArgumentError::Index { got: 7, len: 7, .. })
    ));
    let none: Tensor<(usize, usize), usize, Cpu> = Cpu::default().zeros_like(&(0, 1));
    let error = table().apply(none).unwrap_err().to_string();
    assert!(error.starts_with("`words` has shape [0, 1]"), "{error}");
    let mut rng = Seed::new(1).stream("initial values");
    assert!(Embedding::<f32>::try_new(&Cpu::default(), 0, 2, &mut rng).is_err());
}

/// The loss that holds no logits is that of the logits, with their gradients, added to what is there; then all rows are
/// marked, so that clearing reaches them.
#[test]
fn the_loss_without_logits_is_that_of_the_logits() {
    let table = table();
    let cpu = Cpu::default();
    // A permuted tensor; one row has no label and one has two.
    let x: Tensor<(usize, usize, usize), f64, Cpu> = cpu.sample_normal_like(&(3, 2, 2));
    let labelled = vec![(0, 3), (1, 6), (4, 0), (4, 2), (5, 3)];
    let of = CrossEntropy {
        labelled,
        smoothing: 0.1,
    };
    let permuted = |gradients: &Gradients<f64, Cpu>| {
        x.trace(gradients.clone())
            .permute::<(usize, usize, usize), Axes3<1, 0, 2>>()
    };
    let held = |gradients| {
        let logits = table.logits(permuted(gradients)).unwrap();
        classification_loss(logits, of.clone()).unwrap()
    };
    let not_held = |gradients| {
        table
            .cross_entropy(permuted(gradients), of.clone())
            .unwrap()
    };
    let nothing = Gradients::leaky();
    let alone = held(&nothing);
    assert!((alone.array() - not_held(&nothing).array()).abs() < 1e-14);
    let mut want = (alone * 3.0).backward();
    let of_table = table.gradient(&mut want).unwrap().to_vec();
    assert!(of_table.iter().all(|&g| g != 0.0));
    // A pass before has left the gradient of a lookup.
    let mut before = loss(&table, Gradients::leaky()).backward();
    let there = table.gradient(&mut before).unwrap();
    let sum: Vec<f64> = there.iter().zip(&of_table).map(|(a, b)| a + b).collect();
    for loss in [held(&before), not_held(&before)] {
        let mut got = (loss * 3.0).backward();
        close(&got.get(&x).as_vec(), &want.get(&x).as_vec(), 1e-13);
        close(table.gradient(&mut got).unwrap(), &sum, 1e-13);
        zero_gradients(&table, &mut got).unwrap();
        assert!(table.gradient(&mut got).unwrap().iter().all(|&g| g == 0.0));
    }
}

#[test]
fn a_loss_of_other_rows_or_labels_is_refused() {
    let table = table();
    let loss = |labelled, width| {
        let x: Tensor<(usize, usize, usize), f64, Cpu> = Cpu::default().zeros_like(&(2, 1, width));
        let loss = CrossEntropy {
            labelled,
            smoothing: 0.0,
        };
        table
            .cross_entropy(x.leaky_trace(), loss)
            .map(|loss| loss.array())
    };
    assert!(loss(vec![(1, 6)], 2).is_ok());
    for (labelled, width) in [(vec![(2, 0)], 2), (vec![(0, 7)], 2), (vec![(0, 0)], 3)] {
        assert!(matches!(loss(labelled, width), Err(Error::Argument(_))));
    }
}
