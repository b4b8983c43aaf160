//! The tables of the paper, run again: *paper, ours, difference, verdict*.
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
//! * **Criteria first.** What counts as reproduced is written down in code
//!   ([`tables::regression::claims`]) before anything is run, and a claim that fails is reported
//!   with the same prominence as one that holds.
//!
//! Four suites ([`SuiteName`]): [`propositions`] measures the paper's propositions on random cases,
//! [`complexity`] counts and times what Table 1 states, [`tables::regression`] is Table 4, with every
//! attention of the paper and two Gaussian processes, and [`tables::nodes`] is Table 5, the classes of
//! nodes of citation graphs.
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
//! assert!(directory.path().join("smoke/report.html").is_file());
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
//! | [`propositions`] | one module per proposition |
//! | [`complexity`] | Table 1: operations counted, forms timed |
//! | [`tables`] | one module per table: plan, criteria, report |
//! | [`mod@unit`] | [`Unit`], [`Scale`], [`Preset`], [`Shard`] |
//! | [`settings`] | [`Settings`]: what fixes a training run besides data and seed |
//! | [`trial`] | what a suite offers so that its units can run: [`Suite`], [`Trial`] |
//! | [`runner`] | several units at a time, interrupts, checkpoints |
//! | [`store`] | [`Store`], the rows and the artefacts |
//! | [`statistics`] | paired differences, standard errors, verdicts |
//! | [`published`] | the numbers that the paper prints |
//! | [`report`] | documents, charts and pictures as Markdown and HTML |
//! | [`Error`] | what can go wrong |

#![allow(clippy::print_stderr)]

mod assessment;
pub mod complexity;
mod config;
mod error;
mod progress;
pub mod propositions;
pub mod published;
pub mod report;
mod reproduction;
pub mod runner;
pub mod settings;
pub mod statistics;
pub mod store;
mod suite_name;
pub mod tables;
pub mod trial;
pub mod unit;

pub use assessment::Assessment;
pub use bochner_datasets::Protocol;
pub use config::Config;
pub use error::Error;
pub use reproduction::{Reproduction, TableRun, reproduce};
pub use settings::Settings;
pub use store::Store;
pub use suite_name::SuiteName;
pub use trial::{Suite, Trial};
pub use unit::{Preset, Scale, Shard, Unit};

/// The README's examples, run as tests.
#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
struct Readme;
