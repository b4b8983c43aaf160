//! The memory of a call, for the next one.

use crate::call::Prepared;
use crate::engine::linear_time::{Plan, Span, Sums};
use crate::engine::{Level, RowStatistics};
use bochner_numerics::{Buffer, Buffers};

/// Memory that calls of attention leave to those that follow.
///
/// On one thread of rayon's pool a call allocates nothing if one of the same shapes and settings went
/// before. On several it may take some calls until their busiest moment has been met, and from a thread
/// outside the pool rayon allocates a block of its queue now and then: where that matters, call from within
/// [`ThreadPool::install`](https://docs.rs/rayon/1/rayon/struct.ThreadPool.html#method.install) or make the
/// caller one of the pool's
/// ([`use_current_thread`](https://docs.rs/rayon/1/rayon/struct.ThreadPoolBuilder.html#method.use_current_thread)).
/// What has been taken is kept until the workspace is dropped: O(T (R + dv)) numbers
/// of the largest call, and in the linear-time form O(R² dv). Values of more than 512 numbers are
/// packed in memory of their own in the linear-time form.
///
/// Calls on several threads may share one. A clone is empty.
#[derive(Debug)]
pub struct Workspace<T> {
    pub(crate) numbers: Buffers<T>,
    pub(crate) doubles: Buffers<f64>,
    pub(crate) levels: Buffers<Level>,
    pub(crate) statistics: Buffers<RowStatistics<T>>,
    pub(crate) prepared: Buffers<Prepared<T>>,
    pub(crate) plans: Buffers<Plan>,
    pub(crate) spans: Buffers<Span>,
    pub(crate) sums: Buffers<Sums<T>>,
    pub(crate) starts: Buffers<Buffer<Sums<T>>>,
}

impl<T> Workspace<T> {
    /// One that holds nothing yet.
    pub fn new() -> Self {
        Self {
            numbers: Buffers::default(),
            doubles: Buffers::default(),
            levels: Buffers::default(),
            statistics: Buffers::default(),
            prepared: Buffers::default(),
            plans: Buffers::default(),
            spans: Buffers::default(),
            sums: Buffers::default(),
            starts: Buffers::default(),
        }
    }
}

impl<T> Default for Workspace<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T> Clone for Workspace<T> {
    fn clone(&self) -> Self {
        Self::new()
    }
}
