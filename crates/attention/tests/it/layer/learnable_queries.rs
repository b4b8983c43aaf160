//! The layer whose queries are parameters is the layer with these queries for each example.

use super::{PASS, Sequences, WIDTH, sequence, two_heads, variants, variants_across};
use bochner_attention::{
    Error, Mask, MultiHeadConfig, PositionBias, Softmax, Variant, layer::LearnableQueryLayer,
};
use bochner_nn::Parameters;
use bochner_numerics::{Seed, relative_error};
use dfdx::prelude::*;

const QUERIES: usize = 3;

fn build(config: MultiHeadConfig) -> Result<LearnableQueryLayer<usize, f64>, Error> {
    let mut rng = Seed::new(1).stream("initial values");
    LearnableQueryLayer::try_new(&Cpu::default(), (QUERIES, WIDTH), config, &mut rng)
}

fn softmax() -> MultiHeadConfig {
    two_heads(Softmax::default().into())
}

#[test]
fn outputs_and_gradients() {
    let (x, mask) = (sequence(2, 5), Mask::none().with_key_lengths(vec![5, 2]));
    let mut moved = 0;
    for variant in variants_across() {
        let layer = build(two_heads(variant)).unwrap();
        let own = layer.queries.as_vec();
        let repeated: Sequences<f64> =
            Cpu::default().tensor_from_vec(own.repeat(2), (2, QUERIES, WIDTH));
        let got = layer.attend(x.leaky_trace(), &mask, PASS).unwrap();
        let (queries, memory) = (repeated.leaky_trace(), x.leaky_trace());
        let want = layer.attention.attend(queries, memory, &mask, PASS);
        let want = want.unwrap();
        assert_eq!(got.output.as_vec(), want.output.as_vec(), "{layer:?}");
        let seen = layer.inspect(x.clone(), &mask, PASS);
        let want_seen = layer
            .attention
            .inspect(repeated.clone(), x.clone(), &mask, PASS);
        assert_eq!(seen.unwrap().weights, want_seen.unwrap().weights);

        let [got, want] = [got, want].map(|attended| {
            let loss = attended.output.square().sum::<Rank0, _>() + attended.penalty;
            loss.backward()
        });
        let of_each = want.get(&repeated).as_vec();
        let (first, second) = of_each.split_at(QUERIES * WIDTH);
        let sum: Vec<f64> = first.iter().zip(second).map(|(a, b)| a + b).collect();
        moved += usize::from(sum.iter().any(|&g| g != 0.0));
        let along = got.get(&layer.queries).as_vec();
        assert!(relative_error(&along, &sum) < 1e-12, "{layer:?}");
        let [along, want] = [got, want].map(|gradients| gradients.get(&x).as_vec());
        assert!(relative_error(&along, &want) < 1e-12, "{layer:?}");
    }
    // Spikes may have no slope where the queries lie.
    assert!(moved > 5, "{moved}");
}

#[test]
fn queries_are_parameters() {
    let layer = build(softmax()).unwrap();
    let mut dims = Vec::new();
    layer.for_each("", &mut |name, parameter| {
        dims.push((name.to_owned(), parameter.dims()));
    });
    assert_eq!(dims[0], ("queries".to_owned(), vec![QUERIES, WIDTH]));
    assert_eq!(dims[1].0, "attention.query.weight");
}

#[test]
fn what_needs_positions_of_the_queries_is_refused() {
    let mut rng = Seed::new(1).stream("initial values");
    let none: Result<LearnableQueryLayer<usize, f64>, _> =
        LearnableQueryLayer::try_new(&Cpu::default(), (0, WIDTH), softmax(), &mut rng);
    assert!(matches!(none, Err(Error::Argument(_))));
    let unsupported = |config| matches!(build(config), Err(Error::Unsupported { .. }));
    assert!(unsupported(MultiHeadConfig {
        causal: true,
        ..softmax()
    }));
    assert!(unsupported(MultiHeadConfig {
        window: Some([1, 1]),
        ..softmax()
    }));
    assert!(unsupported(MultiHeadConfig {
        position_bias: PositionBias::Alibi,
        ..softmax()
    }));
    let of_itself = |variant: &Variant| !variant.card().cross.is_yes();
    let of_itself: Vec<_> = variants().filter(of_itself).collect();
    assert!(!of_itself.is_empty());
    for variant in of_itself {
        assert!(unsupported(two_heads(variant)));
    }
    let layer = build(softmax()).unwrap();
    for mask in [
        Mask::none().with_causality(),
        Mask::none().with_window(1, 1).unwrap(),
        Mask::none().with_packed(&[2, 3]),
    ] {
        let got = layer.attend(sequence(1, 5), &mask, PASS);
        assert!(matches!(got, Err(Error::Unsupported { .. })), "{mask:?}");
    }
}
