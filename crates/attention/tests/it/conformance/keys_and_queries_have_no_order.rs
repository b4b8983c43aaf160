//! A card claims the symmetry that its mechanism has.

use crate::conformance::common::*;
use bochner_attention::{Mask, card::Symmetry};
use ndarray::{Array4, Axis};

const KEYS: [usize; 6] = [5, 2, 0, 3, 1, 4];

fn permuted(x: &Array4<f64>, order: &[usize]) -> Array4<f64> {
    x.select(Axis(2), order)
}

/// Whether the output follows when the positions of queries, keys and values go by their orders.
fn follows(case: &Case<f64>, orders: [&[usize]; 3]) -> bool {
    let (example, mask) = (Example::<f64>::new(6, 6), Mask::none());
    let [q, k, v] = [&example.q, &example.k, &example.v];
    let other = Example {
        q: permuted(q, orders[0]),
        k: permuted(k, orders[1]),
        v: permuted(v, orders[2]),
    };
    // Where keys and values go one way and queries stay, the output stays.
    let own = if orders[1] == orders[2] {
        orders[0]
    } else {
        orders[2]
    };
    let want = permuted(&case.output(&example, &mask, &EVALUATION), own);
    let got = case.output(&other, &mask, &EVALUATION);
    got.iter()
        .zip(&want)
        .all(|(got, want)| (got - want).abs() < 1e-9)
}

/// A card claims the first of the symmetries that hold, in the order of [`Symmetry`], and no other.
fn symmetry_is_as_claimed(case: &Case<f64>) {
    let (stay, shift) = ([0, 1, 2, 3, 4, 5], [2, 3, 4, 5, 0, 1]);
    let permutations = follows(case, [&stay, &KEYS, &KEYS]);
    let together = follows(case, [&KEYS, &KEYS, &KEYS]);
    let shifts = follows(case, [&shift, &shift, &shift]);
    let shifts_of_values = follows(case, [&stay, &stay, &shift]);
    let found = [
        (permutations, Symmetry::Permutations),
        (together, Symmetry::JointPermutations),
        (shifts, Symmetry::CyclicShifts),
        (shifts_of_values, Symmetry::CyclicShiftsOfValues),
    ];
    let found = found.into_iter().find(|(holds, _)| *holds);
    let found = found.map_or(Symmetry::None, |(_, symmetry)| symmetry);
    let whose = "left is what the card of these settings claims, right what they have";
    assert_eq!(case.card.symmetry, found, "{}: {whose}", case.name);
}

#[test]
fn of_every_mechanism() {
    cases().iter().for_each(symmetry_is_as_claimed);
}
