//! `parameter_counts`: the sizes of the sentence classifiers.

use super::File;
use crate::error::{Failure, Fault};
use bochner_attention::{Variant, find};
use bochner_models::classifier::{TextClassifier, TextClassifierConfig};
use bochner_models::dfdx::tensor::Cpu;
use bochner_models::encoder::{EncoderConfig, EncoderLayerConfig, NormPlacement};
use bochner_nn::Parameters;
use bochner_numerics::Seed;
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// The words of the models that are made to be counted.
const FEW: usize = 3;
/// The longest sentence of the protocol.
const LONGEST: usize = 60;

type PerSet = BTreeMap<String, usize>;

pub(super) fn counts(file: &File) -> Result<Value, Failure> {
    let layers: usize = file.get("layers")?;
    let expected: Value = file.get("expected")?;
    let count = |name: &str, classes| Parts::count(file, name, classes);
    let plain = count("transformer", 2)?;
    let words: PerSet = file.get("words_with_pad_and_unknown")?;
    let embedding = words
        .into_iter()
        .map(|(set, words)| (set, plain.embedding(words)));
    let embedding: PerSet = embedding.collect();
    let mut classifier: PerSet = file.get("classes")?;
    for classes in classifier.values_mut() {
        *classes = count("transformer", *classes)?.head;
    }
    let mut variants = BTreeMap::new();
    // The smallest and the largest total are over the vocabularies of nine tenths of MR.
    let words: Vec<usize> = file.get("mr_words_of_nine_tenths")?;
    let extremes = [words.iter().min(), words.iter().max()];
    for (name, _) in expected["variants"].as_object().into_iter().flatten() {
        let parts = count(name, 2)?;
        let encoder = parts.layers + parts.norm;
        let total = classifier.iter().map(|(set, &head)| {
            let embedding = embedding.get(set).copied().unwrap_or(0);
            (set.clone(), embedding + encoder + head)
        });
        let counts = json!({
            "increment": parts.layers - plain.layers,
            "encoder": parts.layers,
            "encoder_and_final_norm": encoder,
            "total": total.collect::<PerSet>(),
            "mr_nine_tenths": extremes.map(|words| {
                parts.embedding(words.copied().unwrap_or(0)) + encoder + parts.head
            }),
        });
        variants.insert(name, counts);
    }
    Ok(json!({ "expected": {
        "embedding": embedding,
        "classifier": classifier,
        "per_layer": plain.layers / layers.max(1),
        "final_norm": plain.norm,
        "variants": variants,
    } }))
}

/// The numbers of parameters of the parts of a model.
#[derive(Default)]
struct Parts {
    words: usize,
    layers: usize,
    norm: usize,
    head: usize,
}

impl Parts {
    /// The parameters of a model with few words and one layer, counted for all layers, which are alike.
    fn count(file: &File, name: &str, classes: usize) -> Result<Self, Failure> {
        let layer = EncoderLayerConfig {
            width: file.get("d")?,
            heads: file.get("heads")?,
            hidden: file.get("ff")?,
            attention: variant(name, file.get("points")?)?,
            dropout: 0.0,
            norm: NormPlacement::Pre,
            ..Default::default()
        };
        let encoder = EncoderConfig::new(1, layer);
        let config = TextClassifierConfig::transformer(FEW, classes, LONGEST, encoder);
        let model = TextClassifier::<f32>::try_new(&Cpu::default(), &config, Seed::new(0))?;
        let mut parts = Self::default();
        model.for_each("", &mut |name, parameter| {
            let part = match name.split('.').collect::<Vec<_>>()[..] {
                ["embedding", ..] => &mut parts.words,
                ["encoder", "norm", _] => &mut parts.norm,
                ["head", ..] => &mut parts.head,
                _ => &mut parts.layers,
            };
            *part += parameter.len();
        });
        parts.layers *= file.get::<usize>("layers")?;
        Ok(parts)
    }

    /// The parameters of a table of so many words: a table of the paper's size need not be made for it.
    fn embedding(&self, words: usize) -> usize {
        self.words / FEW * words
    }
}

/// The mechanism of a row of Table 2.
fn variant(name: &str, points: usize) -> Result<Variant, Failure> {
    let of_registry = match name {
        "transformer" => "softmax".to_owned(),
        other => other.replace('_', "-"),
    };
    let unknown = || Fault::entry("variants", "the rows of Table 2", Some(name));
    let variant = find(&of_registry).ok_or_else(unknown)?;
    match variant.card().points {
        None => Ok(variant),
        Some(_) => Ok(variant.with_points(points)?),
    }
}
