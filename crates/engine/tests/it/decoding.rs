//! Decoders of several sequences, and what they keep of them.

use crate::built_in::SquaredProduct;
use crate::examples::{elu, retention_scan};
use bochner_engine::ndarray::{Array4, ArrayView4, Axis, s};
use bochner_engine::numerics::check::random;
use bochner_engine::{
    Bias, Decoder, DecoderSize, Error, FeatureMap, Form, HeadRows, Kind, Mask, Number, Pair, Raw,
    Score, Settings, attend,
};

const SIZE: DecoderSize = DecoderSize {
    batch: 3,
    heads: 4,
    width: 4,
    value_width: 3,
};

fn kinds() -> Vec<Settings<f64>> {
    let mask = &Mask::causal();
    vec![
        Settings::softmax(mask),
        Settings::softmax(&mask.clone().with_window(3, 0).expect("a window")),
        Settings {
            bias: Some(Bias::alibi()),
            ..Settings::softmax(mask)
        },
        Settings::pairs(SquaredProduct, mask),
        Settings {
            form: Form::LinearTime,
            ..Settings::pairs(SquaredProduct, mask)
        },
        Settings {
            form: Form::Pairwise,
            ..Settings::features(elu::Elu { width: 4 }, mask)
        },
        Settings::features(elu::Elu { width: 4 }, mask),
        Settings::scan(retention_scan::RetentionScan, mask),
    ]
}

/// Queries of four heads, keys and values of two.
fn arrays() -> [Array4<f64>; 3] {
    [
        random([3, 4, 12, 4], "q"),
        random([3, 2, 12, 4], "k"),
        random([3, 2, 12, 3], "v"),
    ]
}

fn assert_near(got: ArrayView4<f64>, want: ArrayView4<f64>, settings: &Settings<f64>) {
    assert!(
        (&got - &want).iter().all(|x| x.abs() < 1e-9),
        "{settings:?}"
    );
}

/// Prompts of different lengths, then one position of each sequence at a time.
#[test]
fn sequences_of_different_lengths_go_on_after_their_own_ends() -> Result<(), Error> {
    let ([q, k, v], counts) = (arrays(), [5, 0, 8]);
    for settings in kinds() {
        let (whole, _) = attend(&settings, q.view(), k.view(), v.view())?;
        let mut decoder = Decoder::new(&settings, SIZE)?;
        let prompt = s![.., .., ..8, ..];
        let next = [&q, &k, &v].map(|x| x.slice(prompt));
        let mut got = whole.slice(prompt).to_owned();
        decoder.step_into(next, Some(&counts), None, got.view_mut())?;
        for (b, &count) in counts.iter().enumerate() {
            let own = s![b..b + 1, .., ..count, ..];
            assert_near(got.slice(own), whole.slice(own), &settings);
            assert!(got.slice(s![b, .., count.., ..]).iter().all(|&x| x == 0.0));
        }
        for n in 0..4 {
            let next = |x: &Array4<f64>| {
                let of = |b: usize| x.slice(s![b..b + 1, .., counts[b] + n..counts[b] + n + 1, ..]);
                bochner_engine::ndarray::concatenate(Axis(0), &[of(0), of(1), of(2)])
                    .expect("three sequences")
            };
            let got = decoder.step(next(&q).view(), next(&k).view(), next(&v).view())?;
            assert_near(got.view(), next(&whole.to_owned()).view(), &settings);
        }
        assert_eq!(decoder.lengths(), [9, 4, 12]);
        decoder.reorder(&[2, 0])?;
        assert_eq!(decoder.lengths(), [12, 9]);
        decoder.reorder(&[1, 1])?;
        assert_eq!(decoder.lengths(), [9, 9]);
    }
    Ok(())
}

#[test]
fn beams_may_become_more_and_fewer() -> Result<(), Error> {
    let [q, k, v] = arrays();
    for settings in kinds() {
        let (whole, _) = attend(&settings, q.view(), k.view(), v.view())?;
        let mut decoder = Decoder::new(&settings, SIZE)?;
        let mut order = vec![0, 1, 2];
        for (t, indices) in [
            [0, 1, 2].as_slice(),
            &[2, 2, 0, 1, 2],
            &[4, 0],
            &[1, 1, 0],
            &[2],
        ]
        .into_iter()
        .enumerate()
        {
            decoder.reorder(indices)?;
            order = indices.iter().map(|&b| order[b]).collect();
            let next = |x: ArrayView4<f64>| {
                x.slice(s![.., .., 2 * t..2 * t + 2, ..])
                    .select(Axis(0), &order)
            };
            let [x, y, z] = [q.view(), k.view(), v.view()].map(next);
            let got = decoder.step(x.view(), y.view(), z.view())?;
            assert_near(got.view(), next(whole.view()).view(), &settings);
        }
        assert!(decoder.reorder(&[1]).is_err() && decoder.reorder(&[]).is_err());
    }
    Ok(())
}

#[test]
fn positions_that_are_dropped_are_forgotten() -> Result<(), Error> {
    let ([q, k, v], kept) = (arrays(), [0, 3, 4, 9]);
    let marks: Vec<bool> = (0..12).map(|t| kept.contains(&t)).collect();
    for settings in kinds() {
        let mut decoder = Decoder::new(&settings, SIZE)?;
        decoder.push(k.view(), v.view(), None)?;
        if !decoder.can_branch() {
            continue;
        }
        (0..3).for_each(|b| decoder.keep(b, &marks));
        let [k, v] = [&k, &v].map(|x| x.select(Axis(2), &kept));
        let settings = Settings {
            mask: Mask::none(),
            ..settings
        };
        let (want, _) = attend(&settings, q.view(), k.view(), v.view())?;
        assert_near(decoder.attend(q.view())?.view(), want.view(), &settings);
        assert_eq!(decoder.lengths(), [4, 4, 4]);
    }
    Ok(())
}

/// The logit $\sqrt{9 - q \cdot k}$, which is not a number where the product is large.
#[derive(Clone, Debug)]
struct Root;

impl Score for Root {
    const RAW: Raw = Raw::Product;

    fn kind(&self) -> Kind {
        Kind::Logit
    }

    fn uses_positions(&self) -> bool {
        false
    }

    #[inline(always)]
    fn score<N: Number>(&self, raw: N, _: Pair<N>, _: &[N]) -> N {
        (N::of(9.0) - raw).sqrt()
    }
}

/// The features $\sqrt{9 + x_n}$.
#[derive(Debug)]
struct Roots;

impl FeatureMap<f64> for Roots {
    fn features(&self) -> usize {
        4
    }

    fn map(&self, rows: HeadRows<f64>, values: &mut [f64], _: &mut [f64]) {
        let numbers = values.iter_mut().zip(rows.x.data());
        numbers.for_each(|(f, &x)| *f = (9.0 + x).sqrt());
    }

    fn pull(&self, _: HeadRows<f64>, _: &[f64], _: &[f64], _: &mut [f64], _: &mut [f64]) {
        unreachable!("nothing is trained here");
    }
}

/// The error of a kernel leaves what was there; sums, which cannot be taken apart, are forgotten as a whole.
#[test]
fn a_step_that_fails_adds_nothing() -> Result<(), Error> {
    let [q, k, v] = arrays().map(|x| x * 0.5);
    let of_roots = |form| Settings {
        form,
        ..Settings::features(Roots, Mask::CAUSAL)
    };
    for settings in [
        Settings::score(Root, Mask::CAUSAL),
        Settings::score(Root, &Mask::causal().with_window(2, 0)?),
        of_roots(Form::Pairwise),
        of_roots(Form::LinearTime),
    ] {
        let (whole, _) = attend(&settings, q.view(), k.view(), v.view())?;
        let (first, last) = (s![.., .., ..7, ..], s![.., .., 7.., ..]);
        let mut decoder = Decoder::new(&settings, SIZE)?;
        let too_large = q.slice(last).mapv(|x| 100.0 * x);
        let result = decoder.step(too_large.view(), k.slice(last), v.slice(last));
        assert!(result.is_err() && decoder.lengths() == [0; 3]);
        let got = decoder.step(q.slice(first), k.slice(first), v.slice(first))?;
        assert_near(got.view(), whole.slice(first), &settings);
        let result = decoder.step(too_large.view(), k.slice(last), v.slice(last));
        assert!(result.is_err());
        if settings.form == Form::LinearTime {
            assert_eq!(decoder.lengths(), [0; 3]);
            continue;
        }
        assert_eq!(decoder.lengths(), [7; 3]);
        let got = decoder.step(q.slice(last), k.slice(last), v.slice(last))?;
        assert_near(got.view(), whole.slice(last), &settings);
    }
    Ok(())
}
