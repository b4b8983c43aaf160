use crate::conformance::common::*;
use bochner_attention::{Mask, Pass};
use ndarray::{Array4, s};

fn causal() -> Mask {
    Mask::none().with_causality()
}

/// To the bit, for keys changed from one of `from` on.
fn no_earlier_row_changes(case: &Case<f64>, length: usize, from: &[usize]) {
    if !case.card.takes(&causal()) {
        return;
    }
    let example = Example::<f64>::new(length, length);
    let admitted = |pass: &Pass| case.card.admit_pass(&pass.for_card(&case.card)).is_ok();
    for pass in [EVALUATION, TRAINING].into_iter().filter(admitted) {
        let want = case.output(&example, &causal(), &pass);
        for &changed in from {
            let mut other = example.clone();
            other.k.slice_mut(s![.., .., changed.., ..]).fill(7.5);
            other.v.slice_mut(s![.., .., changed.., ..]).fill(-1e3);
            let got = case.output(&other, &causal(), &pass);
            let earlier = |x: &Array4<f64>| x.slice(s![.., .., ..changed, ..]).to_owned();
            assert_eq!(earlier(&got), earlier(&want), "{} {changed}", case.name);
            assert_ne!(got, want);
        }
    }
}

/// Changing a key changes no earlier row.
pub(crate) fn no_row_sees_the_future(case: &Case<f64>) {
    no_earlier_row_changes(case, 7, &[1, 2, 5, 6]);
}

pub(crate) fn decoding_agrees_with_the_full_pass(case: &Case<f64>) {
    if !case.card.takes(&causal()) || !case.card.cross.is_yes() {
        return;
    }
    let length = 6;
    let example = Example::<f64>::new(length, length);
    let full = case.output(&example, &causal(), &EVALUATION);
    for (from, to) in [(0, 1), (3, 4), (2, 5), (5, 6)] {
        let step = Example {
            q: example.q.slice(s![.., .., from..to, ..]).to_owned(),
            k: example.k.slice(s![.., .., ..to, ..]).to_owned(),
            v: example.v.slice(s![.., .., ..to, ..]).to_owned(),
        };
        let got = case.output(&step, &causal(), &EVALUATION);
        let want = full.slice(s![.., .., from..to, ..]).to_owned();
        assert_close(&got, &want, &case.name);
    }
}

pub(crate) fn queries_before_the_first_key_see_nothing(case: &Case<f64>) {
    if !case.card.takes(&causal()) {
        return;
    }
    if !case.card.cross.is_yes() {
        return;
    }
    let example = Example::<f64>::new(6, 4);
    let got = case.output(&example, &causal(), &EVALUATION);
    assert!(got.slice(s![.., .., ..2, ..]).iter().all(|&x| x == 0.0));
    let aligned = Example {
        q: example.q.slice(s![.., .., 2.., ..]).to_owned(),
        ..example.clone()
    };
    let want = case.output(&aligned, &causal(), &EVALUATION);
    let got = got.slice(s![.., .., 2.., ..]).to_owned();
    assert_close(&got, &want, &case.name);
}

#[test]
fn changing_a_key() {
    cases().iter().for_each(no_row_sees_the_future);
}

/// Blocks of keys and of queries are crossed.
#[test]
fn changing_a_key_across_blocks() {
    for case in few_cases() {
        no_earlier_row_changes(&case, 530, &[1, 127, 128, 512, 529]);
    }
}

#[test]
fn decoding_step_by_step() {
    cases().iter().for_each(decoding_agrees_with_the_full_pass);
}

#[test]
fn more_queries_than_keys() {
    let check = queries_before_the_first_key_see_nothing;
    cases().iter().for_each(check);
}

#[test]
fn changing_a_key_in_linear_time() {
    let case = Case::of(linear_time());
    let from = [1, 127, 128, 500, 512, 700, 1299];
    no_earlier_row_changes(&case, 1300, &from);
}
