//! `parameter_counts`: the sizes of the sentence classifiers.

use super::corpora::Corpora;
use super::findings::Findings;
use super::parse;
use crate::error::Fault;
use bochner_attention::{Variant, find};
use bochner_models::classifier::{TextClassifier, TextClassifierConfig};
use bochner_models::dfdx::tensor::Cpu;
use bochner_models::encoder::{EncoderConfig, EncoderLayerConfig, NormPlacement};
use bochner_nn::Parameters;
use bochner_numerics::Seed;
use serde::Deserialize;
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
#[serde(deny_unknown_fields)]
struct Expected {
    embedding: PerSet,
    per_layer: usize,
    final_norm: usize,
    classifier: PerSet,
    variants: BTreeMap<String, Counts>,
}

#[derive(Debug, Deserialize, PartialEq)]
#[serde(deny_unknown_fields)]
struct Counts {
    increment: usize,
    encoder: usize,
    encoder_and_final_norm: usize,
    total: PerSet,
    /// The smallest and the largest total over the vocabularies of nine tenths of MR.
    mr_nine_tenths: [usize; 2],
}

pub(super) fn check(bytes: &[u8], _: &Corpora) -> Result<Findings, Fault> {
    let case: Case = parse(bytes)?;
    let (expected, mut findings) = (&case.expected, Findings::default());
    let plain = case.counts("transformer", 2)?;
    let mut embedding = PerSet::new();
    for (set, &words) in &case.words_with_pad_and_unknown {
        embedding.insert(set.clone(), plain.embedding(words));
    }
    findings.equal("embedding", &embedding, &expected.embedding)?;
    let mut classifier = PerSet::new();
    for (set, &classes) in &case.classes {
        let found = case.counts("transformer", classes)?.head;
        classifier.insert(set.clone(), found);
    }
    findings.equal("classifier", &classifier, &expected.classifier)?;
    let per_layer = plain.layers / case.layers.max(1);
    findings.equal("per_layer", &per_layer, &expected.per_layer)?;
    findings.equal("final_norm", &plain.norm, &expected.final_norm)?;
    for (name, stated) in &expected.variants {
        let own = case.counts(name, 2)?;
        let encoder = own.layers + own.norm;
        let mut total = PerSet::new();
        for (set, &head) in &classifier {
            let embedding = embedding.get(set).copied().unwrap_or(0);
            total.insert(set.clone(), embedding + encoder + head);
        }
        let of_mr =
            |words: Option<&usize>| own.embedding(words.copied().unwrap_or(0)) + encoder + own.head;
        let words = &case.mr_words_of_nine_tenths;
        let found = Counts {
            increment: own.layers - plain.layers,
            encoder: own.layers,
            encoder_and_final_norm: encoder,
            total,
            mr_nine_tenths: [of_mr(words.iter().min()), of_mr(words.iter().max())],
        };
        findings.equal(name, &found, stated)?;
    }
    Ok(findings)
}

impl Case {
    /// The parameters of a model with few words and one layer, counted for all layers, which are alike.
    fn counts(&self, name: &str, classes: usize) -> Result<Parts, Fault> {
        let layer = EncoderLayerConfig {
            width: self.d,
            heads: self.heads,
            hidden: self.ff,
            attention: variant(name, self.points)?,
            dropout: 0.0,
            norm: NormPlacement::Pre,
            ..Default::default()
        };
        let encoder = EncoderConfig { layers: 1, layer };
        let config = TextClassifierConfig::transformer(FEW, classes, LONGEST, encoder);
        let device = Cpu::default();
        let model = TextClassifier::<f32>::try_new(&device, &config, Seed::new(0));
        let model = model.map_err(Fault::refused)?;
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
fn variant(name: &str, points: usize) -> Result<Variant, Fault> {
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
        Some(_) => {
            let mechanism = variant.mechanism::<f32>();
            mechanism.with_points(points).map_err(Fault::refused)
        }
    }
}
