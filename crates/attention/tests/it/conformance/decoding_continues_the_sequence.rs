//! Decoding a few positions at a time is causal attention to the whole sequence.

use crate::conformance::common::*;
use crate::conformance::plain::PointSets;
use crate::conformance::plain::attend;
use crate::conformance::plain::{Plain, Similarity};
use crate::names;
use bochner_attention::engine::Error;
use bochner_attention::{
    Form, Magnitude, Mask, Settings,
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

fn check_everything(example: &Example<f64>, ends: &[usize]) {
    let sets = PointSets::new();
    for (name, similarity) in similarities(&sets) {
        for magnitude in magnitudes() {
            let settings = of(similarity, magnitude);
            let label = format!("{name}, {magnitude:?}");
            assert_continues(&settings, example, ends, &label);
            let mask = &WINDOW;
            let windowed = Plain { mask, ..settings };
            assert_continues(&windowed, example, ends, &format!("{label}, window"));
            if matches!(similarity, Similarity::Squared { .. }) {
                let form = Form::LinearTime;
                let settings = Plain { form, ..settings };
                assert_continues(&settings, example, ends, &format!("{label}, linear"));
            }
        }
    }
}

#[test]
fn a_prompt_and_then_single_steps() {
    for scale in [1.0, 1e-3, 6.0] {
        let mut example = Example::<f64>::new(9, 9);
        example.k *= scale;
        check_everything(&example, &[5, 6, 7, 8, 9]);
    }
}

#[test]
fn blocks_are_crossed() {
    check_everything(
        &Example::<f64>::new(530, 530),
        &[130, 131, 255, 256, 257, 529, 530],
    );
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
fn sequences_of_different_lengths_go_on_after_their_own_ends() {
    let sets = PointSets::new();
    let example = Example::<f64>::new(8, 8);
    let counts = [5, 2];
    for form in [Form::Pairwise, Form::LinearTime] {
        let similarity = sets.similarity("non-stationary, own");
        let settings = Plain {
            form,
            ..of(similarity, Magnitude::Norm { p: 2.0 })
        };
        let mut decoder = Decoder::new(&settings.settings(), SIZE).unwrap();
        let [q, k, v] = [&example.q, &example.k, &example.v].map(|x| positions(x, 0, 5));
        let mut again = decoder.clone();
        let prompt = decoder.step_with_counts(q, k, v, &counts).unwrap();
        let mut written = Array4::from_elem(prompt.raw_dim(), f64::NAN);
        let done = again.step_with_counts_into(q, k, v, &counts, written.view_mut());
        done.unwrap();
        assert_eq!(written, prompt);
        assert!(prompt.slice(s![1, .., 2.., ..]).iter().all(|&x| x == 0.0));
        assert_eq!(decoder.lengths(), counts);
        let next = |x: &Array4<f64>| {
            let rows = [
                x.slice(s![..1, .., 5..6, ..]),
                x.slice(s![1.., .., 2..3, ..]),
            ];
            concatenate(Axis(0), &rows).unwrap()
        };
        let (q, k, v) = (next(&example.q), next(&example.k), next(&example.v));
        let got = decoder.step(q.view(), k.view(), v.view()).unwrap();
        let Example { q, k, v } = &example;
        let want = attend(q.view(), k.view(), v.view(), &settings.settings())
            .unwrap()
            .output;
        assert_within(got.view(), next(&want).view(), &format!("{form:?}"));
        assert_eq!(decoder.lengths(), [6, 3]);
        if form == Form::Pairwise {
            decoder.truncate(4).unwrap();
            assert_eq!(decoder.lengths(), [4, 3]);
        }
    }
}

#[test]
fn forgotten_positions_have_never_been() {
    let sets = PointSets::new();
    let example = Example::<f64>::new(8, 8);
    // Units for the louder ones would leave nothing of the others.
    let with_keys = |loud: f64| {
        let mut example = example.clone();
        example.k.slice_mut(s![.., .., 4.., ..]).fill(loud);
        example
    };
    let magnitudes = [Magnitude::None, Magnitude::Norm { p: 1.5 }];
    let loud = [30.0, 1e60].map(with_keys);
    for (name, similarity) in similarities(&sets) {
        for (magnitude, loud) in magnitudes
            .into_iter()
            .flat_map(|m| loud.iter().map(move |x| (m, x)))
        {
            let settings = of(similarity, magnitude);
            let mut decoder = Decoder::new(&settings.settings(), SIZE).unwrap();
            let want = decoded(&mut decoder, &example, &[4, 6, 8]);
            decoder.reset();
            assert_eq!((decoder.lengths(), decoder.held()), (&[0, 0][..], 0));
            decoded(&mut decoder, loud, &[4, 5, 8]);
            decoder.truncate(4).unwrap();
            assert_eq!(decoder.lengths(), [4, 4]);
            for (from, to) in [(4, 6), (6, 8)] {
                let [q, k, v] =
                    [&example.q, &example.k, &example.v].map(|x| positions(x, from, to));
                let got = decoder.step(q, k, v).unwrap();
                assert_eq!(got, positions(&want, from, to), "{name}");
            }
        }
    }
}

#[test]
fn sequences_can_be_exchanged_repeated_and_left_out() {
    let sets = PointSets::new();
    let example = Example::<f64>::new(4, 4);
    for form in [Form::Pairwise, Form::LinearTime] {
        for indices in [&[1, 0][..], &[1, 1, 0], &[1]] {
            let similarity = sets.similarity("non-stationary, own");
            let settings = Plain {
                form,
                ..of(similarity, Magnitude::Norm { p: 1.5 })
            };
            let mut decoder = Decoder::new(&settings.settings(), SIZE).unwrap();
            let want = decoded(&mut decoder.clone(), &example, &[3, 4]);
            decoded(&mut decoder, &example, &[3]);
            decoder.reorder(indices).unwrap();
            let next = [&example.q, &example.k, &example.v];
            let [q, k, v] = next.map(|x| positions(x, 3, 4).select(Axis(0), indices));
            let got = decoder.step(q.view(), k.view(), v.view()).unwrap();
            let want = positions(&want, 3, 4).select(Axis(0), indices);
            assert_eq!(got, want, "{form:?} {indices:?}");
        }
    }
}

/// A reorder moves the lengths of a decoder, and what `truncate` removes by them, with the sequences.
#[test]
fn exchanged_sequences_keep_their_lengths() {
    let settings = Settings::softmax(&Mask::none());
    let mut decoder = Decoder::new(&settings, SIZE).unwrap();
    let Example { q, k, v } = Example::<f64>::new(4, 4);
    let (q, k, v) = (q.view(), k.view(), v.view());
    decoder.step_with_counts(q, k, v, &[4, 1]).unwrap();
    decoder.reorder(&[1, 0, 1]).unwrap();
    assert_eq!(decoder.lengths(), [1, 4, 1]);
    decoder.truncate(2).unwrap();
    assert_eq!(decoder.lengths(), [1, 2, 1]);
}

/// Calls `check` with a decoder of each kernel in each form that it has.
fn for_every_decoder(check: impl Fn(Decoder<f64>, &str)) {
    let sets = PointSets::new();
    for (name, similarity) in similarities(&sets) {
        for form in [Form::Pairwise, Form::LinearTime] {
            let settings = Plain {
                form,
                ..of(similarity, Magnitude::Norm { p: 2.0 })
            };
            if let Ok(decoder) = Decoder::new(&settings.settings(), SIZE) {
                check(decoder, name);
            }
        }
    }
}

#[test]
fn pushed_positions_are_seen_by_those_that_follow() {
    let example = Example::<f64>::new(6, 6);
    let [q, k, v] = [&example.q, &example.k, &example.v];
    for_every_decoder(|mut decoder, name| {
        let want = decoded(&mut decoder.clone(), &example, &[5, 6]);
        decoder
            .push(positions(k, 0, 5), positions(v, 0, 5))
            .unwrap();
        let got = decoder.step(positions(q, 5, 6), positions(k, 5, 6), positions(v, 5, 6));
        assert_eq!(got.unwrap(), positions(&want, 5, 6), "{name}");
    });
}

#[test]
fn attending_remembers_nothing() {
    let example = Example::<f64>::new(6, 6);
    let [q, k, v] = [&example.q, &example.k, &example.v];
    let step = |decoder: &mut Decoder<f64>, from, to| {
        let [q, k, v] = [q, k, v].map(|x| positions(x, from, to));
        decoder.step(q, k, v).unwrap()
    };
    for_every_decoder(|mut decoder, name| {
        let want = decoded(&mut decoder.clone(), &example, &[3, 6]);
        step(&mut decoder, 0, 3);
        let got = decoder.attend(positions(q, 1, 3)).unwrap();
        // The last of the positions so far sees as much when it comes.
        let last = got.slice(s![.., .., 1.., ..]);
        assert_within(last, positions(&want, 2, 3), name);
        assert_eq!(decoder.lengths(), [3, 3]);
        assert_eq!(step(&mut decoder, 3, 6), positions(&want, 3, 6), "{name}");
    });
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
