//! Masks of every kind against the formula, and what a sliding window holds.

use bochner_engine::ndarray::{Array2, Array4, ArrayView2, Axis, s};
use bochner_engine::numerics::check::random;
use bochner_engine::numerics::{DropoutMask, Seed};
use bochner_engine::{
    Decoder, DecoderSize, Error, Mask, Settings, Wanted, attend, attend_vjp, weights,
};
use proptest::prelude::*;

/// Checks the weights, the output and the gradients of the softmax against their formulas, with the pairs that the mask
/// keeps, without and with dropout.
fn agrees_with_its_formula(
    mask: &Mask,
    [batch, heads, queries, keys]: [usize; 4],
) -> Result<(), Error> {
    let array = |time, name| -> Array4<f64> { random([batch, heads, time, 2], name) };
    let (q, cotangent) = (array(queries, "q"), array(queries, "cotangent"));
    let (k, v) = (array(keys, "k"), array(keys, "v"));
    let mut want = Array4::zeros([batch, heads, queries, keys]);
    for ([b, m, i, j], x) in want
        .indexed_iter_mut()
        .map(|((b, m, i, j), x)| ([b, m, i, j], x))
    {
        if mask.keeps([b, m, i, j], [queries, keys]) {
            let product = q.slice(s![b, m, i, ..]).dot(&k.slice(s![b, m, j, ..]));
            *x = (product / 2.0_f64.sqrt()).exp();
        }
    }
    for mut row in want.rows_mut() {
        let sum = row.sum();
        row /= if sum > 0.0 { sum } else { 1.0 };
    }
    let near = |got: ArrayView2<f64>, want: Array2<f64>, what: &str| {
        let off = &got - &want;
        assert!(off.iter().all(|x| x.abs() < 1e-12), "{what}: {mask:?}");
    };
    let views = [&q, &k, &v].map(|x| x.view());
    let all = weights(&Settings::softmax(mask), views[0], views[1])?;
    for dropout in [None, DropoutMask::new(0.3, Seed::new(1)).ok()] {
        let settings = Settings {
            dropout,
            ..Settings::softmax(mask)
        };
        let [a, b, c] = views;
        let (output, saved) = attend(&settings, a, b, c)?;
        let got = attend_vjp(
            &settings,
            &saved,
            a,
            b,
            c,
            cotangent.view(),
            Wanted::default(),
        )?;
        let mut dropped = want.clone();
        let numbers = dropped.iter_mut().zip(0..);
        numbers.for_each(|(x, n)| *x *= dropout.map_or(1.0, |dropout| dropout.factor(n)));
        for (b, m) in bochner_engine::ndarray::indices((batch, heads)) {
            let of = s![b, m, .., ..];
            let [q, k, v, c] = [&q, &k, &v, &cotangent].map(|x| x.slice(of));
            let (weights, dropped) = (want.slice(of), dropped.slice(of));
            let along_weights = c.dot(&v.t()) * dropped;
            let deltas = along_weights.sum_axis(Axis(1)).insert_axis(Axis(1));
            let along = (along_weights - &weights * &deltas) / 2.0_f64.sqrt();
            near(all.slice(of), weights.to_owned(), "weights");
            near(output.slice(of), dropped.dot(&v), "output");
            near(got.q.slice(of), along.dot(&k), "gradient of q");
            near(got.k.slice(of), along.t().dot(&q), "gradient of k");
            near(got.v.slice(of), dropped.t().dot(&c), "gradient of v");
        }
    }
    Ok(())
}

fn lengths(batch: usize, keys: usize) -> impl Strategy<Value = Vec<usize>> {
    prop::collection::vec(0..=keys, batch)
}

/// A mask of any parts that go together, and sizes.
pub(crate) fn masks() -> impl Strategy<Value = (Mask, [usize; 4])> {
    let sizes = (1..3_usize, 1..3_usize, 1..9_usize, 1..9_usize);
    sizes.prop_flat_map(|(batch, heads, queries, keys)| {
        let matrices = prop::collection::vec(any::<bool>(), batch * heads * queries * keys);
        let parts = (
            0..4_usize,
            1..4_usize,
            prop::option::of(lengths(batch, keys)),
            prop::option::of((1..5_usize, prop_oneof![Just(0), Just(2), Just(usize::MAX)])),
            prop::option::of(matrices),
            prop::option::of((1..4_i64, 0..3_i64)),
        );
        parts.prop_map(move |(order, reach, lengths, window, matrices, rule)| {
            let mut mask = match order {
                0 => Mask::none(),
                1 => Mask::causal(),
                2 => Mask::none().with_causality_after(reach),
                _ => Mask::none().with_causal_blocks(reach).expect("not empty"),
            };
            if let Some(lengths) = lengths {
                mask = mask.with_key_lengths(lengths);
            }
            if let Some((left, right)) = window {
                mask = mask.with_window(left, right).expect("not empty");
            }
            if let Some(all) = matrices {
                let all =
                    Array4::from_shape_vec((batch, heads, queries, keys), all).expect("one a pair");
                mask = mask.with_matrices(all.view());
            }
            if let Some((size, rest)) = rule {
                mask = mask.with_pairs(move |i, j| (i - j).rem_euclid(size + 1) != rest);
            }
            (mask, [batch, heads, queries, keys])
        })
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]
    #[test]
    fn every_mask_is_its_formula((mask, sizes) in masks()) {
        prop_assert!(agrees_with_its_formula(&mask, sizes).is_ok());
    }

    #[test]
    fn packed_sequences_are_their_formula(lengths in prop::collection::vec(0..5_usize, 1..5), reach in 1..4_usize) {
        let total = lengths.iter().sum();
        prop_assume!(total > 0);
        for mask in [Mask::none(), Mask::causal(), Mask::none().with_causality_after(reach)] {
            prop_assert!(agrees_with_its_formula(&mask.with_packed(&lengths), [1, 2, total, total]).is_ok());
        }
    }
}

/// Sequences of several blocks, some of which are hidden as a whole.
#[test]
fn masks_are_their_formula_over_several_blocks() -> Result<(), Error> {
    let blocks = Array2::from_shape_fn((5, 5), |(i, j)| i != 3 && (i + 2 * j) % 3 != 1);
    let window = |left, right| Mask::none().with_window(left, right);
    for mask in [
        Mask::causal(),
        window(70, 0)?,
        window(3, 90)?,
        Mask::none().with_causality_after(100),
        Mask::none().with_causal_blocks(64)?,
        Mask::causal().with_pairs(|i, j| (i - j) % 7 == 0 || i - j < 3),
        Mask::none().with_pairs(|i, j| i / 50 == j / 50),
        Mask::none().with_blocks(64, blocks.view())?,
        Mask::causal()
            .with_blocks(64, blocks.view())?
            .with_key_lengths(vec![200]),
        Mask::none().with_packed(&[100, 0, 70, 1, 129]),
    ] {
        agrees_with_its_formula(&mask, [1, 1, 300, 300])?;
        if !mask.is_packed() {
            agrees_with_its_formula(&mask, [1, 1, 150, 300])?;
        }
    }
    Ok(())
}

#[test]
fn the_cache_of_a_sliding_window_stays_small() -> Result<(), Error> {
    let (window, width) = (40, 4);
    let mask = Mask::causal().with_window(window, 0)?;
    let settings = Settings::softmax(&mask);
    let x: Array4<f64> = random([2, 2, 600, width], "x");
    let (whole, _) = attend(&settings, x.view(), x.view(), x.view())?;
    let mut decoder = Decoder::new(
        &settings,
        DecoderSize {
            batch: 2,
            heads: 2,
            width,
            value_width: width,
        },
    )?;
    // A long prompt, then one at a time.
    for (from, to) in std::iter::once((0, 300)).chain((300..600).map(|t| (t, t + 1))) {
        let x = x.slice(s![.., .., from..to, ..]);
        let off = decoder.step(x, x, x)? - whole.slice(s![.., .., from..to, ..]);
        assert!(off.iter().all(|x| x.abs() < 1e-12));
        // Keys come in whole panels.
        let most = 4 * (window + 32 + 32) * 2 * width;
        assert!(
            decoder.held() <= most,
            "{} numbers after {to}",
            decoder.held()
        );
    }
    assert_eq!(decoder.lengths(), [600, 600]);
    let refused = decoder.truncate(300).unwrap_err();
    assert!(matches!(refused, Error::Unsupported { .. }), "{refused}");
    assert_eq!(decoder.lengths(), [600, 600]);
    Ok(())
}
