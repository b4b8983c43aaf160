use crate::conformance::common::*;
use crate::conformance::plain::attend;
use crate::names;
use bochner_attention::{
    Error, Mask, Pass,
    kernels::{self, Points},
    mechanism::Cotangents,
};
use bochner_numerics::Seed;
use ndarray::Array4;

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
            let told = as_cross || got.to_string().starts_with(what);
            assert!(told, "{}: {got}", case.name);
        }
    };
    let with = |k: Array4<f64>, v: Array4<f64>| Example {
        k,
        v,
        ..example.clone()
    };
    let array = |keys, width| Array4::<f64>::ones((BATCH, HEADS, keys, width));
    expect(
        with(array(4, WIDTH + 1), array(4, VALUE_WIDTH)),
        "`k` has shape",
    );
    expect(
        with(array(4, WIDTH), array(3, VALUE_WIDTH)),
        "`v` has shape",
    );
    expect(with(array(4, WIDTH), array(4, 0)), "`v` has shape");
    expect(
        with(array(0, WIDTH), array(0, VALUE_WIDTH)),
        "`k` has shape",
    );
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
        assert!(named, "{}", case.name);
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
                Cotangents {
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

#[test]
fn spectral_points_that_do_not_fit() {
    let x = Array4::<f64>::ones((2, HEADS, 3, WIDTH));
    let attended = |shape: (usize, usize, usize, usize)| {
        let sets = Array4::<f64>::ones(shape);
        let points = Points::Stationary { w: sets.view() };
        let settings = kernels::squared(points, 0.0, &Mask::none());
        attend(x.view(), x.view(), x.view(), &settings).map(drop)
    };
    // Two kinds of points that are not of one shape.
    for other in [(1, HEADS, 2, WIDTH + 1), (1, HEADS, 3, WIDTH)] {
        let (w1, w2) = (
            Array4::<f64>::ones((1, HEADS, 2, WIDTH)),
            Array4::ones(other),
        );
        let (w1, w2) = (w1.view(), w2.view());
        let settings = kernels::squared(Points::Nonstationary { w1, w2 }, 0.0, &Mask::none());
        let error = attend(x.view(), x.view(), x.view(), &settings).map(drop);
        assert!(names(&error.unwrap_err(), "spectral points w2"));
    }
    assert!(
        [1, 2]
            .into_iter()
            .all(|sets| attended((sets, HEADS, 2, WIDTH)).is_ok())
    );
    for (shape, name) in [
        ((3, HEADS, 2, WIDTH), "sets of spectral points w"),
        ((1, HEADS, 2, WIDTH + 1), "spectral points w"),
        ((1, HEADS, 0, WIDTH), "spectral points"),
    ] {
        assert!(names(&attended(shape).unwrap_err(), name));
    }
}

/// Visible numbers beyond the fourth root of the largest are refused by mechanisms without pairs, too.
#[test]
fn numbers_beyond_the_range() {
    use bochner_attention::engine::Error::OutOfRange;
    let mask = Mask::none().with_key_lengths(vec![4, 3]);
    for case in cases::<f32>().iter().filter(|case| case.card.takes(&mask)) {
        let mut example = Example::<f32>::new(4, 4);
        let refused = |example: &Example<f32>| {
            let got = case.forward(example, &mask, &EVALUATION);
            matches!(
                got,
                Err(Error::Engine(OutOfRange {
                    index: [1, 0, ..],
                    ..
                }))
            )
        };
        for x in [&mut example.q, &mut example.k, &mut example.v] {
            x[[1, 0, 3, 0]] = 1e10;
        }
        let reads_queries = case.card.cross.is_yes();
        assert_eq!(refused(&example), reads_queries, "{}", case.name);
        for x in [&mut example.q, &mut example.k, &mut example.v] {
            x[[1, 0, 2, 0]] = 1e10;
        }
        assert!(refused(&example), "{}", case.name);
    }
}
