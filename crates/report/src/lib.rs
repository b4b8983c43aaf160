//! Rows of results, the judge of claims about them, and the pages written from both.
//!
//! An experiment has two halves that meet in files of rows. One trains models and writes one [`Row`](row::Row) a run.
//! This crate is the other half. It knows no model and reads no data set, so that a published archive can be judged
//! again in a second.
//!
//! * **An experiment is data** ([`suite::Card`]): a card of names and numbers, the [arms](plan::Arm) that are
//!   compared, and the [claims](claim::Claim) about them.
//! * **A claim names its null, side and margin.** Runs are paired by split and seed. Estimates use t quantiles, and the
//!   standard error of Nadeau and Bengio where folds share training rows. "k of m sets" is a partial conjunction, "not
//!   worse" a bound, and Holm's procedure holds the error of a whole page at 0.05 ([`judge()`](judge::judge)).
//! * **Numbers whose epoch the test part chose are shown and never decide.**
//! * **A page is written from rows** ([`account::Account`], [`document`]), as Markdown and as one HTML file.
//!
//! # Example
//!
//! Ten folds on which a variant's error is smaller, one of which is tested while eight train:
//!
//! ```
//! use bochner_report::statistics::{Difference, Finding, Paired};
//!
//! let gains = [-2.0, -1.5, -1.0, -2.5, -1.8, -0.9, -1.4, -2.2, -1.1, -1.6];
//! let runs = gains.iter().enumerate();
//! let runs: Vec<Difference> = runs.map(|(split, &value)| Difference { split, value }).collect();
//! let paired = Paired::new(&runs, Some(1.0 / 8.0))?;
//! assert_eq!((paired.wins, paired.finding()), (10, Finding::Better));
//! let estimate = paired.estimate.expect("ten runs");
//! assert!(estimate.p_below(0.0) < 1e-4);
//! # Ok::<(), bochner_numerics::ArgumentError>(())
//! ```
//!
//! # Map
//!
//! | module | holds |
//! |---|---|
//! | [`mod@unit`], [`settings`] | the description of a run |
//! | [`row`], [`archive`], [`results`] | the results of runs, on disk and in memory |
//! | [`suite`], [`plan`] | the declaration of an experiment, its arms and their order |
//! | [`claim`], [`mod@judge`], [`statistics`] | claims, verdicts, and the statistics behind them |
//! | [`account`], [`sections`], [`page`] | what a page says |
//! | [`document`] | charts and pages as SVG, Markdown and HTML |
//! | [`Error`] | what can go wrong |

pub mod account;
pub mod archive;
pub mod check;
pub mod claim;
pub mod document;
mod error;
pub mod judge;
pub mod page;
pub mod plan;
pub mod results;
pub mod row;
pub mod sections;
pub mod settings;
pub mod statistics;
pub mod suite;
pub mod unit;

pub use account::{Account, Skipped};
pub use error::Error;
pub use results::{Number, Results};
pub use settings::Settings;
pub use unit::{Scale, Unit, Versions};
