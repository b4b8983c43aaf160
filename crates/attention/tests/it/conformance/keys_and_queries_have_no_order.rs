use crate::conformance::common::*;
use bochner_attention::{Mask, card::Symmetry};
use ndarray::{Array4, Axis};

const KEYS: [usize; 6] = [5, 2, 0, 3, 1, 4];

/// An order of the queries, which are as many as keys for a mechanism that attends to its own sequence alone.
fn order_of_queries(case: &Case<f64>) -> &'static [usize] {
    match case.card.cross.is_yes() {
        true => &[3, 0, 4, 2, 1],
        false => &[3, 0, 4, 5, 2, 1],
    }
}

fn permuted(x: &Array4<f64>, order: &[usize]) -> Array4<f64> {
    x.select(Axis(2), order)
}

fn unmasked_and_matrix(queries: &[usize]) -> [(Mask, Mask, Mask); 2] {
    let matrix = matrix(queries.len(), 6);
    let of = |matrix: ndarray::Array2<bool>| Mask::none().with_matrix(matrix.view());
    [
        (Mask::none(), Mask::none(), Mask::none()),
        (
            of(matrix.clone()),
            of(matrix.select(Axis(1), &KEYS)),
            of(matrix.select(Axis(0), queries)),
        ),
    ]
}

pub(crate) fn keys_have_no_order(case: &Case<f64>) {
    if case.card.symmetry != Symmetry::Permutations {
        return;
    }
    let queries = order_of_queries(case);
    let example = case.example(queries.len(), 6);
    let other = Example {
        q: example.q.clone(),
        k: permuted(&example.k, &KEYS),
        v: permuted(&example.v, &KEYS),
    };
    let takes = |masks: &(Mask, Mask, Mask)| case.card.takes(&masks.0);
    for (mask, by_keys, _) in unmasked_and_matrix(queries).into_iter().filter(takes) {
        let want = case.output(&example, &mask, &EVALUATION);
        let got = case.output(&other, &by_keys, &EVALUATION);
        assert_close(&got, &want, &case.name);
        let want = case.gradients(&example, &mask, &EVALUATION);
        let mut want = want;
        for of_keys in &mut want.streams[1..] {
            *of_keys = permuted(of_keys, &KEYS);
        }
        let got = case.gradients(&other, &by_keys, &EVALUATION);
        assert_same_gradients(&got, &want, &case.name);
    }
}

pub(crate) fn queries_have_no_order(case: &Case<f64>) {
    if case.card.symmetry != Symmetry::Permutations {
        return;
    }
    let queries = order_of_queries(case);
    let example = case.example(queries.len(), 6);
    let other = Example {
        q: permuted(&example.q, queries),
        ..example.clone()
    };
    let takes = |masks: &(Mask, Mask, Mask)| case.card.takes(&masks.0);
    for (mask, _, by_queries) in unmasked_and_matrix(queries).into_iter().filter(takes) {
        let want = permuted(&case.output(&example, &mask, &EVALUATION), queries);
        let got = case.output(&other, &by_queries, &EVALUATION);
        assert_close(&got, &want, &case.name);
    }
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
pub(crate) fn symmetry_is_as_claimed(case: &Case<f64>) {
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

#[test]
fn permuted_keys_give_the_same_output() {
    cases().iter().for_each(keys_have_no_order);
}

#[test]
fn permuted_queries_give_permuted_outputs() {
    cases().iter().for_each(queries_have_no_order);
}
