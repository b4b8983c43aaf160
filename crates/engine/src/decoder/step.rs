//! One step of the heads that share a cache.

use super::Cache;
use super::cache::{self, PairsCache, last_rows};
use crate::call::{Call, Inputs};
use crate::linear::squares;
use crate::settings::Kernel;
use crate::{Error, Shape, features, scan};
use bochner_numerics::Real;
use std::ops::Range;
use std::sync::{Mutex, PoisonError};

/// The error of the first of some tasks, whatever their order.
#[derive(Default)]
pub(super) struct FirstFault(Mutex<Option<(usize, Error)>>);

impl FirstFault {
    /// Notes the result of task `n`.
    pub(super) fn note(&self, n: usize, result: Result<(), Error>) {
        if let Err(error) = result {
            let mut first = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            if first.as_ref().is_none_or(|(other, _)| n < *other) {
                *first = Some((n, error));
            }
        }
    }

    pub(super) fn result(self) -> Result<(), Error> {
        let first = self.0.into_inner().unwrap_or_else(PoisonError::into_inner);
        first.map_or(Ok(()), |(_, error)| Err(error))
    }
}

/// Some caches, and the outputs of their heads.
pub(super) type Heads<'a, T> = (&'a mut [Cache<T>], &'a mut [T]);

pub(super) fn split<'a, T: Real>(
    (caches, output): Heads<'a, T>,
    count: usize,
    size: usize,
) -> (Heads<'a, T>, Heads<'a, T>) {
    let (caches, more_caches) = caches.split_at_mut(count);
    let (output, more_output) = output.split_at_mut(count * size);
    ((caches, output), (more_caches, more_output))
}

/// Adds the positions of some heads, which share a cache, that are not padding; with an output `[n, dv]` of each
/// head, attends from them to all so far, and writes zeros for the others. Without causality there are no positions to
/// add, and all queries attend to those so far.
pub(super) fn decode<T: Real>(
    call: &Call<T>,
    heads: Range<usize>,
    cache: &mut Cache<T>,
    mut output: Option<&mut [T]>,
) -> Result<(), Error> {
    let at = call.at(heads.start);
    let Shape {
        queries: all,
        value_width,
        ..
    } = call.shape;
    let [q, k, v] = at.sequence_of(output.is_some())?;
    let (added, queries) = (k.shape().0, q.shape().0);
    let visible = cache.length() + added > 0;
    let attending = usize::from(visible) * queries * value_width;
    if let Some(output) = &mut output {
        output
            .chunks_exact_mut(all * value_width)
            .for_each(|head| head[attending..].fill(T::zero()));
    }
    if !visible || (added == 0 && attending == 0) {
        return Ok(());
    }
    let inputs = Inputs { q, k, v };
    match (cache, &call.settings.kernel) {
        (Cache::Pairs(PairsCache::Positions(positions)), Kernel::Pairs(kernel)) => {
            cache::decode(
                kernel.as_ref(),
                (call, heads, &inputs, queries),
                positions,
                output,
            )?;
        }
        (Cache::Pairs(PairsCache::Sums(sums, length)), Kernel::Pairs(kernel)) => {
            *length += added;
            let mask = call.settings.mask.without_lengths();
            let output = output.map(|output| &mut output[..attending]);
            let queries = if output.is_some() { queries } else { 0 };
            let rows = last_rows(&at, &mask, queries, added, None);
            squares::decode(kernel.as_ref(), &at, &inputs, rows, sums, output);
        }
        (Cache::Features(cache), Kernel::Features(map)) => {
            let output = output.map(|output| &mut output[..attending]);
            let queries = if output.is_some() { queries } else { 0 };
            features::decode(map.as_ref(), at, inputs, queries, cache, output)?;
        }
        (Cache::Scan(state, length), Kernel::Scan(scan)) => {
            scan::decode(scan.as_ref(), at, &inputs, (state, length), output)?;
        }
        _ => unreachable!("caches are made for the kernel"),
    }
    Ok(())
}
