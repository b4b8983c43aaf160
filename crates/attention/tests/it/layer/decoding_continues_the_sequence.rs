//! A layer that decodes gives what it gives of the whole sequence.

use super::{PASS, array, build, close, direct, features, latent, layer, sequence, two_heads};
use bochner_attention::{
    Error, Expsin, Form, Linear, Mask, Mikan, MultiHeadConfig, Pass, Posterior, RbfOnly, Softmax,
    Variant,
};
use bochner_numerics::operations::count;
use bochner_numerics::{ArgumentError, Seed};
use ndarray::{Array2, Array3, Axis, s};

/// Mechanisms that can decode, with their forms.
fn variants() -> [(Variant, &'static [Form]); 9] {
    const ALL: &[Form] = &[Form::Automatic, Form::Pairwise, Form::LinearTime];
    [
        (Softmax::default().into(), &[Form::Automatic]),
        (RbfOnly {}.into(), &[Form::Automatic]),
        (Expsin::default().into(), &[Form::Automatic]),
        (Linear {}.into(), &[Form::Automatic]),
        (direct(Form::Automatic), ALL),
        (direct(Form::LinearTime), ALL),
        (features(Form::Automatic), ALL),
        (features(Form::Pairwise), ALL),
        (latent().into(), &[Form::Pairwise, Form::LinearTime]),
    ]
}

/// A decoder that is asked for no form keeps the mechanism's own, and sums for random features whose form is open.
#[test]
fn a_state_grows_unless_its_form_is_linear_in_time() {
    for (variant, asked, grows) in [
        (Softmax::default().into(), Form::Automatic, true),
        (direct(Form::Automatic), Form::Automatic, true),
        (direct(Form::Pairwise), Form::Automatic, true),
        (direct(Form::LinearTime), Form::Automatic, false),
        (direct(Form::LinearTime), Form::Pairwise, true),
        (direct(Form::Automatic), Form::LinearTime, false),
        (features(Form::Automatic), Form::Automatic, false),
        (features(Form::LinearTime), Form::Automatic, false),
        (features(Form::Pairwise), Form::Automatic, true),
        (features(Form::Automatic), Form::Pairwise, true),
    ] {
        let (x, layer) = (array(&sequence(2, 40)), layer(variant));
        let mut decoder = layer.decoder(2, asked, PASS).unwrap();
        decoder.step(x.slice(s![.., ..3, ..])).unwrap();
        let early = decoder.held();
        decoder.step(x.slice(s![.., 3.., ..])).unwrap();
        assert!(early > 0);
        assert_eq!(decoder.held() > early, grows, "{asked:?} of {layer:?}");
        let of_memory = [3, 40].map(|keys| {
            let memory = x.slice(s![.., ..keys, ..]);
            let decoder = layer.cross_decoder(memory, &Mask::none(), asked, PASS);
            decoder.unwrap().held()
        });
        assert_eq!(of_memory[1] > of_memory[0], grows, "{asked:?} of {layer:?}");
    }
}

/// A window leaves random features no sums: without a form of their own they keep pairs.
#[test]
fn random_features_under_a_window_keep_what_it_reaches() {
    let config = MultiHeadConfig {
        window: Some([4, 0]),
        ..two_heads(features(Form::Automatic))
    };
    let (layer, x) = (build::<f64>(config), sequence(2, 9));
    let want = layer.attend_self(x.clone(), &Mask::none(), PASS).unwrap();
    let mut decoder = layer.decoder(2, Form::Automatic, PASS).unwrap();
    let got = decoder.step(array(&x).view()).unwrap();
    close(got.view(), array(&want.output).view(), &layer);
}

#[test]
fn from_a_memory() {
    let mask = Mask::none().with_key_lengths(vec![9, 4]);
    let both =
        |(variant, forms): (Variant, _)| [(variant.clone(), forms, 1.0), (variant, forms, 1e30)];
    for (variant, forms, scale) in variants().into_iter().flat_map(both) {
        let layer = layer(variant);
        let (x, memory) = (sequence(2, 7) * scale, sequence(2, 9) * scale);
        let want = layer
            .attend(x.clone(), memory.clone(), &mask, PASS)
            .unwrap();
        let (x, memory, want) = (array(&x), array(&memory), array(&want.output));
        for &form in forms {
            let what = (form, &layer);
            let mut decoder = layer
                .cross_decoder(memory.view(), &mask, form, PASS)
                .unwrap();
            for positions in [0..3, 3..4, 4..7] {
                let piece = s![.., positions, ..];
                let got = decoder.step(x.slice(&piece)).unwrap();
                close(got.view(), want.slice(&piece), what);
            }
            decoder.reorder(&[1, 0, 1]).unwrap();
            let [x, want] = [&x, &want].map(|x| x.select(Axis(0), &[1, 0, 1]));
            close(decoder.step(x.view()).unwrap().view(), want.view(), what);
        }
    }
}

/// A step's operations do not grow with the memory by what the maps of keys and values take.
#[test]
fn a_memory_is_mapped_once() {
    let layer = layer(Softmax::default().into());
    let step = |keys: usize| {
        let memory = array(&sequence(1, keys));
        let mut decoder = layer
            .cross_decoder(memory.view(), &Mask::none(), Form::Automatic, PASS)
            .unwrap();
        let x = array(&sequence(1, 1));
        let (_, operations) = count(|| decoder.step(x.view()).unwrap());
        operations.multiply_adds
    };
    // For each head and key a product of three numbers, and three values and the weight in sums.
    assert_eq!(step(50) - step(40), 10 * 2 * (3 + 3 + 1));
}

#[test]
fn what_cannot_be_decoded_is_named() {
    let inferred = Mikan {
        posterior: Posterior::Inferred,
        ..latent()
    };
    let got = layer(inferred.into()).decoder(2, Form::Automatic, PASS);
    assert!(matches!(got, Err(Error::Unsupported { what, .. }) if what.contains("causal")));
    let softmax = layer(Softmax::default().into());
    let training = Pass::Training {
        seed: Seed::new(1),
        dropout: 0.1,
    };
    for (form, pass) in [(Form::LinearTime, PASS), (Form::Automatic, training)] {
        let got = softmax.decoder(2, form, pass);
        assert!(matches!(got, Err(Error::Unsupported { .. })));
    }
    let matrix = Mask::none().with_matrix(Array2::from_elem((1, 3), true).view());
    let memory = Array3::zeros((2, 3, 6));
    let of_memory = |mask| softmax.cross_decoder(memory.view(), &mask, Form::Automatic, PASS);
    for mask in [Mask::none().with_causality(), matrix] {
        let got = of_memory(mask);
        assert!(matches!(got, Err(Error::Unsupported { .. })));
    }
    for lengths in [vec![3], vec![3, 4]] {
        let got = of_memory(Mask::none().with_key_lengths(lengths));
        assert!(matches!(got, Err(Error::Mask { what, .. }) if what == "key lengths"));
    }
    let mut decoder = softmax.decoder(2, Form::Automatic, PASS).unwrap();
    let got = decoder.step(Array3::zeros((2, 1, 5)).view());
    assert!(matches!(
        got,
        Err(Error::Argument(ArgumentError::Shape { .. }))
    ));
    let got = decoder.step(Array3::zeros((3, 1, 6)).view());
    assert!(matches!(
        got,
        Err(Error::Argument(ArgumentError::Shape { .. }) | Error::Mask { .. })
    ));
}
