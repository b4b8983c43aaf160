//! Each option of a layer does what it says, or is refused.

use super::{PASS, WIDTH, array, build, close, sequence, two_heads, variants_across};
use bochner_attention::{
    Bias, Cat, Error, Form, IkanDirect, Mask, MultiHead, MultiHeadConfig, Pass, PositionBias,
    Primal, Softmax,
    layer::Projection,
    mechanism::{PrimalWeights, Streams},
};
use bochner_nn::Parameters;
use bochner_numerics::Seed;
use dfdx::prelude::*;
use ndarray::{Array1, Array2, Array3, Array4, Axis, concatenate, s};

/// `x W^T + b` of all rows.
fn mapped(map: &Projection<usize, usize, f64>, x: &Array3<f64>) -> Array3<f64> {
    let (batch, time, inputs) = x.dim();
    let outputs = map.weight.shape().0;
    let weight = Array2::from_shape_vec((outputs, inputs), map.weight.as_vec()).unwrap();
    let rows = x.to_shape((batch * time, inputs)).unwrap();
    let mut y = rows.dot(&weight.t());
    if let Some(bias) = &map.bias {
        y += &Array1::from(bias.as_vec());
    }
    y.into_shape_with_order((batch, time, outputs)).unwrap()
}

fn split(x: Array3<f64>, heads: usize) -> Array4<f64> {
    let (batch, time, width) = x.dim();
    let split = x
        .into_shape_with_order((batch, time, heads, width / heads))
        .unwrap();
    split
        .permuted_axes([0, 2, 1, 3])
        .as_standard_layout()
        .into_owned()
}

/// Queries, keys and values of the heads, by their definition.
fn heads(layer: &MultiHead<usize, f64>, [query, memory]: [&Array3<f64>; 2]) -> [Array4<f64>; 3] {
    let heads = layer.config().heads;
    let kv_heads = layer.config().kv_heads.unwrap_or(heads);
    let [q, k, v] = [(query, heads), (memory, kv_heads), (memory, kv_heads)];
    let mut maps = layer.maps.iter();
    [q, k, v].map(|(x, heads)| {
        let map = maps.next().expect("three maps");
        split(mapped(map, x), heads)
    })
}

/// The layer by its definition.
fn expected(
    layer: &MultiHead<usize, f64>,
    sequences: [&Array3<f64>; 2],
    mask: &Mask,
    bias: Option<&Bias<f64>>,
) -> Array3<f64> {
    let heads = heads(layer, sequences);
    let inputs = Streams::new(heads.each_ref().map(|x| x.view()), mask).with_bias(bias);
    let mechanism = layer.config().variant.mechanism::<f64>();
    let attended = mechanism
        .forward(&inputs, &layer.kernel_values(), &PASS)
        .unwrap()
        .output;
    let joined = attended.permuted_axes([0, 2, 1, 3]);
    let (batch, time, heads, width) = joined.dim();
    let joined = joined.as_standard_layout().into_owned();
    let joined = joined
        .into_shape_with_order((batch, time, heads * width))
        .unwrap();
    mapped(&layer.output, &joined)
}

#[test]
fn widths_and_biases() {
    let (x, y) = (sequence(2, 5), sequence(2, 4));
    let mask = Mask::none().with_key_lengths(vec![3, 4]);
    for variant in variants_across() {
        for (heads, key_width, value_width, bias, kv_heads) in [
            (2, Some(5), None, true, None),
            (2, None, Some(2), false, None),
            (4, Some(1), Some(3), true, None),
            (4, Some(2), Some(3), true, Some(2)),
        ] {
            let variant = variant.clone();
            if kv_heads.is_some() && !variant.card().shared_keys.is_yes() {
                continue;
            }
            let layer = build(MultiHeadConfig {
                heads,
                kv_heads,
                variant,
                key_width,
                value_width,
                bias,
                ..Default::default()
            });
            let got = layer.attend(x.clone(), y.clone(), &mask, PASS).unwrap();
            let (x, y, got) = (array(&x), array(&y), array(&got.output));
            close(
                got.view(),
                expected(&layer, [&x, &y], &mask, None).view(),
                &layer,
            );
            let packed = layer.packed().unwrap();
            let inferred = packed.attend(x.view(), y.view(), &mask, PASS);
            assert_eq!(inferred.unwrap(), got, "{layer:?}");
        }
    }
}

#[test]
fn parameters_are_named_and_sized_by_the_settings() {
    let variant = IkanDirect {
        points: 3,
        ..Default::default()
    };
    let layer = build::<f64>(MultiHeadConfig {
        key_width: Some(4),
        value_width: Some(5),
        bias: false,
        position_bias: PositionBias::Learned { reach: 2 },
        ..two_heads(variant.into())
    });
    let mut all = Vec::new();
    layer.for_each("", &mut |name, x| all.push((name.to_owned(), x.dims())));
    let want = [
        ("query.weight", vec![8, WIDTH]),
        ("key.weight", vec![8, WIDTH]),
        ("value.weight", vec![10, WIDTH]),
        ("output.weight", vec![WIDTH, 10]),
        ("position_bias", vec![2, 5]),
        ("kernel", vec![2 * 2 * 3 * 4]),
    ];
    assert_eq!(all, want.map(|(name, dims)| (name.to_owned(), dims)));
}

/// Queries are the last positions of the memory.
#[test]
fn causality_of_two_sequences() {
    let [layer, free] = [true, false].map(|causal| {
        build::<f64>(MultiHeadConfig {
            causal,
            ..two_heads(Softmax::default().into())
        })
    });
    let (x, y) = (sequence(2, 5), sequence(2, 7));
    let lengths = Mask::none().with_key_lengths(vec![2, 7]);
    let causal = lengths.clone().with_causality();
    let [got, want] = [(&layer, &lengths), (&free, &causal)].map(|(layer, mask)| {
        let attended = layer.attend(x.clone(), y.clone(), mask, PASS).unwrap();
        let seen = layer.inspect(x.clone(), y.clone(), mask, PASS).unwrap();
        (attended.output.as_vec(), seen.weights)
    });
    assert_eq!(got, want);
    let seed = layer.config().seed;
    let causal = Mask::none().with_causality();
    let want = free.attend_self(x.clone(), &causal, Pass::Evaluation { seed });
    assert_eq!(layer.forward(x).as_vec(), want.unwrap().output.as_vec());
}

/// A window and a bias by position are the mechanism's under that mask and with that bias: on the tape,
/// without one, in an inspection and position by position.
#[test]
fn windows_and_position_biases() {
    let x = sequence(2, 7);
    let (mut obeyed, mut refused) = (0, 0);
    for variant in variants_across() {
        // Sums in linear time know neither.
        let free = variant.with_form(Form::Automatic);
        let variant = free.unwrap_or(variant);
        for (window, position_bias, causal) in [
            (Some([2, 1]), PositionBias::None, false),
            (None, PositionBias::Alibi, true),
            (Some([2, 0]), PositionBias::Learned { reach: 2 }, true),
        ] {
            let config = MultiHeadConfig {
                heads: 2,
                variant: variant.clone(),
                causal,
                window,
                position_bias,
                ..Default::default()
            };
            let mut rng = Seed::new(1).stream("initial values");
            let layer = MultiHead::try_new(&Cpu::default(), WIDTH, config, &mut rng);
            let card = variant.card();
            let no_bias = position_bias != PositionBias::None && !card.bias.is_yes();
            // A window without keys after the query's own is causal.
            let is_causal = causal || window.is_some_and(|[_, right]| right == 0);
            let leaks = is_causal && !card.causal.is_yes();
            if no_bias || leaks {
                assert!(
                    matches!(layer, Err(Error::Unsupported { .. })),
                    "{variant:?}"
                );
                refused += 1;
                continue;
            }
            let mut layer: MultiHead<usize, f64> = layer.unwrap();
            let table = Array2::from_shape_fn((2, 5), |(m, n)| (m * 5 + n) as f64 / 10.0);
            if let Some(own) = &mut layer.position_bias {
                assert!(own.as_vec().iter().all(|&x| x == 0.0), "trained from zero");
                own.copy_from(table.as_slice().unwrap());
            }
            let bias = match position_bias {
                PositionBias::None => None,
                PositionBias::Alibi => Some(Bias::alibi()),
                PositionBias::Learned { .. } => Some(Bias::relative(table.view()).unwrap()),
            };
            let lengths = || {
                Mask::none()
                    .with_key_lengths(vec![5, 7])
                    .with_query_lengths(vec![5, 7])
            };
            let of = |mask: Mask| match (causal, window) {
                (false, None) => mask,
                (true, None) => mask.with_causality(),
                (false, Some([l, r])) => mask.with_window(l, r).unwrap(),
                (true, Some([l, r])) => mask.with_causality().with_window(l, r).unwrap(),
            };
            let attended = layer.attend_self(x.clone(), &lengths(), PASS);
            let attended = array(&attended.unwrap().output);
            obeyed += 1;
            let own = array(&x);
            let want = expected(&layer, [&own, &own], &of(lengths()), bias.as_ref());
            close(attended.view(), want.view(), &layer);
            let packed = layer.packed().unwrap();
            let inferred = packed.attend_self(own.view(), &lengths(), PASS);
            assert_eq!(inferred.unwrap(), attended, "{layer:?}");
            let (of_heads, mask) = (heads(&layer, [&own, &own]), of(lengths()));
            let streams = of_heads.each_ref().map(|x| x.view());
            let inputs = Streams::new(streams, &mask).with_bias(bias.as_ref());
            let mechanism = variant.mechanism::<f64>();
            let want = mechanism
                .inspect(&inputs, &layer.kernel_values(), &PASS)
                .unwrap();
            let shown = layer.inspect(x.clone(), x.clone(), &lengths(), PASS);
            let off = &shown.unwrap().weights - &want.weights;
            assert!(off.iter().all(|off| off.abs() < 1e-12), "{layer:?}");
            if causal {
                let whole = layer.attend_self(x.clone(), &Mask::none(), PASS).unwrap();
                let mut decoder = layer.decoder(2, Form::Pairwise, PASS).unwrap();
                let steps = [0..3, 3..4, 4..7].map(|positions| {
                    let piece = s![.., positions, ..];
                    decoder.step(own.slice(piece)).unwrap()
                });
                let steps = steps.each_ref().map(|x| x.view());
                let steps = concatenate(Axis(1), &steps).unwrap();
                close(steps.view(), array(&whole.output).view(), &layer);
            }
            // A memory has no positions.
            let mask = Mask::none();
            let memory = layer.cross_decoder(own.view(), &mask, Form::Pairwise, PASS);
            assert!(
                matches!(memory, Err(Error::Unsupported { .. })),
                "{layer:?}"
            );
        }
    }
    assert!(obeyed > 15 && refused > 1, "{obeyed} {refused}");
}

/// The narrower of two windows counts, even where both leave a query itself alone.
#[test]
fn windows_of_a_mask_and_of_the_layer() {
    let of = |window| {
        let variant = Softmax::default().into();
        build(MultiHeadConfig {
            heads: 2,
            variant,
            window,
            ..Default::default()
        })
    };
    let (x, window) = (sequence(2, 6), |l, r| {
        Mask::none().with_window(l, r).unwrap()
    });
    let output = |layer: &MultiHead<usize, f64>, mask: &Mask| {
        let attended = layer.attend_self(x.clone(), mask, PASS).unwrap();
        attended.output.as_vec()
    };
    let both = output(&of(Some([3, 1])), &window(1, 2));
    assert_eq!(both, output(&of(None), &window(1, 1)));
    let identity = Array2::from_shape_fn((6, 6), |(i, j)| i == j);
    let alone = output(&of(Some([0, 1])), &window(1, 0));
    let identity = output(&of(None), &Mask::none().with_matrix(identity.view()));
    assert!(
        alone
            .iter()
            .zip(identity)
            .all(|(a, b)| (a - b).abs() < 1e-12)
    );
}

/// Primal-Attention has a width of its own, which the layer follows.
#[test]
fn widths_of_a_mechanism_without_values() {
    let x = sequence(2, 5);
    for (weights, key_width, value_width) in [
        (PrimalWeights::Parameters, Some(5), Some(4)),
        (Primal::default().weights, None, Some(4)),
        (Primal::default().weights, Some(3), None),
    ] {
        let primal = Primal {
            rank: 2,
            weights,
            value_width,
            ..Primal::default()
        };
        let layer = build::<f64>(MultiHeadConfig {
            key_width,
            ..two_heads(primal.into())
        });
        let attended = layer.attend_self(x.clone(), &Mask::none(), PASS);
        assert_eq!(attended.unwrap().output.shape(), x.shape());
    }
}

/// A mechanism of one sequence does not look at the memory alone.
#[test]
fn an_inspection_of_two_sequences() {
    let layer = build::<f64>(MultiHeadConfig {
        heads: 2,
        variant: Cat::default().into(),
        ..Default::default()
    });
    let (x, y, mask) = (sequence(1, 4), sequence(1, 5), Mask::none());
    assert!(layer.inspect(x.clone(), x.clone(), &mask, PASS).is_ok());
    let got = layer.inspect(x.clone(), y, &mask, PASS);
    assert!(matches!(got, Err(Error::Unsupported { .. })), "{got:?}");
    let got = layer.inspect(x.clone(), x * 2.0, &mask, PASS);
    assert!(matches!(got, Err(Error::Unsupported { .. })), "{got:?}");
}

/// A NaN in the padding is unequal to everything, itself included, and must not be compared.
#[test]
fn an_inspection_of_one_sequence_does_not_look_at_its_padding() {
    let layer = build::<f64>(two_heads(Cat::default().into()));
    let (x, mask) = (sequence(2, 4), Mask::none().with_key_lengths(vec![4, 3]));
    let mut padded = array(&x);
    padded.slice_mut(s![1, 3.., ..]).fill(f64::NAN);
    let padded = Cpu::default().tensor_from_vec(padded.into_iter().collect(), *x.shape());
    let [got, want] = [padded, x].map(|x| layer.inspect_self(x, &mask, PASS).unwrap().weights);
    assert_eq!(got.slice(s![0, .., .., ..]), want.slice(s![0, .., .., ..]));
    let kept = s![1, .., ..3, ..3];
    assert_eq!(got.slice(kept), want.slice(kept));
}
