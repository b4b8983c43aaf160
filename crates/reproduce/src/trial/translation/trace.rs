//! Traces of a translator's heads: the similarity of a query to its nearest key, and the size of keys and queries.

use super::Translator;
use crate::trial::Findings;
use crate::trial::model::AnyError;
use bochner_attention::{Magnitude, Mask, Pass, Variant, kernels::Points, mechanism::Inspection};
use bochner_interpret::{Similarity, SimilarityMagnitudeTrace, similarity_magnitude_trace};
use bochner_models::translator::{Pair, TranslatorInspection};
use bochner_text::{Vocabulary, padded};
use dfdx::tensor::{Cpu, TensorFromVec};
use serde::{Deserialize, Serialize};

/// The attentions that are looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// The encoder's to itself.
    Encoder,
    /// The decoder's to the encoder's output.
    Cross,
}

impl Place {
    /// All places, in the order of the report.
    pub const ALL: [Self; 2] = [Self::Encoder, Self::Cross];

    /// The name in reports and files.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Encoder => "encoder",
            Self::Cross => "cross",
        }
    }

    /// The measures of the magnitude's decimal logarithm, in the mean over layers and heads, after the first and the
    /// last epoch.
    pub const fn magnitude(self) -> [&'static str; 2] {
        match self {
            Self::Encoder => [
                "log10 magnitude, encoder, first epoch",
                "log10 magnitude, encoder, last epoch",
            ],
            Self::Cross => [
                "log10 magnitude, cross, first epoch",
                "log10 magnitude, cross, last epoch",
            ],
        }
    }

    /// The name of its [`Trace`] after the first (0) or the last epoch (1).
    pub fn trace(self, epoch: usize) -> String {
        format!("trace, {}, {}", self.name(), ["first", "last"][epoch])
    }
}

/// Means of decimal logarithms over the validation part, by layer and head; see [`SimilarityMagnitudeTrace`].
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Trace {
    /// The logarithm of the similarity of the nearest key.
    pub similarity: Vec<Vec<f64>>,
    /// The logarithm of the product of the magnitudes of query and key.
    pub magnitude: Vec<Vec<f64>>,
    /// The logarithm of the magnitude of the key.
    pub key_magnitude: Vec<Vec<f64>>,
}

/// Pairs that are looked at together.
const TOGETHER: usize = 64;

impl Translator<'_> {
    /// The traces of both attentions over the validation part.
    pub(super) fn traces(&self, epoch: usize) -> Result<Findings, AnyError> {
        let [mut encoder, mut cross] = [(); 2].map(|()| Means::default());
        for pairs in self.validation.pairs.chunks(TOGETHER) {
            let seen = self.inspect(pairs)?;
            let sources: Vec<usize> = pairs.iter().map(|pair| pair.source.len()).collect();
            let targets: Vec<usize> = pairs.iter().map(|pair| pair.target.len() + 1).collect();
            let lengths = [[&sources, &sources], [&targets, &sources]];
            for ((means, seen), lengths) in [&mut encoder, &mut cross]
                .into_iter()
                .zip([seen.encoder, seen.cross])
                .zip(lengths)
            {
                means.add(&self.settings.encoder.layer.attention, &seen, lengths)?;
            }
        }
        let mut findings = Findings::default();
        for (place, means) in Place::ALL.into_iter().zip([encoder, cross]) {
            let trace = means.trace();
            let heads = trace.magnitude.iter().flatten();
            let count = heads.clone().count().max(1) as f64;
            let mean = heads.sum::<f64>() / count;
            let own = Findings::of([(place.magnitude()[epoch], mean)]);
            findings = findings.and(own.with(&place.trace(epoch), &trace));
        }
        Ok(findings)
    }

    fn inspect(&self, pairs: &[Pair]) -> Result<TranslatorInspection<f32>, AnyError> {
        let (model, device) = (self.trainer.model(), Cpu::default());
        let start = model.config().start;
        let sources: Vec<_> = pairs.iter().map(|pair| pair.source.clone()).collect();
        let behind_start = |pair: &Pair| [&[start], &pair.target[..]].concat();
        let targets: Vec<_> = pairs.iter().map(behind_start).collect();
        let all: Vec<usize> = (0..pairs.len()).collect();
        let [sources, targets] = [
            padded(&sources, &all, Vocabulary::PADDING)?,
            padded(&targets, &all, Vocabulary::PADDING)?,
        ];
        let [source, target] = [&sources, &targets].map(|side| {
            let shape = (side.lengths.len(), side.width);
            device.tensor_from_vec(side.numbers.clone(), shape)
        });
        let seed = self.seed.child("traces");
        let lengths = [&sources.lengths[..], &targets.lengths[..]];
        Ok(model.inspect(source, target, lengths, Pass::Evaluation { seed })?)
    }
}

/// Sums over batches, by layer, with the number of queries and of pairs that each is of.
#[derive(Default)]
struct Means {
    layers: Vec<[Vec<f64>; 3]>,
    queries: f64,
    pairs: f64,
}

impl Means {
    fn add(
        &mut self,
        attention: &Variant,
        seen: &[Inspection<f32>],
        [of_queries, of_keys]: [&Vec<usize>; 2],
    ) -> Result<(), AnyError> {
        let queries = of_queries.iter().sum::<usize>() as f64;
        let pairs = of_queries.iter().zip(of_keys).map(|(q, k)| q * k);
        let pairs = pairs.sum::<usize>() as f64;
        let mask = Mask::none()
            .with_key_lengths(of_keys.clone())
            .with_query_lengths(of_queries.clone());
        self.layers.resize_with(seen.len(), Default::default);
        for (sums, seen) in self.layers.iter_mut().zip(seen) {
            let Some(trace) = trace(attention, seen, &mask)? else {
                continue;
            };
            let parts = [
                (trace.log10_similarity, queries),
                (trace.log10_magnitude, pairs),
                (trace.log10_key_magnitude, pairs),
            ];
            for (sum, (mean, share)) in sums.iter_mut().zip(parts) {
                sum.resize(mean.len(), 0.0);
                let heads = sum.iter_mut().zip(mean);
                heads.for_each(|(sum, mean)| *sum += share * mean);
            }
        }
        self.queries += queries;
        self.pairs += pairs;
        Ok(())
    }

    fn trace(self) -> Trace {
        let of = |part: usize, total: f64| {
            let layers = self.layers.iter().map(|sums| &sums[part]);
            let means = layers.map(|sums| sums.iter().map(|sum| sum / total).collect());
            means.collect()
        };
        Trace {
            similarity: of(0, self.queries),
            magnitude: of(1, self.pairs),
            key_magnitude: of(2, self.pairs),
        }
    }
}

/// The trace of a layer; `None` of a mechanism that weighs pairs in another way.
fn trace(
    attention: &Variant,
    seen: &Inspection<f32>,
    mask: &Mask,
) -> Result<Option<SimilarityMagnitudeTrace>, AnyError> {
    let Some([q, k]) = &seen.heads else {
        return Ok(None);
    };
    let squared = |floor| {
        let (w1, w2) = seen.points.as_ref()?;
        let points = Points::Nonstationary {
            w1: w1.view(),
            w2: w2.view(),
        };
        Some(Similarity::Squared { points, floor })
    };
    let (similarity, p) = match attention {
        // Performer estimates the weights of softmax attention.
        Variant::Softmax(_) | Variant::Performer(_) => (Some(Similarity::Rbf), 2.0),
        Variant::IkanDirect(own) => (squared(own.floor), own.p),
        Variant::Mikan(own) => (squared(own.floor), own.p),
        _ => (None, 2.0),
    };
    let Some(similarity) = similarity else {
        return Ok(None);
    };
    let by = (&similarity, Magnitude::Norm { p });
    Ok(Some(similarity_magnitude_trace(
        q.view(),
        k.view(),
        by,
        mask,
    )?))
}
