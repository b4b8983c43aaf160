//! Counting the operations of a computation.
//!
//! A count belongs to the closure it was asked for, whichever threads of
//! [`parallel`](crate::parallel) that closure's work runs on, and to nothing else: two counts at the
//! same time do not see each other. Where nothing is counted, [`record`] reads one thread-local
//! variable for each matrix product or slice.

use std::cell::RefCell;
use std::ops::{Add, Sub};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// The number of operations of each kind that a computation has done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Operations {
    /// Multiplications or divisions, each with the addition that goes with it, if any.
    pub multiply_adds: u64,
    /// Exponentials.
    pub exponentials: u64,
    /// Angles of which sine and cosine were taken, both or one.
    pub sines_cosines: u64,
    /// Powers with an arbitrary exponent.
    pub powers: u64,
}

impl Operations {
    /// A count of multiplications with additions alone.
    pub const fn multiply_adds(count: usize) -> Self {
        let count = count as u64;
        Self {
            multiply_adds: count,
            ..Self::NONE
        }
    }

    /// A count of exponentials alone.
    pub const fn exponentials(count: usize) -> Self {
        let count = count as u64;
        Self {
            exponentials: count,
            ..Self::NONE
        }
    }

    /// A count of sines and cosines alone.
    pub const fn sines_cosines(count: usize) -> Self {
        let count = count as u64;
        Self {
            sines_cosines: count,
            ..Self::NONE
        }
    }

    /// A count of powers alone.
    pub const fn powers(count: usize) -> Self {
        let count = count as u64;
        Self {
            powers: count,
            ..Self::NONE
        }
    }

    const NONE: Self = Self {
        multiply_adds: 0,
        exponentials: 0,
        sines_cosines: 0,
        powers: 0,
    };
}

impl Add for Operations {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self {
            multiply_adds: self.multiply_adds + other.multiply_adds,
            exponentials: self.exponentials + other.exponentials,
            sines_cosines: self.sines_cosines + other.sines_cosines,
            powers: self.powers + other.powers,
        }
    }
}

impl Sub for Operations {
    type Output = Self;

    fn sub(self, other: Self) -> Self {
        Self {
            multiply_adds: self.multiply_adds - other.multiply_adds,
            exponentials: self.exponentials - other.exponentials,
            sines_cosines: self.sines_cosines - other.sines_cosines,
            powers: self.powers - other.powers,
        }
    }
}

/// The operations of `f`, with what it returns.
///
/// What is counted: [`matmul`](crate::matmul) by its shape, the functions of
/// [`elementary`](crate::elementary) by their elements, and what other crates [`record`] of the
/// sweeps between them. Additions on their own, comparisons and copies are not.
///
/// A count inside a count is part of the outer one.
///
/// ```
/// use bochner_numerics::{Mat, MatMut, matmul, operations::count};
///
/// let (a, b, mut c) = ([1.0; 6], [1.0; 12], [0.0; 8]);
/// let product = || matmul(1.0, Mat::new(&a, 2, 3), Mat::new(&b, 3, 4), 0.0, MatMut::new(&mut c, 2, 4));
/// let ((), operations) = count(product);
/// assert_eq!(operations.multiply_adds, 2 * 3 * 4);
/// ```
pub fn count<R>(f: impl FnOnce() -> R) -> (R, Operations) {
    let counter = Arc::new(Counter::default());
    let counted = Scope(Some(Arc::clone(&counter))).enter();
    let result = f();
    drop(counted);
    let counted = counter.read();
    record(counted);
    (result, counted)
}

/// Adds to the count that is running, if one is.
#[inline]
pub fn record(operations: Operations) {
    CURRENT.with_borrow(|current| {
        if let Some(counter) = current {
            counter.add(operations);
        }
    });
}

thread_local! {
    static CURRENT: RefCell<Option<Arc<Counter>>> = const { RefCell::new(None) };
}

#[derive(Debug, Default)]
struct Counter {
    multiply_adds: AtomicU64,
    exponentials: AtomicU64,
    sines_cosines: AtomicU64,
    powers: AtomicU64,
}

impl Counter {
    fn add(&self, operations: Operations) {
        let Operations {
            multiply_adds,
            exponentials,
            sines_cosines,
            powers,
        } = operations;
        for (counter, more) in [
            (&self.multiply_adds, multiply_adds),
            (&self.exponentials, exponentials),
            (&self.sines_cosines, sines_cosines),
            (&self.powers, powers),
        ] {
            if more > 0 {
                counter.fetch_add(more, Ordering::Relaxed);
            }
        }
    }

    fn read(&self) -> Operations {
        Operations {
            multiply_adds: self.multiply_adds.load(Ordering::Relaxed),
            exponentials: self.exponentials.load(Ordering::Relaxed),
            sines_cosines: self.sines_cosines.load(Ordering::Relaxed),
            powers: self.powers.load(Ordering::Relaxed),
        }
    }
}

/// The count, or none, that a piece of work belongs to.
#[derive(Clone)]
pub(crate) struct Scope(Option<Arc<Counter>>);

impl Scope {
    /// The count that the calling thread works for.
    pub(crate) fn current() -> Self {
        Self(CURRENT.with_borrow(Clone::clone))
    }

    /// Makes what the thread does a part of this count, on whatever thread, until the result is dropped.
    ///
    /// Callers do so where nothing is counted too: a thread that waits for its own work may have taken up
    /// another caller's.
    pub(crate) fn enter(&self) -> Restore {
        Restore(CURRENT.replace(self.0.clone()))
    }
}

/// Restores the count that ran before when it is dropped, so after a panic too.
#[must_use]
pub(crate) struct Restore(Option<Arc<Counter>>);

impl Drop for Restore {
    fn drop(&mut self) {
        CURRENT.set(self.0.take());
    }
}
