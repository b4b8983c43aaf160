//! The work that is measured.

use crate::Error;
use serde_json::Value;

/// One piece of work at one shape.
pub struct Workload {
    /// The name of the work.
    pub name: &'static str,
    /// The sizes; the module that defines the work says what they mean.
    pub shape: Vec<usize>,
    /// The numbers it computes on.
    pub element: Element,
    /// A number of threads other than that of the run.
    pub threads: Option<usize>,
    /// The passes, in the order in which they are timed.
    pub passes: Vec<Pass>,
    /// Makes the inputs, and returns one closure a pass that runs the pass once.
    pub start: Box<Start>,
}

type Start = dyn Fn() -> Result<Vec<Run>, Error>;

/// One run of one pass.
pub type Run = Box<dyn FnMut() -> Result<(), Error>>;

/// One pass of a workload.
#[derive(Clone, Debug)]
pub struct Pass {
    /// The name, in the peers' results too: `fwd`, `fwd_bwd`.
    pub name: &'static str,
    /// The operations of the products that the algorithm needs: two for each multiplication with its
    /// addition. Products that a backward pass computes again count again.
    pub operations: f64,
    /// The bytes that must be moved: every input is read and every result written once.
    pub bytes: f64,
    /// The tokens that it goes through, of work whose speed is told by them.
    pub tokens: Option<usize>,
    /// The peers that it is compared with.
    pub against: Vec<Against>,
}

/// Peers that do the same work: the fastest counts.
#[derive(Clone, Debug)]
pub struct Against {
    /// A name for what they have in common.
    pub label: &'static str,
    /// The peers.
    pub peers: Vec<Peer>,
    /// The smallest ratio of the fastest peer's time to ours that is wanted.
    pub target: Option<f64>,
}

/// One case of a peer script.
#[derive(Clone, Debug, PartialEq)]
pub struct Peer {
    /// The script in `peers/` of this crate, without its ending.
    pub script: &'static str,
    /// The argument of `--case`.
    pub case: Value,
    /// The name of the time that is compared.
    pub pass: &'static str,
}

impl Pass {
    /// A pass that is compared with nothing.
    pub fn new(name: &'static str, operations: f64, bytes: f64) -> Self {
        Self {
            name,
            operations,
            bytes,
            tokens: None,
            against: Vec::new(),
        }
    }
}

impl Against {
    /// These cases of one script.
    pub fn new(
        label: &'static str,
        script: &'static str,
        cases: impl IntoIterator<Item = Value>,
        pass: &'static str,
        target: Option<f64>,
    ) -> Self {
        let peer = |case| Peer { script, case, pass };
        Self {
            label,
            peers: cases.into_iter().map(peer).collect(),
            target,
        }
    }
}

impl Peer {
    /// Whether one run gives the times of both.
    pub fn same_case(&self, other: &Self) -> bool {
        (self.script, &self.case) == (other.script, &other.case)
    }

    /// The name of the implementation.
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
    /// Work on numbers in single precision, on the threads of the run.
    pub fn new(
        name: &'static str,
        shape: impl Into<Vec<usize>>,
        passes: Vec<Pass>,
        start: impl Fn() -> Result<Vec<Run>, Error> + 'static,
    ) -> Self {
        Self {
            name,
            shape: shape.into(),
            element: Element::Single,
            threads: None,
            passes,
            start: Box::new(start),
        }
    }

    /// The name, the shape and the number of threads, by which the workload is asked for.
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
