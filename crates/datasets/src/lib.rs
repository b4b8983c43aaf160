//! Data sets for the kernel attention experiments: found, verified, read, scaled and split. Readers for data of your own.
//!
//! A comparison of models is only as good as the rows behind it, and a loader that guesses changes
//! them silently. So nothing is guessed here:
//!
//! * **Every file is pinned.** The [`manifest`] knows the length and the SHA-256 of each file, or what git calls it. Bytes
//!   that differ are an error and are never parsed; a download stops at the pinned length. What was
//!   read is handed on as [`FileProvenance`].
//! * **Nothing is executed.** The citation graphs are Python pickles, which may import and call
//!   anything. The reader here knows the 28 opcodes and six names of these files and refuses all
//!   others.
//! * **Every split is fixed.** Published folds are read, others are dealt by a seeded rule
//!   ([`deal`]) whose first outputs are tests. No random number library decides them.
//! * **Every column is scaled over all rows**, to $[-1, 1]$ by [`MinMax`], inputs and target
//!   alike, because the published numbers were made so. The model thereby sees the range of the test
//!   rows, but its errors can be compared with the published ones.
//! * **Data of your own are not guessed at either.** [`table::parse`], [`labelled::parse`] and [`translation::parse`] name
//!   the file and the line of whatever they cannot read: a missing value, a short row, another encoding.
//!
//! Files come from a directory that the user names, from the cache, or from the network by `curl` or
//! `wget`. Nothing is fetched unless [`Policy::Download`] allows it, and the [`Error`] for a missing
//! file holds the command that fetches it. The airline series and the index lists are part of the
//! crate, so this example runs without any file:
//!
//! ```
//! use bochner_datasets::{DataStore, Policy, Protocol, RegressionSet, Rows, load};
//!
//! let store = DataStore::new(Policy::Offline);
//! let data = load(RegressionSet::Passenger, Protocol::P10, Rows::All, &store)?;
//! assert_eq!((data.inputs.rows(), data.inputs.columns()), (144, 1));
//!
//! // The error that the mean of the training months makes on the test months.
//! let split = &data.splits[0];
//! assert_eq!((split.train.len(), split.validation.len(), split.test.len()), (114, 15, 15));
//! let mean = |rows: &[usize], value: &dyn Fn(usize) -> f64| {
//!     rows.iter().map(|&i| value(i)).sum::<f64>() / rows.len() as f64
//! };
//! let centre = mean(&split.train, &|i| data.target[i]);
//! let rmse = mean(&split.test, &|i| (data.target[i] - centre).powi(2)).sqrt();
//! assert!(0.3 < rmse && rmse < 0.7);
//! # Ok::<(), bochner_datasets::Error>(())
//! ```
//!
//! # Map
//!
//! | module | holds |
//! |---|---|
//! | [`manifest`] | the pinned files: [`Entry`], [`Pin`] |
//! | [`store`] | where files are found: [`DataStore`], [`Policy`] |
//! | [`provenance`] | what was found: [`Stored`], [`FileProvenance`], [`Origin`] |
//! | [`regression`] | the five regression sets: [`load`], [`RegressionSet`], [`Protocol`], and one module per set for its raw file |
//! | [`nodes`] | the three citation graphs: [`nodes::load`], [`PlanetoidSet`], and drawn graphs of any size: [`PlantedPartition`] |
//! | [`sentences`] | the five sentence corpora: [`sentences::load`], [`SentenceSet`] |
//! | [`labelled`] | labelled sentences of one's own, from columns or fastText's lines: [`labelled::parse`] |
//! | [`translation`] | parallel texts: [`translation::load`], [`TranslationSet`], any two files ([`translation::parse`]), and a task without files: [`Reversal`] |
//! | [`events`] | sequences of events with times: the badges of StackOverflow ([`events::load`]), and streams without files: [`Echoes`], [`Sessions`] |
//! | [`table`] | [`Table`], numbers in rows and columns, and any file that holds them: [`table::parse`] |
//! | [`scale`] | [`MinMax`] |
//! | [`folds`] | the fold rule: [`deal`], [`unite_repeats`], [`SplitMix64`] |
//! | [`splits`] | [`Split`], and the files that hold folds and masks; random splits of nodes are drawn by [`SplitSizes`] |

mod download;
mod draws;
mod embedded;
mod error;
pub mod events;
pub mod folds;
pub mod labelled;
mod lines;
pub mod manifest;
pub mod nodes;
mod pickle;
pub mod provenance;
mod records;
pub mod regression;
pub mod scale;
pub mod sentences;
pub mod splits;
pub mod store;
pub mod table;
pub mod translation;

pub use error::Error;
pub use events::{Echoes, EventData, EventSequence, Session, Sessions};
pub use folds::{FOLD_SEED, FOLDS, SplitMix64, deal, unite_repeats};
pub use labelled::{LabelledConfig, LabelledFormat, LabelledText};
pub use manifest::{Entry, Pin};
pub use nodes::{
    CsrMatrix, EdgeList, GraphDefect, PlanetoidData, PlanetoidGraph, PlanetoidSet, PlantedGraph,
    PlantedPartition, SplitSizes,
};
pub use provenance::{FileProvenance, Origin, Stored};
pub use records::Delimiter;
pub use regression::passenger::AIRLINE_PASSENGERS;
pub use regression::{Protocol, RegressionData, RegressionSet, Rows, load};
pub use scale::MinMax;
pub use sentences::{Repeats, Sentence, SentenceData, SentenceSet};
pub use splits::Split;
pub use store::{DataStore, Policy};
pub use table::{Gaps, Header, NamedTable, Table, TableConfig};
pub use translation::{Blank, ParallelText, Reversal, TranslationData, TranslationSet};
