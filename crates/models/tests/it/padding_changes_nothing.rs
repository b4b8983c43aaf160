//! The filling behind a sentence and its length change neither logits nor penalty nor gradients, with any
//! mechanism.

use bochner_attention::{Error as AttentionError, Mask, Pass, Softmax, Variant, registry};
use bochner_models::Error;
use bochner_models::classifier::{TextClassifier, TextClassifierConfig};
use bochner_models::encoder::{EncoderConfig, EncoderLayerConfig};
use bochner_nn::{Error as NnError, Parameters, alloc_gradients};
use bochner_numerics::{ArgumentError, Seed, relative_error};
use dfdx::prelude::*;

const WORDS: usize = 20;
const WIDTH: usize = 8;
const LENGTHS: [usize; 3] = [5, 2, 4];

fn classifier(attention: Variant) -> TextClassifier<f64> {
    let layer = EncoderLayerConfig {
        width: WIDTH,
        heads: 2,
        hidden: 12,
        attention,
        dropout: 0.2,
    };
    let encoder = EncoderConfig { layers: 2, layer };
    let config = TextClassifierConfig {
        words: WORDS,
        classes: 3,
        encoder,
    };
    TextClassifier::try_new(&Cpu::default(), &config, Seed::new(3)).unwrap()
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
    for variant in variants() {
        let model = classifier(variant.clone());
        for pass in [training(), evaluation()] {
            let one = Outcome::of(&model, 6, 0, pass);
            assert!(
                one.of_word(3).iter().any(|g| *g != 0.0),
                "{}",
                variant.name()
            );
            assert_eq!(one.of_word(0), [0.0; WIDTH], "{}", variant.name());
            // Word 3 is in the sentences, too: all of its gradient comes from its own places.
            for filler in [1, 2, 3] {
                let other = Outcome::of(&model, 6, filler, pass);
                assert_eq!(one.outputs, other.outputs, "{}", variant.name());
                assert_eq!(one.gradients, other.gradients, "{}", variant.name());
            }
        }
    }
}

/// The evaluation has no dropout, whose masks go by the place in the batch.
#[test]
fn the_padded_length_changes_nothing() {
    for variant in variants() {
        let model = classifier(variant.clone());
        let one = Outcome::of(&model, 5, 0, evaluation());
        for time in [6, 9, 40] {
            let longer = Outcome::of(&model, time, 0, evaluation());
            one.assert_near(&longer, &format!("{} at {time}", variant.name()));
        }
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
        for wrong in [0, 6, usize::MAX] {
            let error = apply(&[5, wrong, 4]);
            assert!(
                matches!(error, Error::Argument(ArgumentError::OutOfRange { got, .. }) if got == wrong as f64),
                "{error}"
            );
        }
    }
    let model = classifier(Softmax {}.into());
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

#[test]
fn an_encoder_names_what_its_attention_refused() {
    use bochner_models::encoder::EncoderLayer;
    for variant in variants() {
        let config = EncoderLayerConfig {
            width: WIDTH,
            heads: 2,
            hidden: 12,
            attention: variant,
            dropout: 0.0,
        };
        let device = Cpu::default();
        let layer: EncoderLayer<f64> =
            EncoderLayer::try_new(&device, &config, Seed::new(3)).unwrap();
        let x: Tensor<(usize, usize, usize), f64, Cpu> = device.ones_like(&(2, 3, WIDTH));
        for mask in [
            Mask::none().with_key_lengths(vec![3, 2, 1]),
            Mask::none().with_query_lengths(vec![3, 4]),
        ] {
            let error = layer.apply(x.clone(), &mask, evaluation()).unwrap_err();
            assert!(
                matches!(error, Error::Attention(AttentionError::Mask { .. })),
                "{error}"
            );
        }
    }
}
