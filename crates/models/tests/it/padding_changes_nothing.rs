//! The filling behind a sentence and its length change neither logits nor penalty nor gradients, with any
//! mechanism.

use crate::common::layer;
use bochner_attention::{Error as AttentionError, Mask, Pass, Softmax, Variant, registry};
use bochner_models::Error;
use bochner_models::classifier::{TextClassifier, TextClassifierConfig};
use bochner_models::encoder::{EncoderConfig, NormPlacement};
use bochner_nn::{Error as NnError, Parameters, alloc_gradients};
use bochner_numerics::{ArgumentError, Seed, relative_error};
use dfdx::prelude::*;
use ndarray::s;

const WORDS: usize = 20;
const WIDTH: usize = 8;
const LENGTHS: [usize; 3] = [5, 2, 4];
const LONGEST: usize = 40;

/// A Transformer in the order of today.
fn classifier(attention: Variant) -> TextClassifier<f64> {
    made(&TextClassifierConfig::transformer(
        WORDS,
        3,
        LONGEST,
        encoder(attention, NormPlacement::Pre),
    ))
}

fn encoder(attention: Variant, norm: NormPlacement) -> EncoderConfig {
    EncoderConfig::new(2, layer(attention, norm, 0.2))
}

fn made(config: &TextClassifierConfig) -> TextClassifier<f64> {
    TextClassifier::try_new(&Cpu::default(), config, Seed::new(3)).unwrap()
}

/// Each mechanism in a Transformer, and in a model of post-LN layers on the words alone.
fn models() -> impl Iterator<Item = (&'static str, TextClassifier<f64>)> {
    variants().flat_map(|variant| {
        let plain = TextClassifierConfig {
            words: WORDS,
            classes: 3,
            encoder: encoder(variant.clone(), NormPlacement::Post),
            embedding: Default::default(),
            vocabulary: None,
            class_names: Vec::new(),
        };
        let name = variant.name();
        [(name, classifier(variant)), (name, made(&plain))]
    })
}

/// Sentences of these lengths, filled up to a common one; 0, 1 and 2 occur in none of them.
fn sentences(lengths: &[usize], time: usize, filler: usize) -> Tensor<(usize, usize), usize, Cpu> {
    let word = |b: usize, t: usize| 3 + (7 * b + 3 * t + b * t) % (WORDS - 3);
    let row = |(b, &n)| (0..time).map(move |t| if t < n { word(b, t) } else { filler });
    let words = lengths.iter().enumerate().flat_map(row).collect();
    Cpu::default().tensor_from_vec(words, (lengths.len(), time))
}

/// The logits, the penalty, and all gradients under one cotangent, by name.
struct Outcome {
    outputs: Vec<f64>,
    gradients: Vec<(String, Vec<f64>)>,
}

impl Outcome {
    fn of(model: &TextClassifier<f64>, time: usize, filler: usize, pass: Pass) -> Self {
        let words = sentences(&LENGTHS, time, filler);
        let traced = words.trace(alloc_gradients(model).unwrap());
        let classified = model.apply(traced, Some(&LENGTHS), pass).unwrap();
        let mut outputs = classified.output.as_vec();
        outputs.push(classified.penalty.array());
        let cotangent = (0..9).map(|i| (i * 5 % 9) as f64 - 3.5).collect();
        let cotangent = Cpu::default().tensor_from_vec(cotangent, (3, 3));
        let loss = (classified.output * cotangent).sum() + classified.penalty * 0.7;
        let (mut found, mut gradients) = (loss.backward(), Vec::new());
        model.for_each("", &mut |name, p| {
            let gradient = p.gradient(&mut found).unwrap().to_vec();
            gradients.push((name.to_string(), gradient));
        });
        Self { outputs, gradients }
    }

    /// The gradient of a word's vector.
    fn of_word(&self, word: usize) -> &[f64] {
        let table = &self
            .gradients
            .iter()
            .find(|(name, _)| name.starts_with("embedding"));
        &table.unwrap().1[word * WIDTH..(word + 1) * WIDTH]
    }

    #[track_caller]
    fn assert_near(&self, other: &Self, what: &str) {
        let error = relative_error(&self.outputs, &other.outputs);
        assert!(error < 1e-12, "{what}: outputs differ by {error:e}");
        for ((name, one), (_, another)) in self.gradients.iter().zip(&other.gradients) {
            let error = relative_error(one, another);
            assert!(
                error < 1e-9,
                "{what}: gradients of {name} differ by {error:e}"
            );
        }
    }
}

fn training() -> Pass {
    Pass::Training {
        seed: Seed::new(5),
        dropout: 0.1,
    }
}

fn evaluation() -> Pass {
    Pass::Evaluation { seed: Seed::new(5) }
}

/// Every mechanism that takes sequences of several lengths.
fn variants() -> impl Iterator<Item = Variant> {
    let mask = Mask::none().with_key_lengths(LENGTHS.to_vec());
    let takes = move |variant: &Variant| variant.card().takes(&mask);
    registry().into_iter().filter(takes)
}

#[test]
fn the_filling_word_changes_no_bit_and_is_not_learned_from() {
    for (name, model) in models() {
        for pass in [training(), evaluation()] {
            let one = Outcome::of(&model, 6, 0, pass);
            assert!(one.of_word(3).iter().any(|g| *g != 0.0), "{name}");
            assert_eq!(one.of_word(0), [0.0; WIDTH], "{name}");
            // Word 3 is in the sentences, too: all of its gradient comes from its own places.
            for filler in [1, 2, 3] {
                let other = Outcome::of(&model, 6, filler, pass);
                assert_eq!(one.outputs, other.outputs, "{name}");
                assert_eq!(one.gradients, other.gradients, "{name}");
            }
        }
    }
}

/// The evaluation has no dropout, whose masks go by the place in the batch.
#[test]
fn the_padded_length_changes_nothing() {
    for (name, model) in models() {
        let one = Outcome::of(&model, 5, 0, evaluation());
        for time in [6, 9, LONGEST] {
            let longer = Outcome::of(&model, time, 0, evaluation());
            one.assert_near(&longer, &format!("{name} at {time}"));
        }
    }
}

/// The mean of no words is zero: what is left is the bias of the last map, whatever fills the sentence up.
#[test]
fn a_sentence_without_words_has_the_logits_of_the_bias_and_teaches_no_word() {
    for (name, model) in models() {
        let lengths = [5, 0, 4];
        let of = |filler| {
            let words = sentences(&lengths, 5, filler);
            let traced = words.trace(alloc_gradients(&model).unwrap());
            let classified = model.apply(traced, Some(&lengths), training()).unwrap();
            let logits = classified.output.as_vec();
            let loss = classified.output.square().sum() + classified.penalty;
            let (mut found, mut gradients) = (loss.backward(), Vec::new());
            model.for_each("", &mut |_, p| {
                gradients.extend_from_slice(p.gradient(&mut found).unwrap());
            });
            (logits, gradients)
        };
        let (logits, gradients) = of(0);
        let mut bias = Vec::new();
        model.for_each("", &mut |name, p| {
            if name == "head.bias" {
                p.read_into(&mut bias);
            }
        });
        assert_eq!(logits[3..6], bias[..], "{name}");
        assert!(gradients.iter().all(|g| g.is_finite()), "{name}");
        assert!((logits, gradients) == of(2), "{name}");
    }
}

#[test]
fn every_layer_shows_its_weights_on_the_words_alone() {
    for (name, model) in models() {
        let words = sentences(&LENGTHS, 6, 0);
        let seen = model.inspect(words, Some(&LENGTHS), evaluation());
        let Ok(seen) = seen else {
            // A mechanism without weights says so.
            let error = seen.unwrap_err();
            assert!(
                matches!(error, Error::Attention(AttentionError::Unsupported { .. })),
                "{name}: {error}"
            );
            continue;
        };
        assert_eq!(seen.len(), 2, "{name}");
        for layer in seen {
            assert_eq!(layer.weights.dim(), (3, 2, 6, 6), "{name}");
            for (b, &length) in LENGTHS.iter().enumerate() {
                let padding = layer.weights.slice(s![b, .., ..length, length..]);
                assert!(padding.iter().all(|&w| w == 0.0), "{name}");
            }
        }
    }
}

#[test]
fn a_sentence_longer_than_the_positions_is_refused_with_a_remedy() {
    let model = classifier(Softmax::default().into());
    let apply = |time| model.apply(sentences(&LENGTHS, time, 0), Some(&LENGTHS), evaluation());
    assert!(apply(LONGEST).is_ok());
    let error = apply(LONGEST + 1).unwrap_err();
    assert!(
        matches!(
            error,
            Error::TooLong {
                got: 41,
                longest: 40
            }
        ),
        "{error}"
    );
    let message = error.to_string();
    assert!(
        message.contains("cut it to 40, or make the model with `longest`"),
        "{message}"
    );
}

/// Without positions the mean does not see an order; with them it does.
#[test]
fn positions_tell_orders_apart() {
    let variant = || Variant::from(Softmax::default());
    let plain = TextClassifierConfig {
        words: WORDS,
        classes: 3,
        encoder: encoder(variant(), NormPlacement::Pre),
        embedding: Default::default(),
        vocabulary: None,
        class_names: Vec::new(),
    };
    for (model, sees) in [(made(&plain), false), (classifier(variant()), true)] {
        let of = |words: [usize; 4]| {
            let words = Cpu::default().tensor_from_vec(words.to_vec(), (1, 4));
            model
                .apply(words, None, evaluation())
                .unwrap()
                .output
                .as_vec()
        };
        let error = relative_error(&of([3, 4, 5, 6]), &of([6, 4, 3, 5]));
        assert_eq!(error > 1e-6, sees, "{error:e}");
    }
}

#[test]
fn wrong_lengths_are_refused_by_type() {
    for variant in variants() {
        let model = classifier(variant.clone());
        let apply = |lengths: &[usize]| {
            let words = sentences(&LENGTHS, 5, 0);
            model.apply(words, Some(lengths), evaluation()).unwrap_err()
        };
        let error = apply(&[5, 2, 4, 1]);
        assert!(
            matches!(error, Error::Argument(ArgumentError::Shape { .. })),
            "{error}"
        );
        for wrong in [6, usize::MAX] {
            let error = apply(&[5, wrong, 4]);
            assert!(
                matches!(error, Error::Argument(ArgumentError::OutOfRange { got, .. }) if got == wrong as f64),
                "{error}"
            );
        }
    }
    let model = classifier(Softmax::default().into());
    let unknown = Cpu::default().tensor_from_vec(vec![1, 2, WORDS], (1, 3));
    let error = model.apply(unknown, None, evaluation()).unwrap_err();
    assert!(
        matches!(
            error,
            Error::Nn(NnError::Argument(ArgumentError::Index { got: WORDS, .. }))
        ),
        "{error}"
    );
}
