//! Models built from kernel attention, and one [`Trainer`](training::Trainer) for all of them.
//!
//! The attention mechanism is a setting ([`bochner_attention::Variant`]). Models of one seed that differ in the mechanism
//! alone share all other initial values, so that a comparison shows nothing but the attention.
//!
//! The [map](#map) lists the modules by task. Three of them have an example that learns from a file of your own:
//!
//! ```sh
//! cargo run --release -p bochner-models --example own_tsv -- FILE < lines.txt      # classify sentences
//! cargo run --release -p bochner-models --example language_model -- FILE           # continue a text
//! cargo run --release -p bochner-models --example translate -- SOURCE TARGET EPOCHS < lines.txt
//! ```
//!
//! The paper's [`Regressor`](regressor::Regressor) reads a whole data set as one sequence. Each row is a position, and its
//! prediction attends to the inputs of all rows, those of the test part included; the loss counts the training rows alone.
//! This is kernel regression with a learned kernel: the similarity decides which rows are alike, the magnitude how much a
//! row counts.
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
//! | [`classifier`] | classes of sentences: [`TextClassifier`](classifier::TextClassifier); [`SentenceClassifier`](classifier::SentenceClassifier) takes words, answers with names and is saved as one file |
//! | [`language_model`] | the next token of a text: [`LanguageModel`](language_model::LanguageModel), [`Sampling`](language_model::Sampling) |
//! | [`translator`] | sequences of tokens into others: [`Translator`](translator::Translator), with beam search; [`TextTranslator`](translator::TextTranslator) takes lines and is saved as one file |
//! | [`node_classifier`] | classes of the nodes of a graph, also of one too large to be read at once: [`NodeClassifier`](node_classifier::NodeClassifier) |
//! | [`graph_classifier`] | classes of whole graphs, by pooling: [`GraphClassifier`](graph_classifier::GraphClassifier) |
//! | [`regressor`] | a number for each row of a data set: [`Regressor`](regressor::Regressor), [`LookAhead`](regressor::LookAhead) |
//! | [`datapoints`] | the missing cells of a [`Table`](datapoints::Table), by attention between its rows and between its columns: [`Npt`](datapoints::Npt), [`Block`](datapoints::Block) |
//! | [`next_event`] | the kind of the next event, from kinds and times: [`NextEvent`](next_event::NextEvent) |
//! | [`training`] | [`Trainer`](training::Trainer), [`TrainingConfig`](training::TrainingConfig) with its [`Schedule`](training::Schedule), [`Observer`](training::Observer); each module above has its own `Task` and `Trainer` |
//! | [`assessment`] | [`Assessment`](assessment::Assessment): errors, cross-entropy and Brier score; [`ConfusionMatrix`](assessment::ConfusionMatrix): precision, recall and F1 |
//! | [`encoder`] | [`Encoder`](encoder::Encoder), [`EncoderLayer`](encoder::EncoderLayer), pre-LN and post-LN; weights from and for PyTorch by [`torch_names`](encoder::Encoder::torch_names) |
//! | [`decoder`] | [`Decoder`](decoder::Decoder), [`DecoderLayer`](decoder::DecoderLayer): causal attention, and attention to a memory |
//! | [`attention`] | [`AttentionOptions`](attention::AttentionOptions): key-value heads, rotary positions, a window |
//! | [`embedding`], [`positions`] | [`WordEmbedding`](embedding::WordEmbedding), [`sinusoidal_positions`](positions::sinusoidal_positions) |
//! | [`Error`] | what can go wrong |

pub mod assessment;
pub mod attention;
mod branches;
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
pub mod regressor;
mod saved;
mod steps;
pub mod training;
pub mod translator;

/// The number of the arithmetic: raised when models, or the engine below them, compute other results on purpose. Runs
/// that were made with another number are not continued.
pub const RESULTS: u32 = 2;

pub use bochner_nn::prelude;
pub use dfdx;
pub use error::Error;
pub use ndarray;
pub use rand;

/// Runs the examples of the page on weights of other libraries.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/weights.md")]
struct WeightsPage;
