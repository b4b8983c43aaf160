//! A decoder under a window holds the positions that the window still reaches, and gives what attention to the whole
//! sequence gives.

use crate::conformance::common::*;
use crate::conformance::decoding_continues_the_sequence::{CAUSAL, SIZE};
use crate::conformance::keys_can_be_shared::settings_of_every_kernel;
use bochner_attention::engine::Error;
use bochner_attention::{
    Bias, Mask, Settings,
    engine::{Decoder, DecoderSize},
};
use bochner_numerics::operations::count;
use ndarray::{Array4, Axis, concatenate, s};
use std::ops::Range;

/// Positions, enough for random features to forget a block of 128.
const LENGTH: usize = 330;

fn window(left: usize) -> Mask {
    CAUSAL.clone().with_window(left, 0).unwrap()
}

/// Queries, and keys and values of fewer heads, some of them loud.
fn example(heads: usize, key_heads: usize) -> Example<f64> {
    let array = |heads, width, name| random((BATCH, heads, LENGTH, width), name);
    let mut k: Array4<f64> = array(key_heads, WIDTH, "k");
    k.slice_mut(s![.., .., 60..64, ..])
        .mapv_inplace(|x| 6.0 * x);
    Example {
        q: array(heads, WIDTH, "q"),
        k,
        v: array(key_heads, VALUE_WIDTH, "v"),
    }
}

fn decoder(settings: &Settings<f64>, heads: usize) -> Decoder<f64> {
    Decoder::new(settings, DecoderSize { heads, ..SIZE }).unwrap()
}

/// The outputs at some positions, as many at a time as `pieces` says again and again; and what was held after each
/// of these calls.
fn decoded(
    decoder: &mut Decoder<f64>,
    Example { q, k, v }: &Example<f64>,
    positions: Range<usize>,
    pieces: &[usize],
) -> (Array4<f64>, Vec<usize>) {
    let (mut outputs, mut held, mut from) = (Vec::new(), Vec::new(), positions.start);
    for piece in pieces.iter().cycle() {
        let to = (from + piece).min(positions.end);
        if from == to {
            break;
        }
        let at = s![.., .., from..to, ..];
        outputs.push(decoder.step(q.slice(at), k.slice(at), v.slice(at)).unwrap());
        held.push(decoder.held());
        from = to;
    }
    let views: Vec<_> = outputs.iter().map(|x| x.view()).collect();
    (concatenate(Axis(2), &views).unwrap(), held)
}

/// Calls `check` with every kernel under windows of one position, a few, some panels, and more than all, with every
/// bias that follows from positions.
fn for_every_window(mut check: impl FnMut(&Settings<f64>, &Example<f64>, usize, &str)) {
    let heads = 4;
    for (left, key_heads) in [(1, 4), (3, 1), (70, 2), (LENGTH, 4)] {
        let (example, table) = (example(heads, key_heads), random((heads, 7), "table"));
        let slopes_and_table = [Bias::alibi(), Bias::relative(table.view()).unwrap()];
        let biases = [None].into_iter().chain(slopes_and_table.map(Some));
        for bias in biases {
            for settings in settings_of_every_kernel(heads, &CAUSAL) {
                let mask = window(left);
                let bias = bias.clone();
                let settings = Settings {
                    mask,
                    bias,
                    ..settings
                };
                let label = format!("{left}, {key_heads} heads: {settings:?}");
                let size = DecoderSize { heads, ..SIZE };
                match Decoder::new(&settings, size) {
                    Ok(_) => check(&settings, &example, left, &label),
                    // Random features know no bias, sums no window.
                    Err(Error::Unsupported { .. }) => {}
                    Err(error) => panic!("{label}: {error}"),
                }
            }
        }
    }
}

#[test]
fn memory_stops_growing() {
    for_every_window(|settings, example, left, label| {
        let (_, held) = decoded(&mut decoder(settings, 4), example, 0..LENGTH, &[1]);
        let most = |calls: &[usize]| calls.iter().copied().max().unwrap();
        if left == LENGTH {
            assert_eq!(held[LENGTH - 1], LENGTH * held[0], "{label}");
        } else {
            let (early, late) = held.split_at(LENGTH - 128);
            assert_eq!(most(late), most(early), "{label}");
            // A quarter and a panel more than a window's, or two blocks of random features.
            assert!(most(late) <= (left + 256) * held[0], "{label}");
        }
        // A prompt leaves as much.
        let mut decoder = decoder(settings, 4);
        let (_, after) = decoded(&mut decoder, example, 0..LENGTH, &[LENGTH]);
        assert!(after[0] <= most(&held), "{label}");
        decoder.reset();
        let at = s![.., .., .., ..];
        decoder
            .push(example.k.slice(at), example.v.slice(at))
            .unwrap();
        assert_eq!(decoder.held(), after[0], "{label}");
    });
}

#[test]
fn a_step_takes_no_more_operations_late_than_early() {
    let example = example(HEADS, HEADS);
    let settings = Settings::softmax(&window(40));
    let mut decoder = decoder(&settings, HEADS);
    // Panels of 32 positions are begun and forgotten.
    let mut of_a_panel = |n: usize| {
        let positions = 32 * n..32 * (n + 1);
        let (_, operations) = count(|| decoded(&mut decoder, &example, positions, &[1]));
        operations
    };
    let each: Vec<_> = (0..LENGTH / 32).map(&mut of_a_panel).collect();
    assert_ne!(each[0], each[3]);
    assert!(each[3..].iter().all(|own| *own == each[3]), "{each:?}");
}

#[test]
fn a_window_goes_back_no_further_than_it_is_held() {
    let example = example(HEADS, HEADS);
    let settings = Settings::softmax(&window(3));
    let step = |decoder: &mut Decoder<f64>, from: usize, to: usize| {
        let at = s![.., .., from..to, ..];
        let Example { q, k, v } = &example;
        decoder.step(q.slice(at), k.slice(at), v.slice(at)).unwrap()
    };
    let mut going = decoder(&settings, HEADS);
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
    let (mut left, mut fresh) = (going.clone(), decoder(&settings, HEADS));
    left.truncate(shortest).unwrap();
    step(&mut fresh, 0, shortest);
    let next = |decoder: &mut _| step(decoder, shortest, shortest + 1);
    assert_close(&next(&mut left), &next(&mut fresh), "the shortest");
    going.truncate(88).unwrap();
    assert_eq!(going.lengths(), [88; BATCH]);
    step(&mut going, 88, 90);
    assert_eq!(step(&mut going, 90, 91), want);
    // One sequence of the batch is short enough to lose nothing.
    let mut uneven = decoder(&settings, HEADS);
    let at = s![.., .., ..90, ..];
    let Example { k, v, .. } = &example;
    let (k, v) = (k.slice(at), v.slice(at));
    uneven.push_of(k, v, Some(&[90, 20])).unwrap();
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
