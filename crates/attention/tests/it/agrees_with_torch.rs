//! Masks, biases and shared heads are those of PyTorch's `scaled_dot_product_attention`, whose results
//! `benches/peers/attention_golden.py` writes.

use bochner_attention::{Bias, Decoder, DecoderSize, Mask, Settings, attend, attend_vjp};
use bochner_numerics::Real;
use bochner_numerics::check::largest;
use ndarray::{Array2, Array4, ArrayD, Ix2, Ix4, s};
use serde::Deserialize;

#[derive(Deserialize)]
struct Golden {
    cases: Vec<Case>,
}

#[derive(Deserialize)]
struct Case {
    name: String,
    q: Numbers,
    k: Numbers,
    v: Numbers,
    bias: Option<Numbers>,
    output: Numbers,
    cotangent: Numbers,
    gradients: [Numbers; 3],
    bias_gradient: Option<Numbers>,
}

#[derive(Deserialize)]
struct Numbers {
    shape: Vec<usize>,
    data: Vec<f64>,
}

impl Numbers {
    fn array(&self) -> ArrayD<f64> {
        ArrayD::from_shape_vec(&self.shape[..], self.data.clone()).unwrap()
    }

    fn heads<T: Real>(&self) -> Array4<T> {
        let all = self.array().mapv(T::of);
        all.into_dimensionality::<Ix4>().unwrap()
    }
}

/// The settings that a case is about.
fn settings<T: Real>(case: &Case) -> Settings<T> {
    let none = Mask::none();
    let (queries, keys) = (case.q.shape[2], case.k.shape[2]);
    let window = |left, right| none.clone().with_window(left, right).unwrap();
    let mask = match &*case.name {
        "causal" | "one-shared-head" => none.with_causality(),
        "lengths" => none.with_key_lengths(vec![keys, 3]),
        "window" => window(2, 1),
        "causal-window" => window(1, 0),
        "shared-heads-window-relative" => window(2, 0),
        "prefix" => none.with_causality_after(4),
        "blocks" => none.with_causal_blocks(2).unwrap(),
        "packed" => none.with_packed(&[2, 3, 1]),
        "matrices" => {
            let shape = (2, 4, queries, keys);
            let all = (0..2 * 4 * queries * keys).map(|n| n % 3 != 1).collect();
            none.with_matrices(Array4::from_shape_vec(shape, all).unwrap().view())
        }
        _ => none,
    };
    let bias = match (&*case.name, &case.bias) {
        ("alibi", _) => Some(Bias::alibi()),
        (_, None) => None,
        (_, Some(own)) => Some(match own.shape.len() {
            2 => {
                let table: Array2<f64> = own.array().into_dimensionality::<Ix2>().unwrap();
                Bias::relative(table.mapv(T::of).view()).unwrap()
            }
            _ => Bias::fixed(own.heads().view()).unwrap().with_gradient(),
        }),
    };
    let scale = if case.name == "scale" {
        0.3
    } else {
        (case.q.shape[3] as f64).sqrt().recip()
    };
    Settings {
        bias,
        ..Settings::scaled_softmax(scale, &mask)
    }
}

fn assert_near<T: Real>(got: &[T], want: &[f64], label: &str) {
    assert_eq!(got.len(), want.len(), "{label}");
    let off = got.iter().zip(want).map(|(a, b)| a.as_f64() - b);
    let off = largest(&off.collect::<Vec<_>>());
    let bound = 450.0 * T::epsilon().as_f64();
    assert!(off < bound, "{label}, {}: {off:e}", T::NAME);
}

fn cases() -> Vec<Case> {
    serde_json::from_str::<Golden>(include_str!("torch.json"))
        .unwrap()
        .cases
}

#[test]
fn outputs_and_gradients() {
    agree::<f64>();
    agree::<f32>();
}

fn agree<T: Real>() {
    for case in cases() {
        let all = [&case.q, &case.k, &case.v, &case.cotangent];
        let [q, k, v, cotangent] = all.map(Numbers::heads::<T>);
        let settings = settings(&case);
        let attended = attend(q.view(), k.view(), v.view(), &settings).unwrap();
        let own = attended.output.as_slice().unwrap();
        assert_near(own, &case.output.data, &case.name);
        let g = attend_vjp(&attended, cotangent.view()).unwrap();
        for (n, (got, want)) in [g.q, g.k, g.v].iter().zip(&case.gradients).enumerate() {
            let label = format!("{}, gradient {n}", case.name);
            assert_near(got.as_slice().unwrap(), &want.data, &label);
        }
        let got = g.bias.map(|g| g.into_iter().collect::<Vec<_>>());
        match &case.bias_gradient {
            Some(want) => assert_near(&got.unwrap(), &want.data, &case.name),
            None => assert!(got.is_none() || case.name == "alibi", "{}", case.name),
        }
    }
}

/// Position by position, where the mask is one of the past.
#[test]
fn decoding() {
    let mut decoded = 0;
    for case in cases() {
        let past = [
            "causal",
            "causal-window",
            "one-shared-head",
            "shared-heads-window-relative",
        ];
        if !past.contains(&&*case.name) {
            continue;
        }
        let [q, k, v] = [&case.q, &case.k, &case.v].map(Numbers::heads::<f64>);
        let (batch, heads, queries, width) = q.dim();
        let (first, value_width) = (k.dim().2 - queries, v.dim().3);
        let size = DecoderSize {
            batch,
            heads,
            width,
            value_width,
        };
        let mut decoder = Decoder::new(&settings(&case), size).unwrap();
        let before = s![.., .., ..first, ..];
        decoder.push(k.slice(before), v.slice(before)).unwrap();
        let want = case.output.heads();
        for i in 0..queries {
            let (own, at) = (
                s![.., .., i..i + 1, ..],
                s![.., .., first + i..first + i + 1, ..],
            );
            let got = decoder
                .step(q.slice(own), k.slice(at), v.slice(at))
                .unwrap();
            let want: Vec<f64> = want.slice(own).iter().copied().collect();
            assert_near(got.as_slice().unwrap(), &want, &case.name);
        }
        decoded += 1;
    }
    assert_eq!(decoded, 4);
}
