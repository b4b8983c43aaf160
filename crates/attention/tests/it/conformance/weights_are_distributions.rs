use crate::conformance::common::*;
use bochner_attention::{Mask, card::Rows};
use ndarray::{Array4, ArrayView1, indices, s};
use std::cell::Cell;

fn weighted(weights: &Array4<f64>, v: &Array4<f64>) -> Array4<f64> {
    let (batch, heads, queries, _) = weights.dim();
    let mut output = Array4::zeros((batch, heads, queries, v.dim().3));
    for b in 0..batch {
        for m in 0..heads {
            let product = weights
                .slice(s![b, m, .., ..])
                .dot(&v.slice(s![b, m, .., ..]));
            output.slice_mut(s![b, m, .., ..]).assign(&product);
        }
    }
    output
}

/// Rows sum over the kept keys to what the card says, and to nothing that a stronger claim says; outputs are the
/// weighted values.
///
/// A mechanism that shows no weights has no rows to hold a claim against: its card claims the least.
fn rows_sum_as_claimed(case: &Case<f64>) {
    let (name, claimed) = (&case.name, case.card.rows);
    if !case.card.weights.is_yes() {
        assert_eq!(claimed, Rows::Free, "{name}: no weights bear it out");
        return;
    }
    let found = Cell::new(Rows::One);
    for (queries, keys) in [(5, 6), (6, 3)] {
        case.with_every_mask(queries, keys, |case, example, mask, label| {
            let of_mask = strongest(case, example, mask, label);
            found.set(weaker(found.get(), of_mask));
        });
    }
    let whose = "left is what holds for all rows, right what the card claims";
    assert_eq!(found.get(), claimed, "{name}: {whose}");
}

/// The strongest claim that holds for the rows of an example.
fn strongest(case: &Case<f64>, example: &Example<f64>, mask: &Mask, label: &str) -> Rows {
    let claimed = case.card.rows;
    let weights = case.weights(example, mask, &EVALUATION);
    let weights = weights.expect("a mechanism that shows its weights");
    let (batch, heads, queries, keys) = weights.dim();
    let mut all = Rows::One;
    for (b, i, m) in indices((batch, queries, heads)) {
        let row = weights.slice(s![b, m, i, ..]);
        let is_row = case.is_row(b, i, mask, keys);
        let sees = |j| is_row && mask.keeps([b, m, i, j], [queries, keys]);
        let mut pairs = row.iter().enumerate();
        let unseen_is_zero = pairs.all(|(j, &w)| w == 0.0 || sees(j));
        assert!(
            unseen_is_zero,
            "{label}: row {i} of example {b}, head {m}, weighs what it does not see: {row}"
        );
        if !(0..keys).any(sees) {
            continue;
        }
        let of_row = strongest_of_row(row);
        assert_eq!(
            weaker(of_row, claimed),
            claimed,
            "{label}: row {i} of example {b}, head {m}, {row} sums to {}; the card says {claimed:?}",
            row.sum()
        );
        all = weaker(all, of_row);
    }
    let want = weighted(&weights, &example.v);
    assert_close(&case.output(example, mask, &EVALUATION), &want, label);
    all
}

/// The strongest claim that holds for a row that sees a key.
fn strongest_of_row(row: ArrayView1<f64>) -> Rows {
    let (sum, signed) = (row.sum(), row.iter().any(|&w| w < 0.0));
    match (sum - 1.0).abs() < 1e-12 {
        true if signed => Rows::OneOfEitherSign,
        true => Rows::One,
        false if !signed && sum > 0.5 && sum < 1.0 => Rows::HalfToOne,
        false => Rows::Free,
    }
}

/// The strongest claim that holds where either of two does.
fn weaker(one: Rows, other: Rows) -> Rows {
    match (one, other) {
        (Rows::One, other) | (other, Rows::One) => other,
        (one, other) if one == other => one,
        _ => Rows::Free,
    }
}

#[test]
fn rows_sum_as_claimed_and_outputs_are_weighted_values() {
    cases().iter().for_each(rows_sum_as_claimed);
}
