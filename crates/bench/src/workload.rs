//! The work that is measured.

use crate::Error;
use serde_json::{Map, Value, json};

/// One piece of work at one shape.
pub struct Workload {
    /// The name of the work.
    pub name: &'static str,
    /// The sizes. The module that defines the work names them.
    pub shape: Vec<usize>,
    /// The type of its numbers.
    pub element: Element,
    /// The passes, in the order in which they are timed.
    pub passes: Vec<Pass>,
    /// The fields of the [peers'](crate::peers::Peers) cases besides the implementation: the shape, and what else they
    /// have to know.
    pub case: Map<String, Value>,
    /// Makes the inputs, and returns one closure a pass that runs the pass once.
    pub start: Box<Start>,
}

type Start = dyn Fn() -> Result<Vec<Run>, Error>;

/// One run of one pass.
pub type Run = Box<dyn FnMut() -> Result<(), Error>>;

/// One pass of a workload.
#[derive(Clone, Debug)]
pub struct Pass {
    /// The name, such as `fwd` or `fwd_bwd`.
    pub name: &'static str,
    /// The bytes that must be moved: every input is read and every result written once.
    pub bytes: f64,
    /// The operations of work whose libraries do not [count](bochner_numerics::operations) theirs: two for each
    /// multiplication with its addition. `None` if a run counts them.
    pub operations: Option<f64>,
}

/// A type of number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Element {
    /// `f32`
    Single,
    /// `f64`
    Double,
}

impl Pass {
    /// A pass with its bytes, whose operations a run counts.
    pub fn new(name: &'static str, bytes: f64) -> Self {
        Self {
            name,
            bytes,
            operations: None,
        }
    }

    /// A pass of so many operations, which are not counted.
    pub fn of_operations(name: &'static str, operations: f64, bytes: f64) -> Self {
        Self {
            operations: Some(operations),
            ..Self::new(name, bytes)
        }
    }
}

impl Workload {
    /// Work on numbers in single precision.
    pub fn new(
        name: &'static str,
        shape: impl Into<Vec<usize>>,
        passes: Vec<Pass>,
        start: impl Fn() -> Result<Vec<Run>, Error> + 'static,
    ) -> Self {
        let shape = shape.into();
        Self {
            name,
            element: Element::Single,
            passes,
            case: Map::from_iter([("shape".to_owned(), json!(shape))]),
            shape,
            start: Box::new(start),
        }
    }

    /// Adds a field to the peers' cases.
    #[must_use]
    pub fn with(mut self, field: &str, value: impl Into<Value>) -> Self {
        self.case.insert(field.to_owned(), value.into());
        self
    }

    /// The name and the shape, by which the workload is asked for.
    pub fn id(&self) -> String {
        let shape: Vec<_> = self.shape.iter().map(usize::to_string).collect();
        format!("{} ({})", self.name, shape.join(","))
    }
}
