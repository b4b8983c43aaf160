//! Invalid arguments are refused by an error that names them.

use crate::errors_of_features::Ones;
use crate::errors_of_scans::Copy;
use bochner_engine::ndarray::{Array1, Array2, Array4, array};
use bochner_engine::numerics::Real;
use bochner_engine::numerics::check::random;
use bochner_engine::{
    Bias, Decoder, DecoderSize, Error, Gradients, Kind, Mask, Number, Pair, PairKernel, Raw, Saved,
    Score, Scored, Settings, Softmax, Sum, Tile, Unnormalised, Wanted, attend, attend_vjp,
};
use std::sync::Arc;

pub(crate) fn x<T: Real>() -> Array4<T> {
    random([2, 2, 5, 4], "x")
}

/// The size of a decoder for [`x`].
pub(crate) const SIZE: DecoderSize = DecoderSize {
    batch: 2,
    heads: 2,
    width: 4,
    value_width: 4,
};

pub(crate) fn refused<T: Real>(settings: &Settings<T>) -> Error {
    let x = x();
    attend(settings, x.view(), x.view(), x.view())
        .map(drop)
        .expect_err("refused")
}

pub(crate) fn names(error: &Error, name: &str) -> bool {
    matches!(error, Error::Argument(error) if error.name() == name)
}

/// A score that is not finite at one pair.
#[derive(Clone, Debug)]
struct Wrong {
    kind: Kind,
    score: f64,
}

impl Score for Wrong {
    const RAW: Raw = Raw::Product;

    fn kind(&self) -> Kind {
        self.kind
    }

    #[inline(always)]
    fn score<N: Number>(&self, raw: N, pair: Pair<N>, _: &[N]) -> N {
        let off = (pair.query - N::of(3.0)).abs()
            + (pair.key - N::of(2.0)).abs()
            + N::of((1.0 - pair.head as f64).abs());
        off.if_less(N::of(0.5), N::of(self.score), raw.square())
    }
}

#[test]
fn a_score_that_is_not_finite_names_its_pair() -> Result<(), Error> {
    let elsewhere = |mask: Mask| mask.with_pairs(|i, j| (i, j) != (3, 2));
    for (kind, score) in [
        (Kind::Logit, f64::NAN),
        (Kind::Logit, f64::INFINITY),
        (Kind::Weight, f64::NAN),
    ] {
        let of = |mask: &Mask| Settings::<f32>::score(Wrong { kind, score }, mask);
        let error = refused(&of(Mask::NONE));
        assert!(
            matches!(error, Error::Score { example: 0, head: 1, query: 3, key: 2, got } if !got.is_finite()),
            "{error}"
        );
        // It does not matter where the mask hides it, forward and backward.
        let (settings, x) = (of(&elsewhere(Mask::none())), x());
        let (_, saved) = attend(&settings, x.view(), x.view(), x.view())?;
        let wanted = Wanted {
            kernel: true,
            ..Wanted::default()
        };
        pull_self(&settings, &saved, &x, wanted)?;
        let mut decoder = Decoder::new(&of(Mask::CAUSAL), SIZE)?;
        let error = decoder.step(x.view(), x.view(), x.view()).unwrap_err();
        assert!(
            matches!(
                error,
                Error::Score {
                    example: 0,
                    head: 1,
                    query: 3,
                    key: 2,
                    ..
                }
            ),
            "{error}"
        );
    }
    // Minus infinity hides a pair of logits.
    attend(
        &Settings::score(
            Wrong {
                kind: Kind::Logit,
                score: f64::NEG_INFINITY,
            },
            Mask::NONE,
        ),
        x::<f64>().view(),
        x().view(),
        x().view(),
    )?;
    Ok(())
}

/// A score that hides every pair.
#[derive(Clone, Debug)]
struct Nothing;

impl Score for Nothing {
    const RAW: Raw = Raw::Product;

    fn kind(&self) -> Kind {
        Kind::Logit
    }

    #[inline(always)]
    fn score<N: Number>(&self, raw: N, _: Pair<N>, _: &[N]) -> N {
        raw.if_less(N::of(f64::MAX), N::of(f64::NEG_INFINITY), raw)
    }
}

#[test]
fn a_score_may_hide_every_pair() -> Result<(), Error> {
    let (settings, x) = (Settings::score(Nothing, Mask::NONE), x::<f64>());
    let (output, saved) = attend(&settings, x.view(), x.view(), x.view())?;
    let gradients = pull_self(&settings, &saved, &x, Wanted::default())?;
    let mut all = output
        .iter()
        .chain(&gradients.q)
        .chain(&gradients.k)
        .chain(&gradients.v);
    assert!(all.all(|&x| x == 0.0));
    Ok(())
}

/// Finite scores whose slopes are NaN.
#[derive(Clone, Debug)]
struct Steep;

impl<T: Real> PairKernel<T> for Steep {
    fn kind(&self) -> Kind {
        Kind::Logit
    }

    fn slopes(&self, _: &Tile<T>, raw: &mut [T], scores: &mut [T]) {
        scores.copy_from_slice(raw);
        raw.fill(T::nan());
    }
}

/// A score with one learnt number.
#[derive(Clone, Debug)]
struct Shifted;

impl Score for Shifted {
    const RAW: Raw = Raw::Product;

    fn kind(&self) -> Kind {
        Kind::Logit
    }

    fn parameters(&self) -> usize {
        1
    }

    #[inline(always)]
    fn score<N: Number>(&self, raw: N, _: Pair<N>, learnt: &[N]) -> N {
        raw + learnt[0]
    }
}

#[test]
fn slopes_that_are_not_finite_are_errors() -> Result<(), Error> {
    let (settings, x) = (Settings::pairs(Steep, Mask::NONE), x::<f64>());
    let (_, saved) = attend(&settings, x.view(), x.view(), x.view())?;
    let error = pull_self(&settings, &saved, &x, Wanted::default()).unwrap_err();
    assert!(
        matches!(
            error,
            Error::Slope {
                array: "q",
                example: 0,
                head: 0
            }
        ),
        "{error}"
    );
    Ok(())
}

#[test]
fn arrays_whose_sizes_disagree_are_named() -> Result<(), Error> {
    let array = |heads, time, width| Array4::<f64>::zeros((2, heads, time, width));
    let (settings, q) = (Settings::softmax(Mask::NONE), array(2, 5, 4));
    for (k, v, name) in [
        (array(2, 5, 3), array(2, 5, 4), "k"),
        (array(2, 5, 5), array(2, 5, 4), "k"),
        (array(2, 5, 4), array(2, 6, 4), "v"),
        (array(2, 5, 4), array(1, 5, 4), "v"),
        (array(2, 5, 4), array(2, 5, 0), "v"),
        (array(2, 0, 4), array(2, 0, 4), "k"),
        (array(3, 5, 4), array(3, 5, 4), "heads of k"),
    ] {
        let error = attend(&settings, q.view(), k.view(), v.view()).unwrap_err();
        assert!(names(&error, name), "{name}: {error}");
    }
    let (_, saved) = attend(&settings, q.view(), q.view(), q.view())?;
    let (narrow, wanted) = (array(2, 5, 3), Wanted::default());
    let [q, narrow] = [q.view(), narrow.view()];
    let error = attend_vjp(&settings, &saved, q, q, q, narrow, wanted).unwrap_err();
    assert!(names(&error, "cotangent"), "{error}");
    Ok(())
}

#[test]
fn learnt_numbers_have_the_length_of_the_score() {
    for wrong in [(1, 1), (3, 1), (2, 2), (0, 0)] {
        let error = refused(&Settings::<f64>::pairs(
            Scored::with_parameters(Shifted, Array2::zeros(wrong)),
            Mask::NONE,
        ));
        assert!(names(&error, "parameters of the score"), "{error}");
    }
    let none = Scored::with_parameters(Nothing, Array2::zeros((2, 1)));
    assert!(names(
        &refused(&Settings::<f64>::pairs(none, Mask::NONE)),
        "parameters of the score"
    ));
    let nan = Scored::with_parameters(Shifted, array![[1.0], [f64::NAN]]);
    assert!(names(
        &refused(&Settings::pairs(nan, Mask::NONE)),
        "parameters of the score"
    ));
}

#[test]
fn normalisers_take_their_kind_and_their_sinks() {
    let weight = || {
        Settings::<f32>::score(
            Wrong {
                kind: Kind::Weight,
                score: 1.0,
            },
            Mask::NONE,
        )
    };
    let sink = |numbers: &[f32]| Some(Arc::new(Array1::from_vec(numbers.to_vec())));
    let error = refused(&Settings {
        normaliser: Arc::new(Softmax),
        ..weight()
    });
    assert!(
        matches!(
            error,
            Error::Kind {
                expected: Kind::Logit,
                got: Kind::Weight,
                ..
            }
        ),
        "{error}"
    );
    let error = refused(&Settings::<f32> {
        normaliser: Arc::new(Sum),
        ..Settings::softmax(Mask::NONE)
    });
    assert!(
        matches!(
            error,
            Error::Kind {
                expected: Kind::Weight,
                got: Kind::Logit,
                ..
            }
        ),
        "{error}"
    );
    let error = refused(&Settings {
        normaliser: Arc::new(Unnormalised),
        sink: sink(&[0.0, 0.0]),
        ..weight()
    });
    assert!(error.to_string().contains("sink"), "{error}");
    for wrong in [
        &[0.0][..],
        &[0.0; 3],
        &[0.0, f32::NAN],
        &[f32::INFINITY, 0.0],
    ] {
        let error = refused(&Settings {
            sink: sink(wrong),
            ..Settings::softmax(Mask::NONE)
        });
        assert!(names(&error, "sink"), "{error}");
    }
}

#[test]
fn visible_numbers_out_of_range_are_named() -> Result<(), Error> {
    let settings = Settings::softmax(Mask::NONE);
    let size = DecoderSize {
        batch: 2,
        heads: 4,
        width: 4,
        value_width: 4,
    };
    for got in [5e9_f32, -5e9, f32::INFINITY, f32::NAN] {
        for (n, name) in ["q", "k", "v", "cotangent"].into_iter().enumerate() {
            let heads = [4, 2, 2, 4];
            let mut arrays = heads.map(|heads| random::<f32, _>([2, heads, 3, 4], "x"));
            let (_, saved) = attend(
                &settings,
                arrays[0].view(),
                arrays[1].view(),
                arrays[2].view(),
            )?;
            let last = heads[n] - 1;
            arrays[n][[1, last, 2, 3]] = got;
            let [q, k, v, cotangent] = arrays.each_ref().map(|x| x.view());
            let error = match n {
                3 => attend_vjp(&settings, &saved, q, k, v, cotangent, Wanted::default()).map(drop),
                _ => attend(&settings, q, k, v).map(drop),
            };
            let named = |error: Error| {
                let Error::OutOfRange {
                    array,
                    index,
                    got: found,
                    ..
                } = error
                else {
                    panic!("{error}")
                };
                assert_eq!((array, index), (name, [1, last, 2, 3]));
                assert_eq!(found.to_bits(), f64::from(got).to_bits());
            };
            named(error.unwrap_err());
            if n < 3 {
                let mut decoder = Decoder::new(&settings, size)?;
                named(decoder.step(q, k, v).unwrap_err());
                assert_eq!(decoder.lengths(), [0, 0]);
            }
        }
    }
    Ok(())
}

#[test]
fn features_and_scans_have_no_logits() {
    let bias = || Some(Bias::<f32>::alibi());
    for settings in [
        Settings::features(Ones, Mask::CAUSAL),
        Settings::scan(Copy, Mask::CAUSAL),
    ] {
        assert!(matches!(
            refused(&Settings {
                bias: bias(),
                ..settings.clone()
            }),
            Error::Unsupported { .. }
        ));
        let sink = Some(Arc::new(array![0.0, 0.0]));
        assert!(matches!(
            refused(&Settings { sink, ..settings }),
            Error::Unsupported { .. }
        ));
    }
}

/// The gradients of self-attention whose cotangent is its input.
fn pull_self<T: Real>(
    settings: &Settings<T>,
    saved: &Saved<T>,
    x: &Array4<T>,
    wanted: Wanted,
) -> Result<Gradients<T>, Error> {
    let x = x.view();
    attend_vjp(settings, saved, x, x, x, x, wanted)
}

#[test]
fn a_saved_pass_belongs_to_its_settings() -> Result<(), Error> {
    let (settings, x) = (Settings::softmax(Mask::CAUSAL), x::<f64>());
    let (_, saved) = attend(&settings, x.view(), x.view(), x.view())?;
    let wrong = |settings: &Settings<f64>, x: &Array4<f64>| {
        let error = pull_self(settings, &saved, x, Wanted::default()).unwrap_err();
        assert!(matches!(error, Error::Saved { .. }), "{error}");
    };
    wrong(&settings, &random([2, 2, 6, 4], "x"));
    wrong(&Settings::features(Ones, Mask::CAUSAL), &x);
    wrong(&Settings::scan(Copy, Mask::CAUSAL), &x);
    for wanted in [
        Wanted {
            bias: true,
            ..Wanted::default()
        },
        Wanted {
            sink: true,
            ..Wanted::default()
        },
    ] {
        let error = pull_self(&settings, &saved, &x, wanted).unwrap_err();
        assert!(matches!(error, Error::Unsupported { .. }), "{error}");
    }
    Ok(())
}

/// Without a division, the factor of a hidden pair with a large bias is infinite.
#[test]
fn a_large_bias_of_a_hidden_pair_does_not_matter() -> Result<(), Error> {
    let x = x::<f32>();
    let of = |hidden: f32| {
        let bias = Array2::from_shape_fn((5, 5), |(i, j)| if j > i { hidden } else { 0.1 });
        let bias = bias
            .into_shape_with_order((1, 1, 5, 5))
            .expect("25 numbers");
        let bias = Some(Bias::fixed(bias.view())?);
        let weight = Settings::score(
            Wrong {
                kind: Kind::Weight,
                score: 1.0,
            },
            Mask::CAUSAL,
        );
        let settings = Settings {
            bias,
            normaliser: Arc::new(Unnormalised),
            ..weight
        };
        let (output, saved) = attend(&settings, x.view(), x.view(), x.view())?;
        let wanted = Wanted {
            bias: true,
            ..Wanted::default()
        };
        let gradients = pull_self(&settings, &saved, &x, wanted)?;
        Ok::<_, Error>((output.to_owned(), gradients))
    };
    assert_eq!(of(1e30)?, of(0.0)?);
    Ok(())
}
