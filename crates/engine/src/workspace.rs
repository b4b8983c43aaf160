//! Memory of a call for the next one.

use bochner_numerics::Buffers;
use std::any::Any;
use std::sync::{Mutex, PoisonError};

/// Memory that the heads of a call, and the steps of a decoder, leave to those that follow.
///
/// Memory is kept until the workspace is dropped. Several threads may share one. A clone is empty.
#[derive(Debug)]
pub(crate) struct Workspace<T> {
    pub(crate) numbers: Buffers<T>,
    /// Buffers of other types, one of each, which engines of different kernels ask for.
    pools: Mutex<Vec<Box<dyn Any + Send + Sync>>>,
}

impl<T> Workspace<T> {
    /// A workspace that holds nothing yet.
    pub(crate) fn new() -> Self {
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

impl<T> Clone for Workspace<T> {
    fn clone(&self) -> Self {
        Self::new()
    }
}
