//! Terms: what keys and biases add to the logits of a row, or multiply its weights with.

use super::Head;
use crate::Kind;
use crate::normaliser::Row;
use bochner_numerics::{Buffer, Real, elementary};
use std::ops::Range;

/// The terms of the keys of a block, kept from row to row while the reference stays.
pub(super) struct Terms<T> {
    reference: f64,
    numbers: Buffer<T>,
}

impl<T: Real> Terms<T> {
    pub(super) fn new(head: &Head<T>, keys: usize) -> Self {
        let size = if head.has_terms() { keys } else { 0 };
        Self {
            reference: f64::NAN,
            numbers: head.workspace.numbers.any(size),
        }
    }

    /// Returns what all rows with a reference add to their logits, or multiply their weights with: the same for all
    /// queries unless there is a bias.
    pub(super) fn shared(
        &mut self,
        head: &Head<T>,
        keys: &Range<usize>,
        reference: f64,
    ) -> Option<&[T]> {
        let weights = &head.key_weights?[keys.clone()];
        if self.reference != reference {
            self.reference = reference;
            head.relative(
                weights.iter().copied(),
                reference,
                &mut self.numbers[..keys.len()],
            );
        }
        Some(&self.numbers[..keys.len()])
    }

    /// Returns the factors of the weights of one row under a bias.
    pub(super) fn of_row(
        &mut self,
        head: &Head<T>,
        i: usize,
        keys: &Range<usize>,
        reference: f64,
    ) -> &[T] {
        self.reference = f64::NAN;
        let logs = head.row_terms(i, keys);
        let numbers = &mut self.numbers[..keys.len()];
        head.relative(logs.iter().copied(), reference, numbers);
        // The factor of a hidden pair could be infinite.
        head.rows.fill_hidden(i, keys, numbers, T::zero());
        numbers
    }
}

impl<T: Real> Head<'_, T> {
    pub(super) fn has_terms(&self) -> bool {
        self.key_weights.is_some() || self.bias.is_some()
    }

    /// Whether weights have factors that differ from row to row.
    pub(super) fn has_row_factors(&self) -> bool {
        self.bias.is_some() && self.normaliser.kind() == Kind::Weight
    }

    /// Writes terms relative to a reference: differences in units of the normaliser's base, or their exponentials.
    fn relative(&self, logs: impl Iterator<Item = f64>, reference: f64, out: &mut [T]) {
        // Only a key without weight can exceed the reference: one that is hidden, or whose similarity is zero. It is
        // clamped, because its exponential could overflow.
        let highest = if self.normaliser.is_quotient() {
            0.0
        } else {
            f64::INFINITY
        };
        let differences = logs.map(|u| (u - reference).min(highest));
        match self.normaliser.kind() {
            Kind::Logit => {
                // Never so low that a sum with a score would overflow.
                let (lowest, base) = (T::min_value().as_f64() / 4.0, self.normaliser.ln_base());
                let terms = out.iter_mut().zip(differences);
                terms.for_each(|(x, u)| *x = T::of((u / base).max(lowest)));
            }
            Kind::Weight => {
                let mut factors = self.workspace.pool().empty(out.len());
                factors.extend(differences);
                elementary::exp_in_place(&mut factors);
                let terms = out.iter_mut().zip(&factors);
                terms.for_each(|(x, &factor)| *x = T::of(factor));
            }
        }
    }

    /// The log-weights of some keys with the bias of a row.
    pub(super) fn row_terms(&self, i: usize, keys: &Range<usize>) -> Buffer<f64> {
        let mut bias = self.workspace.numbers.filled(keys.len(), T::zero());
        if let Some(all) = self.bias {
            all.add_to(i, keys.clone(), T::one(), &mut bias);
        }
        let weights = self.key_weights.map(|all| &all[keys.clone()]);
        let mut terms = self.workspace.pool().empty(keys.len());
        let both = bias.iter().enumerate();
        terms.extend(both.map(|(j, b)| b.as_f64() + weights.map_or(0.0, |all| all[j])));
        terms
    }

    /// Writes the state of rows that have met no key.
    pub(super) fn start_rows(&self, queries: Range<usize>, rows: &mut [Row<T>]) {
        rows.fill(Row::new(0.0));
        if !self.normaliser.is_quotient() {
            // Weights are not relative to anything.
        } else if self.has_row_factors() {
            for (i, row) in queries.zip(&mut *rows) {
                row.reference = self.largest_term(i, |_| true);
            }
        } else if let Some(weights) = self.key_weights {
            match self.rows.keeps_prefixes() {
                true => self.start_prefixes(weights, queries, rows),
                false => {
                    for (i, row) in queries.zip(&mut *rows) {
                        row.reference = self.largest_term(i, |_| true);
                    }
                }
            }
        }
        if let Some(sink) = self.sink {
            for row in rows {
                self.add_sink(sink, row);
            }
        }
    }

    pub(super) fn add_sink(&self, sink: f64, row: &mut Row<T>) {
        let score = self.sink_score(sink, row);
        self.normaliser.add_sink(row, score);
    }

    /// The score of the sink relative to a row's reference.
    pub(super) fn sink_score(&self, sink: f64, row: &Row<T>) -> T {
        T::of((sink - row.reference) / self.normaliser.ln_base())
    }

    /// The references of rows that keep all keys before limits which never decrease: one running maximum serves all.
    fn start_prefixes(&self, weights: &[f64], queries: Range<usize>, rows: &mut [Row<T>]) {
        let (mut largest, mut seen) = (f64::NEG_INFINITY, 0);
        for (i, row) in queries.zip(rows) {
            let limit = self.rows.range(i).end.min(weights.len());
            let new = &weights[seen.min(limit)..limit];
            largest = new.iter().copied().fold(largest, f64::max);
            seen = limit;
            row.reference = finite(largest);
        }
    }

    /// The largest log-weight, with the bias where factors have one, of the keys that a row keeps and that count.
    pub(super) fn largest_term(&self, i: usize, counts: impl Fn(usize) -> bool) -> f64 {
        let keys = self.rows.range(i);
        let kept = keys.clone().filter(|&j| self.rows.keeps(i, j) && counts(j));
        let largest = match (self.has_row_factors(), self.key_weights) {
            (false, None) => 0.0,
            (false, Some(weights)) => kept.map(|j| weights[j]).fold(f64::NEG_INFINITY, f64::max),
            (true, _) => {
                let terms = self.row_terms(i, &keys);
                kept.map(|j| terms[j - keys.start])
                    .fold(f64::NEG_INFINITY, f64::max)
            }
        };
        finite(largest)
    }
}

/// Zero in place of the reference of a row without keys.
fn finite(reference: f64) -> f64 {
    match reference == f64::NEG_INFINITY {
        true => 0.0,
        false => reference,
    }
}
