use crate::conformance::common::*;
use crate::conformance::plain::attend;
use crate::conformance::plain::{Plain, PointSets, Similarity, dropout, with};
use crate::names;
use bochner_attention::conformance::Conformance;
use bochner_attention::{
    Bias, Card, Error, Form, IkanDirect, Magnitude, Mask, Mikan, Pass, Preset, RbfOnly, Softmax,
    Variant,
    card::Stream,
    kernels::{self, Points},
    mechanism::Cotangents,
};
use bochner_numerics::{ArgumentError, Seed};
use ndarray::{Array3, Array4, ArrayView4};

#[test]
fn settings_out_of_range() {
    for (name, variant) in Variant::refused() {
        let mut rng = Seed::new(0).stream("initial values");
        let mechanism = variant.mechanism::<f64>();
        for got in [
            mechanism.validate(),
            mechanism.initial(size(), &mut rng).map(|_| ()),
        ] {
            let error = got.unwrap_err();
            assert!(names(&error, name), "{variant:?}: {error}");
        }
    }
}

#[test]
fn no_points() {
    let variants = Variant::examples().into_iter();
    for variant in variants.filter(|variant| variant.card().points.is_some()) {
        let variant = variant.mechanism::<f64>().with_points(0).unwrap();
        let got = variant.mechanism::<f64>().validate();
        let error = got.unwrap_err().to_string();
        assert!(error.starts_with("`points` is 0"), "{variant:?}: {error}");
    }
}

#[test]
fn shapes_that_do_not_fit() {
    let example = Example::<f64>::new(3, 4);
    let mask = Mask::none();
    let expect = |mut other: Example<f64>, what: &str| {
        for case in cases::<f64>().iter().filter(|case| case.has_pairs()) {
            other.q = case.example(3, 4).q;
            let got = case.forward(&other, &mask, &EVALUATION).unwrap_err();
            // Without another sequence, streams of other lengths are refused as one.
            let as_cross = matches!(got, Error::Unsupported { .. }) && !case.card.cross.is_yes();
            let told = as_cross || got.to_string().contains(what);
            assert!(told, "{}: {got}", case.name);
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
        "`v` has shape",
    );
    expect(with(array(4, WIDTH), array(4, 0)), "and so no elements");
    expect(with(array(0, WIDTH), array(0, VALUE_WIDTH)), "k");
}

#[test]
fn masks_and_parameters_that_do_not_fit() {
    for case in cases::<f64>() {
        let example = case.example(3, 4);
        let mask = Mask::none().with_key_lengths(vec![5, 1]);
        let got = case.forward(&example, &mask, &EVALUATION);
        let lengths = |what| what == "key lengths" || !case.card.takes(&mask);
        assert!(
            matches!(got, Err(Error::Mask { what, .. } | Error::Unsupported { what, .. }) if lengths(what))
        );

        let mask = Mask::none();
        let longer: Vec<f64> = case.parameters.iter().copied().chain([0.0]).collect();
        let inputs = case.inputs(&example, &mask);
        let got = case.mechanism().forward(&inputs, &longer, &EVALUATION);
        let error = got.unwrap_err();
        assert!(names(&error, "parameters"), "{}: {error}", case.name);

        let (seed, dropout) = (Seed::new(0), 1.0);
        let got = case.forward(&example, &mask, &Pass::Training { seed, dropout });
        let named = got.is_err_and(|error| names(&error, "weight dropout"));
        assert!(named || !case.has_pairs(), "{}", case.name);
    }
}

#[test]
fn dropout_where_there_are_no_weights() {
    let mut refusals = 0;
    for case in cases::<f64>()
        .iter()
        .filter(|case| !case.card.weights.is_yes())
    {
        let (example, mask) = (case.example(4, 4), Mask::none());
        let inputs = case.inputs(&example, &mask);
        let got = (case.mechanism()).forward(&inputs, &case.parameters, &TRAINING);
        let dropped = |what: &str| what.contains("dropout");
        assert!(matches!(got, Err(Error::Unsupported { what, .. }) if dropped(what)));
        let pass = TRAINING.for_card(&case.card);
        assert!(
            (case.mechanism())
                .forward(&inputs, &case.parameters, &pass)
                .is_ok()
        );
        let (seed, dropout) = (TRAINING.seed(), 5.0);
        let pass = Pass::Training { seed, dropout }.for_card(&case.card);
        let got = (case.mechanism()).forward(&inputs, &case.parameters, &pass);
        assert!(matches!(got, Err(Error::Argument(_))));
        refusals += 1;
    }
    assert!(refusals > 0);
    assert_eq!(TRAINING.for_card(&Card::PAIRWISE), TRAINING);
}

/// Arrays and parameters of the same shapes, and another pass.
#[test]
fn the_forward_pass_of_something_else() {
    let (example, mask) = (Example::<f64>::new(4, 4), Mask::none());
    for case in cases::<f64>() {
        let forward = case.forward(&example, &mask, &EVALUATION).unwrap();
        let (output, penalty) = cotangents(&forward);
        let backward = |example: &Example<f64>, parameters: &[f64], pass| {
            let cotangents = Cotangents {
                output: output.view(),
                penalty: penalty.view(),
            };
            let inputs = case.inputs(example, &mask);
            (case.mechanism()).backward(&inputs, parameters, &pass, &forward, cotangents)
        };
        let own = &case.parameters;
        assert!(backward(&example, own, EVALUATION).is_ok(), "{}", case.name);
        let mut got = Vec::new();
        for stream in 0..case.card.streams.len() {
            let mut other = example.clone();
            let array = match case.card.streams[stream] {
                Stream::Queries => &mut other.q,
                Stream::Keys | Stream::Scores => &mut other.k,
                Stream::Values | Stream::Input => &mut other.v,
            };
            array[[1, 1, 2, 0]] += 0.1;
            got.push(backward(&other, own, EVALUATION));
        }
        if !own.is_empty() {
            let mut other = own.clone();
            other[0] += 0.1;
            got.push(backward(&example, &other, EVALUATION));
        }
        let seed = Seed::new(77);
        got.push(backward(&example, own, Pass::Evaluation { seed }));
        got.push(backward(&example, own, TRAINING));
        let (alibi, lengths) = (Bias::alibi(), Mask::none().with_key_lengths(vec![3, 4]));
        let inputs = [
            case.card
                .bias
                .is_yes()
                .then(|| case.inputs(&example, &mask).with_bias(&alibi)),
            case.card
                .takes(&lengths)
                .then(|| case.inputs(&example, &lengths)),
        ];
        for inputs in inputs.into_iter().flatten() {
            let cotangents = Cotangents {
                output: output.view(),
                penalty: penalty.view(),
            };
            let pass = &EVALUATION;
            got.push((case.mechanism()).backward(&inputs, own, pass, &forward, cotangents));
        }
        for got in got {
            let foreign = matches!(got, Err(Error::ForeignForward { .. }));
            assert!(foreign, "{}: {got:?}", case.name);
        }
    }
}

#[test]
fn the_forward_pass_of_another_mechanism() {
    let example = Example::<f64>::new(4, 4);
    let mask = Mask::none();
    let cases = cases::<f64>();
    for case in &cases {
        let foreign = |other: &&Case<f64>| other.card.name != case.card.name;
        for other in cases.iter().filter(foreign) {
            let forward = other.forward(&example, &mask, &EVALUATION).unwrap();
            let (output, penalty) = cotangents(&forward);
            let got = case.mechanism().backward(
                &case.inputs(&example, &mask),
                &case.parameters,
                &EVALUATION,
                &forward,
                bochner_attention::mechanism::Cotangents {
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

fn attended(x: ArrayView4<f64>, settings: &Plain<f64>) -> Error {
    attend(x, x, x, &settings.settings()).unwrap_err()
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
        assert!(names(&got, "p"));
    }
    for period in [0.0, -1.0, f64::NAN, f64::INFINITY] {
        let similarity = Similarity::Expsin { period };
        let got = attended(x.view(), &with(similarity, Magnitude::None, &mask, None));
        assert!(names(&got, "period"));
    }
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
        assert!(names(&got, "floor"));
    }
    let got = squared(&Array3::ones((HEADS, 2, WIDTH + 1)), 0.0);
    assert!(names(&got, "spectral points w"));
    let attended = |sets: usize, batch: usize| {
        let x = Array4::<f64>::ones((batch, HEADS, 3, WIDTH));
        let sets = Array4::<f64>::ones((sets, HEADS, 2, WIDTH));
        let points = Points::Stationary { w: sets.view() };
        let settings = kernels::squared(points, 0.0, &mask);
        attend(x.view(), x.view(), x.view(), &settings).map(drop)
    };
    for batch in [1, 2, 4] {
        for sets in 1..=batch + 1 {
            let got = attended(sets, batch);
            if [1, batch].contains(&sets) {
                assert!(got.is_ok(), "{sets} sets for a batch of {batch}");
                continue;
            }
            let allowed = if batch == 1 {
                "1".to_owned()
            } else {
                format!("1 or {batch}")
            };
            let allowed = format!("{allowed} for a batch of {batch}");
            let want = format!("`sets of spectral points w` is {sets}, but must be {allowed}");
            assert_eq!(got.unwrap_err().to_string(), want);
        }
    }
    let got = squared(&Array3::ones((HEADS, 0, WIDTH)), 0.0);
    assert!(names(&got, "spectral points"));
}

#[test]
fn the_linear_time_form_where_there_is_none() {
    let (example, sets, none) = (Example::<f64>::new(3, 4), PointSets::new(), Mask::none());
    let (q, k, v) = (example.q.view(), example.k.view(), example.v.view());
    let matrix = Mask::none().with_matrix(matrix(3, 4).view());
    let squared = sets.similarity("stationary, own");
    let norm = Magnitude::Norm { p: 2.0 };
    let weight_dropout = dropout(0.3, "weights");
    for (settings, says) in [
        (
            with(Similarity::Rbf, norm, &none, None),
            "product of features",
        ),
        (with(squared, norm, &matrix, None), "matrix"),
        (with(squared, norm, &none, weight_dropout), "dropout"),
    ] {
        let form = Form::LinearTime;
        let got = attend(q, k, v, &Plain { form, ..settings }.settings()).unwrap_err();
        assert!(matches!(got, Error::Unsupported { what, .. } if what.contains(says)));
        assert!(attend(q, k, v, &settings.settings()).is_ok());
    }
}

#[test]
fn a_floor_too_low_for_the_linear_time_form() {
    let (example, sets, mask) = (Example::<f64>::new(3, 4), PointSets::new(), Mask::none());
    let (q, k, v) = (example.q.view(), example.k.view(), example.v.view());
    let [w1, w2] = &sets.own;
    let (w1, w2) = (w1.view(), w2.view());
    let attended = |floor| {
        let points = Points::Nonstationary { w1, w2 };
        let similarity = Similarity::Squared { points, floor };
        let settings = with(similarity, Magnitude::None, &mask, None);
        let form = Form::LinearTime;
        attend(q, k, v, &Plain { form, ..settings }.settings())
    };
    for floor in [0.0, 9e-7] {
        let got = attended(floor).unwrap_err();
        assert!(
            matches!(got, Error::Argument(ArgumentError::OutOfRange { got, .. }) if got == floor)
        );
    }
    assert!(attended(1e-6).is_ok());
}

#[test]
fn what_another_call_attended_to() {
    let (example, sizes) = (Example::<f64>::new(3, 5), Example::<f64>::new(3, 4));
    let squared = IkanDirect {
        points: 4,
        ..IkanDirect::default()
    };
    let released = IkanDirect {
        preset: Preset::Released,
        ..squared.clone()
    };
    let case = |variant: Variant| Case::<f64>::of(variant);
    let cases = [
        case(squared.into()),
        case(released.into()),
        case(Softmax::default().into()),
        case(RbfOnly {}.into()),
        case(
            Mikan {
                points: 4,
                ..Mikan::default()
            }
            .into(),
        ),
    ];
    let (own, none) = (Mask::none().with_key_lengths(vec![2, 5]), Mask::none());
    for case in &cases {
        let forward = case.forward(&example, &own, &TRAINING).unwrap();
        let (output, penalty) = cotangents(&forward);
        let cotangent = || Cotangents {
            output: output.view(),
            penalty: penalty.view(),
        };
        let back = |case: &Case<f64>, example: &Example<f64>, mask: &Mask, pass: &Pass| {
            let inputs = example.inputs(mask);
            let parameters = &case.parameters;
            (case.mechanism()).backward(&inputs, parameters, pass, &forward, cotangent())
        };
        assert!(back(case, &example, &own, &TRAINING).is_ok());
        let wrong = [
            ("sizes", back(case, &sizes, &own, &TRAINING)),
            ("mask", back(case, &example, &none, &TRAINING)),
            ("pass", back(case, &example, &own, &EVALUATION)),
        ];
        let others = cases.iter().filter(|other| other.name != case.name);
        let others = others.map(|other| ("mechanism", back(other, &example, &own, &TRAINING)));
        for (what, got) in wrong.into_iter().chain(others) {
            assert!(got.is_err(), "{}: another {what}", case.name);
        }
    }
}

#[test]
fn a_floor_above_the_kernel() {
    let (example, sets, mask) = (Example::<f64>::new(3, 4), PointSets::new(), Mask::none());
    let Example { q, k, v } = &example;
    let Similarity::Squared { points, .. } = sets.similarity("stationary, own") else {
        unreachable!("a squared kernel");
    };
    for floor in [-1e-9, 1.1, 1e300, f64::NAN] {
        let similarity = Similarity::Squared { points, floor };
        let settings = with(similarity, Magnitude::None, &mask, None);
        let got = attend(q.view(), k.view(), v.view(), &settings.settings());
        assert!(names(&got.err().unwrap(), "floor"));
    }
}
