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

/// Outputs and gradients follow the order of the queries, and the gradients of keys and values theirs.
fn orders_are_followed(case: &Case<f64>) {
    if case.card.symmetry != Symmetry::Permutations {
        return;
    }
    let queries = order_of_queries(case);
    let example = case.example(queries.len(), 6);
    let other = Example {
        q: permuted(&example.q, queries),
        k: permuted(&example.k, &KEYS),
        v: permuted(&example.v, &KEYS),
    };
    let kept = matrix(queries.len(), 6);
    let moved = kept.select(Axis(0), queries).select(Axis(1), &KEYS);
    let [kept, moved] = [kept, moved].map(|kept| Mask::none().with_matrix(kept.view()));
    let masks = [(Mask::none(), Mask::none()), (kept, moved)];
    for (mask, moved) in masks.iter().filter(|(mask, _)| case.card.takes(mask)) {
        let [want, got] = [(&example, mask), (&other, moved)]
            .map(|(example, mask)| case.forward(example, mask, &EVALUATION).unwrap());
        let (output, penalty) = cotangents(&want);
        let followed = permuted(&output, queries);
        let mut gradients = case.pull_back(&example, mask, &EVALUATION, &want, &output, &penalty);
        for (stream, order) in gradients.streams.iter_mut().zip([queries, &KEYS, &KEYS]) {
            *stream = permuted(stream, order);
        }
        let pulled = case.pull_back(&other, moved, &EVALUATION, &got, &followed, &penalty);
        assert_same_gradients(&pulled, &gradients, &case.name);
        let [want, got] = [want, got].map(|forward| forward.output.into_owned());
        assert_close(&got, &permuted(&want, queries), &case.name);
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

#[test]
fn permuted_queries_and_keys_give_permuted_outputs_and_gradients() {
    cases().iter().for_each(orders_are_followed);
}
