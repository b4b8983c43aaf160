//! Sequences packed into one example of a layer are what each of them is alone.

use super::{PASS, Sequences, array, build, sequence, two_heads, variants};
use bochner_attention::{
    Error, Mask, MultiHead, MultiHeadConfig, PositionBias, Rotary, card::Stream,
};
use bochner_numerics::Tolerance;
use dfdx::prelude::*;
use ndarray::s;

const LENGTHS: [usize; 4] = [4, 1, 0, 6];

/// The output, and the gradients of the sum of its squares along the input and along the map to the queries.
fn attended(
    layer: &MultiHead<usize, f64>,
    x: &Sequences<f64>,
    mask: &Mask,
) -> Result<[Vec<f64>; 3], Error> {
    let output = layer.attend_self(x.leaky_trace(), mask, PASS)?.output;
    let values = output.as_vec();
    let gradients = output.square().sum::<Rank0, _>().backward();
    let along_map = gradients.get(&layer.maps[0].weight).as_vec();
    Ok([values, gradients.get(x).as_vec(), along_map])
}

/// Returns [`attended`] of each sequence alone, in order; the gradients along the map are summed.
fn one_by_one(layer: &MultiHead<usize, f64>, x: &Sequences<f64>) -> [Vec<f64>; 3] {
    let all = array(x);
    let [mut output, mut along_input] = [Vec::new(), Vec::new()];
    let mut along_map = vec![0.0; layer.maps[0].weight.as_vec().len()];
    let mut start = 0;
    for length in LENGTHS.into_iter().filter(|&length| length > 0) {
        let own = all.slice(s![.., start..start + length, ..]);
        let own = Cpu::default().tensor_from_vec(own.iter().copied().collect(), own.dim());
        let [one, of_input, of_map] = attended(layer, &own, &Mask::none()).unwrap();
        output.extend(one);
        along_input.extend(of_input);
        along_map
            .iter_mut()
            .zip(of_map)
            .for_each(|(sum, g)| *sum += g);
        start += length;
    }
    [output, along_input, along_map]
}

#[test]
fn with_every_option_that_moves_along() {
    let x = sequence(1, LENGTHS.iter().sum());
    let packed = Mask::none().with_packed(&LENGTHS);
    let tolerances = [
        Tolerance::outputs::<f64>(),
        Tolerance::gradients::<f64>(),
        Tolerance::gradients::<f64>(),
    ];
    let (mut compared, mut refused) = (0, 0);
    for variant in variants() {
        let card = variant.card();
        let rotary = card.streams.contains(&Stream::Queries);
        let rotary = rotary.then(|| Rotary {
            width: Some(2),
            ..Rotary::default()
        });
        for (causal, window, position_bias, rotary) in [
            (false, None, PositionBias::None, None),
            (false, None, PositionBias::None, rotary),
            (true, None, PositionBias::Alibi, None),
            (false, Some([1, 2]), PositionBias::None, rotary),
        ] {
            let whole = match (causal, window) {
                (true, _) => packed.clone().with_causality(),
                (_, Some([left, right])) => packed.clone().with_window(left, right).unwrap(),
                _ => packed.clone(),
            };
            let biased = position_bias != PositionBias::None;
            if !card.takes(&whole) || biased && !card.bias.is_yes() {
                continue;
            }
            let layer = build::<f64>(MultiHeadConfig {
                causal,
                window,
                position_bias,
                rotary,
                ..two_heads(variant.clone())
            });
            let got = match attended(&layer, &x, &packed) {
                Ok(got) => got,
                // Points that are inferred from each sequence, or sums in linear time.
                Err(Error::Unsupported { .. }) => {
                    refused += 1;
                    continue;
                }
                Err(error) => panic!("{layer:?}: {error}"),
            };
            compared += 1;
            let want = one_by_one(&layer, &x);
            for ((got, want), tolerance) in got.iter().zip(&want).zip(&tolerances) {
                let bound = tolerance.bound(want.iter().copied());
                assert_eq!(got.len(), want.len());
                let close = got.iter().zip(want).all(|(a, b)| (a - b).abs() <= bound);
                assert!(close, "{layer:?}");
            }
        }
    }
    assert!(compared > 15 && refused > 0, "{compared} {refused}");
}
