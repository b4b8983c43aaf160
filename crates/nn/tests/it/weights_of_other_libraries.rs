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

/// A library that keeps both halves of the columns in tensors of their own, one of them transposed, the other with its
/// columns exchanged, and the bias twice.
fn names() -> NameTable {
    let column = |here, there| {
        let here = Place::part("weight", 1, here, 4);
        (here, Place::part("second", 2, there, 2))
    };
    let ((third, last), (fourth, first)) = (column(2, 1), column(3, 0));
    NameTable::new()
        .row(Place::part("weight", 1, 0, 2), "first", Reshape::Transposed)
        .row(third, last, Reshape::LeadingOne)
        .row(fourth, first, Reshape::LeadingOne)
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
    assert_eq!(state.tensors["second"].shape(), [1, 2, 2]);
    let exchanged = state.tensors["second"].slice(s![0, .., ..;-1]);
    assert_eq!(exchanged, weight.slice(s![.., 2..]));
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

/// A table, and what it says of a layer `[2, 4]` in both directions.
fn misfit(weight: &[(Place, Place, Reshape)]) -> [WeightsError; 2] {
    let bias = NameTable::new().row("bias", "bias", Reshape::Same);
    let rows = weight.iter().cloned();
    let names = rows.fold(bias, |names, (here, there, reshape)| {
        names.row(here, there, reshape)
    });
    let mut other = layer(2);
    let before = bits(&other);
    let errors = [
        names.save(&other).unwrap_err(),
        names.load(&saved(), &mut other).unwrap_err(),
    ];
    assert_eq!(bits(&other), before);
    errors.map(|error| match error {
        Error::Weights(error) => error,
        error => panic!("{error}"),
    })
}

#[test]
fn parts_that_a_tensor_does_not_have_are_refused() {
    let whole = || Place::from("weight");
    for (here, there, wrong) in [
        (Place::part("weight", 2, 0, 2), "w".into(), ("weight", 2, 2)),
        (Place::part("weight", 1, 0, 3), "w".into(), ("weight", 1, 3)),
        (whole(), Place::part("w", 2, 0, 2), ("w", 2, 2)),
    ] {
        for error in misfit(&[(here.clone(), there.clone(), Reshape::Same)]) {
            let WeightsError::NoPart {
                name,
                axis,
                parts,
                shape,
            } = error
            else {
                panic!("{error}")
            };
            assert_eq!((&*name, axis, parts), wrong);
            assert_eq!(shape, [2, 4]);
        }
    }
}

#[test]
fn elements_without_a_row_are_refused() {
    let half = |index| Place::part("weight", 1, index, 2);
    let quarter = Place::part("weight", 1, 2, 4);
    for (rows, wrong, first) in [
        (vec![(half(0), Place::from("w"))], "weight", vec![0, 2]),
        (
            vec![(half(0), Place::from("w")), (quarter, Place::from("v"))],
            "weight",
            vec![0, 3],
        ),
        (
            vec![(Place::from("weight"), Place::part("w", 0, 0, 2))],
            "w",
            vec![2, 0],
        ),
    ] {
        let rows: Vec<_> = rows
            .into_iter()
            .map(|(a, b)| (a, b, Reshape::Same))
            .collect();
        for error in misfit(&rows) {
            let WeightsError::Uncovered { name, index } = error else {
                panic!("{error}")
            };
            assert_eq!((&*name, index), (wrong, first.clone()));
        }
    }
}

#[test]
fn one_tensor_of_two_shapes_is_refused() {
    let half = |index| Place::part("weight", 1, index, 2);
    let rows = [
        (half(0), Place::part("w", 1, 0, 2), Reshape::Same),
        (half(1), Place::part("w", 0, 1, 2), Reshape::Same),
    ];
    for error in misfit(&rows) {
        let WeightsError::TwoShapes { first, second, .. } = error else {
            panic!("{error}")
        };
        assert_eq!((&first[..], &second[..]), (&[2, 4][..], &[4, 2][..]));
    }
}

#[test]
fn one_tensor_of_two_parameters_is_written_only_if_they_are_equal() {
    let part =
        NameTable::new()
            .row("weight", "weight", Reshape::Same)
            .row("bias", "bias", Reshape::Same);
    let names = NameTable::new()
        .nested("0", "tied", &part)
        .nested("1", "tied", &part);
    let state = names.save(&vec![layer(1), layer(1)]).unwrap();
    let mut read = vec![layer(3), layer(4)];
    names.load(&state, &mut read).unwrap();
    assert!(read.iter().all(|read| bits(read) == bits(&layer(1))));
    let error = names.save(&vec![layer(1), layer(2)]).unwrap_err();
    assert!(matches!(
        error,
        Error::Weights(WeightsError::Untied { name, parameter })
            if (&*name, &*parameter) == ("tied.weight", "1.weight")
    ));
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
