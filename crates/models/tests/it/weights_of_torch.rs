//! Encoders take the weights of PyTorch's `nn.TransformerEncoderLayer` and `nn.TransformerEncoder` and give their
//! outputs; they write what they have read.
//!
//! The files are those of `crates/bench/peers/weights.py`.

use crate::common;
use bochner_attention::{Mask, Pass, Softmax};
use bochner_models::encoder::{
    Encoder, EncoderConfig, EncoderLayer, EncoderLayerConfig, NormPlacement,
};
use bochner_nn::{Element, NameTable, Parameters, StateDict, WeightsError};
use bochner_numerics::{Seed, Tolerance};
use bochner_ops::Activation;
use dfdx::prelude::{Cpu, Tensor, TensorFromVec};

const DOUBLE: &[u8] = include_bytes!("torch-f64.safetensors");
const SINGLE: &[u8] = include_bytes!("torch-f32.safetensors");

type Sequences<E> = Tensor<(usize, usize, usize), E, Cpu>;

fn layer(norm: NormPlacement) -> EncoderLayerConfig {
    common::layer(Softmax::default().into(), norm, 0.1)
}

fn mask() -> Mask {
    Mask::none().with_key_lengths(vec![5, 3])
}

const PASS: Pass = Pass::Evaluation { seed: Seed::new(1) };

/// Compares the output of a model with the weights of a case, at the positions that are no padding.
fn agrees<E: Element, M: Parameters<E>>(
    bytes: &[u8],
    case: &str,
    mut model: M,
    names: NameTable,
    apply: impl Fn(&M, Sequences<E>) -> Sequences<E>,
) {
    let read = |prefix: &str| StateDict::<E>::from_safetensors(bytes, prefix).unwrap();
    let (state, data) = (read(&format!("{case}.layer")), read(case).tensors);
    names.load(&state, &mut model).unwrap();
    assert_eq!(names.save(&model).unwrap().tensors, state.tensors);
    let x = data["x"].iter().copied().collect();
    let output = apply(&model, Cpu::default().tensor_from_vec(x, (2, 5, 8))).as_vec();
    let wanted: Vec<f64> = data["padded"].iter().map(|x| x.as_f64()).collect();
    let bound = Tolerance::outputs::<E>().bound(wanted.iter().copied());
    // The second sequence has three positions.
    for (got, want) in output.iter().zip(wanted).take((5 + 3) * 8) {
        let error = (got.as_f64() - want).abs();
        assert!(error <= bound, "{case}: {got:?}, {want}");
    }
}

fn all_agree<E: Element>(bytes: &[u8]) {
    use NormPlacement::{Post, Pre};
    let (device, seed) = (Cpu::default(), Seed::new(1));
    let pre = EncoderLayerConfig {
        activation: Activation::GeluTanh,
        epsilon: 1e-2,
        ..layer(Pre)
    };
    let gelu = EncoderLayerConfig {
        activation: Activation::Gelu,
        ..layer(Post)
    };
    for (case, config) in [("post", layer(Post)), ("pre", pre), ("gelu", gelu)] {
        let layer = EncoderLayer::<E>::try_new(&device, &config, seed).unwrap();
        let names = layer.torch_names().unwrap();
        let apply = |layer: &EncoderLayer<E>, x| layer.apply(x, &mask(), PASS).unwrap().output;
        agrees(bytes, case, layer, names, apply);
    }
    let normed = EncoderConfig {
        final_norm: Some(true),
        ..EncoderConfig::new(1, layer(Post))
    };
    for (case, config) in [
        ("stack-pre", EncoderConfig::new(2, layer(Pre))),
        ("stack-post", EncoderConfig::new(2, layer(Post))),
        ("stack-normed", normed),
    ] {
        let encoder = Encoder::<E>::try_new(&device, &config, seed).unwrap();
        let names = encoder.torch_names().unwrap();
        let apply = |encoder: &Encoder<E>, x| encoder.apply(x, &mask(), PASS).unwrap().output;
        agrees(bytes, case, encoder, names, apply);
    }
}

#[test]
fn outputs_are_those_of_torch() {
    all_agree::<f64>(DOUBLE);
    all_agree::<f32>(SINGLE);
}

#[test]
fn a_stack_of_another_depth_names_what_is_missing() {
    let config = EncoderConfig::new(3, layer(NormPlacement::Post));
    let mut encoder = Encoder::<f64>::try_new(&Cpu::default(), &config, Seed::new(1)).unwrap();
    let state = StateDict::from_safetensors(DOUBLE, "stack-pre.layer").unwrap();
    let names = encoder.torch_names().unwrap();
    let error = names.load(&state, &mut encoder).unwrap_err();
    let bochner_nn::Error::Weights(WeightsError::OtherNames { missing, left_over }) = error else {
        panic!("{error}")
    };
    assert!(missing.iter().all(|name| name.starts_with("layers.2.")));
    assert_eq!(
        (missing.len(), left_over),
        (12, vec!["norm.bias".into(), "norm.weight".into()])
    );
}

#[test]
fn settings_that_the_file_decides_are_checked() {
    for epsilon in [0.0, -1e-5, f64::NAN, 1e-50] {
        let config = EncoderLayerConfig {
            epsilon,
            ..layer(NormPlacement::Post)
        };
        let error = EncoderLayer::<f64>::try_new(&Cpu::default(), &config, Seed::new(1));
        assert!(error.unwrap_err().to_string().contains("epsilon"));
    }
}
