//! Without a tape a layer gives the numbers that it gives with one.

use super::{PASS, WIDTH, array, layer, sequence, variants_across};
use bochner_attention::{Error, Form, IkanDirect, Mask, Mikan, Pass, Preset};
use bochner_numerics::{ArgumentError, Seed};
use ndarray::{Array3, s};

#[test]
fn to_the_bit_for_every_mechanism_and_any_number_of_sequences() {
    for variant in variants_across() {
        let layer = layer(variant);
        let packed = layer.packed().unwrap();
        for (batch, queries, keys) in [(2, 4, 7), (1, 4, 7), (2, 4, 7), (2, 9, 3)] {
            let (x, y) = (sequence(batch, queries), sequence(batch, keys));
            let mask = Mask::none().with_key_lengths(vec![2; batch]);
            let want = layer.attend(x.clone(), y.clone(), &mask, PASS).unwrap();
            let (x, y) = (array(&x), array(&y));
            let got = packed.attend(x.view(), y.view(), &mask, PASS).unwrap();
            assert_eq!(got, array(&want.output), "{layer:?}");
        }
        let x = sequence(3, 5);
        let want = layer.attend_self(x.clone(), &Mask::none(), PASS).unwrap();
        // An array in another order.
        let x = array(&x).reversed_axes().as_standard_layout().into_owned();
        let x = x.view().reversed_axes();
        let got = packed.attend_self(x, &Mask::none(), PASS).unwrap();
        assert_eq!(got, array(&want.output));
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
        let packed = layer.packed().unwrap();
        let got = packed.attend_self(array(&x).view(), &Mask::none(), pass);
        assert_eq!(got.unwrap(), array(&want.output), "{layer:?}");
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
    let packed = layer(Mikan::default().into()).packed().unwrap();
    let x = Array3::zeros((2, 5, WIDTH));
    // The spectral points would see the future.
    let got = packed.attend_self(x.view(), Mask::CAUSAL, PASS);
    assert!(matches!(got, Err(Error::Unsupported { .. })), "{got:?}");
    let got = packed.attend_self(x.slice(s![.., .., 1..]), Mask::NONE, PASS);
    assert!(
        matches!(got, Err(Error::Argument(ArgumentError::Shape { .. }))),
        "{got:?}"
    );
}
