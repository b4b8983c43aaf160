//! The layer of bipolar attention over steps of time.

use super::WIDTH;
use crate::conformance::plain::{attend, attend_vjp};
use crate::names;
use bochner_attention::{
    Error, Mask, kernels,
    layer::{BipolarLayer, BipolarLayerConfig},
};
use bochner_nn::{Linear, Parameters};
use bochner_numerics::{Seed, relative_error};
use bochner_ops::{Slot, SpikeTrain, SpikingNeuron};
use dfdx::prelude::*;
use ndarray::{Array2, Array3, Array4, ArrayView1, Axis, concatenate, s};

type Steps = Tensor<(usize, usize, usize, usize), f64, Cpu>;

const STEPS: usize = 3;
const BATCH: usize = 2;
const TIME: usize = 5;

/// Neurons that spike at the size of normalised rows.
fn config() -> BipolarLayerConfig {
    let threshold = 0.5;
    BipolarLayerConfig {
        heads: 2,
        neuron: SpikingNeuron {
            threshold,
            ..Default::default()
        },
        ..Default::default()
    }
}

fn build(config: BipolarLayerConfig) -> BipolarLayer<usize, f64> {
    let mut rng = Seed::new(1).stream("initial values");
    BipolarLayer::try_new(&Cpu::default(), WIDTH, config, &mut rng).unwrap()
}

fn input() -> Steps {
    Cpu::seed_from_u64(3).sample_normal_like(&(STEPS, BATCH, TIME, WIDTH))
}

fn array(x: &Steps) -> Array4<f64> {
    Array4::from_shape_vec(*x.shape(), x.as_vec()).unwrap()
}

fn lengths() -> Mask {
    Mask::none().with_key_lengths(vec![TIME, 2])
}

/// The potentials that flow into the neurons of queries and of keys, and the values.
fn streams(layer: &BipolarLayer<usize, f64>, x: &Array4<f64>) -> [Array4<f64>; 3] {
    let norm = |mut x: Array2<f64>| {
        for mut row in x.rows_mut() {
            let mean = row.mean().unwrap();
            row -= mean;
            let deviation = (row.mapv(|x| x * x).mean().unwrap() + 1e-5).sqrt();
            row /= deviation;
        }
        x
    };
    let rows = x
        .to_shape((STEPS * BATCH * TIME, WIDTH))
        .unwrap()
        .to_owned();
    [&layer.query, &layer.key, &layer.value].map(|of| {
        let values = norm(map(of, &rows)).into_raw_vec_and_offset().0;
        Array4::from_shape_vec(x.raw_dim(), values).unwrap()
    })
}

fn map(of: &Linear<usize, usize, f64>, x: &Array2<f64>) -> Array2<f64> {
    let weight = Array2::from_shape_vec((WIDTH, WIDTH), of.weight.as_vec()).unwrap();
    x.dot(&weight.t()) + ArrayView1::from(&of.bias.as_vec())
}

/// Returns the spikes of neurons driven by potentials.
fn train(neuron: SpikingNeuron, potentials: &Array4<f64>) -> SpikeTrain<f64> {
    neuron.run(potentials.as_slice().unwrap(), STEPS).unwrap()
}

/// Joins what is made of each step and head, `[B, T, w]`.
fn of_heads(of: impl Fn(usize, usize) -> Array3<f64>) -> Array4<f64> {
    let steps =
        [0, 1, 2].map(|step| concatenate![Axis(2), of(step, 0), of(step, 1)].insert_axis(Axis(0)));
    concatenate![Axis(0), steps[0], steps[1], steps[2]]
}

/// One head of one step, `[B, 1, T, w]`.
fn head(x: &Array4<f64>, step: usize, m: usize) -> Array4<f64> {
    let half = WIDTH / 2;
    let x = x.slice(s![step, .., .., m * half..(m + 1) * half]);
    x.to_owned().insert_axis(Axis(1))
}

/// The layer by its formula, given its maps and attention on arrays.
fn formula(layer: &BipolarLayer<usize, f64>, x: &Array4<f64>, mask: &Mask) -> Array4<f64> {
    let [q, k, v] = streams(layer, x);
    let spikes = |x: &Array4<f64>| {
        let train = train(layer.config().neuron, x);
        Array4::from_shape_vec(x.raw_dim(), train.spikes).unwrap()
    };
    let (q, k) = (spikes(&q), spikes(&k));
    let joined = of_heads(|step, m| {
        let [q, k, v] = [&q, &k, &v].map(|x| head(x, step, m));
        // Ternary numbers are what they are at any threshold up to 1.
        let settings = kernels::bipolar(1.0, 1.0, mask);
        let attended = attend(q.view(), k.view(), v.view(), &settings).unwrap();
        attended.output.index_axis_move(Axis(1), 0)
    });
    let rows = joined.to_shape((STEPS * BATCH * TIME, WIDTH)).unwrap();
    let output = map(&layer.output, &rows.to_owned())
        .into_raw_vec_and_offset()
        .0;
    Array4::from_shape_vec(x.raw_dim(), output).unwrap()
}

#[test]
fn it_is_its_formula() {
    for causal in [false, true] {
        let layer = build(BipolarLayerConfig { causal, ..config() });
        for mask in [Mask::none(), lengths()] {
            let got = array(&layer.attend_self(input(), &mask).unwrap());
            let mask = if causal { mask.with_causality() } else { mask };
            let want = formula(&layer, &array(&input()), &mask);
            let flat = |x: &Array4<f64>| x.iter().copied().collect::<Vec<_>>();
            assert!(
                relative_error(&flat(&got), &flat(&want)) < 1e-12,
                "{causal}, {mask:?}"
            );
        }
        let plain = array(&layer.forward(input()));
        let unmasked = array(&layer.attend_self(input(), &Mask::none()).unwrap());
        assert_eq!(plain, unmasked);
    }
}

/// A layer whose last map changes nothing, so that its output is that of the heads.
fn with_open_heads(config: BipolarLayerConfig) -> BipolarLayer<usize, f64> {
    let mut layer = build(config);
    layer.output.for_each_mut("", &mut |name, parameter| {
        let diagonal =
            |i: usize| f64::from(u8::from(name == "weight" && i.is_multiple_of(WIDTH + 1)));
        parameter.write(&(0..parameter.len()).map(diagonal).collect::<Vec<_>>());
    });
    layer
}

#[test]
fn inference_in_whole_numbers_lies_below_training_by_a_unit_a_kept_key() {
    let unit = 2f64.powi(-12);
    for causal in [false, true] {
        let layer = with_open_heads(BipolarLayerConfig { causal, ..config() });
        for mask in [Mask::none(), lengths()] {
            let trained = array(&layer.attend_self(input(), &mask).unwrap());
            let inferred = array(&layer.infer(input(), &mask).unwrap());
            let below = (&trained - &inferred) / unit;
            let all = below
                .iter()
                .all(|&d| (-0.5..TIME as f64 + 0.5).contains(&d));
            assert!(all && below.iter().any(|&d| d > 0.5), "{causal}: {below}");
            let whole = |x: &f64| (x / unit).fract() == 0.0;
            assert!(inferred.iter().all(whole) && !trained.iter().all(whole));
        }
    }
}

#[test]
fn inference_ends_in_the_last_neuron_and_refuses_values_without_a_fixed_point() {
    let last = BipolarLayerConfig {
        last_neuron: Some(config().neuron),
        ..config()
    };
    let mut layer = with_open_heads(last);
    let spikes = array(&layer.infer(input(), &lengths()).unwrap());
    assert!(spikes.iter().all(|x| [-1.0, 0.0, 1.0].contains(x)));
    assert!(spikes.iter().any(|&x| x != 0.0));
    layer.value_norm.for_each_mut("", &mut |_, parameter| {
        parameter.write(&vec![1e6; parameter.len()]);
    });
    let refused = layer.infer(input(), &lengths()).unwrap_err();
    assert!(matches!(refused, Error::Argument(_)), "{refused}");
}

#[test]
fn inference_refuses_queries_and_keys_that_are_no_numbers() {
    let maps: [MapOf; 2] = [|layer| &mut layer.query, |layer| &mut layer.key];
    for map in maps {
        let mut layer = with_open_heads(config());
        map(&mut layer).weight.copy_from(&[f64::NAN; WIDTH * WIDTH]);
        let refused = layer.infer(input(), &lengths()).unwrap_err();
        assert!(matches!(refused, Error::Argument(_)), "{refused}");
    }
}

/// One of the maps of a layer.
type MapOf = fn(&mut BipolarLayer<usize, f64>) -> &mut Linear<usize, usize, f64>;

/// Functions are differentiable where no potential is near a threshold, and the derivative of spikes is zero there.
#[test]
fn gradients_of_what_is_smooth_are_those_of_differences() {
    let mut narrow = config();
    narrow.neuron.surrogate_width = 1e-9;
    let layer = build(narrow);
    let x = input();
    let cotangent: Steps = Cpu::seed_from_u64(4).sample_normal_like(x.shape());
    let loss = |layer: &BipolarLayer<usize, f64>| -> f64 {
        let y = layer.attend_self(input(), &lengths()).unwrap();
        (y * cotangent.clone()).sum::<Rank0, _>().array()
    };
    let y = layer.attend_self(x.leaky_trace(), &lengths()).unwrap();
    let gradients = (y * cotangent.clone()).sum::<Rank0, _>().backward();
    let maps: [(&str, usize, MapOf); 4] = [
        ("value", 7, |layer| &mut layer.value),
        ("output", 3, |layer| &mut layer.output),
        ("query", 2, |layer| &mut layer.query),
        ("key", 2, |layer| &mut layer.key),
    ];
    for (name, at, map) in maps {
        let mut moved = layer.clone();
        let weight = map(&mut moved).weight.clone();
        let got: f64 = gradients.get(&weight).as_vec()[at];
        let mut values = [1e-6, -1e-6].map(|step| {
            let mut all = weight.as_vec();
            all[at] += step;
            map(&mut moved).weight.copy_from(&all);
            let value = loss(&moved);
            map(&mut moved).weight.copy_from(&weight.as_vec());
            value
        });
        values[0] -= values[1];
        let want = values[0] / 2e-6;
        assert!(
            (got - want).abs() < 1e-6 * (1.0 + want.abs()),
            "{name}: {got} {want}"
        );
        assert_eq!(got == 0.0, ["query", "key"].contains(&name), "{name}");
    }
}

/// The shift of a norm has the gradients of all its potentials: those that attention passes to the spikes of each step,
/// taken back through the neurons.
#[test]
fn gradients_of_potentials_are_those_of_their_spikes() {
    let layer = with_open_heads(config());
    let (x, mask) = (input(), lengths());
    let cotangent: Steps = Cpu::seed_from_u64(4).sample_normal_like(x.shape());
    let y = layer.attend_self(x.leaky_trace(), &mask).unwrap();
    let gradients = (y * cotangent.clone()).sum::<Rank0, _>().backward();
    let ([q, k, v], cotangent) = (streams(&layer, &array(&x)), array(&cotangent));
    let neuron = layer.config().neuron;
    let trains = [&q, &k].map(|x| train(neuron, x));
    let [q, k] =
        [0, 1].map(|i| Array4::from_shape_vec(q.raw_dim(), trains[i].spikes.clone()).unwrap());
    for (i, norm) in [&layer.query_norm, &layer.key_norm].into_iter().enumerate() {
        let of_spikes = of_heads(|step, m| {
            let [q, k, v, g] = [&q, &k, &v, &cotangent].map(|x| head(x, step, m));
            // All ternary numbers lie in this window, in which the slope is a half.
            let settings = kernels::bipolar(0.5, 2.0, &mask);
            let attended = attend(q.view(), k.view(), v.view(), &settings).unwrap();
            let pulled = attend_vjp(&attended, g.view()).unwrap();
            [pulled.q, pulled.k][i]
                .index_axis(Axis(1), 0)
                .mapv(|x| 2.0 * x)
        });
        let (mut all, of_spikes) = (Vec::new(), of_spikes.iter().copied().collect::<Vec<_>>());
        let place = Slot::new(&mut all, of_spikes.len());
        neuron.vjp(&trains[i].membrane, &of_spikes, STEPS, place);
        let rows = Array2::from_shape_vec((STEPS * BATCH * TIME, WIDTH), all).unwrap();
        let want = rows.sum_axis(Axis(0)).to_vec();
        let got: Vec<f64> = gradients.get(&norm.beta).as_vec();
        assert!(want.iter().all(|x| x.abs() > 1e-3), "{want:?}");
        assert!(relative_error(&got, &want) < 1e-12, "{i}: {got:?} {want:?}");
    }
}

/// Without a memory of its own a neuron joins no steps.
#[test]
fn neurons_alone_join_the_steps() {
    let mut forgetful = config();
    forgetful.neuron.decay = 0.0;
    let x = array(&input());
    let mut other = x.clone();
    other.index_axis_mut(Axis(0), 0).mapv_inplace(|x| 0.3 - x);
    let tensor = |x: &Array4<f64>| {
        let values = x.iter().copied().collect::<Vec<_>>();
        Cpu::default().tensor_from_vec(values, (STEPS, BATCH, TIME, WIDTH))
    };
    for (config, joins) in [(forgetful, false), (config(), true)] {
        let layer = build(config);
        let last = |x: &Array4<f64>| {
            let y = layer.attend_self(tensor(x), &Mask::none()).unwrap();
            array(&y).index_axis_move(Axis(0), STEPS - 1)
        };
        assert_eq!(last(&x) != last(&other), joins);
    }
}

#[test]
fn a_last_neuron_makes_the_output_a_map_of_spikes() {
    let last_neuron = Some(SpikingNeuron {
        threshold: 0.1,
        ..Default::default()
    });
    let mut layer = build(BipolarLayerConfig {
        last_neuron,
        ..config()
    });
    let mut identity = vec![0.0; WIDTH * WIDTH];
    (0..WIDTH).for_each(|n| identity[n * (WIDTH + 1)] = 1.0);
    layer.output.weight.copy_from(&identity);
    layer.output.bias.copy_from(&[0.0; WIDTH]);
    let y = layer.attend_self(input(), &Mask::none()).unwrap().as_vec();
    for value in [-1.0, 0.0, 1.0] {
        assert!(y.contains(&value));
    }
    assert!(y.iter().all(|y| [-1.0, 0.0, 1.0].contains(y)));
}

#[test]
fn settings_that_do_not_fit_are_named() {
    let refused = |config, name: &str| {
        let mut rng = Seed::new(1).stream("initial values");
        let got = BipolarLayer::<usize, f64>::try_new(&Cpu::default(), WIDTH, config, &mut rng);
        let error = got.unwrap_err();
        assert!(names(&error, name), "{error}");
    };
    for heads in [0, 4] {
        refused(BipolarLayerConfig { heads, ..config() }, "heads");
    }
    let wrong = SpikingNeuron {
        decay: 2.0,
        ..Default::default()
    };
    refused(
        BipolarLayerConfig {
            neuron: wrong,
            ..config()
        },
        "decay",
    );
    let last_neuron = Some(wrong);
    refused(
        BipolarLayerConfig {
            last_neuron,
            ..config()
        },
        "decay",
    );
    let layer = build(config());
    let long = Mask::none().with_key_lengths(vec![TIME + 1, 2]);
    let got = layer.attend_self(input(), &long).unwrap_err();
    assert!(got.to_string().contains("key lengths"), "{got}");
    let narrow: Steps = Cpu::default().ones_like(&(STEPS, BATCH, TIME, WIDTH - 1));
    assert!(layer.attend_self(narrow, &Mask::none()).is_err());
}
