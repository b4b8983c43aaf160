//! A decoder's layer: gradients by finite differences and what each part reads. Its values are those of the reference
//! cases `decoder_layer`.

use crate::by_weights::by_weights;
use bochner_attention::{Copula, IkanDirect, Mask, Mikan, Pass, Posterior, Softmax, Variant};
use bochner_models::Error;
use bochner_models::decoder::{DecoderLayer, DecoderLayerConfig};
use bochner_nn::{Dropout, Parameters};
use bochner_numerics::{Seed, finite_difference, relative_error, standard_normal};
use bochner_ops::Mode;
use dfdx::prelude::*;
use ndarray::Axis;

type Sequences<T = NoneTape> = Tensor<(usize, usize, usize), f64, Cpu, T>;

const WIDTH: usize = 8;

fn random((time, purpose): (usize, &str)) -> Sequences {
    let mut stream = Seed::new(3).stream(purpose);
    let values = (0..2 * time * WIDTH).map(|_| standard_normal(&mut stream));
    Cpu::default().tensor_from_vec(values.collect(), (2, time, WIDTH))
}

fn config(attention: Variant, cross_attention: Variant) -> DecoderLayerConfig {
    DecoderLayerConfig {
        width: WIDTH,
        heads: 2,
        hidden: 12,
        attention,
        cross_attention,
        dropout: 0.3,
        ..Default::default()
    }
}

fn layer(attention: Variant, cross_attention: Variant) -> Result<DecoderLayer<f64>, Error> {
    let config = config(attention, cross_attention);
    DecoderLayer::try_new(&Cpu::default(), &config, Seed::new(5))
}

fn ikan() -> Variant {
    let points = 4;
    IkanDirect {
        points,
        p: 1.5,
        ..Default::default()
    }
    .into()
}

/// MIKAN where it can be causal.
fn unconditional() -> Variant {
    let (posterior, copula) = (Posterior::Unconditional, Copula::Independent);
    Mikan {
        points: 4,
        p: 1.5,
        posterior,
        copula,
        ..Default::default()
    }
    .into()
}

const TRAINING: Pass = Pass::Training {
    seed: Seed::new(7),
    dropout: 0.2,
};
const EVALUATION: Pass = Pass::Evaluation { seed: Seed::new(8) };

fn masks() -> [Mask; 2] {
    [Mask::none(), Mask::none().with_key_lengths(vec![4, 3])]
}

/// With almost everything dropped from the three branches, and from nothing else, the layer is the identity.
#[test]
fn every_residual_branch_is_dropped_from_in_training_alone() {
    let kept = DecoderLayerConfig {
        dropout: 0.0,
        ..config(ikan(), unconditional())
    };
    let mut layer = DecoderLayer::<f64>::try_new(&Cpu::default(), &kept, Seed::new(5)).unwrap();
    let [x, memory] = [(3, "x"), (4, "memory")].map(random);
    let [of_itself, of_memory] = &masks();
    let decode = |layer: &DecoderLayer<f64>, pass| {
        let decoded = layer.apply(x.clone(), memory.clone(), [of_itself, of_memory], pass);
        decoded.unwrap().output.as_vec()
    };
    let training = Pass::Training {
        seed: Seed::new(7),
        dropout: 0.0,
    };
    let evaluated = decode(&layer, EVALUATION);
    layer.dropout = Dropout::new(0.999_999).unwrap();
    assert_eq!(decode(&layer, EVALUATION), evaluated);
    assert_ne!(evaluated, x.as_vec());
    assert_eq!(decode(&layer, training), x.as_vec());
}

#[test]
fn gradients_agree_with_finite_differences() {
    let layer = layer(ikan(), unconditional()).unwrap();
    let [x, memory, cotangent] = [(3, "x"), (4, "memory"), (3, "cotangent")].map(random);
    let [of_itself, of_memory] = &masks();
    let loss = |layer: &DecoderLayer<f64>, x: &Sequences, memory: &Sequences| {
        let (x, memory) = (x.leaky_trace(), memory.leaky_trace());
        let decoded = layer.apply(x, memory, [of_itself, of_memory], TRAINING);
        let decoded = decoded.unwrap();
        (decoded.output * cotangent.clone()).sum() + decoded.penalty
    };
    let mut gradients = loss(&layer, &x, &memory).backward();
    let mut at = [x.as_vec(), memory.as_vec()].concat();
    let mut got = [&x, &memory].map(|x| gradients.get(x).as_vec()).concat();
    layer.for_each("", &mut |_, p| {
        let mut part = Vec::new();
        p.read_into(&mut part);
        at.extend(part);
        got.extend_from_slice(p.gradient(&mut gradients).unwrap());
    });
    let want = finite_difference(&at, |point| {
        let (mut layer, mut rest) = (layer.clone(), point);
        let mut take = |n: usize| {
            let (part, others) = rest.split_at(n);
            rest = others;
            part
        };
        let [x, memory] = [&x, &memory].map(|x| {
            let part = take(x.shape().num_elements()).to_vec();
            Cpu::default().tensor_from_vec(part, *x.shape())
        });
        layer.for_each_mut("", &mut |_, p| p.write(take(p.len())));
        loss(&layer, &x, &memory).array()
    });
    let error = relative_error(&got, &want);
    assert!(error < 1e-6, "{error:e}");
}

#[test]
fn the_memory_behind_its_length_is_not_read() {
    let layer = layer(Softmax::default().into(), ikan()).unwrap();
    let (x, memory) = (random((3, "x")), random((4, "memory")));
    let mut values = memory.as_vec();
    let last = values.len() - WIDTH;
    values[last..].fill(f64::NAN);
    let poisoned = Cpu::default().tensor_from_vec(values, *memory.shape());
    let [of_itself, of_memory] = &masks();
    let decoded = [memory, poisoned].map(|memory| {
        let decoded = layer.apply(x.clone(), memory, [of_itself, of_memory], EVALUATION);
        decoded.unwrap().output.as_vec()
    });
    assert_eq!(decoded[0], decoded[1]);
}

/// With the weights that are looked at, the formula gives the output of the pass.
#[test]
fn the_weights_of_both_attentions_are_those_of_the_pass() {
    let layer = layer(Softmax::default().into(), unconditional()).unwrap();
    let [x, memory] = [(3, "x"), (4, "memory")].map(random);
    let [of_itself, of_memory] = &masks();
    let masks = [of_itself, of_memory];
    let seed = Seed::new(7);
    let training = Pass::Training { seed, dropout: 0.0 };
    for (pass, mode) in [
        (EVALUATION, Mode::Evaluation),
        (training, Mode::Training(seed)),
    ] {
        let seen = layer.inspect(x.clone(), memory.clone(), masks, pass);
        let [own, cross] = seen.unwrap().map(|seen| seen.weights);
        assert_eq!((own.dim(), cross.dim()), ((2, 2, 3, 3), (2, 2, 3, 4)));
        assert!((own.indexed_iter()).all(|((.., i, j), &weight)| (weight > 0.0) == (j <= i)));
        assert!((own.sum_axis(Axis(3)).iter()).all(|sum| (sum - 1.0).abs() < 1e-12));

        let dropped = |branch: Sequences, part: &str| {
            let branch = layer.dropout.apply(branch, mode.child(part));
            branch.unwrap()
        };
        let normed = layer.attention_norm.apply(x.clone()).unwrap();
        let branch = by_weights(&layer.attention, &own, normed);
        let h = x.clone() + dropped(branch, "attention");
        let branch = by_weights(&layer.cross_attention, &cross, memory.clone());
        let h = h + dropped(branch, "cross-attention");
        let normed = layer.feed_forward_norm.apply(h.clone()).unwrap();
        let branch = (layer.feed_forward).apply(normed, mode.child("feed-forward"));
        let want = h + dropped(branch.unwrap(), "feed-forward branch");
        let got = layer.apply(x.clone(), memory.clone(), masks, pass).unwrap();
        let error = relative_error(&got.output.as_vec(), &want.as_vec());
        assert!(error < 1e-10, "{pass:?}: {error:e}");
    }
}

#[test]
fn the_penalty_is_that_of_both_attentions() {
    let [x, memory] = [(4, "x"), (4, "memory")].map(random);
    let penalty = |attention: Variant, cross_attention: Variant| {
        let mut layer = layer(attention, cross_attention).unwrap();
        // At the start the posterior is the prior, and there is no divergence.
        layer.for_each_mut("", &mut |name, parameter| {
            let mut values = Vec::new();
            parameter.read_into(&mut values);
            let by = f64::from(u8::from(name.ends_with("kernel"))) * 0.3;
            parameter.write(&values.iter().map(|x| x + by).collect::<Vec<_>>());
        });
        let none = Mask::none();
        let decoded = layer.apply(x.clone(), memory.clone(), [&none; 2], EVALUATION);
        decoded.unwrap().penalty.array()
    };
    let softmax = || Variant::from(Softmax::default());
    let (none, first) = (
        penalty(softmax(), softmax()),
        penalty(unconditional(), softmax()),
    );
    let (second, both) = (
        penalty(softmax(), unconditional()),
        penalty(unconditional(), unconditional()),
    );
    assert!(none == 0.0 && first > 0.0 && second > 0.0 && both > first);
}
