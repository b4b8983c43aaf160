//! The memory of a call, for the next one.

use bochner_numerics::Buffers;
use std::any::Any;
use std::sync::{Mutex, PoisonError};

/// Memory that calls of attention leave to those that follow.
///
/// On one thread of rayon's pool a call allocates nothing if one of the same shapes and settings went
/// before, with two exceptions: random features allocate O(T m) numbers in every call, and a bias of minus infinity
/// beside a mask by matrices is joined with the matrices in every call. On several it may take some calls until their
/// busiest moment has been met, and from a thread outside the pool rayon allocates a block of its queue now and then:
/// where that matters, call from within
/// [`ThreadPool::install`](https://docs.rs/rayon/1/rayon/struct.ThreadPool.html#method.install) or make the caller
/// one of the pool's
/// ([`use_current_thread`](https://docs.rs/rayon/1/rayon/struct.ThreadPoolBuilder.html#method.use_current_thread)).
/// What has been taken is kept until the workspace is dropped: O(T (R + dv)) numbers of the largest call, and in the
/// linear-time form O(R² dv). Values of more than 512 numbers are packed in memory of their own in the linear-time
/// form.
///
/// Calls on several threads may share one. A clone is empty.
#[derive(Debug)]
pub struct Workspace<T> {
    pub(crate) numbers: Buffers<T>,
    /// Buffers of other types, one of each, which engines of different kernels ask for.
    pools: Mutex<Vec<Box<dyn Any + Send + Sync>>>,
}

impl<T> Workspace<T> {
    /// A workspace that holds nothing yet.
    pub fn new() -> Self {
        Self {
            numbers: Buffers::default(),
            pools: Mutex::default(),
        }
    }

    /// The buffers of one type.
    pub(crate) fn pool<X: Send + 'static>(&self) -> Buffers<X> {
        // Each change is complete in itself.
        let mut pools = self.pools.lock().unwrap_or_else(PoisonError::into_inner);
        let found = pools
            .iter()
            .find_map(|pool| pool.downcast_ref::<Buffers<X>>());
        if let Some(pool) = found {
            return pool.clone();
        }
        let pool = Buffers::default();
        pools.push(Box::new(pool.clone()));
        pool
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
