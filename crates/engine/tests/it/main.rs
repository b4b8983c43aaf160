//! The properties of the engine.

mod built_in;

use bochner_engine::conformance::Failure;

/// The result of a test: the first property that does not hold.
type Outcome = Result<(), Failure>;
