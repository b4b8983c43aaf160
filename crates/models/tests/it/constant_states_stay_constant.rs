//! A decoder at work keeps states of constant size where the form of its mechanism is linear in time, and decodes with
//! them what it decodes in whole passes.

use bochner_attention::{Form, IkanDirect, Mask, Pass, Performer, Softmax, Variant};
use bochner_models::decoder::{Decoder, DecoderConfig, DecoderLayerConfig};
use bochner_numerics::{Seed, Tolerance, standard_normal};
use dfdx::prelude::*;
use ndarray::{Array3, Axis, concatenate, s};

const WIDTH: usize = 8;
const BATCH: usize = 2;
const PASS: Pass = Pass::Evaluation { seed: Seed::new(8) };

fn decoder(attention: Variant, cross_attention: Variant) -> Decoder<f64> {
    let layer = DecoderLayerConfig {
        width: WIDTH,
        heads: 2,
        hidden: 12,
        attention,
        cross_attention,
        dropout: 0.0,
        ..Default::default()
    };
    let config = DecoderConfig { layers: 2, layer };
    Decoder::try_new(&Cpu::default(), &config, Seed::new(5)).unwrap()
}

fn random(time: usize, purpose: &str) -> Array3<f64> {
    let mut stream = Seed::new(3).stream(purpose);
    Array3::from_shape_simple_fn((BATCH, time, WIDTH), || standard_normal(&mut stream))
}

fn tensor(x: &Array3<f64>) -> Tensor<(usize, usize, usize), f64, Cpu> {
    Cpu::default().tensor_from_vec(x.iter().copied().collect(), x.dim())
}

/// Mechanisms, and whether their states grow.
fn mechanisms() -> [(Variant, bool); 5] {
    let direct = |form| IkanDirect {
        points: 4,
        form,
        ..IkanDirect::default()
    };
    let features = |form| Performer {
        points: 6,
        form,
        ..Performer::default()
    };
    [
        (Softmax::default().into(), true),
        (direct(Form::Automatic).into(), true),
        (direct(Form::LinearTime).into(), false),
        (features(Form::LinearTime).into(), false),
        (features(Form::Automatic).into(), false),
    ]
}

/// The outputs position by position, and what was held for sequence and memory after two positions and after all.
fn step_by_step(
    decoder: &Decoder<f64>,
    x: &Array3<f64>,
    memory: &Array3<f64>,
) -> (Array3<f64>, [[usize; 2]; 2]) {
    let lengths = vec![memory.dim().1, memory.dim().1 - 1];
    let mask = Mask::none().with_key_lengths(lengths);
    let mut steps = decoder.steps(memory.view(), &mask, PASS).unwrap();
    let mut held = Vec::new();
    let outputs: Vec<_> = (0..x.dim().1)
        .map(|t| {
            let output = steps
                .step(x.slice(s![.., t..t + 1, ..]).to_owned())
                .unwrap();
            held.push(steps.held());
            output
        })
        .collect();
    let views: Vec<_> = outputs.iter().map(|output| output.view()).collect();
    let all = concatenate(Axis(1), &views).unwrap();
    (all, [held[1], held[held.len() - 1]])
}

#[test]
fn states_grow_where_they_must_and_the_outputs_are_those_of_whole_passes() {
    let x = random(30, "x");
    for (itself, grows) in mechanisms() {
        for (of_memory, grows_with_memory) in mechanisms() {
            let decoder = decoder(itself.clone(), of_memory.clone());
            let what = format!("{itself:?}, {of_memory:?}");
            let mut held_for_memory = Vec::new();
            for keys in [3, 20] {
                let memory = random(keys, "memory");
                let (outputs, [early, late]) = step_by_step(&decoder, &x, &memory);
                assert_eq!(late[0] > early[0], grows, "{what}");
                held_for_memory.push(late[1]);

                let masks = [
                    &Mask::none(),
                    &Mask::none().with_key_lengths(vec![keys, keys - 1]),
                ];
                let whole = decoder.apply(tensor(&x), tensor(&memory), masks, PASS);
                let whole = whole.unwrap().output.as_vec();
                let bound = Tolerance::outputs::<f64>().bound(whole.iter().copied());
                for (got, want) in outputs.iter().zip(&whole) {
                    assert!((got - want).abs() <= bound, "{what}: {got} {want}");
                }
            }
            assert_eq!(
                held_for_memory[1] > held_for_memory[0],
                grows_with_memory,
                "{what}"
            );
        }
    }
}

/// A sequence that takes over the state of another goes on with the bits of that one.
#[test]
fn beams_take_states_of_constant_size_along() {
    for (mechanism, grows) in mechanisms() {
        if grows {
            continue;
        }
        let decoder = decoder(mechanism.clone(), mechanism.clone());
        let (x, memory) = (random(6, "x"), random(4, "memory"));
        let mask = Mask::none();
        let mut steps = decoder.steps(memory.view(), &mask, PASS).unwrap();
        let at = |t: usize, rows: &[usize]| x.slice(s![.., t..t + 1, ..]).select(Axis(0), rows);
        steps.step(at(0, &[0, 1])).unwrap();
        steps.reorder(&[1, 1, 0]).unwrap();
        let expanded = steps.step(at(1, &[1, 1, 0])).unwrap();
        steps.reorder(&[2, 0]).unwrap();
        let reduced = steps.step(at(2, &[0, 1])).unwrap();

        let mut steps = decoder.steps(memory.view(), &mask, PASS).unwrap();
        steps.step(at(0, &[0, 1])).unwrap();
        let second = steps.step(at(1, &[0, 1])).unwrap();
        let third = steps.step(at(2, &[0, 1])).unwrap();
        assert_eq!(
            expanded,
            second.select(Axis(0), &[1, 1, 0]),
            "{mechanism:?}"
        );
        assert_eq!(reduced, third, "{mechanism:?}");
    }
}
