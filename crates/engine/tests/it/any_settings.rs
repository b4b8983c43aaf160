//! Any settings on any arrays give a result or an error, and results are finite.

use crate::built_in::SquaredProduct;
use crate::examples::{elu, retention, retention_scan};
use crate::masks::masks;
use bochner_engine::ndarray::{Array1, Array2, Array4, s};
use bochner_engine::numerics::check::random;
use bochner_engine::numerics::{DropoutMask, Seed};
use bochner_engine::{
    Bias, Blocks, Decoder, DecoderSize, Error, Form, Mask, Settings, Wanted, attend, attend_vjp,
    weights,
};
use proptest::prelude::*;
use std::sync::Arc;

#[derive(Clone, Debug)]
struct Call {
    settings: Settings<f64>,
    arrays: [Array4<f64>; 3],
    wanted: Wanted,
}

fn kernels(n: usize, mask: &Mask) -> Settings<f64> {
    match n {
        0 => Settings::softmax(mask),
        1 => Settings::pairs(SquaredProduct, mask),
        2 => Settings::features(elu::Elu { width: 4 }, mask),
        3 => Settings::scan(retention_scan::RetentionScan, mask),
        _ => retention::settings(mask),
    }
}

fn calls() -> impl Strategy<Value = Call> {
    let settings = (
        0..5_usize,
        masks(),
        prop::option::weighted(0.2, 0..5_usize),
        0..4_usize,
        prop::option::weighted(0.3, 0..4_usize),
        prop::option::weighted(0.2, -1..6_i32),
        any::<bool>(),
    );
    // Sizes that mostly fit, and a number that need not be in range.
    let arrays = (
        prop::option::weighted(0.2, 1..3_usize),
        prop::option::weighted(0.05, 0..9_usize),
        prop::option::weighted(0.05, prop_oneof![Just(3_usize), Just(0)]),
        prop::option::weighted(
            0.3,
            (
                0..3_usize,
                0..1000_usize,
                prop_oneof![Just(f64::NAN), Just(1e100), Just(1e70)],
            ),
        ),
        any::<[bool; 3]>(),
    );
    (settings, arrays).prop_map(|(settings, arrays)| {
        let (kernel, (mask, sizes), packed, form, bias, sink, drops) = settings;
        let (kv_heads, other_keys, width, number, wanted) = arrays;
        let [batch, heads, queries, keys] = sizes;
        let (mask, keys) = match packed {
            // Most scans are tried under a mask that they take.
            _ if kernel == 3 && queries > 1 => (
                Mask::causal().with_key_lengths(vec![queries - 1; batch]),
                queries,
            ),
            Some(first) => (
                mask.with_packed(&[first, queries.saturating_sub(first)]),
                queries,
            ),
            None => (mask, keys),
        };
        let form = match form {
            0 => Form::Automatic,
            1 => Form::Pairwise,
            2 => Form::LinearTime,
            _ => Form::Blocked(Blocks {
                queries: 2,
                keys: 3,
            }),
        };
        let of_pairs = |x: usize| {
            if x.is_multiple_of(4) {
                f64::NEG_INFINITY
            } else {
                x as f64 * 0.1
            }
        };
        let bias = bias.map(|kind| match kind {
            0 => Bias::alibi(),
            1 => Bias::relative(Array2::ones((heads, 3)).view()).expect("odd"),
            2 => Bias::fixed(
                Array4::from_shape_fn((1, heads, queries, keys), |(_, m, i, j)| {
                    of_pairs(m + i * j)
                })
                .view(),
            )
            .expect("finite"),
            _ => Bias::fixed(random::<f64, _>([1, 1, queries, keys + 1], "bias").view())
                .expect("finite"),
        });
        // One in seven has a wrong number of heads.
        let sink = sink.map(|more| Arc::new(Array1::zeros(heads + usize::from(more < 0))));
        let dropout =
            (drops && kernel < 2).then(|| DropoutMask::new(0.5, Seed::new(1)).expect("a rate"));
        let settings = Settings {
            form,
            bias,
            sink,
            dropout,
            ..kernels(kernel, &mask)
        };
        let (kv_heads, keys) = (kv_heads.unwrap_or(heads), other_keys.unwrap_or(keys));
        let q = random([batch, heads, queries, 4], "q");
        let k = random([batch, kv_heads, keys, width.unwrap_or(4)], "k");
        let mut arrays = [q, k, random([batch, kv_heads, keys, 3], "v")];
        if let Some((array, place, number)) = number {
            let all = arrays[array].as_slice_mut().expect("owned");
            let count = all.len().max(1);
            all.get_mut(place % count)
                .into_iter()
                .for_each(|x| *x = number);
        }
        let [kernel, bias, sink] = wanted;
        let has_numbers = settings
            .bias
            .as_ref()
            .is_some_and(|bias| bias.zero_gradients().is_some());
        Call {
            settings,
            arrays,
            wanted: Wanted {
                kernel,
                bias: bias && has_numbers,
                sink,
            },
        }
    })
}

impl Call {
    fn attend(&self) -> Result<(), Error> {
        let [q, k, v] = self.arrays.each_ref().map(|x| x.view());
        let (output, saved) = attend(&self.settings, q, k, v)?;
        assert!(output.iter().all(|x| x.is_finite()));
        let cotangent: Array4<f64> = random(output.raw_dim(), "cotangent");
        let all = attend_vjp(
            &self.settings,
            &saved,
            q,
            k,
            v,
            cotangent.view(),
            self.wanted,
        )?;
        assert_eq!(
            [all.q.shape(), all.k.shape(), all.v.shape()],
            [q.shape(), k.shape(), v.shape()]
        );
        saved.log_sums(&self.settings).map(drop).or_else(|error| {
            if is_unsupported(&error) {
                Ok(())
            } else {
                Err(error)
            }
        })
    }

    fn weigh(&self) -> Result<(), Error> {
        let [q, k, _] = self.arrays.each_ref().map(|x| x.view());
        let all = weights(&self.settings, q, k)?;
        assert!(all.iter().all(|x| x.is_finite()));
        Ok(())
    }

    fn decode(&self) -> Result<(), Error> {
        let [q, k, v] = self.arrays.each_ref().map(|x| x.view());
        let (batch, heads, ..) = q.dim();
        let mut decoder = Decoder::new(
            &self.settings,
            DecoderSize {
                batch,
                heads,
                width: 4,
                value_width: 3,
            },
        )?;
        let first = q.dim().2.min(k.dim().2);
        let [q, k, v] = [q, k, v].map(|x| x.slice_move(s![.., .., ..first, ..]));
        let counts: Vec<usize> = (0..batch).map(|b| first.saturating_sub(b)).collect();
        let mut output = Array4::zeros((batch, heads, first, 3));
        decoder.step_into([q, k, v], Some(&counts), None, output.view_mut())?;
        decoder.step(q, k, v)?;
        decoder.push(k, v, None)?;
        decoder.truncate(first + 1).or_else(|error| {
            if is_unsupported(&error) {
                Ok(())
            } else {
                Err(error)
            }
        })?;
        decoder.reorder(&(0..batch + 1).map(|b| (b + 1) % batch).collect::<Vec<_>>())?;
        let q = bochner_engine::ndarray::concatenate![
            bochner_engine::ndarray::Axis(0),
            q,
            q.slice(s![..1, .., .., ..])
        ];
        let output = decoder.attend(q.view())?;
        assert!(output.iter().all(|x| x.is_finite()));
        Ok(())
    }
}

fn is_unsupported(error: &Error) -> bool {
    matches!(error, Error::Unsupported { .. })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1500))]
    #[test]
    fn no_settings_panic(call in calls()) {
        for result in [call.attend(), call.weigh(), call.decode()] {
            if let Err(error) = result {
                prop_assert!(!matches!(error, Error::Score { .. } | Error::RowSum { .. } | Error::Slope { .. }), "{error}");
            }
        }
    }
}
