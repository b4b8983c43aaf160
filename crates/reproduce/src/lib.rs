//! Runs the tables and figures of the paper again.
//!
//! This crate trains and measures, and writes one row a run. [`bochner_report`] reads rows, judges claims and writes pages.
//!
//! * **A unit of work** ([`Unit`](bochner_report::Unit)) is one model trained once on one split of one data set. Its
//!   description is whole: the suite and its version, the set and the pins of its files, all settings, the split, the seed,
//!   and the number of the arithmetic below. Its name ends with a fingerprint of all of it, so that a result of another
//!   description is neither taken for it nor overwritten.
//! * **Nothing is lost.** A finished unit is one JSON line in a file of its own ([`Store`]), written whole or not at all,
//!   and never run twice. A running unit saves how far it is ([`runner`]). An interrupt, a full disk or a power cut stops a
//!   run; the next one goes on, whatever the commit, and ends with the same bits. Parts of a list run anywhere ([`Shard`]):
//!   in one directory on one file system, or in several that an import merges.
//! * **Two numbers, always.** The R-number is the best test error over all epochs. It is what the paper publishes, and
//!   optimistic, since the test part chooses the epoch. The V-number is the test error in the epoch that a separate
//!   validation part chooses. V-numbers alone decide.
//! * **Claims first.** A [claim](bochner_report::claim::Claim) names its null, side and margin before anything is run.
//! * **Scales are fixed** in the file of a suite.
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
//! let done = reproduce(&config, &interrupt)?.runs.remove(0);
//! assert_eq!((done.outcome.computed, done.outcome.found), (26, 0));
//! assert!(directory.path().join("smoke/regression/report.html").is_file());
//!
//! let again = reproduce(&config, &interrupt)?.runs.remove(0);
//! assert_eq!((again.outcome.computed, again.outcome.found), (0, 26));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! On the command line the same is `cargo xtask reproduce`.
//!
//! # Map
//!
//! | module | holds |
//! |---|---|
//! | [`suite`] | a suite of training runs: [`Suite`], and its data: [`Source`](suite::Source) |
//! | [`suites`] | the suites, one file each |
//! | [`trial`] | one unit while it runs: [`Trial`], and the models that suites train |
//! | [`runner`] | several units at a time, interrupts, checkpoints |
//! | [`store`] | [`Store`], the results of finished units on disk |
//! | [`study`] | suites that train nothing: [`Study`](study::Study), findings and what they may be |
//! | [`propositions`], [`complexity`] | suites that are measured in one go |
//! | [`mechanisms`] | attention mechanisms by the names of tables |
//! | [`Error`] | what can go wrong |

#![allow(clippy::print_stderr)]

pub mod complexity;
mod config;
mod error;
mod list;
pub mod mechanisms;
mod progress;
pub mod propositions;
mod released;
mod reproduction;
mod run;
pub mod runner;
mod shard;
pub mod store;
pub mod study;
pub mod suite;
pub mod suites;
pub mod trial;
mod versions;

pub use config::Config;
pub use error::Error;
pub use list::list;
pub use reproduction::{Reproduction, report, report_suites, reproduce, reproduce_suites};
pub use run::SuiteRun;
pub use shard::Shard;
pub use store::Store;
pub use suite::Suite;
pub use trial::Trial;

/// The README's examples, run as tests.
#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
struct Readme;
