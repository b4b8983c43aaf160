use crate::conformance::common::*;
use bochner_attention::{Mask, mechanism::Gradients};
use ndarray::{Array4, Axis, concatenate, s};

/// `x` with `more` positions of arbitrary numbers behind it.
fn padded(x: &Array4<f64>, more: usize) -> Array4<f64> {
    let (batch, heads, _, width) = x.dim();
    let padding = random::<f64, _>((batch, heads, more, width), "padding") * 5.0;
    concatenate(Axis(2), &[x.view(), padding.view()]).unwrap()
}

fn first(x: &Array4<f64>, positions: usize) -> Array4<f64> {
    x.slice(s![.., .., ..positions, ..]).to_owned()
}

/// Gradients without those of the padding, which must be zero.
fn cut(gradients: Gradients<f64>, queries: usize, keys: usize) -> Gradients<f64> {
    let rest = s![.., .., keys.., ..];
    for of_keys in &gradients.streams[1..] {
        assert!(of_keys.slice(rest).iter().all(|&x| x == 0.0));
    }
    let lengths = [queries, keys, keys];
    let streams = gradients.streams.iter().zip(lengths);
    let streams = streams.map(|(x, length)| first(x, length)).collect();
    Gradients::new(streams, gradients.parameters)
}

fn keys_can_be_padded_by(more: usize, case: &Case<f64>) {
    let (queries, keys) = (5, 6);
    let short = Example::<f64>::new(queries, keys);
    let long = Example {
        q: short.q.clone(),
        k: padded(&short.k, more),
        v: padded(&short.v, more),
    };
    let mask = Mask::none().with_key_lengths(vec![6, 4]);
    if !case.card.takes(&mask) || !case.card.cross.is_yes() {
        return;
    }
    let want = case.output(&short, &mask, &EVALUATION);
    let got = case.output(&long, &mask, &EVALUATION);
    assert_eq!(got, want, "{} {more}", case.name);
    let want = case.gradients(&short, &mask, &EVALUATION);
    let got = cut(case.gradients(&long, &mask, &EVALUATION), queries, keys);
    assert_eq!(got, want, "{} {more}", case.name);
}

/// Self-attention of sequences that are padded as a whole, causal where it can be.
pub(crate) fn sequences_can_be_padded(case: &Case<f64>) {
    let (length, more) = (6, 3);
    let short = Example::<f64>::new(length, length);
    let long = Example {
        q: padded(&short.q, more),
        k: padded(&short.k, more),
        v: padded(&short.v, more),
    };
    let lengths = vec![6, 4];
    let mask = Mask::none()
        .with_key_lengths(lengths.clone())
        .with_query_lengths(lengths);
    for mask in [mask.clone(), mask.with_causality()] {
        if !case.card.takes(&mask) {
            continue;
        }
        let forward = case.forward(&short, &mask, &EVALUATION).unwrap();
        let (mut output, penalty) = cotangents(&forward);
        let want = case.pull_back(&short, &mask, &EVALUATION, &forward, &output, &penalty);

        let padded = case.forward(&long, &mask, &EVALUATION).unwrap();
        assert_close(
            &first(&padded.output.to_owned(), length),
            &forward.output,
            &case.name,
        );
        assert_close(&padded.penalty, &forward.penalty, &case.name);
        let (batch, heads, _, width) = output.dim();
        let nothing = Array4::zeros((batch, heads, more, width));
        output.append(Axis(2), nothing.view()).unwrap();
        let got = case.pull_back(&long, &mask, &EVALUATION, &padded, &output, &penalty);
        assert_same_gradients(&cut(got, length, length), &want, &case.name);
    }
}

/// By one key, and by more than a block.
#[test]
fn padded_keys() {
    for case in cases() {
        keys_can_be_padded_by(1, &case);
        keys_can_be_padded_by(600, &case);
    }
}

#[test]
fn padded_sequences() {
    cases().iter().for_each(sequences_can_be_padded);
}
