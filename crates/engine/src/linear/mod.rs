//! Linear time: keys are summed up a block at a time, and queries read the sums.

mod course;
mod prefix;

pub(crate) mod scan;
pub(crate) mod squares;

pub(crate) use course::{BLOCK, Course, Span};
pub(crate) use prefix::{PrefixSums, RunningSums, backward, follow, read_all, starts};
