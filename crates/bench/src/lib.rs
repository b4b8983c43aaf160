//! Benchmarks: the speed of bochner beside the machine's ceilings, beside PyTorch and beside earlier commits.
//!
//! A [`Workload`] is one piece of work at one shape, in one or more passes (forward; forward and
//! backward), with the bytes that a pass must at least move. Its operations are counted in a run. [`run()`] measures workloads, each in a process of its own so that its peak memory is
//! its own too. The same work in Python (`peers/`), or in the program of an earlier commit, takes turns with ours, so
//! that a busy spell of the machine meets all of them. The result is a [`Report`]: one table of medians, ratios of the
//! paired rounds, and the shares of what a matrix product and a sweep through memory reach on the same machine in the
//! same run.
//!
//! The command line is `cargo xtask bench`; the method in words is in `docs/performance.md`.
//!
//! ```
//! use bochner_bench::workloads;
//!
//! let all = workloads();
//! let softmax = all.iter().find(|w| w.id() == "softmax (4,8,512,64,64,64)").unwrap();
//! // Queries, keys, values and output of 512 x 64 numbers in each of 32 heads, four bytes each.
//! assert_eq!(softmax.passes[0].bytes, 4.0 * 4.0 * 32.0 * 512.0 * 64.0);
//! ```
//!
//! # Map
//!
//! | module | holds |
//! |---|---|
//! | [`workload`] | [`Workload`], [`Pass`] |
//! | [`run`](mod@run) | [`workloads`], [`run()`], [`case`] |
//! | [`report`] | [`Report`], the table |
//! | `attention` | every mechanism of the registry |
//! | `decoding` | one more position of a growing sequence |
//! | `training` | training steps of an encoder |
//! | `classification` | epochs of sentence classifiers |
//! | `translation` | training steps of translators, and searches for translations |
//! | `graph` | epochs of graph attention networks |
//! | `gaussian` | Gaussian processes and the copula |
//! | `machine` | the processor, its matrix product and its memory |
//! | [`measure`] | times, peak memory, and the share of other processes |
//! | `statistics` | medians, and ratios of times measured in turns |
//! | [`base`] | [`Base`], the program of an earlier commit |
//! | [`peers`] | [`Peers`], the same work in Python; [`Python`], with what they need |
//! | [`instructions`] | [`Instructions`], counted under valgrind |

#![allow(clippy::print_stderr)]

mod attention;
pub mod base;
mod classification;
mod decoding;
mod error;
mod gaussian;
mod graph;
pub mod instructions;
mod machine;
pub mod measure;
pub mod peers;
pub mod report;
pub mod run;
mod statistics;
mod training;
mod translation;
pub mod workload;

pub use base::Base;
pub use error::Error;
pub use instructions::Instructions;
pub use machine::Ceilings;
pub use measure::Measured;
pub use peers::{Peers, Python};
pub use report::Report;
pub use run::{CASE, Options, case, repeat, run, workloads};
pub use statistics::Paired;
pub use workload::{Pass, Workload};
