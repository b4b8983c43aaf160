//! A translator equals its parts, and every part draws from a seed of its own.

use super::*;
use crate::common::unconditional;
use bochner_attention::Mask;
use bochner_models::decoder::Decoder;
use bochner_models::embedding::{EmbeddingScale, WordEmbedding, WordEmbeddingConfig};
use bochner_models::encoder::Encoder;
use bochner_models::positions::Positions;

/// The mechanism draws in evaluation, and the vectors of tokens are dropped from in training.
#[test]
fn what_is_computed_and_what_is_looked_at_are_those_of_the_parts() {
    let mut config = config([(); 3].map(|()| unconditional()), 16);
    config.encoder.layer.dropout = 0.3;
    config.decoder.layer.dropout = 0.3;
    let of_tokens = WordEmbeddingConfig {
        scale: EmbeddingScale::RootOfWidth,
        positions: Positions::Sinusoidal { longest: LONGEST },
        dropout: 0.3,
    };
    let (device, seed) = (Cpu::default(), Seed::new(3));
    let model = Translator::<f64>::try_new(&device, &config, seed).unwrap();
    let (tokens, place) = (config.tokens, seed.child("embedding"));
    let embedding = WordEmbedding::<f64>::try_new(&device, tokens, 16, &of_tokens, place).unwrap();
    let encoder = Encoder::<f64>::try_new(&device, &config.encoder, seed.child("encoder")).unwrap();
    let decoder = Decoder::<f64>::try_new(&device, &config.decoder, seed.child("decoder")).unwrap();

    let source = device.tensor_from_vec(vec![5, 6, 7, 8, 9, 0], (2, 3));
    let target = device.tensor_from_vec(vec![START, 6, 0, START, 5, 4], (2, 3));
    let lengths = [&[3, 2][..], &[2, 3]];
    let [of_source, of_target] = lengths.map(|own| Mask::none().with_key_lengths(own.to_vec()));
    let masks = [&of_target, &of_source];
    let seed = Seed::new(7);
    for pass in [PASS, Pass::Training { seed, dropout: 0.0 }] {
        let [first, second] = [pass.nth(0), pass.nth(1)];
        let x = embedding.apply(source.clone(), first).unwrap();
        let y = embedding.apply(target.clone(), second).unwrap();
        let encoded = encoder.apply(x.clone(), &of_source, first).unwrap();
        let memory = encoded.output;
        let decoded = decoder.apply(y.clone(), memory.clone(), masks, second);
        let expected = embedding.logits(decoded.unwrap().output).unwrap();
        let found = model.apply(source.clone(), target.clone(), lengths, pass);
        assert_eq!(found.unwrap().output.as_vec(), expected.as_vec());

        let seen = model.inspect(source.clone(), target.clone(), lengths, pass);
        let seen = seen.unwrap();
        assert_eq!(seen.encoder, encoder.inspect(x, &of_source, first).unwrap());
        let of_decoder = decoder.inspect(y, &memory, masks, second).unwrap();
        let found = seen.decoder.into_iter().zip(seen.cross);
        assert_eq!(found.map(<[_; 2]>::from).collect::<Vec<_>>(), of_decoder);
    }
}
