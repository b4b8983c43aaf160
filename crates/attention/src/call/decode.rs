//! A call whose positions come after those of earlier ones.

use super::prepare::{Parts, Scaling};
use super::units::{divided, multiply_finite};
use super::{Call, slab};
use crate::engine::linear_time::{LinearTime, Sums, follow};
use crate::engine::{Cache, Following, Head, Level, OutputRows, RowStatistics, Rows};
use crate::{Form, Mask, Settings, Similarity};
use bochner_numerics::memory::overwritten_by;
use bochner_numerics::scaling::largest;
use bochner_numerics::{Buffer, Mat, Real};
use ndarray::ArrayView4;

/// What one head remembers of the positions so far.
#[derive(Clone)]
#[expect(
    clippy::large_enum_variant,
    reason = "one a head, beside all that it points to"
)]
pub(crate) enum Memory<T> {
    /// Their keys and values.
    Pairs(Cache<T>),
    /// Sums over them, once there are any, and how many there are.
    Sums(Option<Sums<T>>, usize),
}

impl<T: Real> Memory<T> {
    /// The number of positions.
    pub(crate) fn length(&self) -> usize {
        match self {
            Self::Pairs(cache) => cache.length(),
            Self::Sums(_, length) => *length,
        }
    }

    /// The number of numbers held.
    pub(crate) fn size(&self) -> usize {
        match self {
            Self::Pairs(cache) => cache.size(),
            Self::Sums(sums, _) => sums.as_ref().map_or(0, Sums::size),
        }
    }
}

impl<T: Real> Call<'_, '_, T> {
    /// Remembers the positions of head `h` that are not padding; with an output `[n, dv]`, attends from
    /// them to all so far, and writes zeros for the others.
    pub(crate) fn decode(&self, h: usize, memory: &mut Memory<T>, output: Option<&mut [T]>) {
        let (added, width) = (self.kept(h), self.value_width());
        let output = output.map(|output| {
            let (attended, padding) = output.split_at_mut(added * width);
            padding.fill(T::zero());
            attended
        });
        if added == 0 {
            return;
        }
        match memory {
            Memory::Pairs(cache) => self.decode_pairs(h, cache, output),
            Memory::Sums(sums, length) => {
                *length += added;
                self.decode_sums(h, sums, output);
            }
        }
    }

    fn decode_pairs(&self, h: usize, cache: &mut Cache<T>, output: Option<&mut [T]>) {
        let added = self.kept(h);
        let prepared = self.prepared(h, self.parts_after(h, cache.largest()));
        let (left, right) = self.factors(h, &prepared.operands);
        let keys = match self.settings.similarity {
            Similarity::Squared { .. } => None,
            Similarity::Rbf | Similarity::Linear => Some(self.kept_keys(h)),
            Similarity::Expsin { .. } => Some(right),
        };
        cache.append(Following {
            keys,
            right,
            values: self.kept_values(h),
            score: &prepared.score,
            finite: prepared.finite,
        });
        let Some(output) = output else { return };
        let rows = last_rows(added, cache.length());
        let queries = slab(self.q.view(), h).row_range(0..added);
        if self.is_extreme(queries, cache) {
            return self.attend_anew(queries, cache, output);
        }
        let left = left.row_range(0..added);
        let head = cache.head(left, rows, self.blocks, self.workspace);
        let unit = self.unit_of_values(cache.largest_value(), cache.length());
        attend_from(head, unit, output);
    }

    fn decode_sums(&self, h: usize, sums: &mut Option<Sums<T>>, output: Option<&mut [T]>) {
        let added = self.kept(h);
        let prepared = self.prepared(h, self.parts_after(h, &[]));
        let (left, right) = self.factors(h, &prepared.operands);
        let queries = if output.is_some() { added } else { 0 };
        let head = Head {
            left: left.row_range(0..queries),
            right,
            rows: last_rows(queries, added),
            ..self.head(h, &prepared)
        };
        let before = sums.as_ref().map_or(Level::NONE, Sums::reference);
        let plan = head.plan(1).expect("checked with the settings");
        let plan = plan.after(before);
        let head = LinearTime::new(head, &plan).expect("checked with the settings");
        let sums = sums.get_or_insert_with(|| head.zeros());
        let mut statistics = self.statistics(queries);
        let statistics = &mut statistics;
        match output {
            Some(output) => overwritten_by(output, |output| {
                follow(head, sums, Some(OutputRows { output, statistics }));
            }),
            None => follow(head, sums, None),
        }
    }

    /// Of rows that have met no key.
    pub(crate) fn statistics(&self, rows: usize) -> Buffer<RowStatistics<T>> {
        let statistics = &self.workspace.statistics;
        statistics.filled(rows, RowStatistics::new(Level::NONE))
    }

    /// As [`Call::prepare`], for positions after others whose keys have `largest` as the largest
    /// number of each coordinate.
    fn parts_after(&self, h: usize, largest: &[T]) -> Parts<T> {
        match &self.settings.similarity {
            // In the units of usual keys: those that are not are attended to anew.
            Similarity::Rbf => {
                let scaling = Scaling::default();
                ((None, None), scaling, self.exponential_score(h, scaling))
            }
            Similarity::Expsin { period } => self.periodic(h, *period),
            Similarity::Linear => self.linear(h, largest),
            Similarity::Squared { points, floor } => self.squared(h, points, *floor),
        }
    }

    /// Whether products of these queries with the keys so far could overflow.
    fn is_extreme(&self, queries: Mat<T>, cache: &Cache<T>) -> bool {
        let numbers = (largest(queries.data()), largest(cache.largest()));
        matches!(self.settings.similarity, Similarity::Rbf)
            && Scaling::of(numbers, self.width, self.is_biased()) != Scaling::default()
    }

    /// Attention from the last positions in units that suit all keys.
    fn attend_anew(&self, queries: Mat<T>, cache: &Cache<T>, output: &mut [T]) {
        let settings = Settings {
            mask: Mask::CAUSAL,
            ..*self.settings
        };
        let (q, k, v) = (array(queries), array(cache.keys()), array(cache.values()));
        let call = Call::new(q, k, v, &settings, self.workspace);
        let call = call.expect("checked position by position");
        let prepared = call.prepare(Form::Quadratic);
        let head = call.head(0, &prepared[0]);
        let packed = head.pack();
        let unit = call.unit_of_values(cache.largest_value(), call.keys);
        attend_from(head.with(&packed), unit, output);
    }
}

/// The last positions of a causal sequence as its rows.
fn last_rows(queries: usize, keys: usize) -> Rows<'static> {
    Rows {
        mask: Mask::CAUSAL,
        example: 0,
        queries,
        keys,
    }
}

/// Attention from all queries of a head, with values divided by a power of two on the way.
fn attend_from<T: Real>(head: Head<T>, unit: i32, output: &mut [T]) {
    let values = array(head.values);
    let values = divided(values, unit);
    let values = values.as_slice().expect("row-major");
    let (rows, width) = head.values.shape();
    let head = Head {
        values: Mat::new(values, rows, width),
        ..head
    };
    let none = RowStatistics::new(Level::NONE);
    let mut statistics = head.workspace.statistics.filled(head.rows.queries, none);
    let statistics = &mut statistics;
    overwritten_by(output, |output| {
        head.forward(0, OutputRows { output, statistics });
    });
    multiply_finite(output, unit);
}

/// A matrix as the only head of the only example.
fn array<T: Real>(x: Mat<'_, T>) -> ArrayView4<'_, T> {
    let (rows, width) = x.shape();
    ArrayView4::from_shape((1, 1, rows, width), x.data()).expect("row-major")
}
