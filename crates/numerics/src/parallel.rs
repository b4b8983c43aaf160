//! Splitting work over rayon's current pool.
//!
//! The caller decides the pieces by the problem's shape alone, and results come back in order. A thread that waits for
//! the others of its section may take up other work meanwhile, so a caller must not hold a lock across a parallel
//! section. This module never builds a pool: install your own with `rayon::ThreadPool::install`, or rayon starts its
//! global one, with a thread a core.
//!
//! A thread outside the pool sleeps while the pool works for it and is woken for every result, which slows short
//! computations. A program avoids this by making its main thread part of the pool:
//! `rayon::ThreadPoolBuilder::new().use_current_thread().build_global()`.

use crate::operations::Scope;
use crate::{Real, elementary};
use rayon::Yield;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// Runs `f` while the other threads of the current pool stay awake between its parallel sections: for a
/// training step, or other work with many short sections.
///
/// A sleeping thread takes tens of microseconds to wake, and more on a virtual machine. One that
/// finds nothing to do for five milliseconds sleeps after all. The price is the processor's time,
/// which other programs get all the same if they ask for it. Results do not change.
///
/// ```
/// use bochner_numerics::parallel::{awake, map};
///
/// let sums = awake(|| (0..3).map(|_| map(4, |i| i * i).iter().sum()).collect::<Vec<usize>>());
/// assert_eq!(sums, [14, 14, 14]);
/// ```
pub fn awake<R>(f: impl FnOnce() -> R) -> R {
    let over = AtomicBool::new(false);
    rayon::in_place_scope(|scope| {
        let _over = SetWhenDropped(&over);
        for _ in 1..rayon::current_num_threads() {
            scope.spawn(|_| _ = look_for_work(&over));
        }
        f()
    })
}

/// The time for which a thread looks for work in vain.
///
/// Without a limit two callers could deadlock: a thread that looks for work for one of them may, further
/// down its own stack, hold unfinished work that the other waits for.
const PATIENCE: Duration = Duration::from_millis(5);

/// Looks for work until the flag is set or there was none for a while; returns how often it looked.
fn look_for_work(over: &AtomicBool) -> usize {
    let (mut last, mut looks) = (Instant::now(), 0);
    while !over.load(Ordering::Relaxed) {
        looks += 1;
        match rayon::yield_now() {
            Some(Yield::Executed) => last = Instant::now(),
            _ if last.elapsed() >= PATIENCE => break,
            _ => thread::yield_now(),
        }
    }
    looks
}

/// A flag that is set after a panic too.
struct SetWhenDropped<'a>(&'a AtomicBool);

impl Drop for SetWhenDropped<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// `[f(0), f(1), ..., f(n - 1)]`, computed on the current pool; a single piece of work stays on the
/// calling thread.
pub fn map<R: Send>(n: usize, f: impl Fn(usize) -> R + Send + Sync) -> Vec<R> {
    let mut results = Vec::new();
    map_into(n, f, &mut results);
    results
}

/// [`map`] into memory that is there already.
pub fn map_into<R: Send>(n: usize, f: impl Fn(usize) -> R + Send + Sync, results: &mut Vec<R>) {
    map_pieces((), n, |(), _, _| ((), ()), |i, ()| f(i), results);
}

/// Calls `f(i, piece)` for `count` pieces of `whole`, on the current pool: for pieces of several
/// slices at once, or of different sizes.
///
/// `split(rest, i, j)` cuts what begins with piece `i` before piece `j`. Allocates nothing.
pub fn for_each_piece<W: Send>(
    whole: W,
    count: usize,
    split: impl Fn(W, usize, usize) -> (W, W) + Sync,
    f: impl Fn(usize, W) + Sync,
) {
    match count {
        0 => {}
        1 => f(0, whole),
        _ => {
            let scope = Scope::current();
            halves(whole, 0..count, &split, &|i, piece| {
                let _counted = scope.enter();
                f(i, piece);
            });
        }
    }
}

/// [`for_each_piece`] whose results replace what the vector holds, in order; a panic leaves it empty.
#[allow(unsafe_code)]
fn map_pieces<W: Send, R: Send>(
    whole: W,
    count: usize,
    split: impl Fn(W, usize, usize) -> (W, W) + Sync,
    f: impl Fn(usize, W) -> R + Sync,
    results: &mut Vec<R>,
) {
    results.clear();
    results.reserve_exact(count);
    let slots = &mut results.spare_capacity_mut()[..count];
    for_each_piece(
        (whole, slots),
        count,
        |(rest, slots), i, j| {
            let (piece, rest) = split(rest, i, j);
            let (now, later) = slots.split_at_mut(j - i);
            ((piece, now), (rest, later))
        },
        |i, (piece, slots)| _ = slots[0].write(f(i, piece)),
    );
    // SAFETY: piece i, of which there are `count`, wrote slot i; had one panicked, this would not be reached.
    unsafe { results.set_len(count) };
}

fn halves<W: Send>(
    whole: W,
    pieces: Range<usize>,
    split: &(dyn Fn(W, usize, usize) -> (W, W) + Sync),
    f: &(dyn Fn(usize, W) + Sync),
) {
    if pieces.len() == 1 {
        return f(pieces.start, whole);
    }
    let middle = pieces.start.midpoint(pieces.end);
    let (left, right) = split(whole, pieces.start, middle);
    // A closure that might be called twice cannot give its half away but once.
    let (mut left, mut right) = (Some(left), Some(right));
    let go_on = |half: &mut Option<W>, pieces| {
        if let Some(half) = half.take() {
            halves(half, pieces, split, f);
        }
    };
    both(&mut || go_on(&mut left, pieces.start..middle), &mut || {
        go_on(&mut right, middle..pieces.end)
    });
}

/// [`rayon::join`] of any two closures, compiled once: rayon's generic functions for each closure were a third of
/// what there was to compile in the crates that call this module.
fn both(left: &mut (dyn FnMut() + Send), right: &mut (dyn FnMut() + Send)) {
    rayon::join(left, right);
}

/// Calls `f` with each item, on the current pool: for items that hold pieces to be written to.
pub fn for_each<I: Send>(items: Vec<I>, f: impl Fn(I) + Send + Sync) {
    let mut items: Vec<_> = items.into_iter().map(Some).collect();
    for_each_chunk(&mut items, 1, |_, item| {
        if let Some(item) = item[0].take() {
            f(item);
        }
    });
}

/// Calls `f(i, piece)` for the consecutive pieces of `data`, each of `size` elements (the last may
/// be shorter).
///
/// # Panics
/// If `size` is zero.
pub fn for_each_chunk<T: Send>(
    data: &mut [T],
    size: usize,
    f: impl Fn(usize, &mut [T]) + Send + Sync,
) {
    let count = data.len().div_ceil(size);
    for_each_piece(data, count, |rest, i, j| chunks(rest, size, i, j), f);
}

fn chunks<T>(rest: &mut [T], size: usize, i: usize, j: usize) -> (&mut [T], &mut [T]) {
    rest.split_at_mut((j - i) * size)
}

/// [`for_each_chunk`] that returns the results, in order.
///
/// # Panics
/// If `size` is zero.
pub fn map_chunks<T: Send, R: Send>(
    data: &mut [T],
    size: usize,
    f: impl Fn(usize, &mut [T]) -> R + Send + Sync,
) -> Vec<R> {
    let (mut results, n) = (Vec::new(), data.len().div_ceil(size));
    let split = |rest, i, j| chunks(rest, size, i, j);
    map_pieces(data, n, split, f, &mut results);
    results
}

/// Numbers that one thread looks at.
const PIECE: usize = if cfg!(miri) { 1 << 5 } else { 1 << 16 };

/// [`elementary::max_norm`], by all threads.
pub fn max_norm<T: Real>(x: &[T]) -> T {
    if x.len() <= PIECE {
        return elementary::max_norm(x);
    }
    let piece = |i| elementary::max_norm(&x[i * PIECE..x.len().min((i + 1) * PIECE)]);
    elementary::max_norm(&map(x.len().div_ceil(PIECE), piece))
}
