//! Helpers for tests of translators.

use bochner_attention::{Pass, Variant};
use bochner_models::decoder::{DecoderConfig, DecoderLayerConfig};
use bochner_models::encoder::{EncoderConfig, EncoderLayerConfig, NormPlacement};
use bochner_models::translator::{Translator, TranslatorConfig};
use bochner_nn::Element;
use dfdx::prelude::*;

pub(crate) const START: usize = 2;
pub(crate) const END: usize = 3;

/// Settings of an encoder of one layer and a decoder of two, with mechanisms of the encoder, of the decoder's attention to
/// itself and of its attention to the source.
pub(crate) fn config(
    [attention, itself, memory]: [Variant; 3],
    width: usize,
    [tokens, longest]: [usize; 2],
) -> TranslatorConfig {
    let (heads, hidden, dropout) = (2, 2 * width, 0.0);
    TranslatorConfig {
        tokens,
        start: START,
        end: END,
        longest,
        encoder: EncoderConfig::new(
            1,
            EncoderLayerConfig {
                width,
                heads,
                hidden,
                attention,
                dropout,
                norm: NormPlacement::Pre,
                ..Default::default()
            },
        ),
        decoder: DecoderConfig {
            layers: 2,
            layer: DecoderLayerConfig {
                width,
                heads,
                hidden,
                attention: itself,
                cross_attention: memory,
                dropout,
                ..Default::default()
            },
        },
        attention_dropout: None,
        vocabulary: None,
        input_positions: Default::default(),
    }
}

/// The logarithmic probability of a target, its end included, by a pass over all of it.
pub(crate) fn log_prob<E: Element>(
    model: &Translator<E>,
    source: &[usize],
    target: &[usize],
    pass: Pass,
) -> f64 {
    let device = Cpu::default();
    let read = [&[START], target].concat();
    let lengths = [&[source.len()][..], &[read.len()]];
    let tensor = |tokens: &[usize]| device.tensor_from_vec(tokens.to_vec(), (1, tokens.len()));
    let logits = model.apply(tensor(source), tensor(&read), lengths, pass);
    let rows = logits.unwrap().output.as_vec();
    let next = target.iter().copied().chain([END]);
    let rows = rows.chunks(model.config().tokens);
    let each = rows.zip(next).map(|(row, token)| {
        let total: f64 = row.iter().map(|x| x.as_f64().exp()).sum();
        row[token].as_f64() - total.ln()
    });
    each.sum()
}
