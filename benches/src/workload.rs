//! What is measured.

use crate::Error;
use serde_json::Value;

/// One piece of work at one shape.
pub struct Workload {
    /// What is computed.
    pub name: &'static str,
    /// Its sizes; what they mean is said where the work is defined.
    pub shape: Vec<usize>,
    /// The numbers it computes on.
    pub element: Element,
    /// A number of threads other than that of the run.
    pub threads: Option<usize>,
    /// What is timed of it, in this order.
    pub passes: Vec<Pass>,
    /// Makes the inputs; what it returns runs each of the passes once.
    pub start: Box<Start>,
}

type Start = dyn Fn() -> Result<Vec<Run>, Error>;

/// One run of one pass.
pub type Run = Box<dyn FnMut() -> Result<(), Error>>;

/// One pass of a workload.
#[derive(Clone, Debug)]
pub struct Pass {
    /// What it is called, in the peers' results too: `fwd`, `fwd_bwd`.
    pub name: &'static str,
    /// Operations of the products that the algorithm needs: two for each multiplication with its
    /// addition; what a backward pass computes again counts as done.
    pub operations: f64,
    /// Bytes that must be moved: every input read and every result written, once.
    pub bytes: f64,
    /// What it is compared with.
    pub against: Vec<Against>,
}

/// Peers that do the same work: the fastest counts.
#[derive(Clone, Debug)]
pub struct Against {
    /// What they have in common.
    pub label: &'static str,
    /// The peers.
    pub peers: Vec<Peer>,
    /// How many times longer the fastest should take at least.
    pub target: Option<f64>,
}

/// One case of a peer script.
#[derive(Clone, Debug, PartialEq)]
pub struct Peer {
    /// The script in `benches/peers/`, without its ending.
    pub script: &'static str,
    /// The argument of `--case`.
    pub case: Value,
    /// Which of the case's times is compared.
    pub pass: &'static str,
}

impl Peer {
    /// Whether one run gives the times of both.
    pub fn same_case(&self, other: &Self) -> bool {
        (self.script, &self.case) == (other.script, &other.case)
    }

    /// What it is called.
    pub fn name(&self) -> &str {
        self.case["impl"].as_str().unwrap_or(self.script)
    }
}

/// A type of number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Element {
    /// `f32`
    Single,
    /// `f64`
    Double,
}

impl Workload {
    /// Name, shape and number of threads: what it is asked for by.
    pub fn id(&self) -> String {
        let on = self.threads.map(|n| format!(" on {n} thread"));
        let (name, shape) = (self.name, self.shape_text());
        format!("{name} ({shape}){}", on.unwrap_or_default())
    }

    /// The sizes, separated by commas.
    pub fn shape_text(&self) -> String {
        let shape: Vec<_> = self.shape.iter().map(usize::to_string).collect();
        shape.join(",")
    }
}
