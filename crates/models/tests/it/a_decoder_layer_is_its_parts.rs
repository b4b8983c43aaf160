//! A decoder's layer: gradients by finite differences and what each part reads. Its values are those of the reference
//! cases `decoder_layer`.

use crate::by_weights::by_weights;
use crate::common::{Sequences, assert_gradients, change, ikan, random, unconditional};
use bochner_attention::{Mask, Pass, Softmax, Variant};
use bochner_models::Error;
use bochner_models::decoder::{DecoderLayer, DecoderLayerConfig};
use bochner_nn::Dropout;
use bochner_numerics::{Seed, relative_error};
use bochner_ops::Mode;
use dfdx::prelude::*;
use ndarray::Axis;

const WIDTH: usize = 8;

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

/// Two sequences.
fn two((time, purpose): (usize, &str)) -> Sequences {
    random((2, time, WIDTH), purpose)
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
    let [x, memory] = [(3, "x"), (4, "memory")].map(two);
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
    let [x, memory, cotangent] = [(3, "x"), (4, "memory"), (3, "cotangent")].map(two);
    let [of_itself, of_memory] = &masks();
    assert_gradients(&layer, [&x, &memory], |layer, [x, memory]| {
        let decoded = layer.apply(x, memory, [of_itself, of_memory], TRAINING);
        let decoded = decoded.unwrap();
        (decoded.output * cotangent.clone()).sum() + decoded.penalty
    });
}

#[test]
fn the_memory_behind_its_length_is_not_read() {
    let layer = layer(Softmax::default().into(), ikan()).unwrap();
    let (x, memory) = (two((3, "x")), two((4, "memory")));
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
    let [x, memory] = [(3, "x"), (4, "memory")].map(two);
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
    let [x, memory] = [(4, "x"), (4, "memory")].map(two);
    let penalty = |attention: Variant, cross_attention: Variant| {
        let mut layer = layer(attention, cross_attention).unwrap();
        // At the start the posterior is the prior, and there is no divergence.
        change(&mut layer, |name, values| {
            let by = f64::from(u8::from(name.ends_with("kernel"))) * 0.3;
            values.iter_mut().for_each(|x| *x += by);
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
