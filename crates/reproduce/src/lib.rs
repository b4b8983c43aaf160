//! The tables and figures of the paper, run again: *paper, ours, difference, verdict*.
//!
//! A reproduction is worth what its bookkeeping is worth, so most of this crate is bookkeeping.
//!
//! * **A unit of work** ([`Unit`]) is one model trained once on one split of one data set. It
//!   holds everything that decides its result; its name ends with a fingerprint of all of it, so
//!   that a result made with other settings is neither taken for it nor overwritten.
//! * **Nothing is lost.** A finished unit is one JSON line in a file of its own ([`Store`]),
//!   written whole or not at all, and never run twice. A running unit saves how far it is
//!   ([`runner`]). Whatever stops a run, an interrupt, a full disk or a power cut, the next one
//!   goes on and ends with the same bits. Parts of a list run anywhere ([`Shard`]) and are merged
//!   by copying files.
//! * **Two numbers, always.** The R-number is the best test error over all epochs: what the paper
//!   publishes, and optimistic, since the test part chooses the epoch. The V-number is the test
//!   error in the epoch that a separate validation part chooses. Published numbers are compared
//!   with R-numbers only, claims rest on V-numbers only.
//! * **Criteria first.** What counts as reproduced is written down as data ([`Claim`]) before anything
//!   is run and judged by one function ([`claim::judge`]), and a claim that fails is reported with the
//!   same prominence as one that holds.
//!
//! A suite of training runs is one file ([`Suite`]): a card of names and numbers, its arms, how its data are
//! loaded and its units started, its claims, its checks and the sections of its report. Planning, choosing by
//! validation, running, resuming, sharding, judging and reporting are shared.
//!
//! | suite | reproduces |
//! |---|---|
//! | `propositions` ([`propositions`]) | the paper's propositions, on random cases |
//! | `complexity` ([`complexity`]) | Table 1, counted and timed |
//! | `causal` ([`suites::CAUSAL`]) | causal structure from attention, on random graphs |
//! | `explanations` ([`suites::EXPLANATIONS`]) | the fewest tokens without which a prediction changes, along that structure |
//! | `depth` ([`suites::DEPTH`]) | separation ranks, thresholds and the fit of depth to width |
//! | `performer` ([`suites::PERFORMER`]) | random features of softmax attention, against theory |
//! | `bipolar` ([`suites::BIPOLAR`]) | theorems on ternary products, and what they retrieve |
//! | `flow` ([`suites::FLOW`]) | what four readings of inter-modality flow obey |
//! | `primal` ([`suites::PRIMAL`]) | the zero of the primal objective, and singular values with its loss |
//! | `cat` ([`suites::CAT`]) | time against length, and a hidden token |
//! | `classification` ([`suites::CLASSIFICATION`]) | Table 2, sentences |
//! | `translation` ([`suites::TRANSLATION`]) | Table 3, German to English, and Figure 3 |
//! | `regression` ([`suites::REGRESSION`]) | Table 4, with two Gaussian processes |
//! | `nodes` ([`suites::NODES`]) | Table 5, citation graphs |
//! | `datapoints` ([`suites::DATAPOINTS`]) | attention between the rows of a table, Kossen et al. 2021 |
//! | `time` ([`suites::TIME`]) | features of times, of positions and none in next-event prediction, Xu et al. 2019 |
//! | `figure2` ([`suites::FIGURE_2`]) | Figure 2, what heads look at in a sentence |
//! | `figure4` ([`suites::FIGURE_4`]) | Figure 4, weights and errors over the norm p |
//! | `figure5` ([`suites::FIGURE_5`]) | Figure 5, spectral points and heads on a graph |
//!
//! # Example
//!
//! The airline passengers are part of the data crate, so this runs anywhere; one epoch only shows
//! the mechanics.
//!
//! ```
//! use bochner_datasets::Policy;
//! use bochner_reproduce::{Config, reproduce};
//! use std::sync::atomic::AtomicBool;
//!
//! let directory = tempfile::tempdir()?;
//! let config = Config {
//!     suites: vec!["regression".into()],
//!     sets: vec!["passenger".into()],
//!     downloads: Policy::Offline,
//!     out: directory.path().into(),
//!     epochs: Some(1),
//!     ..Config::default()
//! };
//! let interrupt = AtomicBool::new(false);
//! let done = reproduce(&config, &interrupt)?.tables.remove(0);
//! assert_eq!((done.outcome.computed, done.outcome.found), (39, 0));
//! assert!(directory.path().join("smoke/regression/report.html").is_file());
//!
//! let again = reproduce(&config, &interrupt)?.tables.remove(0);
//! assert_eq!((again.outcome.computed, again.outcome.found), (0, 39));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! On the command line the same is `cargo xtask reproduce`.
//!
//! # Map
//!
//! | module | holds |
//! |---|---|
//! | [`suite`] | what a suite declares: [`Suite`], [`suite::Card`] |
//! | [`suites`] | the suites, one file each |
//! | [`plan`] | arms, and the order of their units |
//! | [`claim`] | claims as data, and the function that judges them |
//! | [`check`] | what the machinery must show at scale `smoke` |
//! | [`sections`] | the parts of reports |
//! | [`trial`] | one unit while it runs: [`Trial`], and the models that suites train |
//! | [`runner`] | several units at a time, interrupts, checkpoints |
//! | [`mod@unit`] | [`Unit`], [`Scale`], [`Shard`] |
//! | [`store`] | [`Store`], the rows and the artefacts |
//! | [`statistics`] | paired differences, standard errors, verdicts |
//! | [`report`] | documents, charts and pictures as Markdown and HTML |
//! | [`study`] | suites that train nothing: [`Study`](study::Study), findings and what they may be |
//! | [`propositions`], [`complexity`] | suites that are measured in one go |
//! | [`Error`] | what can go wrong |

#![allow(clippy::print_stderr)]

mod account;
mod assessment;
pub mod check;
pub mod claim;
pub mod complexity;
mod config;
mod error;
pub mod mechanisms;
pub mod plan;
mod progress;
mod projection;
pub mod propositions;
mod released;
pub mod report;
mod reproduction;
mod results;
mod run;
pub mod runner;
pub mod sections;
mod settings;
mod skipped;
pub mod statistics;
pub mod store;
pub mod study;
pub mod suite;
pub mod suites;
pub mod trial;
pub mod unit;

pub use account::Account;
pub use assessment::Assessment;
pub use bochner_attention::Preset;
pub use bochner_datasets::Protocol;
pub use check::{Check, Mark};
pub use claim::{Claim, Judged};
pub use config::Config;
pub use error::Error;
pub use reproduction::{Reproduction, reproduce};
pub use results::{Number, Results};
pub use run::SuiteRun;
pub use settings::Settings;
pub use skipped::{Remedy, Skipped};
pub use store::Store;
pub use suite::Suite;
pub use trial::Trial;
pub use unit::{Scale, Shard, Unit};

/// The README's examples, run as tests.
#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
struct Readme;
