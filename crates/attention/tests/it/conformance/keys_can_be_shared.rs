//! Fewer heads of keys and values than of queries are those heads repeated.

use crate::conformance::common::*;
use crate::conformance::plain::attend;
use crate::conformance::plain::*;
use bochner_attention::{
    Error, Form, Magnitude, Mask, Settings,
    engine::{Decoder, DecoderSize},
    kernels::{self, Points, RandomFeatureMap, Trained},
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

/// Every kernel, and every form that it has under the mask, for `heads` heads.
pub(crate) fn settings_of_every_kernel(heads: usize, mask: &Mask) -> Vec<Settings<f64>> {
    let w: Array4<f64> = random((1, heads, 3, WIDTH), "w");
    let points = Points::Stationary { w: w.view() };
    let frequencies = w.index_axis(Axis(0), 0);
    let features = |map, trained| kernels::random_features(frequencies, map, trained, mask);
    let magnitude = Magnitude::Norm { p: 1.5 };
    let mut all = vec![
        Settings::softmax(mask),
        kernels::rbf(mask),
        kernels::expsin(PERIOD, mask),
        kernels::linear(mask),
        kernels::squared(points, FLOOR, mask),
    ];
    for settings in &mut all {
        *settings = settings.clone().with_key_weight(magnitude);
    }
    all.push(features(RandomFeatureMap::Positive, Trained::No));
    all.push(features(RandomFeatureMap::Hyperbolic, Trained::Yes));
    let in_linear_time = all.iter().map(|settings| Settings {
        form: Form::LinearTime,
        ..settings.clone()
    });
    let in_linear_time: Vec<_> = in_linear_time
        .filter(|settings| settings.form_for(1, 1, [WIDTH, VALUE_WIDTH]).is_ok())
        .collect();
    assert_eq!(in_linear_time.len(), 3);
    all.extend(in_linear_time);
    all
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

/// Keys and values are held once for all heads of queries that read them, to the bit what copies of them give.
#[test]
fn a_decoder_holds_shared_keys_once() {
    let (heads, length) = (4, 40);
    let q: Array4<f64> = random((BATCH, heads, length, WIDTH), "q");
    let size = DecoderSize {
        batch: BATCH,
        heads,
        width: WIDTH,
        value_width: VALUE_WIDTH,
    };
    let causal = Mask::none().with_causality();
    let masks = [causal.clone(), causal.clone().with_window(3, 0).unwrap()];
    let mut refused = 0;
    for (mask, key_heads) in masks
        .iter()
        .flat_map(|mask| [1, 2].map(|heads| (mask, heads)))
    {
        let k: Array4<f64> = random((BATCH, key_heads, length, WIDTH), "k");
        let v: Array4<f64> = random((BATCH, key_heads, length, VALUE_WIDTH), "v");
        let [all_k, all_v] = [&k, &v].map(|x| repeated(x, heads / key_heads));
        for (n, settings) in settings_of_every_kernel(heads, &causal).iter().enumerate() {
            let settings = &Settings {
                mask: mask.clone(),
                ..settings.clone()
            };
            let label = format!("{key_heads} heads, {settings:?}");
            // Sums know no window.
            let Ok(mut few) = Decoder::new(settings, size) else {
                refused += 1;
                continue;
            };
            let mut all = few.clone();
            for positions in [0..3, 3..4, 4..5, 5..37, 37..40] {
                let at = s![.., .., positions, ..];
                let got = few.step(q.slice(at), k.slice(at), v.slice(at)).unwrap();
                let want = all.step(q.slice(at), all_k.slice(at), all_v.slice(at));
                assert_eq!(got, want.unwrap(), "{label}");
            }
            // The first four kernels have neither points nor frequencies of each head.
            let share = if n < 4 { heads / key_heads } else { 1 };
            assert_eq!(few.held() * share, all.held(), "{label}");
            if settings.form != Form::LinearTime {
                few.truncate(38).unwrap();
                all.truncate(38).unwrap();
            }
            few.reorder(&[1, 1]).unwrap();
            all.reorder(&[1, 1]).unwrap();
            let at = s![.., .., 38..39, ..];
            let got = few.step(q.slice(at), k.slice(at), v.slice(at)).unwrap();
            let want = all.step(q.slice(at), all_k.slice(at), all_v.slice(at));
            assert_eq!(got, want.unwrap(), "{label}");
        }
    }
    assert_eq!(refused, 2 * 3);
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
        .push(array(2, 2).view(), array(2, 3).view())
        .unwrap();
    let held = decoder.held();
    for heads in [1, 4] {
        let refused = decoder.push(array(heads, 2).view(), array(heads, 3).view());
        let error = refused.unwrap_err().to_string();
        let says = format!("`heads of k` is {heads}, but must be 2, as for the positions so far");
        assert_eq!(error, says);
        assert_eq!((decoder.lengths(), decoder.held()), (&[2][..], held));
    }
    decoder.reset();
    decoder
        .push(array(4, 2).view(), array(4, 3).view())
        .unwrap();
    assert_eq!(decoder.held(), 2 * held);
}

#[test]
fn heads_that_do_not_divide_are_named() {
    let array = |heads, width| Array4::<f64>::ones((1, heads, 3, width));
    let (q, settings) = (array(6, 2), Settings::softmax(&Mask::none()));
    let [k, v] = ["heads of k", "v"];
    for (heads_of_k, heads_of_v, name) in [(4, 4, k), (12, 12, k), (3, 2, v), (6, 3, v)] {
        let (k, v) = (array(heads_of_k, 2), array(heads_of_v, 5));
        let refused = attend(q.view(), k.view(), v.view(), &settings);
        let error = refused.unwrap_err().to_string();
        assert!(error.starts_with(&format!("`{name}`")), "{error}");
    }
    let (k, v) = (array(4, 2), array(4, 5));
    let error = attend(q.view(), k.view(), v.view(), &settings).unwrap_err();
    assert_eq!(
        error.to_string(),
        "`heads of k` is 4, but must be a divisor of 6, the heads of q: heads are axis 1 of [batch, heads, time, \
         width]"
    );
}
