//! Rotary positions are encoded into queries and keys wherever a layer attends, and nowhere else.

use super::{PASS, WIDTH, array, build, close, sequence, two_heads, variants};
use crate::names;
use bochner_attention::{
    Cat, Error, Form, Mask, MultiHead, MultiHeadConfig, PositionBias, Rotary, Softmax,
    card::Stream,
    engine::{PositionCode, RotaryPairing},
    layer::LearnableQueryLayer,
};
use bochner_numerics::{ArgumentError, Seed};
use dfdx::prelude::*;
use ndarray::{Array3, ArrayView3, Axis, concatenate, s};

fn rotary() -> MultiHeadConfig {
    MultiHeadConfig {
        key_width: Some(4),
        rotary: Some(Rotary {
            base: 50.0,
            ..Rotary::default()
        }),
        ..two_heads(Softmax::default().into())
    }
}

/// A layer with rotary positions and one without, whose parameters are the same.
fn with_and_without(config: MultiHeadConfig) -> [MultiHead<usize, f64>; 2] {
    let without = MultiHeadConfig {
        rotary: None,
        ..config.clone()
    };
    [config, without].map(build)
}

/// A query that stands later sees other weights, and heads are encoded as the code alone encodes them.
#[test]
fn queries_and_keys_are_those_of_the_maps_turned() {
    for pairing in [RotaryPairing::Halves, RotaryPairing::Interleaved] {
        let mut config = rotary();
        let code = Rotary {
            pairing,
            ..config.rotary.unwrap()
        };
        config.rotary = Some(code);
        let [layer, plain] = with_and_without(config);
        let (long, short) = (sequence(2, 5), sequence(2, 3));
        let causal = Mask::none().with_causality();
        // Sequences, the first position of the queries and of the keys.
        for (query, memory, mask, firsts) in [
            (&long, &long, &Mask::none(), [0, 0]),
            (&short, &long, &Mask::none(), [0, 0]),
            (&short, &long, &causal, [2, 0]),
            (&long, &short, &causal, [0, 2]),
        ] {
            let of = |layer: &MultiHead<usize, f64>| {
                let seen = layer.inspect(query.clone(), memory.clone(), mask, PASS);
                seen.unwrap().heads.unwrap()
            };
            let (got, mut want) = (of(&layer), of(&plain));
            for (heads, first) in want.iter_mut().zip(firsts) {
                let positions: Vec<_> = (first..first + heads.dim().2).collect();
                code.encode(&positions, 4, heads.as_slice_mut().unwrap());
            }
            assert_eq!(got, want);
        }
    }
}

#[test]
fn every_mechanism_that_compares_queries_and_keys_obeys_and_the_others_refuse() {
    let x = sequence(2, 5);
    let (mut obeyed, mut refused) = (0, 0);
    for variant in variants() {
        let asks = variant.card().streams.contains(&Stream::Queries);
        let config = MultiHeadConfig {
            rotary: Some(Rotary {
                width: Some(2),
                ..Rotary::default()
            }),
            ..two_heads(variant)
        };
        if !asks {
            let mut rng = Seed::new(1).stream("initial values");
            let got = MultiHead::<usize, f64>::try_new(&Cpu::default(), WIDTH, config, &mut rng);
            assert!(matches!(got, Err(Error::Unsupported { .. })), "{got:?}");
            refused += 1;
            continue;
        }
        let [layer, plain] = with_and_without(config);
        let attended = |layer: &MultiHead<usize, f64>| {
            let attended = layer.attend_self(x.clone(), &Mask::none(), PASS);
            array(&attended.unwrap().output)
        };
        let want = attended(&layer);
        assert_ne!(want, attended(&plain), "{layer:?}");
        let packed = layer.packed().unwrap();
        let got = packed.attend_self(array(&x).view(), &Mask::none(), PASS);
        assert_eq!(got.unwrap(), want, "{layer:?}");
        obeyed += 1;
    }
    assert!(obeyed > 5 && refused > 0, "{obeyed} {refused}");
}

/// Prompts of different lengths, positions that are forgotten, sequences that change their places.
#[test]
fn a_decoder_goes_on_where_each_sequence_stands() {
    let x = array(&sequence(2, 9));
    for (form, window, position_bias) in [
        (Form::Automatic, None, PositionBias::None),
        (Form::Automatic, Some([2, 0]), PositionBias::None),
        (Form::Automatic, None, PositionBias::Alibi),
    ] {
        let layer: MultiHead<usize, f64> = build(MultiHeadConfig {
            causal: true,
            window,
            position_bias,
            ..rotary()
        });
        let whole = |rows: ArrayView3<f64>| {
            let rows = Cpu::default().tensor_from_vec(rows.iter().copied().collect(), rows.dim());
            array(&layer.attend_self(rows, &Mask::none(), PASS).unwrap().output)
        };
        let mut decoder = layer.decoder(2, form, PASS).unwrap();
        // The first sequence is at 3, the second one at 1; then they change places.
        let mut prompt = Array3::zeros((2, 3, WIDTH));
        decoder
            .step_into(x.slice(s![.., ..3, ..]), Some(&[3, 1]), prompt.view_mut())
            .unwrap();
        decoder.step(x.slice(s![.., 3..5, ..])).unwrap();
        decoder.truncate(4).unwrap();
        decoder.reorder(&[1, 0]).unwrap();
        let swapped = x.select(Axis(0), &[1, 0]);
        let next = swapped.slice(s![.., 5..7, ..]);
        let got = decoder.step(next).unwrap();
        let [second, first] = [(1, &[0, 3, 4][..]), (0, &[0, 1, 2, 3])].map(|(b, passed)| {
            let passed = x.select(Axis(1), passed).slice_move(s![b..b + 1, .., ..]);
            let next = x.slice(s![b..b + 1, 5..7, ..]);
            let all = whole(concatenate![Axis(1), passed, next].view());
            all.slice(s![.., -2.., ..]).to_owned()
        });
        close(
            got.view(),
            concatenate![Axis(0), second, first].view(),
            &layer,
        );
    }
}

/// The memory is mapped once, and read by branches of a sequence together.
#[test]
fn queries_of_a_memory_have_positions_of_their_own() {
    let layer: MultiHead<usize, f64> = build(rotary());
    let (x, memory) = (array(&sequence(2, 6)), sequence(2, 4) * 2.0);
    let mask = Mask::none().with_key_lengths(vec![4, 3]);
    let want = |rows: &Array3<f64>, b: &[usize]| {
        let rows = rows.select(Axis(0), b);
        let memory = array(&memory).select(Axis(0), b);
        let [rows, memory] = [rows, memory].map(|x| {
            let dim = x.dim();
            Cpu::default().tensor_from_vec(x.into_iter().collect(), dim)
        });
        let lengths = b.iter().map(|&b| 4 - b).collect();
        let mask = Mask::none().with_key_lengths(lengths);
        array(&layer.attend(rows, memory, &mask, PASS).unwrap().output)
    };
    let memory = array(&memory);
    let mut decoder = layer
        .cross_decoder(memory.view(), &mask, Form::Automatic, PASS)
        .unwrap();
    let all = want(&x, &[0, 1]);
    let got = decoder.step(x.slice(s![.., ..2, ..])).unwrap();
    close(got.view(), all.slice(s![.., ..2, ..]), &layer);
    decoder.reorder(&[1, 0, 1]).unwrap();
    let branches = want(&x, &[1, 0, 1]);
    let rows = x.select(Axis(0), &[1, 0, 1]);
    // Two of three queries belong to the first sequence.
    let mut got = Array3::zeros((3, 3, WIDTH));
    decoder
        .step_into(
            rows.slice(s![.., 2..5, ..]),
            Some(&[2, 3, 3]),
            got.view_mut(),
        )
        .unwrap();
    close(got.view(), branches.slice(s![.., 2..5, ..]), &layer);
    assert_eq!(decoder.lengths(), [4, 5, 5]);
    decoder.truncate(4);
    let mut got = decoder.step(rows.slice(s![.., 4..5, ..])).unwrap();
    close(got.view(), branches.slice(s![.., 4..5, ..]), &layer);
    let (next, out) = (rows.slice(s![.., ..1, ..]), got.slice_mut(s![.., ..1, ..]));
    let wrong = decoder.step_into(next, Some(&[1, 2, 1]), out);
    assert!(matches!(wrong, Err(Error::Mask { .. })), "{wrong:?}");
}

#[test]
fn what_cannot_turn_is_refused() {
    let refused = |config: MultiHeadConfig| {
        let mut rng = Seed::new(1).stream("initial values");
        MultiHead::<usize, f32>::try_new(&Cpu::default(), WIDTH, config, &mut rng).unwrap_err()
    };
    let of = |base, width| MultiHeadConfig {
        key_width: None,
        rotary: Some(Rotary {
            base,
            width,
            ..Rotary::default()
        }),
        ..rotary()
    };
    // Heads of three columns.
    let odd = refused(of(1e4, None));
    let is_named = matches!(
        &odd,
        Error::Argument(ArgumentError::OutOfRange { got: 3.0, .. })
    );
    assert!(is_named, "{odd}");
    for base in [0.0, f64::NAN] {
        assert!(names(&refused(of(base, Some(2))), "base"));
    }
    let cat = MultiHeadConfig {
        variant: Cat::default().into(),
        ..of(1e4, Some(2))
    };
    assert!(matches!(refused(cat), Error::Unsupported { .. }));
    let mut rng = Seed::new(1).stream("initial values");
    let queries =
        LearnableQueryLayer::<usize, f32>::try_new(&Cpu::default(), (2, WIDTH), rotary(), &mut rng);
    assert!(
        matches!(queries, Err(Error::Unsupported { .. })),
        "{queries:?}"
    );
}

/// Rotary positions from outside, under another name.
#[derive(Debug)]
struct Mine(Rotary);

impl PositionCode<f64> for Mine {
    fn check(&self, width: usize) -> Result<(), ArgumentError> {
        PositionCode::<f64>::check(&self.0, width)
    }

    fn encode(&self, positions: &[usize], width: usize, rows: &mut [f64]) {
        self.0.encode(positions, width, rows);
    }

    fn encode_vjp(&self, positions: &[usize], width: usize, cotangents: &mut [f64]) {
        self.0.encode_vjp(positions, width, cotangents);
    }
}

#[test]
fn a_code_of_your_own_is_used_as_the_one_of_the_settings() {
    let [layer, plain] = with_and_without(rotary());
    let code = layer.config().rotary.unwrap();
    let mine = || Mine(code);
    let own = plain.with_position_code(mine()).unwrap();
    let x = sequence(2, 5);
    let gradients = |layer: &MultiHead<usize, f64>| {
        let attended = layer.attend_self(x.leaky_trace(), &Mask::none(), PASS);
        let gradients = attended
            .unwrap()
            .output
            .square()
            .sum::<Rank0, _>()
            .backward();
        let of_query = gradients.get(&layer.maps[0].weight).as_vec();
        [gradients.get(&x).as_vec(), of_query]
    };
    assert_eq!(gradients(&own), gradients(&layer));
    let step = |layer: &MultiHead<usize, f64>| {
        let mut decoder = layer.decoder(2, Form::Automatic, PASS).unwrap();
        decoder.step(array(&x).view()).unwrap()
    };
    assert_eq!(step(&own), step(&layer));
    let twice = layer.with_position_code(mine());
    assert!(matches!(twice, Err(Error::Unsupported { .. })), "{twice:?}");
    let cat = build::<f64>(two_heads(Cat::default().into())).with_position_code(mine());
    assert!(matches!(cat, Err(Error::Unsupported { .. })), "{cat:?}");
}
