//! Positions that come after those of earlier calls.

use super::RandomFeatures;
use super::head::{Head, Out};
use super::pairs::{Factors, Pairs, Row, Values};
use super::referenced_sums::Sums;
use crate::Form;
use crate::engine::decode::{first_seen, last_rows, queries};
use crate::engine::rescaling::{copy_or, divided, multiply_finite};
use crate::engine::scan::{self, Course, Scanned};
use crate::engine::{HeadAt, Memory, blocks};
use bochner_numerics::memory::remove_first;
use bochner_numerics::{Mat, Real, scaling};
use std::any::Any;

/// What one head remembers of the positions so far.
#[derive(Clone)]
pub(super) enum HeadMemory<T> {
    /// Their features and values.
    Pairs {
        keys: Vec<Factors<T>>,
        values: Vec<T>,
        /// The largest value, without its sign.
        largest_value: T,
        /// How many positions came before those that are held, a number of whole blocks.
        forgotten: usize,
        /// How many positions are held.
        length: usize,
    },
    /// Sums over them, and how many there are.
    Sums {
        sums: Option<Sums<T>>,
        length: usize,
    },
}

impl<T: Real> HeadMemory<T> {
    pub(super) fn new(form: Form) -> Self {
        match form {
            Form::LinearTime => Self::Sums {
                sums: None,
                length: 0,
            },
            _ => Self::Pairs {
                keys: Vec::new(),
                values: Vec::new(),
                largest_value: T::zero(),
                forgotten: 0,
                length: 0,
            },
        }
    }
}

impl<T: Real> Memory<T> for HeadMemory<T> {
    fn length(&self) -> usize {
        match self {
            Self::Pairs {
                forgotten, length, ..
            } => forgotten + length,
            Self::Sums { length, .. } => *length,
        }
    }

    fn first(&self) -> usize {
        match self {
            Self::Pairs { forgotten, .. } => *forgotten,
            Self::Sums { length, .. } => *length,
        }
    }

    fn size(&self) -> usize {
        match self {
            Self::Pairs { keys, values, .. } => {
                keys.iter().map(Factors::size).sum::<usize>() + values.len()
            }
            Self::Sums { sums, .. } => sums.as_ref().map_or(0, Sums::size),
        }
    }

    fn truncate(&mut self, to: usize) {
        let Self::Pairs {
            keys,
            values,
            largest_value,
            forgotten,
            length,
        } = self
        else {
            return;
        };
        let to = to.saturating_sub(*forgotten);
        if to < *length {
            values.truncate(values.len() / *length * to);
            *largest_value = scaling::largest(values);
            let size = keys[0].block.rows;
            keys.truncate(to.div_ceil(size));
            if let Some(last) = keys.last_mut() {
                last.truncate(to - (to - 1) / size * size);
            }
            *length = to;
        }
    }

    fn copy(&self) -> Box<dyn Memory<T>> {
        Box::new(self.clone())
    }

    fn copy_from(&mut self, other: &dyn Memory<T>) {
        let other: &dyn Any = other;
        match (self, other.downcast_ref().expect("of the same kernel")) {
            (
                Self::Sums {
                    sums: Some(own),
                    length,
                },
                Self::Sums {
                    sums: Some(sums),
                    length: others,
                },
            ) => {
                own.copy_from(sums);
                *length = *others;
            }
            (own, other) => own.clone_from(other),
        }
    }
}

/// Remembers the positions of a head that are not padding; with an output `[n, dv]`, attends from them
/// to all so far, and writes zeros for the others. Without causality there are no positions to remember,
/// and all queries attend to those so far.
pub(super) fn decode<T: Real>(
    kernel: &RandomFeatures<T>,
    at: &HeadAt<T>,
    memory: &mut HeadMemory<T>,
    mut output: Option<&mut [T]>,
) {
    let (added, width) = (at.kept(), at.arguments.value_width);
    if let Some(output) = &mut output {
        output.fill(T::zero());
    }
    let visible = memory.length() + added > 0;
    let queries = if visible && output.is_some() {
        queries(at)
    } else {
        0
    };
    let mask = at.rows().mask.without_lengths();
    let mut output = output.map(|output| &mut output[..queries * width]);
    let mut unit = 0;
    match memory {
        HeadMemory::Pairs {
            keys,
            values,
            largest_value,
            forgotten,
            length,
        } => {
            let (features, size) = (kernel.features(at), RandomFeatures::blocks(at.arguments));
            for position in 0..added {
                let own = at.keys().row_range(position..position + 1);
                let own = Factors::new(features.of(own), &features);
                match keys.last_mut().filter(|block| block.block.rows < size.keys) {
                    Some(block) => block.append(&own),
                    None => keys.push(own),
                }
            }
            values.extend_from_slice(at.values().data());
            *largest_value = largest_value.max(scaling::largest(at.values().data()));
            *length += added;
            if let Some(output) = &mut output {
                let mut rows = vec![Row::blind(); queries];
                let rows_of_mask = last_rows(at, &mask, queries, *length);
                unit = at.unit_of_values(*largest_value, *length, features.count());
                let values = Mat::new(values, *length, width);
                let copy = divided(values, unit, at.numbers());
                let values = copy_or(&copy, values);
                for own in blocks(0..queries, size.queries) {
                    let q =
                        Factors::new(features.of(at.queries().row_range(own.clone())), &features);
                    let output = &mut output[own.start * width..own.end * width];
                    let rows = &mut rows[own.clone()];
                    for (n, k) in keys.iter().enumerate() {
                        let seen = n * size.keys..n * size.keys + k.block.rows;
                        let pairs = Pairs {
                            features,
                            rows: rows_of_mask,
                            dropout: None,
                            first: (own.start, seen.start),
                        };
                        let values = Values::new(values.row_range(seen));
                        pairs.meet((&q, k), values, rows, output);
                    }
                    for (output, row) in output.chunks_exact_mut(width).zip(rows) {
                        row.normalise(output);
                    }
                }
            }
            let unseen = first_seen(&mask, *length);
            let gone = unseen / size.keys;
            if gone > 0 {
                let most = *length - unseen + 2 * size.keys;
                remove_first(keys, gone, most.div_ceil(size.keys));
                remove_first(values, gone * size.keys * width, most * width);
                *largest_value = scaling::largest(values);
                *forgotten += gone * size.keys;
                *length -= gone * size.keys;
            }
        }
        HeadMemory::Sums { sums, length } => {
            let (rows, heads) = (last_rows(at, &mask, queries, added), at.arguments.heads);
            let head = Head {
                queries: at.queries().row_range(0..queries),
                rows,
                course: Course::new(at.arguments.workspace, &rows, added, heads),
                ..kernel.head(at, at.values())
            };
            *length += added;
            let sums = sums.get_or_insert_with(|| head.zeros());
            let mut rows = vec![Row::blind(); queries];
            let rows = &mut rows[..];
            let out = output.as_deref_mut().filter(|_| queries > 0);
            scan::follow(&head, sums, out.map(|output| Out { output, rows }));
        }
    }
    if let Some(output) = output {
        multiply_finite(output, unit);
    }
}
