//! Decoding a few positions at a time is causal attention to the whole sequence.

use crate::conformance::common::*;
use crate::conformance::plain::attend;
use bochner_attention::{
    Magnitude, Mask, Settings,
    engine::{Decoder, DecoderSize, Error},
    kernels,
};
use bochner_numerics::{Real, Tolerance};
use ndarray::{Array4, ArrayView4, Axis, concatenate, s};
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
    settings: &Settings<T>,
    example: &Example<T>,
    ends: &[usize],
    label: &str,
) {
    let Example { q, k, v } = example;
    let want = attend(q.view(), k.view(), v.view(), settings)
        .unwrap()
        .output;
    let mut decoder = Decoder::new(settings, SIZE).unwrap();
    let got = decoded(&mut decoder, example, ends);
    assert_within(got.view(), want.view(), &format!("{label} {ends:?}"));
}

/// The last one overflows.
const MAGNITUDES: [Magnitude; 5] = [
    Magnitude::None,
    Magnitude::Norm { p: 2.0 },
    Magnitude::Norm { p: 1.5 },
    Magnitude::Released { p: 2.0 },
    Magnitude::Norm { p: 0.01 },
];

/// The first rows have no key that is not orthogonal to them: the magnitudes alone decide.
#[test]
fn rows_whose_similarities_vanish() {
    let mut example = Example::<f64>::new(7, 7);
    example.q.slice_mut(s![.., .., .., 1..]).fill(0.0);
    example.k.slice_mut(s![.., .., ..4, 0]).fill(0.0);
    for magnitude in MAGNITUDES {
        let settings = kernels::linear(&CAUSAL).with_key_weight(magnitude);
        let label = format!("{magnitude:?}");
        assert_continues(&settings, &example, &[2, 3, 4, 5, 6, 7], &label);
    }
}

#[test]
fn a_window_goes_back_no_further_than_it_is_held() {
    let example = Example::<f64>::new(100, 100);
    let settings = Settings::softmax(&WINDOW);
    let step = |decoder: &mut Decoder<f64>, from: usize, to: usize| {
        let at = s![.., .., from..to, ..];
        let Example { q, k, v } = &example;
        decoder.step(q.slice(at), k.slice(at), v.slice(at)).unwrap()
    };
    let decoder = || Decoder::new(&settings, SIZE).unwrap();
    let mut going = decoder();
    step(&mut going, 0, 90);
    let want = step(&mut going.clone(), 90, 91);
    // The cache drops whole blocks of 32: after 90 positions, position 60 may be gone and position 88 is held.
    assert!(matches!(going.truncate(60), Err(Error::Unsupported { .. })));
    assert_eq!(going.lengths(), [90; BATCH]);
    assert_eq!(step(&mut going.clone(), 90, 91), want);
    // The shortest that is left is one of which the next query sees all that it should.
    let mut lengths = 61..90;
    let shortest = lengths.find(|&length| going.clone().truncate(length).is_ok());
    let shortest = shortest.unwrap();
    let (mut left, mut fresh) = (going.clone(), decoder());
    left.truncate(shortest).unwrap();
    step(&mut fresh, 0, shortest);
    let next = |decoder: &mut _| step(decoder, shortest, shortest + 1);
    assert_close(&next(&mut left), &next(&mut fresh), "the shortest");
    going.truncate(88).unwrap();
    assert_eq!(going.lengths(), [88; BATCH]);
    step(&mut going, 88, 90);
    assert_eq!(step(&mut going, 90, 91), want);
    // One sequence of the batch is short enough to lose nothing.
    let mut uneven = decoder();
    let at = s![.., .., ..90, ..];
    let Example { k, v, .. } = &example;
    let (k, v) = (k.slice(at), v.slice(at));
    uneven.push(k, v, Some(&[90, 20])).unwrap();
    assert!(matches!(
        uneven.truncate(10),
        Err(Error::Unsupported { .. })
    ));
    assert_eq!(uneven.lengths(), [90, 20]);
    uneven.truncate(87).unwrap();
    assert_eq!(uneven.lengths(), [87, 20]);
    // A length beyond all sequences forgets nothing.
    let held = uneven.held();
    uneven.truncate(500).unwrap();
    assert_eq!((uneven.lengths(), uneven.held()), (&[87, 20][..], held));
    going.truncate(0).unwrap();
    assert_eq!((going.lengths(), going.held()), (&[0; BATCH][..], 0));
}
