//! Models built from kernel attention.
//!
//! The first is the paper's [regressor](regressor::Regressor), which reads a whole data set as one
//! sequence. Each row is a position; its prediction attends to the inputs of all rows, those of the
//! test part included, while the loss counts the training rows alone. With attention as a kernel
//! this is a relative of kernel regression in which the kernel is learned: which rows are alike is
//! the similarity, which rows speak loudest the magnitude.
//!
//! The attention mechanism is a setting ([`bochner_attention::Variant`]); everything else stays the
//! same, initial values included, so that two runs differ in nothing but the attention.
//!
//! The [node classifier](node_classifier::NodeClassifier) learns the classes of a graph's nodes from
//! those of a few of them, with any number of layers of graph attention, in GAT's form or in the kernel
//! form, or with graph convolution. The [text classifier](classifier::TextClassifier) puts an encoder of the same
//! attention between words and classes, and the [translator](translator::Translator) an encoder and a decoder between two
//! languages. One [trainer](training::Trainer) trains all of them.
//!
//! The example `translate` learns from two files of lines of your own, saves what it has learnt with its subwords as one
//! [`TextTranslator`](translator::TextTranslator), loads it and translates.
//!
//! The example `own_tsv` learns to classify the sentences of a TSV, counts what it makes of those that it has not seen, and
//! saves a [`SentenceClassifier`](classifier::SentenceClassifier) that answers with the names of the file's labels.
//!
//! # Example
//!
//! ```
//! use bochner_attention::Mikan;
//! use bochner_models::regressor::{RegressorConfig, Task, Trainer, TrainingConfig};
//! use bochner_numerics::Seed;
//! use bochner_models::ndarray::Array2;
//!
//! let x = Array2::from_shape_fn((30, 1), |(i, _)| i as f32 / 15.0 - 1.0);
//! let y = x.column(0).mapv(|x| x * x);
//! let task = Task::new(x, y, (0..30).step_by(2).collect())?;
//! let mikan = Mikan { p: 3.0, points: 16, ..Default::default() };
//! let config = RegressorConfig::new(1, mikan.into());
//! let mut trainer = Trainer::new(&config, &TrainingConfig::regression(), task, Seed::new(7))?;
//! for _ in 0..5 {
//!     let report = trainer.epoch()?;
//!     assert!(report.loss.is_finite() && report.penalty > 0.0);
//! }
//! let seen = trainer.inspect()?;
//! assert_eq!(seen.weights.dim(), (1, 8, 30, 30));
//! assert!(seen.correlation.is_some());
//! # Ok::<(), bochner_models::Error>(())
//! ```
//!
//! # Map
//!
//! | module | holds |
//! |---|---|
//! | [`encoder`] | [`Encoder`](encoder::Encoder), [`EncoderLayer`](encoder::EncoderLayer), pre-LN and post-LN; weights from and for PyTorch by [`torch_names`](encoder::Encoder::torch_names) |
//! | [`decoder`] | [`Decoder`](decoder::Decoder), [`DecoderLayer`](decoder::DecoderLayer): causal attention, and attention to a memory |
//! | [`attention`] | [`AttentionOptions`](attention::AttentionOptions): key-value heads, rotary positions, a window |
//! | [`datapoints`] | [`Npt`](datapoints::Npt), [`Block`](datapoints::Block): attention between the rows of a [`Table`](datapoints::Table), and between its columns |
//! | [`embedding`], [`positions`] | [`WordEmbedding`](embedding::WordEmbedding), [`sinusoidal_positions`](positions::sinusoidal_positions) |
//! | [`classifier`] | [`TextClassifier`](classifier::TextClassifier), [`Task`](classifier::Task); [`SentenceClassifier`](classifier::SentenceClassifier): words in, classes out, saved as one file |
//! | [`graph_classifier`] | [`GraphClassifier`](graph_classifier::GraphClassifier), [`Task`](graph_classifier::Task): the classes of whole graphs, by pooling |
//! | [`language_model`] | [`LanguageModel`](language_model::LanguageModel), [`Task`](language_model::Task): the next token of a text, [`Sampling`](language_model::Sampling) |
//! | [`next_event`] | [`NextEvent`](next_event::NextEvent), [`Task`](next_event::Task): what comes next, from kinds and times |
//! | [`node_classifier`] | [`NodeClassifier`](node_classifier::NodeClassifier), [`Task`](node_classifier::Task) |
//! | [`regressor`] | [`Regressor`](regressor::Regressor), [`Task`](regressor::Task), [`LookAhead`](regressor::LookAhead) |
//! | [`translator`] | [`Translator`](translator::Translator), [`Task`](translator::Task), translation by beam search; [`TextTranslator`](translator::TextTranslator): lines in, lines out, saved as one file |
//! | [`training`] | [`Trainer`](training::Trainer), [`TrainingConfig`](training::TrainingConfig) with its [`Schedule`](training::Schedule), [`Observer`](training::Observer) |
//! | [`assessment`] | [`Assessment`](assessment::Assessment): errors, cross-entropy and Brier score; [`ConfusionMatrix`](assessment::ConfusionMatrix): precision, recall and F1 |
//! | [`Error`] | what can go wrong |

pub mod assessment;
pub mod attention;
pub mod classifier;
pub mod datapoints;
pub mod decoder;
pub mod embedding;
pub mod encoder;
mod error;
mod fingerprint;
pub mod graph_classifier;
pub mod language_model;
pub mod next_event;
pub mod node_classifier;
pub mod positions;
mod pre_norm;
pub mod regressor;
mod saved;
mod steps;
pub mod training;
pub mod translator;

/// The number of the arithmetic: raised when models, or the engine below them, compute other results on purpose. Runs
/// that were made with another number are not continued.
pub const RESULTS: u32 = 1;

pub use bochner_nn::prelude;
pub use dfdx;
pub use error::Error;
pub use ndarray;
pub use rand;

/// Runs the examples of the page on weights of other libraries.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/weights.md")]
struct WeightsPage;
