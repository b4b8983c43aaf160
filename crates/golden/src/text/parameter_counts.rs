//! `parameter_counts`: the sizes of the sentence classifiers.

use super::File;
use crate::error::{Failure, Fault};
use bochner_attention::{Variant, find};
use bochner_models::classifier::{TextClassifier, TextClassifierConfig};
use bochner_models::dfdx::tensor::Cpu;
use bochner_models::encoder::{EncoderConfig, EncoderLayerConfig, NormPlacement};
use bochner_nn::Parameters;
use bochner_numerics::Seed;
use serde::Deserialize;
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// The words of the models that are made to be counted.
const FEW: usize = 3;
/// The longest sentence of the protocol.
const LONGEST: usize = 60;

type PerSet = BTreeMap<String, usize>;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Case {
    layers: usize,
    d: usize,
    heads: usize,
    ff: usize,
    points: usize,
    words_with_pad_and_unknown: PerSet,
    classes: PerSet,
    mr_words_of_nine_tenths: Vec<usize>,
    expected: Expected,
}

#[derive(Deserialize)]
struct Expected {
    variants: BTreeMap<String, Value>,
}

pub(super) fn counts(file: &File) -> Result<Value, Failure> {
    let case: Case = file.parse()?;
    let plain = case.counts("transformer", 2)?;
    let words = case.words_with_pad_and_unknown.iter();
    let embedding: PerSet = words
        .map(|(set, &words)| (set.clone(), plain.embedding(words)))
        .collect();
    let mut classifier = PerSet::new();
    for (set, &classes) in &case.classes {
        classifier.insert(set.clone(), case.counts("transformer", classes)?.head);
    }
    let mut variants = BTreeMap::new();
    for name in case.expected.variants.keys() {
        let parts = case.counts(name, 2)?;
        let encoder = parts.layers + parts.norm;
        let total = classifier.iter().map(|(set, &head)| {
            let embedding = embedding.get(set).copied().unwrap_or(0);
            (set.clone(), embedding + encoder + head)
        });
        // The smallest and the largest total over the vocabularies of nine tenths of MR.
        let words = case.mr_words_of_nine_tenths.iter().copied();
        let of_mr = |words: usize| parts.embedding(words) + encoder + parts.head;
        let extremes = [words.clone().min(), words.max()];
        let counts = json!({
            "increment": parts.layers - plain.layers,
            "encoder": parts.layers,
            "encoder_and_final_norm": encoder,
            "total": total.collect::<PerSet>(),
            "mr_nine_tenths": extremes.map(|words| of_mr(words.unwrap_or(0))),
        });
        variants.insert(name, counts);
    }
    Ok(json!({ "expected": {
        "embedding": embedding,
        "classifier": classifier,
        "per_layer": plain.layers / case.layers.max(1),
        "final_norm": plain.norm,
        "variants": variants,
    } }))
}

impl Case {
    /// The parameters of a model with few words and one layer, counted for all layers, which are alike.
    fn counts(&self, name: &str, classes: usize) -> Result<Parts, Failure> {
        let layer = EncoderLayerConfig {
            width: self.d,
            heads: self.heads,
            hidden: self.ff,
            attention: variant(name, self.points)?,
            dropout: 0.0,
            norm: NormPlacement::Pre,
            ..Default::default()
        };
        let encoder = EncoderConfig::new(1, layer);
        let config = TextClassifierConfig::transformer(FEW, classes, LONGEST, encoder);
        let model = TextClassifier::<f32>::try_new(&Cpu::default(), &config, Seed::new(0))?;
        let mut parts = Parts::default();
        model.for_each("", &mut |name, parameter| {
            let part = match name.split('.').collect::<Vec<_>>()[..] {
                ["embedding", ..] => &mut parts.words,
                ["encoder", "norm", _] => &mut parts.norm,
                ["head", ..] => &mut parts.head,
                _ => &mut parts.layers,
            };
            *part += parameter.len();
        });
        parts.layers *= self.layers;
        Ok(parts)
    }
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
    let variant = find(&of_registry).ok_or_else(|| Fault::Entry {
        key: "variants".to_owned(),
        expected: "the rows of Table 2".to_owned(),
        got: name.to_owned(),
    })?;
    match variant.card().points {
        None => Ok(variant),
        Some(_) => Ok(variant.with_points(points)?),
    }
}
