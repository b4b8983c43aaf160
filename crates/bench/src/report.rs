//! The results of a run, as a table and as JSON.

mod checks;
mod number;
mod page;
mod picture;
mod results;
mod row;
mod table;

use crate::machine::{Machine, TRIAD};
use crate::workload::Element;
use crate::{Error, Measured, Workload};
pub use checks::Check;
pub use page::write_page;
pub use row::{Comparison, PeerTime, Round, Row};
use serde::{Deserialize, Serialize};

/// A run of the benchmarks.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Report {
    /// The machine that it ran on.
    pub machine: Machine,
    /// Threads of ours and of theirs.
    pub threads: usize,
    /// The number of times that ours and theirs took turns.
    pub rounds: usize,
    /// The best that the machine reached.
    pub ceilings: Ceilings,
    /// One pass of one workload each.
    pub rows: Vec<Row>,
    /// Bounds on numbers that several rows give together.
    pub checks: Vec<Check>,
}

/// The best that the machine reached in this run.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub struct Ceilings {
    /// Products of `f32`: the best GFLOP/s.
    pub gflops_f32: f64,
    /// Products of `f64`: the best GFLOP/s.
    pub gflops_f64: f64,
    /// Sweeps through memory: the best GB/s.
    pub gb_per_s: f64,
}

impl Ceilings {
    pub(crate) fn add(&mut self, workload: &Workload, measured: &Measured) {
        for pass in &workload.passes {
            let ms = measured.min_ms(pass.name).unwrap_or(f64::INFINITY);
            let (best, amount) = match workload.element {
                _ if workload.name == TRIAD => (&mut self.gb_per_s, pass.bytes),
                Element::Single => (&mut self.gflops_f32, pass.operations),
                Element::Double => (&mut self.gflops_f64, pass.operations),
            };
            *best = best.max(amount / ms / 1e6);
        }
    }

    fn gflops(&self, element: Element) -> f64 {
        match element {
            Element::Single => self.gflops_f32,
            Element::Double => self.gflops_f64,
        }
    }
}

impl Report {
    /// The report as JSON.
    ///
    /// # Errors
    /// The errors of `serde_json`.
    pub fn json(&self) -> Result<String, Error> {
        Ok(serde_json::to_string_pretty(self)? + "\n")
    }
}
