//! Benchmarks: the speed of bochner beside the machine's ceilings and beside PyTorch.
//!
//! A [`Workload`] is one piece of work at one shape, in one or more passes (forward; forward and
//! backward), with two numbers a pass: the operations its products need, and the bytes it must at
//! least move. [`run()`] measures workloads, each in a process of its own so that its peak memory is
//! its own too, and alternately with that of the same work in PyTorch (`peers/`), so that a
//! busy spell of the machine meets both. What comes out is a [`Report`]: medians, ratios, and the
//! shares of what a matrix product and a sweep through memory reach on the same machine in the same
//! run.
//!
//! The command line is `cargo xtask bench`; the method in words is in `docs/performance.md`.
//!
//! ```
//! use bochner_bench::workloads;
//!
//! let all = workloads();
//! let softmax = all.iter().find(|w| w.id() == "softmax (4,8,512,64,64,64)").unwrap();
//! // Two products of 512 x 512 x 64 in each of 32 heads, a multiplication and an addition each.
//! assert_eq!(softmax.passes[0].operations, 2.0 * 32.0 * 2.0 * 512.0 * 512.0 * 64.0);
//! ```
//!
//! # Map
//!
//! | module | holds |
//! |---|---|
//! | [`workload`] | [`Workload`], [`Pass`] |
//! | `all` | [`workloads`] |
//! | `attention` | attention of every kind |
//! | `decoding` | one more position of a growing sequence |
//! | `gaussian` | Gaussian processes and the copula |
//! | `regression` | epochs of the paper's regressor |
//! | `graph` | epochs of graph attention networks |
//! | `training` | training steps of encoders and classifiers |
//! | `translation` | training steps of translators, and searches for translations |
//! | `base` | [`Base`], an earlier state to compare with |
//! | `machine` | the processor, its matrix product and its memory |
//! | [`measure`] | times and peak memory |
//! | `clock` | who else was running |
//! | `statistics` | medians, and ratios of times measured in turns |
//! | [`peers`] | [`Python`], with what the peers need |
//! | [`report`] | [`Report`], as a table and as JSON |
//! | [`instructions`] | [`Instructions`], counted under valgrind |
//! | [`run`](mod@run) | [`run()`], [`case`] |

#![allow(clippy::print_stderr)]

mod all;
mod attention;
mod base;
mod classification;
mod clock;
mod decoding;
mod error;
mod gaussian;
mod graph;
pub mod instructions;
mod machine;
pub mod measure;
mod mechanisms;
pub mod peers;
mod regression;
pub mod report;
pub mod run;
mod statistics;
mod training;
mod translation;
pub mod workload;

pub use all::workloads;
pub use base::Base;
pub use error::Error;
pub use instructions::Instructions;
pub use machine::Machine;
pub use measure::Measured;
pub use peers::Python;
pub use report::Report;
pub use run::{CASE, Options, case, run};
pub use workload::{Pass, Workload};
