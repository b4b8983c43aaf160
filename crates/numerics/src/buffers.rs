//! Memory that is handed out, given back, and handed out again.

use crate::memory::in_large_pages;
use std::ops::{Deref, DerefMut};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

/// Buffers of one type, kept for their next use; new ones [in large pages](crate::memory::zeros) where
/// they are large.
///
/// A computation that asks for the same buffers as the one before allocates nothing. On several
/// threads the number of buffers in use at a time depends on which thread is faster, so that a later run may
/// still need one more than those before. A thread gets back what it has used itself, if that is
/// there: it may still lie in its own processor's cache.
///
/// ```
/// use bochner_numerics::Buffers;
///
/// let buffers = Buffers::default();
/// let first = buffers.filled(100, 1.0).as_ptr();
/// // Given back at the end of the line above, and handed out again.
/// assert_eq!(buffers.filled(99, 2.0).as_ptr(), first);
/// ```
#[derive(Debug)]
pub struct Buffers<T>(Arc<Ready<T>>);

/// The vectors that lie ready, each with the thread that used it; the last used, which stands last, is
/// asked for first.
type Ready<T> = Mutex<Vec<(User, Vec<T>)>>;

/// A thread's index in its pool.
type User = Option<usize>;

/// A vector that goes back to its [`Buffers`] when it is dropped; once these are gone, it is freed.
#[derive(Debug)]
pub struct Buffer<T> {
    data: Vec<T>,
    home: Weak<Ready<T>>,
}

/// A clone hands out the same buffers.
impl<T> Clone for Buffers<T> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<T> Default for Buffers<T> {
    fn default() -> Self {
        Self(Arc::default())
    }
}

impl<T> Buffers<T> {
    /// An empty vector with room for `capacity` elements.
    pub fn empty(&self, capacity: usize) -> Buffer<T> {
        let mut buffer = self.take(capacity, Vec::with_capacity);
        buffer.clear();
        buffer
    }

    /// `n` elements, which hold whatever their last use left.
    pub fn any(&self, n: usize) -> Buffer<T>
    where
        T: Clone + Default,
    {
        // Zeros that come from the operating system need not be written.
        let mut buffer = self.take(n, |n| vec![T::default(); n]);
        buffer.resize(n, T::default());
        buffer
    }

    /// `n` copies of a value.
    pub fn filled(&self, n: usize, value: T) -> Buffer<T>
    where
        T: Clone,
    {
        let mut buffer = self.empty(n);
        buffer.resize(n, value);
        buffer
    }

    fn take(&self, capacity: usize, new: impl FnOnce(usize) -> Vec<T>) -> Buffer<T> {
        let capacity = rounded_up(capacity);
        let mut ready = locked(&self.0);
        let fits = |data: &Vec<T>| rounded_down(data.capacity()) == capacity;
        let me = rayon::current_thread_index();
        let mine = |(user, data): &(User, Vec<T>)| *user == me && fits(data);
        let anyone = |(_, data): &(User, Vec<T>)| fits(data);
        let place = ready.iter().rposition(mine);
        let place = place.or_else(|| ready.iter().rposition(anyone));
        let found = place.map(|i| ready.swap_remove(i).1);
        drop(ready);
        Buffer {
            data: found.unwrap_or_else(|| in_large_pages(new(capacity))),
            home: Arc::downgrade(&self.0),
        }
    }
}

/// The capacities in use: four between a power of two and the next, so that buffers of
/// nearly the same size serve for each other.
fn rounded_up(capacity: usize) -> usize {
    capacity.next_multiple_of((capacity.next_power_of_two() / 8).max(1))
}

fn rounded_down(capacity: usize) -> usize {
    let step = (1 << capacity.checked_ilog2().unwrap_or(0)) / 4;
    capacity - capacity % step.max(1)
}

fn locked<T>(ready: &Ready<T>) -> MutexGuard<'_, Vec<(User, Vec<T>)>> {
    // A thread that panicked leaves the list whole: each change to it is one call.
    ready.lock().unwrap_or_else(PoisonError::into_inner)
}

impl<T> Drop for Buffer<T> {
    fn drop(&mut self) {
        let Some(home) = self.home.upgrade() else {
            return;
        };
        if std::mem::needs_drop::<T>() {
            // The elements may themselves be buffers of the same home, so they go first.
            self.data.clear();
        }
        let data = std::mem::take(&mut self.data);
        if data.capacity() > 0 {
            locked(&home).push((rayon::current_thread_index(), data));
        }
    }
}

impl<T> Deref for Buffer<T> {
    type Target = Vec<T>;

    fn deref(&self) -> &Vec<T> {
        &self.data
    }
}

impl<T> DerefMut for Buffer<T> {
    fn deref_mut(&mut self) -> &mut Vec<T> {
        &mut self.data
    }
}

impl<'a, T> IntoIterator for &'a Buffer<T> {
    type Item = &'a T;
    type IntoIter = std::slice::Iter<'a, T>;

    fn into_iter(self) -> Self::IntoIter {
        self.data.iter()
    }
}

impl<T> Default for Buffer<T> {
    fn default() -> Self {
        Self::from(Vec::new())
    }
}

impl<T> From<Vec<T>> for Buffer<T> {
    fn from(data: Vec<T>) -> Self {
        Self {
            data,
            home: Weak::new(),
        }
    }
}

/// A copy comes from where the original does.
impl<T: Clone> Clone for Buffer<T> {
    fn clone(&self) -> Self {
        let Some(home) = self.home.upgrade() else {
            return Self::from(self.data.clone());
        };
        let mut copy = Buffers(home).empty(self.len());
        copy.extend_from_slice(self);
        copy
    }
}

impl<T: PartialEq> PartialEq for Buffer<T> {
    fn eq(&self, other: &Self) -> bool {
        self.data == other.data
    }
}
