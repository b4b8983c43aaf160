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
fn changing_a_key_in_linear_time() {
    let case = Case::of(linear_time());
    let from = [1, 127, 128, 500, 512, 700, 1299];
    no_earlier_row_changes(&case, 1300, &from);
}
