//! Decoding a few positions at a time is causal attention to the whole sequence.

use crate::conformance::common::*;
use crate::conformance::plain::PointSets;
use crate::conformance::plain::attend;
use crate::conformance::plain::{Plain, Similarity};
use crate::names;
use bochner_attention::engine::Error;
use bochner_attention::{
    Form, Magnitude, Mask,
    engine::{Decoder, DecoderSize},
};
use bochner_numerics::{ArgumentError, Real, Tolerance};
use ndarray::{Array4, ArrayView4, Axis, concatenate, s};
use proptest::prelude::*;
use std::sync::LazyLock;

pub(crate) const SIZE: DecoderSize = DecoderSize {
    batch: BATCH,
    heads: HEADS,
    width: WIDTH,
    value_width: VALUE_WIDTH,
};

pub(crate) static CAUSAL: LazyLock<Mask> = LazyLock::new(|| Mask::none().with_causality());
pub(crate) static WINDOW: LazyLock<Mask> =
    LazyLock::new(|| CAUSAL.clone().with_window(3, 0).unwrap());

fn of<T: Real>(similarity: Similarity<'_, T>, magnitude: Magnitude) -> Plain<'_, T> {
    Plain {
        similarity,
        magnitude,
        mask: &CAUSAL,
        dropout: None,
        form: Form::Pairwise,
    }
}

fn positions<T: Real>(x: &Array4<T>, from: usize, to: usize) -> ArrayView4<'_, T> {
    x.slice(s![.., .., from..to, ..])
}

/// The outputs of one decoder, cut into calls that end at `ends`.
pub(crate) fn decoded<T: Real>(
    decoder: &mut Decoder<T>,
    Example { q, k, v }: &Example<T>,
    ends: &[usize],
) -> Array4<T> {
    let starts = [0].iter().chain(ends);
    let outputs = starts.zip(ends).map(|(&from, &to)| {
        let [q, k, v] = [q, k, v].map(|x| positions(x, from, to));
        decoder.step(q, k, v).unwrap()
    });
    let outputs: Vec<Array4<T>> = outputs.collect();
    let views: Vec<_> = outputs.iter().map(|x| x.view()).collect();
    concatenate(Axis(2), &views).unwrap()
}

pub(crate) fn assert_within<T: Real>(got: ArrayView4<T>, want: ArrayView4<T>, label: &str) {
    assert_eq!(got.shape(), want.shape(), "{label}");
    let bound = Tolerance::outputs::<T>().bound(want.iter().map(|x| x.as_f64()));
    for (got, want) in got.iter().zip(want) {
        let error = (got.as_f64() - want.as_f64()).abs();
        assert!(error <= bound, "{label}: {got} instead of {want}");
    }
}

fn assert_continues<T: Real>(
    settings: &Plain<T>,
    example: &Example<T>,
    ends: &[usize],
    label: &str,
) {
    let Example { q, k, v } = example;
    let want = attend(q.view(), k.view(), v.view(), &settings.settings())
        .unwrap()
        .output;
    let mut decoder = Decoder::new(&settings.settings(), SIZE).unwrap();
    let got = decoded(&mut decoder, example, ends);
    assert_within(got.view(), want.view(), &format!("{label} {ends:?}"));
}

fn magnitudes() -> [Magnitude; 5] {
    [
        Magnitude::None,
        Magnitude::Norm { p: 2.0 },
        Magnitude::Norm { p: 1.5 },
        // Overflows.
        Magnitude::Norm { p: 0.01 },
        Magnitude::Released { p: 2.0 },
    ]
}

fn similarities(sets: &PointSets) -> Vec<(&'static str, Similarity<'_, f64>)> {
    let closed = [
        ("softmax", Similarity::Softmax),
        ("rbf", Similarity::Rbf),
        ("expsin", Similarity::Expsin { period: 1.3 }),
        ("linear", Similarity::Linear),
    ];
    let squared = ["stationary, shared", "non-stationary, own"];
    let squared = squared.map(|name| (name, sets.similarity(name)));
    closed.into_iter().chain(squared).collect()
}

/// The first rows have no key that is not orthogonal to them: the magnitudes alone decide.
#[test]
fn rows_whose_similarities_vanish() {
    let mut example = Example::<f64>::new(7, 7);
    example.q.slice_mut(s![.., .., .., 1..]).fill(0.0);
    example.k.slice_mut(s![.., .., ..4, 0]).fill(0.0);
    for magnitude in magnitudes() {
        let settings = of(Similarity::Linear, magnitude);
        assert_continues(
            &settings,
            &example,
            &[2, 3, 4, 5, 6, 7],
            &format!("{magnitude:?}"),
        );
    }
}

#[test]
fn sums_do_not_grow_with_the_sequence() {
    let sets = PointSets::new();
    let example = Example::<f64>::new(300, 300);
    let similarity = sets.similarity("non-stationary, own");
    let held = |form, length| {
        let settings = Plain {
            form,
            ..of(similarity, Magnitude::Norm { p: 2.0 })
        };
        let mut decoder = Decoder::new(&settings.settings(), SIZE).unwrap();
        decoded(&mut decoder, &example, &[1, length]);
        decoder.held()
    };
    assert_eq!(held(Form::LinearTime, 2), held(Form::LinearTime, 300));
    assert_eq!(150 * held(Form::Pairwise, 2), held(Form::Pairwise, 300));
}

#[test]
fn misuse_is_named() {
    let sets = PointSets::new();
    let similarity = sets.similarity("non-stationary, own");
    let settings = of(similarity, Magnitude::Norm { p: 2.0 });
    fn refused(settings: &Plain<f64>) -> bool {
        let decoder = Decoder::new(&settings.settings(), SIZE);
        matches!(decoder, Err(Error::Unsupported { .. }))
    }
    let sides = [(2, 2), (0, 1), (2, usize::MAX)];
    let window = |(left, right)| Mask::none().with_window(left, right).unwrap();
    let to_the_right = sides.map(window);
    let causal = [(2, 2), (2, usize::MAX)].map(|sides| window(sides).with_causality());
    let to_the_left = window((2, 0));
    let unsupported = [
        Mask::none().with_key_lengths(vec![1, 2]),
        Mask::none().with_matrix(matrix(3, 3).view()),
    ];
    for mask in &unsupported {
        assert!(refused(&Plain { mask, ..settings }));
    }
    // A decoder never sees what comes later: there is no window to the right, unless causality empties it.
    for mask in &to_the_right {
        assert!(refused(&Plain { mask, ..settings }), "{mask:?}");
    }
    for mask in causal.iter().chain([&to_the_left]) {
        assert!(!refused(&Plain { mask, ..settings }), "{mask:?}");
    }
    assert!(refused(&Plain {
        dropout: TRAINING.weight_dropout().unwrap(),
        ..settings
    }));
    let similarity = Similarity::Linear;
    assert!(refused(&Plain {
        similarity,
        form: Form::LinearTime,
        ..settings
    }));
    let none = DecoderSize { heads: 0, ..SIZE };
    assert!(matches!(
        Decoder::new(&settings.settings(), none),
        Err(Error::Argument(error)) if error.name() == "heads"
    ));

    let example = Example::<f64>::new(3, 3);
    let [q, k, v] = [&example.q, &example.k, &example.v].map(|x| x.view());
    let in_linear_time = Plain {
        form: Form::LinearTime,
        ..settings
    };
    let mut decoder = Decoder::new(&in_linear_time.settings(), SIZE).unwrap();
    let wrong = [
        decoder.step(q, k, q).unwrap_err(),
        decoder.step(v, k, v).unwrap_err(),
        decoder.step(positions(&example.q, 0, 2), k, v).unwrap_err(),
    ];
    assert!(
        wrong
            .iter()
            .all(|error| matches!(error, Error::Argument(ArgumentError::Shape { .. })))
    );
    let wrong = decoder.step_with_counts(q, k, v, &[4, 0]).unwrap_err();
    assert!(matches!(wrong, Error::Mask { what: "counts", .. }));
    let [none, no_values] = [k, v].map(|x| x.slice_move(s![.., .., ..0, ..]));
    let wrong = decoder.push(none, no_values).unwrap_err();
    assert!(names(&wrong.into(), "k"));
    assert_eq!(decoder.lengths(), [0, 0]);
    decoder.step(q, k, v).unwrap();
    assert!(matches!(
        decoder.truncate(2),
        Err(Error::Unsupported { .. })
    ));
    assert!(decoder.truncate(3).is_ok() && decoder.truncate(0).is_ok());
    assert!(matches!(
        decoder.reorder(&[]),
        Err(Error::Argument(ArgumentError::Empty { .. }))
    ));
    assert!(matches!(
        decoder.reorder(&[2]),
        Err(Error::Argument(ArgumentError::Index { .. }))
    ));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(ProptestConfig::default().cases.div_ceil(5)))]

    /// Wherever the calls begin and end, and however loud the keys are.
    #[test]
    fn cuts_do_not_matter(
        cuts in prop::collection::btree_set(1_usize..40, 0..12),
        loudness in prop::collection::vec(-3.0_f64..3.0, 40),
        kind in 0_usize..5,
        magnitude in 0_usize..4,
    ) {
        let sets = PointSets::new();
        let mut example = Example::<f64>::new(40, 40);
        for (mut k, loudness) in example.k.axis_iter_mut(Axis(2)).zip(&loudness) {
            k *= loudness.exp();
        }
        let (name, similarity) = similarities(&sets)[kind];
        let ends: Vec<usize> = cuts.into_iter().chain([40]).collect();
        let settings = of(similarity, magnitudes()[magnitude]);
        assert_continues(&settings, &example, &ends, name);
        if matches!(similarity, Similarity::Squared { .. }) {
            let settings = Plain { form: Form::LinearTime, ..settings };
            assert_continues(&settings, &example, &ends, name);
        }
    }
}
