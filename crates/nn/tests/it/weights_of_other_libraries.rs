//! A table of names reads and writes; files that do not fit are refused by name, and leave the model as it was.

use bochner_nn::{Error, Linear, NameTable, Parameters, Place, Reshape, StateDict, WeightsError};
use bochner_numerics::Seed;
use dfdx::prelude::*;
use ndarray::{Array2, ArrayD, IxDyn, array, s};

type Layer<E> = Linear<usize, usize, E>;

fn layer(seed: u64) -> Layer<f32> {
    let mut rng = Seed::new(seed).stream("initial values");
    Linear::try_new(&Cpu::default(), 4, 2, &mut rng).unwrap()
}

/// A library that keeps both halves of the columns in tensors of their own, one of them transposed, and the bias twice.
fn names() -> NameTable {
    NameTable::new()
        .row(Place::part("weight", 1, 0, 2), "first", Reshape::Transposed)
        .row(
            Place::part("weight", 1, 1, 2),
            Place::part("second", 2, 1, 2),
            Reshape::LeadingOne,
        )
        .row("bias", "bias", Reshape::Same)
        .row("bias", "copy", Reshape::Same)
        .size("rows", 2)
}

fn bits(layer: &Layer<f32>) -> Vec<u32> {
    let all = [layer.weight.as_vec(), layer.bias.as_vec()].concat();
    all.into_iter().map(f32::to_bits).collect()
}

fn refused(state: &StateDict<f32>) -> WeightsError {
    let mut layer = layer(2);
    let before = bits(&layer);
    let error = names().load(state, &mut layer).unwrap_err();
    assert_eq!(bits(&layer), before);
    match error {
        Error::Weights(error) => error,
        error => panic!("{error}"),
    }
}

fn saved() -> StateDict<f32> {
    names().save(&layer(1)).unwrap()
}

#[test]
fn writing_and_reading_gives_equal_bits() {
    let state = saved();
    let weight = Array2::from_shape_vec((2, 4), layer(1).weight.as_vec()).unwrap();
    // Square, so that no shape tells whether it is transposed.
    let first = weight.slice(s![.., ..2]).reversed_axes();
    assert_eq!(state.tensors["first"], first.into_dyn());
    // The part that no row fills stays zero.
    assert_eq!(state.tensors["second"].shape(), [1, 2, 4]);
    let filled = state.tensors["second"].slice(s![0, .., 2..]);
    assert_eq!(filled, weight.slice(s![.., 2..]));
    let bytes = state.to_safetensors();
    assert_eq!(bytes, saved().to_safetensors());
    let read = StateDict::from_safetensors(&bytes, "").unwrap();
    assert_eq!(read, state);
    let mut other = layer(2);
    names().load(&read, &mut other).unwrap();
    assert_eq!(bits(&other), bits(&layer(1)));
}

#[test]
fn other_names_are_all_named() {
    let mut state = saved();
    let second = state.tensors.remove("second").unwrap();
    state.tensors.remove("bias");
    state.tensors.insert("third".into(), second);
    let WeightsError::OtherNames { missing, left_over } = refused(&state) else {
        panic!("other names")
    };
    assert_eq!(missing, ["second", "bias"]);
    assert_eq!(left_over, ["third"]);
}

#[test]
fn other_shapes_sizes_and_values_are_refused() {
    let mut state = saved();
    state
        .tensors
        .insert("first".into(), ArrayD::zeros(IxDyn(&[1, 4])));
    let error = refused(&state).to_string();
    assert!(
        error.contains("first has shape [1, 4], the layer needs [2, 2]"),
        "{error}"
    );

    let mut state = saved();
    state.sizes.insert("rows".into(), 3);
    assert!(matches!(
        refused(&state),
        WeightsError::OtherSize {
            expected: 2,
            got: 3,
            ..
        }
    ));

    let mut state = saved();
    state.sizes.insert("row".into(), 2);
    let error = refused(&state).to_string();
    assert!(error.contains("a size row,"), "{error}");
    assert!(error.contains("known: rows;"), "{error}");

    let mut state = saved();
    state
        .tensors
        .insert("copy".into(), array![1.0, 2.0].into_dyn());
    assert!(matches!(refused(&state), WeightsError::Unequal { name, .. } if name == "copy"));

    let mut state = saved();
    state
        .tensors
        .insert("first".into(), ArrayD::from_elem(IxDyn(&[2, 2]), f32::NAN));
    assert!(matches!(refused(&state), WeightsError::Impossible(_)));
}

#[test]
fn a_parameter_without_a_place_is_refused() {
    let names = NameTable::new().row("weight", "weight", Reshape::Same);
    let error = names.save(&layer(1)).unwrap_err().to_string();
    assert!(error.contains("no place for bias"), "{error}");
    let names = names.row("scale", "scale", Reshape::Same);
    assert!(names.save(&layer(1)).is_err());
}

#[test]
fn damaged_bytes_are_refused() {
    let bytes = saved().to_safetensors();
    let read = |bytes: &[u8]| StateDict::<f32>::from_safetensors(bytes, "").unwrap_err();
    for length in [0, 7, 30, bytes.len() - 1] {
        let error = read(&bytes[..length]);
        let Error::Weights(WeightsError::Truncated { got, .. }) = error else {
            panic!("{length}: {error}")
        };
        assert_eq!(got, length as u64);
    }
    let error = read(b"Not a safetensors file, but text.");
    assert!(matches!(
        error,
        Error::Weights(WeightsError::NotSafetensors { .. })
    ));
    let error = StateDict::<f64>::from_safetensors(&bytes, "").unwrap_err();
    assert!(error.to_string().contains("holds f32, not f64"), "{error}");
    // Tensors elsewhere may have any type.
    assert!(
        StateDict::<f64>::from_safetensors(&bytes, "elsewhere")
            .unwrap()
            .tensors
            .is_empty()
    );
}

#[test]
fn a_part_brings_its_rows_sizes_and_refusals() {
    let stack = vec![layer(1), layer(2)];
    let part = names().refusing("running", "it is a mean");
    let names = NameTable::new()
        .nested("0", "a", &part)
        .nested("1", "b", &part);
    let mut state = names.save(&stack).unwrap();
    assert_eq!(state.sizes.keys().collect::<Vec<_>>(), ["a.rows", "b.rows"]);
    assert_eq!(
        state.tensors["b.bias"].as_slice().unwrap(),
        stack[1].bias.as_vec()
    );
    state
        .tensors
        .insert("b.running".into(), array![1.0].into_dyn());
    let mut others = vec![layer(3), layer(4)];
    let error = names.load(&state, &mut others).unwrap_err().to_string();
    assert!(
        error.contains("b.running cannot be read: it is a mean"),
        "{error}"
    );
    let mut count = 0;
    others.for_each("", &mut |_, _| count += 1);
    assert_eq!(count, 4);
}
