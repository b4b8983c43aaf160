//! Fewer heads of keys and values than of queries are those heads repeated.

use crate::conformance::common::*;
use bochner_attention::{
    Error, Mask, Settings,
    engine::{Decoder, DecoderSize},
};
use ndarray::{Array4, Axis, s};

/// Each head as often as heads of queries read it.
fn repeated(x: &Array4<f64>, each: usize) -> Array4<f64> {
    let heads: Vec<usize> = (0..x.len_of(Axis(1)) * each).map(|m| m / each).collect();
    x.select(Axis(1), &heads)
}

/// The sums over heads that read the same one.
fn summed(x: &Array4<f64>, each: usize) -> Array4<f64> {
    let mut sums = Array4::zeros((BATCH, x.len_of(Axis(1)) / each, x.dim().2, x.dim().3));
    for (m, head) in x.axis_iter(Axis(1)).enumerate() {
        let mut sum = sums.index_axis_mut(Axis(1), m / each);
        sum += &head;
    }
    sums
}

/// Heads of queries share keys and values if the card says so; otherwise the error says what there is instead.
pub(crate) fn shared_keys_are_as_claimed(case: &Case<f64>) {
    // Without pairs there are no queries to share with.
    if !case.has_pairs() {
        return;
    }
    let own = case.example(6, 6);
    let one = |x: &Array4<f64>| x.slice(s![.., ..1, .., ..]).to_owned();
    let few = Example {
        q: own.q.clone(),
        k: one(&own.k),
        v: one(&own.v),
    };
    let all = Example {
        q: own.q.clone(),
        k: repeated(&few.k, HEADS),
        v: repeated(&few.v, HEADS),
    };
    let mask = Mask::none();
    let got = case.forward(&few, &mask, &EVALUATION);
    if !case.card.shared_keys.is_yes() {
        let is_refused = matches!(got, Err(Error::Unsupported { .. }));
        assert!(is_refused, "{}", case.name);
        return;
    }
    let want = case.output(&all, &mask, &EVALUATION);
    assert_close(&got.unwrap().output, &want, &case.name);
    let got = case.gradients(&few, &mask, &EVALUATION);
    let mut want = case.gradients(&all, &mask, &EVALUATION);
    for stream in 1..3 {
        want.streams[stream] = summed(&want.streams[stream], HEADS);
    }
    assert_same_gradients(&got, &want, &case.name);
}

#[test]
fn by_mechanisms_that_claim_it() {
    let cases = cases();
    for claims in [true, false] {
        let has = |case: &Case<f64>| case.has_pairs() && case.card.shared_keys.is_yes() == claims;
        assert!(cases.iter().any(has));
    }
    cases.iter().for_each(shared_keys_are_as_claimed);
}

/// A cache for one number of heads refuses another number.
#[test]
fn a_decoder_keeps_to_its_number_of_heads_of_keys() {
    let array = |heads, width| Array4::<f64>::ones((1, heads, 2, width));
    let size = DecoderSize {
        batch: 1,
        heads: 4,
        width: 2,
        value_width: 3,
    };
    let settings = Settings::softmax(&Mask::none().with_causality());
    let mut decoder = Decoder::new(&settings, size).unwrap();
    decoder
        .push(array(2, 2).view(), array(2, 3).view(), None)
        .unwrap();
    let held = decoder.held();
    for heads in [1, 4] {
        let refused = decoder.push(array(heads, 2).view(), array(heads, 3).view(), None);
        let error = refused.unwrap_err().to_string();
        let says = format!("`heads of k` is {heads}, but must be 2, as for the positions so far");
        assert_eq!(error, says);
        assert_eq!((decoder.lengths(), decoder.held()), (&[2][..], held));
    }
    decoder.reset();
    decoder
        .push(array(4, 2).view(), array(4, 3).view(), None)
        .unwrap();
    assert_eq!(decoder.held(), 2 * held);
}
