use crate::conformance::common::*;
use bochner_attention::{Gradients, Mask};
use ndarray::{Array4, Axis};

const QUERIES: [usize; 5] = [3, 0, 4, 2, 1];
const KEYS: [usize; 6] = [5, 2, 0, 3, 1, 4];

fn permuted(x: &Array4<f64>, order: &[usize]) -> Array4<f64> {
    x.select(Axis(2), order)
}

fn unmasked_and_matrix() -> [(Mask, Mask, Mask); 2] {
    let matrix = matrix(5, 6);
    let of = |matrix: ndarray::Array2<bool>| Mask::none().with_matrix(matrix.view());
    [
        (Mask::none(), Mask::none(), Mask::none()),
        (
            of(matrix.clone()),
            of(matrix.select(Axis(1), &KEYS)),
            of(matrix.select(Axis(0), &QUERIES)),
        ),
    ]
}

pub(crate) fn keys_have_no_order(case: &Case<f64>) {
    let example = Example::<f64>::new(5, 6);
    let other = Example {
        q: example.q.clone(),
        k: permuted(&example.k, &KEYS),
        v: permuted(&example.v, &KEYS),
    };
    for (mask, by_keys, _) in unmasked_and_matrix() {
        let want = case.output(&example, &mask, &EVALUATION);
        let got = case.output(&other, &by_keys, &EVALUATION);
        assert_close(&got, &want, &case.name);
        let want = case.gradients(&example, &mask, &EVALUATION);
        let want = Gradients {
            k: permuted(&want.k, &KEYS),
            v: permuted(&want.v, &KEYS),
            ..want
        };
        let got = case.gradients(&other, &by_keys, &EVALUATION);
        assert_same_gradients(&got, &want, &case.name);
    }
}

pub(crate) fn queries_have_no_order(case: &Case<f64>) {
    let example = Example::<f64>::new(5, 6);
    let other = Example {
        q: permuted(&example.q, &QUERIES),
        ..example.clone()
    };
    for (mask, _, by_queries) in unmasked_and_matrix() {
        let want = permuted(&case.output(&example, &mask, &EVALUATION), &QUERIES);
        let got = case.output(&other, &by_queries, &EVALUATION);
        assert_close(&got, &want, &case.name);
    }
}

#[test]
fn permuted_keys_give_the_same_output() {
    cases().iter().for_each(keys_have_no_order);
}

#[test]
fn permuted_queries_give_permuted_outputs() {
    cases().iter().for_each(queries_have_no_order);
}
