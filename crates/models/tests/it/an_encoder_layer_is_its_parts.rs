//! A layer recorded as one operation has the values and gradients of its parts recorded one by
//! one, those of finite differences, and the same bits on any number of threads.

use crate::common::{self, Sequences, ikan, mikan, on_threads};
use bochner_attention::{Mask, Pass, Softmax, Variant, layer::Attention};
use bochner_models::encoder::{
    Encoder, EncoderConfig, EncoderLayer, EncoderLayerConfig, NormPlacement,
};
use bochner_nn::{Dropout, LayerNorm, Parameters, alloc_gradients, parameter_count};
use bochner_numerics::{Seed, relative_error, standard_normal};
use bochner_ops::Mode;
use dfdx::prelude::*;

type Tape = OwnedTape<f64, Cpu>;

const SHAPE: (usize, usize, usize) = (2, 3, 8);
fn random(purpose: &str) -> Sequences {
    common::random(SHAPE, purpose)
}

fn config(attention: Variant) -> EncoderLayerConfig {
    EncoderLayerConfig {
        width: SHAPE.2,
        heads: 2,
        hidden: 12,
        attention,
        dropout: 0.3,
        norm: NormPlacement::Post,
        ..Default::default()
    }
}

fn variants() -> [Variant; 3] {
    [Softmax::default().into(), ikan(), mikan()]
}

fn layer(attention: Variant) -> EncoderLayer<f64> {
    placed(attention, NormPlacement::Post)
}

fn placed(attention: Variant, norm: NormPlacement) -> EncoderLayer<f64> {
    let config = EncoderLayerConfig {
        norm,
        ..config(attention)
    };
    EncoderLayer::try_new(&Cpu::default(), &config, Seed::new(5)).unwrap()
}

const PLACEMENTS: [NormPlacement; 2] = [NormPlacement::Post, NormPlacement::Pre];

fn pass() -> Pass {
    Pass::Training {
        seed: Seed::new(7),
        dropout: 0.2,
    }
}

fn mask() -> Mask {
    Mask::none().with_key_lengths(vec![3, 2])
}

/// The layer from operations of their own.
fn composed(
    layer: &EncoderLayer<f64>,
    x: Sequences<Tape>,
) -> Attention<Sequences<Tape>, Tensor<(), f64, Cpu, Tape>> {
    let mode = Mode::Training(Seed::new(7));
    let dropout = Dropout::new(0.3).unwrap();
    let before = |norm: &LayerNorm<usize, f64>, x: &Sequences<Tape>| match layer.norm {
        NormPlacement::Post => x.retaped::<Tape>(),
        NormPlacement::Pre => norm.apply(x.retaped::<Tape>()).unwrap(),
    };
    let behind = |norm: &LayerNorm<usize, f64>, x: Sequences<Tape>| match layer.norm {
        NormPlacement::Post => norm.apply(x).unwrap(),
        NormPlacement::Pre => x,
    };
    let input = before(&layer.attention_norm, &x);
    let attended = layer.attention.attend_self(input, &mask(), pass()).unwrap();
    let branch = dropout.apply(attended.output, mode.child("attention"));
    let h = behind(&layer.attention_norm, branch.unwrap() + x);
    let input = before(&layer.feed_forward_norm, &h);
    let branch = layer.feed_forward.apply(input, mode.child("feed-forward"));
    let branch = dropout.apply(branch.unwrap(), mode.child("feed-forward branch"));
    Attention {
        output: behind(&layer.feed_forward_norm, branch.unwrap() + h),
        penalty: attended.penalty,
    }
}

/// The output and all gradients under one cotangent.
fn outcome(
    layer: &EncoderLayer<f64>,
    run: impl Fn(Sequences<Tape>) -> Attention<Sequences<Tape>, Tensor<(), f64, Cpu, Tape>>,
) -> Vec<f64> {
    let x = random("x");
    let encoded = run(x.leaky_trace());
    let mut found = encoded.output.as_vec();
    let loss = (encoded.output * random("cotangent")).sum() + encoded.penalty;
    let mut gradients = loss.backward();
    found.extend(gradients.get(&x).as_vec());
    layer.for_each("", &mut |_, p| {
        found.extend_from_slice(p.gradient(&mut gradients).unwrap());
    });
    found
}

#[test]
fn one_operation_is_its_parts() {
    for variant in variants() {
        for norm in PLACEMENTS {
            let layer = placed(variant.clone(), norm);
            let got = outcome(&layer, |x| layer.apply(x, &mask(), pass()).unwrap());
            let want = outcome(&layer, |x| composed(&layer, x));
            let error = relative_error(&got, &want);
            assert!(error < 1e-12, "{variant:?}, {norm:?}: {error:e}");
        }
    }
}

#[test]
fn layers_are_drawn_apart_and_their_penalties_add_up() {
    let [.., mikan] = variants();
    let layer = config(mikan);
    let (device, seed) = (Cpu::default(), Seed::new(5));
    let config = EncoderConfig::new(2, layer.clone());
    let encoder: Encoder<f64> = Encoder::try_new(&device, &config, seed).unwrap();
    let got = encoder.apply(random("x"), &mask(), pass()).unwrap();
    let (mut x, mut penalty) = (random("x"), 0.0);
    for i in 0..2 {
        let own: EncoderLayer<f64> = EncoderLayer::try_new(&device, &layer, seed.nth(i)).unwrap();
        let pass = Pass::Training {
            seed: Seed::new(7).nth(i),
            dropout: 0.2,
        };
        let encoded = own.apply(x, &mask(), pass).unwrap();
        assert!(encoded.penalty.array() > 0.0);
        penalty += encoded.penalty.array();
        x = encoded.output;
    }
    assert_eq!(got.output.as_vec(), x.as_vec());
    assert_eq!(got.penalty.array(), penalty);
}

/// The last of pre-LN layers leaves a sum that nothing has normalised; the encoder does.
#[test]
fn an_encoder_of_pre_ln_layers_ends_in_a_norm() {
    let layer = EncoderLayerConfig {
        norm: NormPlacement::Pre,
        ..config(Softmax::default().into())
    };
    let config = EncoderConfig::new(1, layer.clone());
    let (device, seed) = (Cpu::default(), Seed::new(5));
    let encoder: Encoder<f64> = Encoder::try_new(&device, &config, seed).unwrap();
    let alone: EncoderLayer<f64> = EncoderLayer::try_new(&device, &layer, seed.nth(0)).unwrap();
    let pass = Pass::Evaluation { seed };
    let got = encoder.apply(random("x"), &mask(), pass).unwrap();
    let sum = alone.apply(random("x"), &mask(), pass).unwrap();
    let norm: LayerNorm<usize, f64> = LayerNorm::try_new(&device, SHAPE.2).unwrap();
    assert_eq!(
        got.output.as_vec(),
        norm.apply(sum.output).unwrap().as_vec()
    );
    let mut names = Vec::new();
    encoder.for_each("", &mut |name, _| names.push(name.to_string()));
    let layers = |layers| {
        let config = EncoderConfig::new(layers, layer.clone());
        parameter_count(&Encoder::<f64>::try_new(&device, &config, seed).unwrap())
    };
    assert_eq!(layers(3), 3 * (layers(1) - 2 * SHAPE.2) + 2 * SHAPE.2);
    assert!(names.ends_with(&["norm.gamma".to_string(), "norm.beta".to_string()]));
}

#[test]
fn threads_change_nothing() {
    let layer = EncoderLayerConfig {
        width: 64,
        heads: 4,
        hidden: 96,
        ..config(variants()[1].clone())
    };
    let encoder = EncoderConfig::new(2, layer);
    let device = Cpu::default();
    let model: Encoder<f32> = Encoder::try_new(&device, &encoder, Seed::new(2)).unwrap();
    let run = || {
        let n = 8 * 40 * 64;
        let mut stream = Seed::new(1).stream("x");
        let values: Vec<f32> = (0..n).map(|_| standard_normal(&mut stream)).collect();
        let x = device.tensor_from_vec(values, (8, 40, 64));
        let y = model
            .apply(
                x.trace(alloc_gradients(&model).unwrap()),
                &Mask::none(),
                pass(),
            )
            .unwrap();
        let mut found = y.output.as_vec();
        let mut gradients = y.output.square().sum().backward();
        model.for_each("", &mut |_, p| {
            found.extend_from_slice(p.gradient(&mut gradients).unwrap());
        });
        found
    };
    assert!(on_threads(1, run) == on_threads(3, run));
}

#[test]
fn sequences_of_another_width_are_refused() {
    let device = Cpu::default();
    let narrow: Sequences = device.zeros_like(&(2, 3, 7));
    assert!(
        layer(Softmax::default().into())
            .apply(narrow, &Mask::none(), pass())
            .is_err()
    );
}
