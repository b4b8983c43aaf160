//! Fewer heads of keys and values than of queries are those heads repeated.

use crate::conformance::common::*;
use crate::conformance::plain::*;
use bochner_attention::{
    Decoder, DecoderSize, Error, Form, Magnitude, Mask, Settings, Stream, attend, attend_vjp,
    weights,
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

#[test]
fn by_heads_of_queries() {
    let (queries, keys, heads) = (40, 70, 6);
    let q: Array4<f64> = random((BATCH, heads, queries, WIDTH), "q");
    let w: Array4<f64> = random((1, heads, 3, WIDTH), "w");
    let points = bochner_attention::Points::Stationary { w: w.view() };
    for key_heads in [1, 2, 3, 6] {
        let each = heads / key_heads;
        let k: Array4<f64> = random((BATCH, key_heads, keys, WIDTH), "k");
        let v: Array4<f64> = random((BATCH, key_heads, keys, VALUE_WIDTH), "v");
        let [all_k, all_v] = [&k, &v].map(|x| repeated(x, each));
        for mask in [
            Mask::none().with_causality(),
            Mask::none().with_key_lengths(lengths(keys)),
        ] {
            let squared = Settings::squared(points, FLOOR, &mask);
            let in_linear_time = Settings {
                form: Form::LinearTime,
                ..squared.clone()
            };
            let all = [
                Settings::softmax(&mask),
                Settings::rbf(&mask),
                squared,
                in_linear_time,
            ];
            for settings in all {
                let magnitude = Magnitude::Norm { p: 1.5 };
                let settings = Settings {
                    magnitude,
                    ..settings
                };
                let label = format!("{key_heads} heads, {settings:?}");
                let want = attend(q.view(), all_k.view(), all_v.view(), &settings).unwrap();
                let got = attend(q.view(), k.view(), v.view(), &settings).unwrap();
                assert_eq!(got.output, want.output, "{label}");
                let cotangent: Array4<f64> = random(want.output.raw_dim(), "cotangent");
                let [got, want] =
                    [got, want].map(|attended| attend_vjp(&attended, cotangent.view()).unwrap());
                assert_close(&got.q, &want.q, &label);
                assert_close(&got.k, &summed(&want.k, each), &label);
                assert_close(&got.v, &summed(&want.v, each), &label);
                let shown = weights(q.view(), k.view(), &settings).unwrap();
                assert_eq!(shown, weights(q.view(), all_k.view(), &settings).unwrap());
            }
        }
    }
}

/// A mechanism does so if its card says so, and says what there is instead if it does not.
#[test]
fn by_mechanisms_that_claim_it() {
    let (mut shared, mut refused) = (0, 0);
    for case in cases::<f64>() {
        if !case.card.streams.contains(&Stream::Keys) {
            continue;
        }
        let own = case.example(6, 6);
        // Without queries there is nobody to share with.
        if !case.has_pairs() {
            continue;
        }
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
            refused += 1;
            assert!(
                matches!(got, Err(Error::Unsupported { .. })),
                "{}",
                case.name
            );
            continue;
        }
        shared += 1;
        let want = case.output(&all, &mask, &EVALUATION);
        assert_close(&got.unwrap().output, &want, &case.name);
        let got = case.gradients(&few, &mask, &EVALUATION);
        let mut want = case.gradients(&all, &mask, &EVALUATION);
        for stream in 1..3 {
            want.streams[stream] = summed(&want.streams[stream], HEADS);
        }
        assert_same_gradients(&got, &want, &case.name);
    }
    assert!(shared > 5 && refused > 0, "{shared} {refused}");
}

#[test]
fn by_a_decoder() {
    let (heads, key_heads, length) = (4, 2, 9);
    let q: Array4<f64> = random((BATCH, heads, length, WIDTH), "q");
    let k: Array4<f64> = random((BATCH, key_heads, length, WIDTH), "k");
    let v: Array4<f64> = random((BATCH, key_heads, length, VALUE_WIDTH), "v");
    let settings = Settings::softmax(&Mask::none().with_causality());
    let size = DecoderSize {
        batch: BATCH,
        heads,
        width: WIDTH,
        value_width: VALUE_WIDTH,
    };
    let mut decoder = Decoder::new(&settings, size).unwrap();
    let want = attend(q.view(), k.view(), v.view(), &settings)
        .unwrap()
        .output;
    for t in 0..length {
        let at = s![.., .., t..t + 1, ..];
        let got = decoder.step(q.slice(at), k.slice(at), v.slice(at)).unwrap();
        assert_close(&got, &want.slice(at).to_owned(), "a step");
    }
}

#[test]
fn heads_that_do_not_divide_are_named() {
    let array = |heads, width| Array4::<f64>::ones((1, heads, 3, width));
    let (q, settings) = (array(6, 2), Settings::softmax(&Mask::none()));
    for (k, v, name) in [(4, 4, "k"), (12, 12, "k"), (3, 2, "v"), (6, 3, "v")] {
        let (k, v) = (array(k, 2), array(v, 5));
        let refused = attend(q.view(), k.view(), v.view(), &settings);
        let error = refused.unwrap_err().to_string();
        assert!(error.starts_with(&format!("`{name}`")), "{error}");
    }
}

#[test]
fn a_scale_is_a_factor_of_the_queries() {
    let (example, mask) = (Example::<f64>::new(5, 6), Mask::none().with_causality());
    let [q, k, v] = [&example.q, &example.k, &example.v].map(|x| x.view());
    let scale = 0.3;
    let scaled = &example.q * (scale * (WIDTH as f64).sqrt());
    let want = attend(scaled.view(), k, v, &Settings::softmax(&mask)).unwrap();
    let got = attend(q, k, v, &Settings::scaled_softmax(scale, &mask)).unwrap();
    assert_close(&got.output, &want.output, "output");
    let cotangent: Array4<f64> = random(want.output.raw_dim(), "cotangent");
    let [got, want] = [got, want].map(|one| attend_vjp(&one, cotangent.view()).unwrap());
    assert_close(&got.k, &want.k, "keys");
    assert_close(
        &got.q,
        &(want.q * (scale * (WIDTH as f64).sqrt())),
        "queries",
    );
    for scale in [0.0, -1.0, f64::NAN] {
        let refused = attend(q, k, v, &Settings::scaled_softmax(scale, &mask)).unwrap_err();
        assert!(refused.to_string().contains("scale"), "{refused}");
    }
}
