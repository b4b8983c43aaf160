//! A layer that decodes gives what it gives of the whole sequence.

use super::{PASS, array, layer, sequence};
use bochner_attention::{
    Copula, Error, Form, IkanDirect, Linear, Mask, Mikan, Pass, Posterior, Softmax, Variant,
};
use bochner_numerics::{Seed, Tolerance};
use ndarray::{Array3, s};

fn latent() -> Mikan {
    Mikan {
        p: 1.5,
        points: 4,
        copula: Copula::Free,
        posterior: Posterior::Unconditional,
        ..Mikan::default()
    }
}

#[test]
fn step_by_step() {
    let direct = IkanDirect {
        p: 1.5,
        points: 4,
        ..Default::default()
    };
    let variants: [(Variant, &[Form]); 4] = [
        (Softmax {}.into(), &[Form::Automatic]),
        (Linear {}.into(), &[Form::Automatic]),
        (direct.into(), &[Form::Quadratic, Form::LinearTime]),
        (latent().into(), &[Form::Quadratic, Form::LinearTime]),
    ];
    let x = sequence(2, 7);
    for (variant, forms) in variants {
        let layer = layer(variant);
        let mask = Mask::none().with_causality();
        let want = array(&layer.attend_self(x.clone(), &mask, PASS).unwrap().output);
        let bound = Tolerance::outputs::<f64>().bound(want.iter().copied());
        for &form in forms {
            let mut decoder = layer.decoder(2, form, PASS).unwrap();
            for positions in [0..3, 3..4, 4..5, 5..7] {
                let piece = s![.., positions.clone(), ..];
                let got = decoder.step(array(&x).slice(piece)).unwrap();
                let error = (&got - &want.slice(piece)).mapv(f64::abs);
                assert!(error.iter().all(|&e| e <= bound), "{layer:?} {form:?}");
            }
            assert_eq!(decoder.lengths(), [7, 7]);
        }
    }
}

#[test]
fn what_cannot_be_decoded_is_named() {
    let inferred = Mikan {
        posterior: Posterior::Inferred,
        ..latent()
    };
    let got = layer(inferred.into()).decoder(2, Form::Automatic, PASS);
    assert!(matches!(got, Err(Error::CausalLeak)));
    let averaged = Mikan {
        draws: 2,
        ..latent()
    };
    let got = layer(averaged.into()).decoder(2, Form::Automatic, PASS);
    assert!(matches!(got, Err(Error::Unsupported { .. })));
    let softmax = layer(Softmax {}.into());
    let training = Pass::Training {
        seed: Seed::new(1),
        dropout: 0.1,
    };
    for (form, pass) in [(Form::LinearTime, PASS), (Form::Automatic, training)] {
        let got = softmax.decoder(2, form, pass);
        assert!(matches!(got, Err(Error::Unsupported { .. })));
    }
    let mut decoder = softmax.decoder(2, Form::Automatic, PASS).unwrap();
    let got = decoder.step(Array3::zeros((2, 1, 5)).view());
    assert!(matches!(got, Err(Error::ShapeMismatch { .. })));
    let got = decoder.step(Array3::zeros((3, 1, 6)).view());
    assert!(matches!(
        got,
        Err(Error::ShapeMismatch { .. } | Error::Mask { .. })
    ));
}
