//! Without a tape a layer gives the numbers that it gives with one.

use super::{PASS, WIDTH, array, layer, sequence, variants, variants_across};
use bochner_attention::{Error, Form, IkanDirect, Mask, Mikan, Pass, Preset, Workspace};
use bochner_numerics::{ArgumentError, Seed};
use dfdx::prelude::*;
use ndarray::{Array3, s};

#[test]
fn to_the_bit_for_every_mechanism_and_any_number_of_sequences() {
    let workspace = Workspace::new();
    // An average over draws is not attention by some settings.
    let averaged = Mikan {
        draws: 2,
        ..Mikan::default()
    };
    for variant in variants_across().chain([averaged.into()]) {
        let layer = layer(variant);
        let mut inference = layer.inference(PASS).unwrap();
        for (batch, queries, keys) in [(2, 4, 7), (1, 4, 7), (2, 4, 7), (2, 9, 3)] {
            let (x, y) = (sequence(batch, queries), sequence(batch, keys));
            let mask = Mask::none().with_key_lengths(vec![2; batch]);
            let want = layer.attend(x.clone(), y.clone(), &mask, PASS).unwrap();
            let (x, y) = (array(&x), array(&y));
            let mut got = Array3::from_elem(x.raw_dim(), f64::NAN);
            let got_view = got.view_mut();
            let done = inference.attend(x.view(), y.view(), &mask, &workspace, got_view);
            done.unwrap();
            assert_eq!(got, array(&want.output), "{layer:?}");
        }
        let x = sequence(3, 5);
        let want = layer.attend_self(x.clone(), &Mask::none(), PASS).unwrap();
        // Arrays in another order.
        let x = array(&x).reversed_axes().as_standard_layout().into_owned();
        let (x, mut got) = (x.view().reversed_axes(), Array3::zeros((WIDTH, 5, 3)));
        let got_view = got.view_mut().reversed_axes();
        let done = inference.attend_self(x, &Mask::none(), &workspace, got_view);
        done.unwrap();
        assert_eq!(got.view().reversed_axes(), array(&want.output));
    }
}

/// With key lengths alone: a sequence's queries are as long as its keys.
#[test]
fn what_stands_at_padded_places_changes_nothing() {
    let (batch, time, workspace) = (2, 7, Workspace::new());
    let mask = Mask::none().with_key_lengths(vec![4, time]);
    let x = sequence(batch, time);
    let mut other = array(&x);
    other.slice_mut(s![0, 4.., ..]).fill(3.0);
    let (other, _) = other.into_raw_vec_and_offset();
    let other = Cpu::default().tensor_from_vec(other, (batch, time, WIDTH));
    for variant in variants() {
        let layer = layer(variant);
        let attended = [&x, &other].map(|x| layer.attend_self(x.clone(), &mask, PASS).unwrap());
        let outputs = attended.each_ref().map(|attended| array(&attended.output));
        for (example, kept) in [(0, 4), (1, time)] {
            let [got, want] = (outputs.each_ref()).map(|y| y.slice(s![example, ..kept, ..]));
            assert_eq!(got, want, "{layer:?}");
        }
        let [got, want] = attended.map(|attended| attended.penalty.array());
        assert_eq!(got, want, "{layer:?}");
        let mut inferred = Array3::zeros((batch, time, WIDTH));
        let mut inference = layer.inference(PASS).unwrap();
        let (x, out) = (array(&x), inferred.view_mut());
        let done = inference.attend_self(x.view(), &mask, &workspace, out);
        done.unwrap();
        assert_eq!(inferred, outputs[0], "{layer:?}");
    }
}

/// The released code drops magnitudes beside weights.
#[test]
fn with_dropout_too() {
    let (released, seed) = (Preset::Released, Seed::new(7));
    let released = IkanDirect {
        preset: released,
        ..IkanDirect::default()
    };
    for (own, dropout) in [
        (IkanDirect::default(), 0.3),
        (released.clone(), 0.3),
        (released, 0.0),
    ] {
        let pass = Pass::Training { seed, dropout };
        let layer = layer(own.into());
        let x = sequence(2, 5);
        let want = layer.attend_self(x.clone(), &Mask::none(), pass).unwrap();
        let mut inference = layer.inference(pass).unwrap();
        let (mut got, workspace) = (Array3::zeros((2, 5, WIDTH)), Workspace::new());
        let (x, out) = (array(&x), got.view_mut());
        let done = inference.attend_self(x.view(), &Mask::none(), &workspace, out);
        done.unwrap();
        assert_eq!(got, array(&want.output), "{layer:?}");
        // A decoder cannot drop pairs, and says so.
        let decoder = layer.decoder(2, Form::Pairwise, pass);
        assert!(
            matches!(decoder, Err(Error::Unsupported { .. })),
            "{layer:?}"
        );
    }
}

#[test]
fn what_does_not_fit_is_named() {
    let (workspace, mask) = (Workspace::new(), Mask::none().with_causality());
    let mut inference = layer(Mikan::default().into()).inference(PASS).unwrap();
    let (x, mut y) = (Array3::zeros((2, 5, WIDTH)), Array3::zeros((2, 5, WIDTH)));
    // The spectral points would see the future.
    let got = inference.attend_self(x.view(), &mask, &workspace, y.view_mut());
    assert!(matches!(got, Err(Error::Unsupported { .. })), "{got:?}");
    let none = Mask::none();
    let narrow = s![.., .., 1..];
    let got = inference.attend_self(x.slice(narrow), &none, &workspace, y.view_mut());
    assert!(
        matches!(got, Err(Error::Argument(ArgumentError::Shape { .. }))),
        "{got:?}"
    );
    let got = inference.attend_self(x.view(), &none, &workspace, y.slice_mut(s![.., 1.., ..]));
    assert!(
        matches!(got, Err(Error::Argument(ArgumentError::Shape { .. }))),
        "{got:?}"
    );
}
