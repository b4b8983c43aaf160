//! The layer takes the weights of PyTorch's `nn.MultiheadAttention` and gives its outputs; it writes what it has read.
//!
//! The files are those of `crates/bench/peers/weights.py`.

use bochner_attention::{
    Error, Linear, Mask, MultiHead, MultiHeadConfig, Pass, PositionBias, Rotary,
};
use bochner_nn::{Element, NameTable, Parameters, StateDict, WeightsError};
use bochner_numerics::{Seed, Tolerance};
use dfdx::prelude::{Cpu, Device, Tensor, TensorFromVec};
use ndarray::ArrayD;

const DOUBLE: &[u8] = include_bytes!("torch-f64.safetensors");
const SINGLE: &[u8] = include_bytes!("torch-f32.safetensors");
const EMBED: usize = 8;

type Layer<E> = MultiHead<usize, E>;

fn layer<E: Element>(config: MultiHeadConfig) -> Layer<E>
where
    Cpu: Device<E>,
{
    let mut rng = Seed::new(1).stream("initial values");
    MultiHead::try_new(&Cpu::default(), EMBED, config, &mut rng).unwrap()
}

fn two_heads() -> MultiHeadConfig {
    MultiHeadConfig {
        heads: 2,
        ..Default::default()
    }
}

fn values<E: Element>(layer: &Layer<E>) -> Vec<Vec<E>> {
    let mut all = Vec::new();
    layer.for_each("", &mut |_, parameter| {
        all.push(Vec::new());
        parameter.read_into(all.last_mut().unwrap());
    });
    all
}

fn tensor<E: Element>(array: &ArrayD<E>) -> Tensor<(usize, usize, usize), E, Cpu> {
    let shape = array.shape();
    let values = array.iter().copied().collect();
    Cpu::default().tensor_from_vec(values, (shape[0], shape[1], shape[2]))
}

/// The outputs under a mask, of a sequence to itself or to its memory.
fn agrees<E: Element>(bytes: &[u8], case: &str, config: MultiHeadConfig, output: &str, mask: Mask)
where
    Cpu: Device<E>,
{
    let case_of = |part: &str| StateDict::<E>::from_safetensors(bytes, part).unwrap();
    let (state, data) = (case_of(&format!("{case}.layer")), case_of(case).tensors);
    let mut layer = layer::<E>(config);
    let names = layer.torch_names().unwrap();
    names.load(&state, &mut layer).unwrap();
    assert_eq!(names.save(&layer).unwrap().tensors, state.tensors);
    let (x, seed) = (tensor(&data["x"]), Seed::new(1));
    let pass = Pass::Evaluation { seed };
    let attended = match data.get("memory") {
        Some(memory) => layer.attend(x, tensor(memory), &mask, pass).unwrap(),
        None => layer.attend_self(x, &mask, pass).unwrap(),
    };
    let wanted = data[output].iter().map(|x| x.as_f64());
    let bound = Tolerance::outputs::<E>().bound(wanted.clone());
    for (got, want) in attended.output.as_vec().into_iter().zip(wanted) {
        let error = (got.as_f64() - want).abs();
        assert!(error <= bound, "{case} {output}: {got:?}, {want}");
    }
}

fn all_agree<E: Element>(bytes: &[u8])
where
    Cpu: Device<E>,
{
    let lengths = || Mask::none().with_key_lengths(vec![5, 3]);
    agrees::<E>(bytes, "self", two_heads(), "padded", lengths());
    agrees::<E>(bytes, "self", two_heads(), "causal", Mask::causal());
    let plain = MultiHeadConfig {
        bias: false,
        ..two_heads()
    };
    agrees::<E>(bytes, "plain", plain, "padded", lengths());
    let cross = MultiHeadConfig {
        memory_width: Some(6),
        ..two_heads()
    };
    let of_memory = Mask::none().with_key_lengths(vec![2, 4]);
    agrees::<E>(bytes, "cross", cross, "padded", of_memory);
}

#[test]
fn outputs_are_those_of_torch() {
    all_agree::<f64>(DOUBLE);
    all_agree::<f32>(SINGLE);
}

/// The error of loading a case, after which the layer is as it was.
fn refused(names: &NameTable, state: &StateDict<f64>, layer: &mut Layer<f64>) -> WeightsError {
    let before = values(layer);
    let error = names.load(state, layer).unwrap_err();
    assert_eq!(values(layer), before);
    match error {
        bochner_nn::Error::Weights(error) => error,
        error => panic!("{error}"),
    }
}

#[test]
fn files_of_other_layers_are_refused_by_name() {
    let state = |case: &str| StateDict::from_safetensors(DOUBLE, &format!("{case}.layer")).unwrap();
    let mut layer = layer::<f64>(two_heads());
    let names = layer.torch_names().unwrap();
    let error = refused(&names, &state("bias-kv"), &mut layer);
    assert!(matches!(error, WeightsError::Refused { ref name, .. } if name == "bias_k"));
    let error = refused(&names, &state("plain"), &mut layer);
    let WeightsError::OtherNames { missing, left_over } = error else {
        panic!("{error}")
    };
    assert_eq!(missing, ["in_proj_bias", "out_proj.bias"]);
    assert!(left_over.is_empty());
    let error = refused(&names, &state("cross"), &mut layer);
    assert!(
        error
            .to_string()
            .contains("missing: in_proj_weight, left over: k_proj_weight,")
    );
}

#[test]
fn the_number_of_heads_is_in_what_is_written_here() {
    let (mut two, four) = (
        layer::<f64>(two_heads()),
        MultiHeadConfig {
            heads: 4,
            ..two_heads()
        },
    );
    let names = two.torch_names().unwrap();
    let bytes = names.save(&two).unwrap().to_safetensors();
    let state = StateDict::from_safetensors(&bytes, "").unwrap();
    names.load(&state, &mut two).unwrap();
    let mut four = layer::<f64>(four);
    let names = four.torch_names().unwrap();
    let error = refused(&names, &state, &mut four).to_string();
    assert!(
        error.starts_with("num_heads is 2 in the file and 4 in the layer"),
        "{error}"
    );
}

#[test]
fn layers_that_torch_does_not_have_are_refused() {
    let others = [
        MultiHeadConfig {
            variant: Linear::default().into(),
            ..two_heads()
        },
        MultiHeadConfig {
            kv_heads: Some(1),
            ..two_heads()
        },
        MultiHeadConfig {
            key_width: Some(2),
            ..two_heads()
        },
        MultiHeadConfig {
            rotary: Some(Rotary::default()),
            ..two_heads()
        },
        MultiHeadConfig {
            position_bias: PositionBias::Alibi,
            ..two_heads()
        },
    ];
    for config in others {
        let error = layer::<f64>(config).torch_names().unwrap_err();
        assert!(matches!(error, Error::Unsupported { .. }));
    }
}

#[test]
fn a_memory_of_another_width_is_no_sequence() {
    let config = MultiHeadConfig {
        memory_width: Some(6),
        ..two_heads()
    };
    let (layer, pass) = (
        layer::<f64>(config),
        Pass::Evaluation { seed: Seed::new(1) },
    );
    let x = || tensor(&ArrayD::<f64>::ones(vec![1, 3, EMBED]));
    let error = layer.attend_self(x(), &Mask::none(), pass).unwrap_err();
    assert!(error.to_string().contains("the memory"), "{error}");
    assert!(layer.inspect_self(x(), &Mask::none(), pass).is_err());
    assert!(
        layer
            .decoder(1, bochner_attention::Form::Automatic, pass)
            .is_err()
    );
    let memory = ndarray::Array3::<f64>::ones((1, 2, 6));
    let none = Mask::none();
    let form = bochner_attention::Form::Automatic;
    let mut decoder = layer
        .cross_decoder(memory.view(), &none, form, pass)
        .unwrap();
    let step = decoder
        .step(ndarray::Array3::ones((1, 3, EMBED)).view())
        .unwrap();
    let memory = tensor(&memory.into_dyn());
    let whole = layer
        .attend(x(), memory, &none, pass)
        .unwrap()
        .output
        .as_vec();
    let near = |(a, b): (&f64, f64)| (a - b).abs() < 1e-12;
    assert!(step.iter().zip(whole).all(near));
}
