use crate::common::*;
use bochner_attention::{Error, Mask};
use ndarray::{Array4, s};

fn causal() -> Mask {
    Mask::none().with_causality()
}

fn causal_cases() -> Vec<Case<f64>> {
    let mut cases = cases::<f64>();
    cases.retain(|case| case.takes(&causal()));
    cases
}

/// To the bit: blocks of keys and of queries are crossed.
#[test]
fn changing_a_key_changes_no_earlier_row() {
    let length = 530;
    let example = Example::<f64>::new(length, length);
    for case in few_cases::<f64>()
        .iter()
        .filter(|case| case.takes(&causal()))
    {
        for pass in [EVALUATION, TRAINING] {
            let want = case.output(&example, &causal(), &pass);
            for changed in [1, 127, 128, 512, length - 1] {
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
}

#[test]
fn decoding_step_by_step_agrees_with_the_full_pass() {
    let length = 6;
    let example = Example::<f64>::new(length, length);
    for case in causal_cases() {
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
}

#[test]
fn queries_before_the_first_key_see_nothing() {
    let example = Example::<f64>::new(6, 4);
    for case in causal_cases() {
        let got = case.output(&example, &causal(), &EVALUATION);
        assert!(got.slice(s![.., .., ..2, ..]).iter().all(|&x| x == 0.0));
        let aligned = Example {
            q: example.q.slice(s![.., .., 2.., ..]).to_owned(),
            ..example.clone()
        };
        let want = case.output(&aligned, &causal(), &EVALUATION);
        assert_close(
            &got.slice(s![.., .., 2.., ..]).to_owned(),
            &want,
            &case.name,
        );
    }
}

#[test]
fn points_inferred_from_the_sequence_are_refused() {
    let example = Example::<f64>::new(4, 4);
    for case in cases::<f64>() {
        let got = case.forward(&example, &causal(), &EVALUATION);
        let refused = matches!(got, Err(Error::CausalLeak));
        assert_eq!(refused, case.is_latent(), "{}", case.name);
    }
}
