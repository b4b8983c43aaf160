use crate::common::*;
use crate::plain::with;
use bochner_attention::{
    Error, Magnitude, Mask, Pass, Points, Settings, Similarity, Variant, attend,
};
use bochner_numerics::Seed;
use ndarray::{Array3, Array4, ArrayView4};
use serde_json::json;

#[test]
fn settings_out_of_range() {
    let wrong = [
        ("p", json!(0.0), "p"),
        ("p", json!(-1.0), "p"),
        ("floor", json!(-1e-9), "floor"),
        ("prior_std", json!(0.0), "prior_std"),
        ("beta", json!(-1.0), "beta"),
        ("slope", json!(-0.1), "slope"),
        ("period", json!(0.0), "period"),
        ("period", json!(1e31), "period"),
    ];
    for variant in variants() {
        for (key, value, name) in &wrong {
            let mut settings = serde_json::to_value(&variant).unwrap();
            if settings.get(key).is_none() {
                continue;
            }
            settings[key] = value.clone();
            let variant: Variant = serde_json::from_value(settings).unwrap();
            let mut rng = Seed::new(0).stream("initial values");
            let mechanism = variant.mechanism::<f64>();
            for got in [
                mechanism.validate(),
                mechanism.initial(size(), &mut rng).map(|_| ()),
            ] {
                let named =
                    |e: &Error| matches!(e, Error::OutOfRange { name: got, .. } if got == name);
                assert!(named(&got.unwrap_err()), "{variant:?}");
            }
        }
    }
}

#[test]
fn no_points() {
    for variant in variants() {
        let mut settings = serde_json::to_value(&variant).unwrap();
        if settings.get("points").is_none() {
            continue;
        }
        settings["points"] = json!(0);
        let variant: Variant = serde_json::from_value(settings).unwrap();
        let got = variant.mechanism::<f64>().validate();
        let named = matches!(
            got,
            Err(Error::Empty {
                what: "spectral points",
                ..
            })
        );
        assert!(named, "{variant:?}");
    }
}

#[test]
fn shapes_that_do_not_fit() {
    let example = Example::<f64>::new(3, 4);
    let mask = Mask::none();
    let expect = |other: Example<f64>, what: &str| {
        for case in cases::<f64>() {
            let got = case.forward(&other, &mask, &EVALUATION).unwrap_err();
            assert!(got.to_string().contains(what), "{}: {got}", case.name);
        }
    };
    let with = |k: Array4<f64>, v: Array4<f64>| Example {
        k,
        v,
        ..example.clone()
    };
    let array = |keys, width| Array4::<f64>::ones((BATCH, HEADS, keys, width));
    expect(with(array(4, WIDTH + 1), array(4, VALUE_WIDTH)), "k");
    expect(
        with(array(4, WIDTH), array(3, VALUE_WIDTH)),
        "v must have shape",
    );
    expect(
        with(array(4, WIDTH), array(4, 0)),
        "v has no elements along its width",
    );
    expect(with(array(0, WIDTH), array(0, VALUE_WIDTH)), "k");
}

#[test]
fn masks_and_parameters_that_do_not_fit() {
    let example = Example::<f64>::new(3, 4);
    for case in cases::<f64>() {
        let mask = Mask::none().with_key_lengths(vec![5, 1]);
        let got = case.forward(&example, &mask, &EVALUATION);
        assert!(matches!(
            got,
            Err(Error::Mask {
                what: "key lengths",
                ..
            })
        ));

        let mask = Mask::none();
        let longer: Vec<f64> = case.parameters.iter().copied().chain([0.0]).collect();
        let inputs = example.inputs(&mask);
        let got = case.mechanism().forward(&inputs, &longer, &EVALUATION);
        assert!(
            matches!(got, Err(Error::ParameterCount { .. })),
            "{}",
            case.name
        );

        let (seed, dropout) = (Seed::new(0), 1.0);
        let got = case.forward(&example, &mask, &Pass::Training { seed, dropout });
        let named = matches!(
            got,
            Err(Error::OutOfRange {
                name: "weight dropout",
                ..
            })
        );
        assert!(named, "{}", case.name);
    }
}

#[test]
fn the_forward_pass_of_another_mechanism() {
    let example = Example::<f64>::new(3, 4);
    let mask = Mask::none();
    let named = |variant: Variant| (variant.name(), Case::<f64>::of(variant));
    let cases: Vec<_> = few_variants().into_iter().map(named).collect();
    for (name, case) in &cases {
        for (_, other) in cases.iter().filter(|(other, _)| other != name) {
            let forward = other.forward(&example, &mask, &EVALUATION).unwrap();
            let (output, penalty) = cotangents(&forward);
            let got = case.mechanism().backward(
                &example.inputs(&mask),
                &case.parameters,
                &EVALUATION,
                &forward,
                bochner_attention::Cotangents {
                    output: output.view(),
                    penalty: penalty.view(),
                },
            );
            assert!(
                matches!(got, Err(Error::ForeignForward { .. })),
                "{}",
                case.name
            );
        }
    }
}

fn attended(x: ArrayView4<f64>, settings: &Settings<f64>) -> Error {
    attend(x, x, x, settings).unwrap_err()
}

#[test]
fn settings_of_plain_attention() {
    let x = Array4::<f64>::ones((BATCH, HEADS, 3, WIDTH));
    let mask = Mask::none();
    for p in [0.0, -1.0, f64::NAN, f64::INFINITY] {
        let got = attended(
            x.view(),
            &with(Similarity::Rbf, Magnitude::Norm { p }, &mask, None),
        );
        assert!(matches!(got, Error::OutOfRange { name: "p", .. }));
    }
    for period in [0.0, -1.0, f64::NAN, f64::INFINITY] {
        let similarity = Similarity::Expsin { period };
        let got = attended(x.view(), &with(similarity, Magnitude::None, &mask, None));
        assert!(matches!(got, Error::OutOfRange { name: "period", .. }));
    }
    let released = Magnitude::Released {
        p: 2.0,
        dropout: None,
    };
    let got = attended(x.view(), &with(Similarity::Rbf, released, &mask, None));
    assert!(matches!(got, Error::Unsupported { .. }));
    let squared = |w: &Array3<f64>, floor| {
        let points = Points::shared_stationary(w.view());
        attended(
            x.view(),
            &with(
                Similarity::Squared { points, floor },
                Magnitude::None,
                &mask,
                None,
            ),
        )
    };
    let fitting = Array3::ones((HEADS, 2, WIDTH));
    for floor in [-1.0, f64::NAN, f64::INFINITY] {
        let got = squared(&fitting, floor);
        assert!(matches!(got, Error::OutOfRange { name: "floor", .. }));
    }
    let got = squared(&Array3::ones((HEADS, 2, WIDTH + 1)), 0.0);
    assert!(matches!(
        got,
        Error::ShapeMismatch {
            what: "spectral points w1",
            ..
        }
    ));
    let got = squared(&Array3::ones((HEADS, 0, WIDTH)), 0.0);
    assert!(matches!(
        got,
        Error::Empty {
            what: "spectral points",
            ..
        }
    ));
}
