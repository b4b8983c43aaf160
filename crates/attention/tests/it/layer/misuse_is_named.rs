use crate::names;
use bochner_attention::{
    Cat, Error, IkanDirect, Mask, Mikan, MultiHead, MultiHeadConfig, Pass, Primal, Variant,
};
use bochner_numerics::{ArgumentError, Seed};
use dfdx::prelude::*;

type Layer<Count = usize> = MultiHead<usize, f32, Cpu, Count>;

fn build<Count: Dim>(embed: usize, config: MultiHeadConfig) -> Result<Layer<Count>, Error> {
    let mut rng = Seed::new(1).stream("initial values");
    MultiHead::try_new(&Cpu::default(), embed, config, &mut rng)
}

fn direct(p: f64, points: usize) -> Variant {
    let settings = IkanDirect {
        p,
        points,
        ..Default::default()
    };
    settings.into()
}

fn config(heads: usize, variant: Variant) -> MultiHeadConfig {
    MultiHeadConfig {
        heads,
        variant,
        ..Default::default()
    }
}

fn refused(embed: usize, config: MultiHeadConfig) -> Error {
    build::<usize>(embed, config).unwrap_err()
}

#[test]
fn settings() {
    let got = refused(0, config(1, direct(2.0, 4)));
    assert!(
        matches!(got, Error::Argument(ArgumentError::Empty { .. })),
        "{got}"
    );
    for heads in [4, 0, 7] {
        let got = refused(6, config(heads, direct(2.0, 4)));
        assert!(names(&got, "heads"), "{got}");
        let both = format!(
            "`heads` is {heads}, but must be at least 1 and a divisor of the layer's width, 6"
        );
        assert_eq!(got.to_string(), both);
    }
    for p in [0.0, -2.0, f64::NAN, f64::INFINITY] {
        let got = refused(6, config(2, direct(p, 4)));
        assert!(names(&got, "p"), "{got}");
    }
    let got = refused(6, config(2, direct(2.0, 0)));
    let Error::Spectral(bochner_spectral::Error::Argument(ArgumentError::Empty { name, .. })) = got
    else {
        panic!("{got}");
    };
    assert_eq!(name, "points");
    let variant = Mikan {
        prior_std: f64::NAN,
        ..Default::default()
    };
    let got = refused(6, config(2, variant.into()));
    let Error::Spectral(bochner_spectral::Error::Argument(ArgumentError::OutOfRange {
        name, ..
    })) = got
    else {
        panic!("{got}");
    };
    assert_eq!(name, "prior_std");
    for dropout in [1.0, -0.1, f64::NAN] {
        let config = MultiHeadConfig {
            dropout,
            ..config(2, direct(2.0, 4))
        };
        let got = refused(6, config);
        assert!(names(&got, "dropout"), "{got}");
    }
}

/// A causal layer sees nothing of a window to the right.
#[test]
fn windows_that_causality_empties() {
    let of = |causal, window| MultiHeadConfig {
        causal,
        window: Some(window),
        ..config(2, direct(2.0, 4))
    };
    let got = refused(6, of(true, [0, 2]));
    assert!(matches!(got, Error::Mask { .. }), "{got}");
    assert!(build::<usize>(6, of(true, [1, 2])).is_ok());
    let layer: Layer = build(6, of(false, [0, 2])).unwrap();
    let attended = |mask: &Mask| layer.attend_self(sequence((2, 4, 6)), mask, EVALUATION);
    assert!(attended(&Mask::none()).is_ok());
    let got = attended(&Mask::none().with_causality()).map(drop);
    assert!(matches!(got, Err(Error::Mask { .. })), "{got:?}");
}

#[test]
fn widths() {
    let own = |heads, key_width, value_width| MultiHeadConfig {
        key_width,
        value_width,
        ..config(heads, direct(2.0, 4))
    };
    for config in [own(2, Some(0), None), own(2, None, Some(0))] {
        let got = refused(6, config);
        assert!(
            matches!(got, Error::Argument(ArgumentError::Empty { .. })),
            "{got}"
        );
    }
    for config in [own(4, Some(2), None), own(0, Some(2), Some(2))] {
        let got = refused(6, config);
        let named = names(&got, "heads");
        assert!(named, "{got}");
    }
    // The compiler knows the width of all heads.
    let mut rng = Seed::new(1).stream("initial values");
    let got = MultiHead::<Const<6>, f32>::try_new(
        &Cpu::default(),
        Const,
        own(2, None, Some(4)),
        &mut rng,
    );
    assert!(matches!(got, Err(Error::Unsupported { .. })), "{got:?}");
}

/// CAT has no keys, Primal-Attention no values and slices of the input, whose widths are the layer's.
#[test]
fn widths_of_what_a_mechanism_does_not_ask_for() {
    let (cat, primal) = (Cat::default(), Primal::default());
    let of = |variant: Variant, key_width, value_width| MultiHeadConfig {
        key_width,
        value_width,
        ..config(2, variant)
    };
    for (config, says) in [
        (of(cat.clone().into(), Some(3), None), "does not ask for"),
        (of(cat.clone().into(), Some(3), Some(3)), "does not ask for"),
        (of(primal.clone().into(), None, Some(3)), "does not ask for"),
        (
            of(primal.clone().into(), Some(2), None),
            "the layer's input",
        ),
    ] {
        let got = refused(6, config);
        let named = matches!(got, Error::Unsupported { what, .. } if what.contains(says));
        assert!(named, "{got}");
    }
    assert!(build::<usize>(6, of(cat.into(), None, Some(5))).is_ok());
    assert!(build::<usize>(6, of(primal.into(), Some(3), None)).is_ok());
}

#[test]
fn a_number_of_parameters_that_is_another() {
    let right = build::<Const<48>>(6, config(2, direct(2.0, 4)));
    assert!(right.is_ok());
    let got = build::<Const<47>>(6, config(2, direct(2.0, 4))).unwrap_err();
    let Error::Argument(ArgumentError::Shape { expected, got, .. }) = got else {
        panic!("{got}");
    };
    assert_eq!((expected, got), (vec![48], vec![47]));
}

#[test]
#[should_panic(expected = "`heads` is")]
fn constants_of_the_program_that_are_wrong() {
    struct Wrong;
    impl bochner_attention::StaticConfig for Wrong {
        fn config() -> MultiHeadConfig {
            config(5, direct(2.0, 4))
        }
    }
    MultiHead::<Const<6>, f32, Cpu, Const<48>, Wrong>::build(&Cpu::default());
}

type Sequence = Tensor<(usize, usize, usize), f32, Cpu>;

fn sequence(shape: (usize, usize, usize)) -> Sequence {
    Cpu::default().ones_like(&shape)
}

fn attended(x: Sequence, memory: Sequence, mask: &Mask, pass: Pass) -> Result<(), Error> {
    let layer: Layer = build(6, config(2, direct(2.0, 4))).unwrap();
    layer.attend(x, memory, mask, pass).map(|_| ())
}

const EVALUATION: Pass = Pass::Evaluation { seed: Seed::new(1) };

#[test]
fn sequences_and_masks() {
    let x = || sequence((2, 4, 6));
    let try_masked = |mask: &Mask| attended(x(), x(), mask, EVALUATION).unwrap_err();
    let got = try_masked(&Mask::none().with_key_lengths(vec![4]));
    assert!(
        matches!(
            got,
            Error::Mask {
                what: "key lengths",
                ..
            }
        ),
        "{got}"
    );
    let matrix = ndarray::Array2::from_elem((3, 4), true);
    let got = try_masked(&Mask::none().with_matrix(matrix.view()));
    assert!(matches!(got, Error::Mask { what: "matrix", .. }), "{got}");

    let none = Mask::none();
    let got = attended(x(), sequence((3, 4, 6)), &none, EVALUATION).unwrap_err();
    assert!(got.to_string().contains("the memory"), "{got}");
    let got = attended(x(), sequence((2, 4, 8)), &none, EVALUATION).unwrap_err();
    assert!(got.to_string().contains("8"), "{got}");
    for empty in [(2, 0, 6), (0, 4, 6)] {
        let got = attended(sequence(empty), sequence(empty), &none, EVALUATION).unwrap_err();
        let is_empty = matches!(got, Error::Nn(bochner_nn::Error::Argument(_)));
        assert!(is_empty, "{got}");
    }
    let (seed, dropout) = (Seed::new(1), 1.0);
    let got = attended(x(), x(), &none, Pass::Training { seed, dropout }).unwrap_err();
    assert!(names(&got, "weight dropout"), "{got}");
}
