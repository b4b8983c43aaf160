//! Read-outs of attention: numbers that say what a trained layer does.
//!
//! A heat map of one sentence shows anything that one wishes to see. The functions here give numbers instead, by query,
//! head, example or layer, of which means can be taken over batches and data sets. They read plain arrays, from a model
//! of this workspace or from elsewhere: the weights of all heads, or the queries and keys behind them. They know no
//! framework and no model.
//!
//! * [`head_diversity`] says how much the heads of a layer differ, in nats, from 0 for heads that agree to
//!   $\log 2$ for heads that never look at the same key; [`head_spread`] says it as a standard deviation.
//! * [`similarity_magnitude_trace`] takes the weights apart into the two factors of attention as a kernel: how
//!   similar a query is to its nearest key, and how large keys and queries are. Logged from epoch to epoch, it
//!   says which of the two a model comes to rely on.
//! * [`attention_entropy`] says how many keys a query looks at, [`effective_rank()`] how many directions a head's
//!   weights have, and [`attention_rollout`] what a token is made of after several layers.
//! * [`inter_modality_flow`] says how much attention crosses between vision and text, and [`attention_guided_mask`]
//!   which patches of an image to mask together.
//! * [`depth_threshold`], [`DepthFit`] and [`separation_rank`] say how depth trades against width, in theory, as
//!   fitted to trained networks, and exactly for small ones.
//! * [`Correlations`] reads attention as a structural equation model, or takes samples of any variables
//!   ([`Correlations::of_samples`]), [`FisherTest`] tests partial correlations, and [`sem_from_attention`] has the
//!   equations themselves where the mask is causal. [`CausalStructure`] searches for the graph of causes, latent ones
//!   among them, with the order of the tokens or without it, and [`smallest_explanation`] for the tokens that a
//!   prediction rests on.
//! * [`GaussianTest`] tests whether spectral points are a sample of a Gaussian.
//!
//! # Padding, and rows of zeros
//!
//! Rows of weights that are left out are not looked at, not even where they are NaN. How a caller says so differs:
//!
//! | read-outs | rows that are left out | columns of padded keys |
//! |---|---|---|
//! | [`head_diversity`], [`head_spread`], [`attention_entropy`], [`effective_rank()`] | not in `queries`, which [`kept_queries`] makes of lengths | count as they stand: 0 behind a mask |
//! | [`attention_rollout`] | not in `queries` | left out with their rows |
//! | [`inter_modality_flow`] | [`Modality::Padding`] | left out with their rows |
//! | [`similarity_magnitude_trace`] | by the lengths of the mask | by the mask |
//! | [`attention_guided_mask`] | reads one row | minus infinity |
//! | [`Correlations`] | not in `tokens` of [`Correlations::of_tokens`] | count as they stand |
//! | [`sem_from_attention`] | at the end, cut off by the caller: behind a causal mask that changes no other row | cut off |
//!
//! A kept query all of whose keys are masked has a row of zeros. Each function says what that counts for.
//!
//! # Where weights come from
//!
//! From `inspect`: [`Mechanism::inspect`](bochner_attention::Mechanism::inspect) shows those of a mechanism. With dfdx,
//! `MultiHead::inspect_self` shows those of a layer, and `inspect` of the models in `bochner-models`, such as
//! `SentenceClassifier::inspect`, those of all layers. Each gives an [`Inspection`](bochner_attention::mechanism::Inspection) for a
//! layer, whose `weights` are `[B, M, Tq, Tk]`.
//!
//! ```
//! use bochner_interpret::bochner_attention::mechanism::{Size, Streams};
//! use bochner_interpret::bochner_attention::{Mask, Pass, find};
//! use bochner_interpret::ndarray::Array4;
//! use bochner_interpret::{attention_entropy, kept_queries};
//! use bochner_numerics::Seed;
//!
//! // Two heads of one sentence, which is padded from three words to four.
//! let x = Array4::from_shape_fn((1, 2, 4, 8), |(_, m, t, n)| ((1 + m + 3 * t + 5 * n) as f32).sin());
//! let mask = Mask::none().with_key_lengths(vec![3]);
//! let variant = find("mikan").expect("a mechanism of the registry");
//! let (mechanism, seed) = (variant.mechanism::<f32>(), Seed::new(1));
//! let streams = Streams::asked_by(&mechanism.card(), [x.view(), x.view(), x.view()], &mask);
//! let parameters = mechanism.initial(Size { heads: 2, width: 8 }, &mut seed.stream("parameters"))?;
//! let shown = mechanism.inspect(&streams, &parameters, &Pass::Evaluation { seed })?;
//! let entropy = attention_entropy(shown.weights.view(), kept_queries(&[3], 4)?.view())?;
//! // No query looks at more than three words.
//! assert!(entropy.iter().all(|&nats| nats <= 3f64.ln() + 1e-6));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Example
//!
//! Two heads of one layer, on a sentence of three words that is padded to four:
//!
//! ```
//! use bochner_interpret::{head_diversity, head_spread};
//! use bochner_interpret::ndarray::{Array4, array};
//!
//! let mut weights = Array4::<f32>::zeros((1, 2, 4, 4));
//! for i in 0..3 {
//!     weights[[0, 0, i, 0]] = 1.0; // The first head looks at the first word,
//!     weights[[0, 1, i, i]] = 1.0; // the second one at the word itself.
//! }
//! let kept = array![[true, true, true, false]];
//! let diversity = head_diversity(weights.view(), kept.view())?;
//! // They agree at the first word and are disjoint at the two others.
//! assert!((diversity[0] - 2.0 / 3.0 * 2f64.ln()).abs() < 1e-12);
//! assert!((head_spread(weights.view(), kept.view())?[0] - 2.0 / 3.0).abs() < 1e-12);
//! # Ok::<(), bochner_interpret::Error>(())
//! ```
//!
//! # Map
//!
//! | module | holds |
//! |---|---|
//! | `heads` | [`head_diversity`], [`head_spread`] |
//! | `trace` | [`similarity_magnitude_trace`], [`SimilarityMagnitudeTrace`], [`Similarity`] |
//! | `entropy` | [`attention_entropy`], [`entropy()`] |
//! | `effective_rank` | [`effective_rank()`] |
//! | `rollout` | [`attention_rollout`] |
//! | `rows` | [`kept_queries`] |
//! | `flow` | [`inter_modality_flow`], [`InterModalityFlow`], [`Modality`], [`modalities`] |
//! | `guided_mask` | [`attention_guided_mask`] |
//! | `gaussianity` | [`GaussianTest`], [`excess_kurtosis`] |
//! | `causal` | [`Correlations`], [`ValueCovariance`], [`FisherTest`], [`sem_from_attention`], [`OrderedSem`], [`CausalStructure`], [`MixedGraph`], [`Mark`], [`Independence`], [`FisherZ`], [`ZeroCorrelation`], [`Separation`], [`smallest_explanation`] |
//! | `depth` | [`depth_threshold`], [`log3_separation_bound`], [`parameter_count`], [`DepthFit`], [`separation_rank`], [`SeparationRank`], [`ModularNetwork`], [`Readout`] |
//! | `error` | [`Error`] |

mod causal;
mod depth;
mod effective_rank;
mod entropy;
mod error;
mod flow;
mod gaussianity;
mod guided_mask;
mod heads;
mod rollout;
mod rows;
mod trace;

pub use bochner_attention;
pub use causal::{
    CausalStructure, Correlations, FisherTest, FisherZ, Independence, Mark, MixedGraph, OrderedSem,
    Separation, ValueCovariance, ZeroCorrelation, sem_from_attention, smallest_explanation,
};
pub use depth::{
    DepthFit, ModularNetwork, Readout, SeparationRank, depth_threshold, log3_separation_bound,
    parameter_count, separation_rank,
};
pub use effective_rank::effective_rank;
pub use entropy::{attention_entropy, entropy};
pub use error::Error;
pub use flow::{InterModalityFlow, Modality, inter_modality_flow, modalities};
pub use gaussianity::{GaussianTest, excess_kurtosis};
pub use guided_mask::attention_guided_mask;
pub use heads::{head_diversity, head_spread};
pub use ndarray;
pub use rollout::attention_rollout;
pub use rows::kept_queries;
pub use trace::{Similarity, SimilarityMagnitudeTrace, similarity_magnitude_trace};
