//! Layers train, infer and decode with a mechanism of another crate.

use super::variants;
use bochner_attention::engine::Rotary;
use bochner_attention::prelude::*;
use bochner_attention::{Form, Mask, MultiHead, MultiHeadConfig, Pass, PositionBias, Variant};
use bochner_numerics::check::assert_gradient;
use bochner_numerics::{Seed, Tolerance};
use ndarray::{Array1, Array3, ArrayView3, s};

const WIDTH: usize = 6;
const PASS: Pass = Pass::Evaluation { seed: Seed::new(5) };

type Layer = MultiHead<usize, f64>;
type Sequences = Tensor<(usize, usize, usize), f64, Cpu>;

fn build(config: MultiHeadConfig) -> Layer {
    let mut rng = Seed::new(1).stream("initial values");
    MultiHead::try_new(&Cpu::default(), WIDTH, config, &mut rng).unwrap()
}

/// A causal layer, and with it what else the mechanism's card has.
fn configs(variant: &Variant) -> Vec<MultiHeadConfig> {
    let card = variant.card();
    let plain = MultiHeadConfig {
        heads: 2,
        variant: variant.clone(),
        causal: true,
        ..Default::default()
    };
    let mut all = vec![plain.clone()];
    if card.shared_keys.is_yes() {
        all.push(MultiHeadConfig {
            kv_heads: Some(1),
            key_width: Some(4),
            ..plain.clone()
        });
    }
    if card.bias.is_yes() {
        let position_bias = PositionBias::Learned { reach: 2 };
        let window = Some([2, 0]);
        all.push(MultiHeadConfig {
            position_bias,
            window,
            ..plain.clone()
        });
    }
    if card.cross.is_yes() {
        all.push(MultiHeadConfig {
            rotary: Some(Rotary::default()),
            key_width: Some(4),
            ..plain
        });
    }
    all
}

fn sequence(batch: usize, time: usize) -> Sequences {
    Cpu::seed_from_u64(3).sample_normal_like(&(batch, time, WIDTH))
}

fn array(x: &Sequences) -> Array3<f64> {
    Array3::from_shape_vec(*x.shape(), x.as_vec()).unwrap()
}

fn close(got: &Array3<f64>, want: ArrayView3<f64>, what: &str) {
    let bound = Tolerance::outputs::<f64>().bound(want.iter().copied());
    let close = |(got, want): (&f64, &f64)| (got - want).abs() <= bound;
    assert!(got.iter().zip(want).all(close), "{what}: {got} {want}");
}

/// Along the learnt numbers, and along a map before them.
#[test]
fn gradients_are_those_of_finite_differences() {
    for config in variants().iter().flat_map(configs) {
        let (mut layer, x) = (build(config), sequence(2, 5));
        let mask = Mask::none().with_key_lengths(vec![3, 5]);
        let weights: Sequences = Cpu::seed_from_u64(4).sample_normal_like(&(2, 5, WIDTH));
        let loss = |layer: &Layer| {
            let attended = layer.attend_self(x.leaky_trace(), &mask, PASS).unwrap();
            (attended.output * weights.clone()).sum()
        };
        let gradients = loss(&layer).backward();
        let numbers = Array1::from(layer.kernel_values());
        if !numbers.is_empty() {
            let got = Array1::from(gradients.get(&layer.kernel).as_vec());
            let mut layer = layer.clone();
            assert_gradient(&got, &numbers, |numbers| {
                layer.kernel.copy_from(numbers.as_slice().unwrap());
                loss(&layer).array()
            });
        }
        // The last map before the mechanism is that of the values, the first that of the queries.
        for map in [0, 2] {
            let values = Array1::from(layer.maps[map].weight.as_vec());
            let got = Array1::from(gradients.get(&layer.maps[map].weight).as_vec());
            assert_gradient(&got, &values, |values| {
                layer.maps[map].weight.copy_from(values.as_slice().unwrap());
                loss(&layer).array()
            });
            layer.maps[map].weight.copy_from(values.as_slice().unwrap());
        }
    }
}

#[test]
fn inference_is_the_layer() {
    for config in variants().iter().flat_map(configs) {
        let (layer, x) = (build(config), sequence(2, 7));
        let mask = Mask::none().with_key_lengths(vec![4, 7]);
        let want = array(&layer.attend_self(x.clone(), &mask, PASS).unwrap().output);
        let packed = layer.packed().unwrap();
        let got = packed.attend_self(array(&x).view(), &mask, PASS);
        assert_eq!(got.unwrap(), want, "{layer:?}");
    }
}

#[test]
fn decoding_is_the_whole_pass() {
    for config in variants().iter().flat_map(configs) {
        let (layer, x) = (build(config), sequence(2, 7));
        let want = array(
            &layer
                .attend_self(x.clone(), &Mask::none(), PASS)
                .unwrap()
                .output,
        );
        let mut decoder = layer.decoder(2, Form::Automatic, PASS).unwrap();
        for positions in [0..3, 3..4, 4..7] {
            let piece = s![.., positions.clone(), ..];
            let got = decoder.step(array(&x).slice(piece)).unwrap();
            close(
                &got,
                want.slice(piece),
                &format!("{positions:?} {:?}", layer.config()),
            );
        }
    }
}

#[test]
fn attention_to_a_memory_is_decoded_and_inferred() {
    for variant in variants() {
        let is_across = variant.card().cross.is_yes();
        let layer = build(MultiHeadConfig {
            heads: 2,
            variant,
            ..Default::default()
        });
        let (x, memory) = (sequence(2, 3), sequence(2, 5));
        let mask = Mask::none().with_key_lengths(vec![5, 2]);
        let attended = layer.attend(x.clone(), memory.clone(), &mask, PASS);
        if !is_across {
            assert!(attended.is_err());
            continue;
        }
        let want = array(&attended.unwrap().output);
        let (x, memory) = (array(&x), array(&memory));
        let packed = layer.packed().unwrap();
        let got = packed.attend(x.view(), memory.view(), &mask, PASS);
        assert_eq!(got.unwrap(), want, "{layer:?}");
        let decoder = layer.cross_decoder(memory.view(), &mask, Form::Automatic, PASS);
        let got = decoder.unwrap().step(x.view()).unwrap();
        close(&got, want.view(), &format!("{layer:?}"));
    }
}
