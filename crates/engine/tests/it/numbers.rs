//! Numbers that are large, hidden, far from the origin or near each other.

use bochner_engine::ndarray::{Array4, ArrayView4, array, s};
use bochner_engine::numerics::check::{assert_gradient, random};
use bochner_engine::{
    Decoder, DecoderSize, Error, Gradients, HeadRows, KeyWeight, Kind, Mask, Number, Pair, Raw,
    Score, Settings, Wanted, attend, attend_vjp, weights,
};
use std::sync::Arc;

fn pulled(
    settings: &Settings<f32>,
    [q, k, v, cotangent]: [&Array4<f32>; 4],
) -> Result<Gradients<f32>, Error> {
    let [q, k, v, cotangent] = [q, k, v, cotangent].map(|x| x.view());
    let (_, saved) = attend(settings, q, k, v)?;
    attend_vjp(settings, &saved, q, k, v, cotangent, Wanted::default())
}

fn column(x: [f32; 3]) -> Array4<f32> {
    Array4::from_shape_vec((1, 1, 3, 1), x.to_vec()).expect("three numbers")
}

/// Three queries of three keys, the first of which no query sees. The right values are those of double precision.
fn hidden_first_key(value: f32, cotangent: [f32; 3]) -> Result<Gradients<f32>, Error> {
    let keep = array![
        [false, false, false],
        [false, true, false],
        [false, true, true]
    ];
    let settings = Settings::softmax(&Mask::none().with_matrix(keep.view()));
    let [q, k, v] = [[0.5, 0.5, 1.0], [0.0, 1.0, -1.0], [value, 1.0, 2.0]].map(column);
    pulled(&settings, [&q, &k, &v, &column(cotangent)])
}

const LARGE: [f32; 7] = [
    1e10,
    1e30,
    1e34,
    1e38,
    f32::INFINITY,
    f32::NEG_INFINITY,
    f32::NAN,
];

#[test]
fn a_large_value_behind_a_mask_changes_no_gradient() -> Result<(), Error> {
    for value in LARGE.into_iter().chain([0.0]) {
        let gradients = hidden_first_key(value, [0.0, 0.0, 1.0])?;
        assert!(
            (gradients.q[[0, 0, 2, 0]] + 0.209_987_1).abs() < 1e-7,
            "{value}"
        );
        assert!(
            (gradients.k[[0, 0, 1, 0]] + 0.104_993_5).abs() < 1e-7,
            "{value}"
        );
    }
    Ok(())
}

#[test]
fn the_cotangent_of_a_row_without_keys_changes_no_gradient() -> Result<(), Error> {
    for cotangent in LARGE {
        let gradients = hidden_first_key(0.0, [cotangent, 0.0, 1.0])?;
        assert!(
            (gradients.v[[0, 0, 1, 0]] - 0.880_797).abs() < 1e-6,
            "{cotangent}"
        );
    }
    Ok(())
}

/// The largest numbers in range give finite results, forward and backward.
#[test]
fn the_largest_numbers_in_range_are_fine() -> Result<(), Error> {
    let limit = f32::MAX.sqrt().sqrt();
    let x = Array4::from_shape_fn(
        (1, 1, 9, 8),
        |(_, _, t, n)| if (t * n) % 3 == 0 { limit } else { -limit },
    );
    for settings in [
        Settings::softmax(&Mask::causal()),
        Settings::score(Nearness, &Mask::none()),
    ] {
        let gradients = pulled(&settings, [&x, &x, &x, &x])?;
        let all = gradients.q.iter().chain(&gradients.k).chain(&gradients.v);
        assert!(all.into_iter().all(|x| x.is_finite()));
    }
    Ok(())
}

/// The logit $-|q - k|^2 / (2 \sqrt d)$.
#[derive(Clone, Debug)]
struct Nearness;

impl Score for Nearness {
    const RAW: Raw = Raw::SquaredDistance;

    fn kind(&self) -> Kind {
        Kind::Logit
    }

    #[inline(always)]
    fn score<N: Number>(&self, distance: N, pair: Pair<N>, _: &[N]) -> N {
        distance * N::of(-0.5 / (pair.width as f64).sqrt())
    }
}

/// Points on a grid that single precision holds near the origin and far from it.
fn grid(shape: [usize; 4], name: &str, offset: f32) -> Array4<f32> {
    let x: Array4<f32> = random(shape, name);
    x.mapv(|x| (x * 256.0).round() / 256.0 + offset)
}

/// At a distance of 3,000 from the origin in 64 dimensions, squared norms hold no digit of most distances.
#[test]
fn distances_do_not_depend_on_the_origin() -> Result<(), Error> {
    let (settings, shape) = (Settings::score(Nearness, &Mask::causal()), [1, 2, 20, 64]);
    let [v, cotangent] = ["v", "cotangent"].map(|name| grid(shape, name, 0.0));
    let at = |offset| ["q", "k"].map(|name| grid(shape, name, offset));
    let largest = |off: &Array4<f32>| off.iter().fold(0.0_f32, |most, x| most.max(x.abs()));
    let ([q, k], [far_q, far_k]) = (at(0.0), at(375.0));
    let all = weights(&settings, q.view(), k.view())?;
    let far = weights(&settings, far_q.view(), far_k.view())?;
    assert!(
        largest(&(&far - &all)) < 2e-5,
        "{:e}",
        largest(&(&far - &all))
    );
    let near = pulled(&settings, [&q, &k, &v, &cotangent])?;
    let far = pulled(&settings, [&far_q, &far_k, &v, &cotangent])?;
    for (far, near) in [(far.q, near.q), (far.k, near.k), (far.v, near.v)] {
        assert!(
            largest(&(&far - &near)) < 1e-4,
            "{:e}",
            largest(&(&far - &near))
        );
    }
    // A decoder does the same.
    let mut decoder = Decoder::new(
        &settings,
        DecoderSize {
            batch: 1,
            heads: 2,
            width: 64,
            value_width: 64,
        },
    )?;
    let got = decoder.step(far_q.view(), far_k.view(), v.view())?;
    let (want, _) = attend(&settings, q.view(), k.view(), v.view())?;
    assert!(largest(&(&got - &want)) < 1e-4);
    Ok(())
}

#[test]
fn near_pairs_have_the_gradient_of_their_distance() -> Result<(), Error> {
    let (settings, shape) = (
        Settings::<f64>::score(Nearness, &Mask::none()),
        [1, 1, 6, 3],
    );
    let k: Array4<f64> = random(shape, "k");
    let (v, cotangent) = (
        random::<f64, _>(shape, "v"),
        random::<f64, _>(shape, "cotangent"),
    );
    // Each second query lies beside its key.
    let q = Array4::from_shape_fn(shape, |(b, m, t, n)| {
        k[[b, m, t, n]]
            + if t % 2 == 0 {
                1e-2 * (n as f64 + 1.0)
            } else {
                2.0
            }
    });
    for offset in [0.0, 5.0] {
        let (q, k) = (&q + offset, &k + offset);
        let loss = |q: ArrayView4<f64>, k: ArrayView4<f64>| {
            attend(&settings, q, k, v.view())
                .map(|(output, _)| (&output * &cotangent).sum())
                .expect("in range")
        };
        let (_, saved) = attend(&settings, q.view(), k.view(), v.view())?;
        let views = [&q, &k, &v, &cotangent].map(|x| x.view());
        let [a, b, c, d] = views;
        let gradients = attend_vjp(&settings, &saved, a, b, c, d, Wanted::default())?;
        assert_gradient(&gradients.q, &q, |q| loss(q, k.view()));
        assert_gradient(&gradients.k, &k, |k| loss(q.view(), k));
    }
    Ok(())
}

#[test]
fn logarithms_of_sums_are_those_of_the_formula() -> Result<(), Error> {
    let x: Array4<f64> = random([2, 2, 6, 4], "x");
    let mask = Mask::causal().with_key_lengths(vec![6, 0]);
    for settings in [
        Settings::softmax(&mask),
        Settings {
            sink: Some(Arc::new(array![0.4, -1.0])),
            ..Settings::softmax(&mask)
        },
        Settings::score(Nearness, &mask).with_key_weight(Halved),
    ] {
        let (_, saved) = attend(&settings, x.view(), x.view(), x.view())?;
        let (all, sums) = (
            weights(&settings, x.view(), x.view())?,
            saved.log_sums(&settings)?,
        );
        for ((b, m, i), &sum) in sums.indexed_iter() {
            let (q, k) = (x.slice(s![b, m, i, ..]), x.slice(s![b, m, 0, ..]));
            let first = match settings.key_weight {
                None => q.dot(&k) / 2.0,
                Some(_) => (&q - &k).pow2().sum() / -4.0 + 0.5_f64.ln(),
            };
            let want = match (b, &settings.sink) {
                (0, _) => first - all[[b, m, i, 0]].ln(),
                (_, None) => f64::NEG_INFINITY,
                (_, Some(sink)) => sink[m],
            };
            assert!(sum == want || (sum - want).abs() < 1e-12, "{sum} {want}");
        }
    }
    Ok(())
}

/// Half the weight for every key.
#[derive(Debug)]
struct Halved;

impl KeyWeight<f64> for Halved {
    fn log_weights(&self, keys: HeadRows<f64>, out: &mut Vec<f64>) {
        out.resize(keys.x.shape().0, 0.5_f64.ln());
    }

    fn pull(&self, _: HeadRows<f64>, _: &[f64], _: &mut [f64]) {}
}
