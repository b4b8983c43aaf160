//! Features of some rows.

use super::Head;
use crate::lanes::max_of;
use crate::{FeatureForm, Side};
use bochner_numerics::instructions::{self, Arithmetic, Task, exp2};
use bochner_numerics::operations::record;
use bochner_numerics::{Buffer, Buffers, Mat, Operations, Real};
use std::f64::consts::LOG2_E;
use std::ops::Range;

/// The features of some rows.
#[derive(Clone, Debug)]
pub(super) struct Block<T> {
    pub(super) rows: usize,
    side: Side,
    /// `[rows, d]`.
    x: Buffer<T>,
    /// `[rows, features]`; empty if all are one.
    values: Buffer<T>,
    /// `[rows, features]`; empty if all are zero.
    pub(super) logs: Buffer<T>,
    pub(super) features: usize,
}

/// Numbers of one feature each that are added to the logarithms, or subtracted.
#[derive(Clone, Copy)]
pub(super) enum Shift<'a, T> {
    None,
    Plus(&'a [T]),
    Minus(&'a [T]),
}

/// Multiples of features: exponentials relative to some reference, and their products with the values.
#[derive(Clone, Debug)]
pub(super) struct Multiples<T> {
    exponentials: Buffer<T>,
    products: Option<Buffer<T>>,
}

impl<T: Real> Multiples<T> {
    pub(super) fn numbers(&self) -> &[T] {
        self.products.as_ref().unwrap_or(&self.exponentials)
    }

    /// Adds the gradient along the features over their exponentials, given that along these multiples.
    pub(super) fn pull(&self, cotangent: &[T], gradient: &mut [T]) {
        record(Operations::multiply_adds(cotangent.len()));
        match self.exponentials.is_empty() {
            true => crate::lanes::add(gradient, cotangent),
            false => {
                let all = gradient.iter_mut().zip(&self.exponentials).zip(cotangent);
                all.for_each(|((sum, &e), &c)| *sum += e * c);
            }
        }
    }

    /// Appends those of other rows.
    pub(super) fn append(&mut self, others: &Self) {
        self.exponentials.extend_from_slice(&others.exponentials);
        if let (Some(own), Some(more)) = (&mut self.products, &others.products) {
            own.extend_from_slice(more);
        }
    }

    /// Drops all rows of `features` numbers but the first.
    pub(super) fn truncate(&mut self, rows: usize, features: usize) {
        self.exponentials.truncate(rows * features);
        if let Some(products) = &mut self.products {
            products.truncate(rows * features);
        }
    }
}

impl<T: Real> Head<'_, T> {
    /// The features of some queries.
    pub(super) fn of_queries(&self, queries: Range<usize>) -> Block<T> {
        self.of_side(Side::Queries, self.inputs.q.row_range(queries))
    }

    /// The features of some keys.
    pub(super) fn of_keys(&self, keys: Range<usize>) -> Block<T> {
        self.of_side(Side::Keys, self.inputs.k.row_range(keys))
    }

    fn of_side(&self, side: Side, x: Mat<T>) -> Block<T> {
        let (rows, count, form) = (x.shape().0, self.map.features(), self.map.form());
        let numbers = self.numbers();
        let room = |is_there| numbers.any(if is_there { rows * count } else { 0 });
        let mut values = room(form != FeatureForm::Exponentials);
        let mut logs = room(form != FeatureForm::Values);
        self.map
            .map(self.at.rows_of(side, x), &mut values, &mut logs);
        let mut copy = numbers.empty(x.data().len());
        copy.extend_from_slice(x.data());
        Block {
            rows,
            side,
            x: copy,
            values,
            logs,
            features: count,
        }
    }

    /// Adds the gradients along a block's rows to `out`, and those along the parameters, given those along its features
    /// over their exponentials.
    pub(super) fn pull_block(
        &self,
        block: &Block<T>,
        gradient: &[T],
        out: &mut [T],
        parameters: &mut [T],
    ) {
        let x = Mat::new(&block.x, block.rows, block.x.len() / block.rows.max(1));
        let rows = self.at.rows_of(block.side, x);
        self.map
            .pull(rows, &block.values, gradient, out, parameters);
    }
}

impl<T: Real> Block<T> {
    /// The number of features of all rows.
    pub(super) fn len(&self) -> usize {
        self.rows * self.features
    }

    /// The number of numbers.
    pub(super) fn size(&self) -> usize {
        self.x.len() + self.logs.len() + self.values.len()
    }

    /// Appends the rows of another block.
    pub(super) fn append(&mut self, other: &Self) {
        self.rows += other.rows;
        self.x.extend_from_slice(&other.x);
        self.logs.extend_from_slice(&other.logs);
        self.values.extend_from_slice(&other.values);
    }

    /// Drops all rows but the first.
    pub(super) fn truncate(&mut self, rows: usize) {
        for numbers in [&mut self.x, &mut self.logs, &mut self.values] {
            let per_row = numbers.len() / self.rows;
            numbers.truncate(per_row * rows);
        }
        self.rows = rows;
    }

    /// The largest shifted logarithm of each row.
    pub(super) fn tops(&self, shift: Shift<T>, numbers: &Buffers<T>) -> Buffer<T> {
        let mut tops = numbers.filled(self.rows, T::zero());
        if !self.logs.is_empty() {
            instructions::run(Tops {
                block: self,
                shift,
                tops: &mut tops,
            });
        }
        tops
    }

    /// Raises numbers of one feature each to the largest logarithms of any row.
    pub(super) fn raise(&self, references: &mut [T]) {
        match self.logs.is_empty() {
            true => references.fill(T::zero()),
            false => instructions::run(Raise {
                logs: &self.logs,
                references,
            }),
        }
    }

    /// Returns the features relative to a shift and, if there are any, to the levels of the rows. Apart from values and
    /// rounding they are at most 1.
    pub(super) fn relative(
        &self,
        shift: Shift<T>,
        levels: &[T],
        numbers: &Buffers<T>,
    ) -> Multiples<T> {
        let mut exponentials = numbers.any(self.logs.len());
        if !self.logs.is_empty() {
            record(Operations::exponentials(self.logs.len()));
            instructions::run(Relative {
                block: self,
                shift,
                levels,
                out: &mut exponentials,
            });
        }
        let products = (!self.values.is_empty()).then(|| {
            let mut products = numbers.empty(self.values.len());
            products.extend_from_slice(&self.values);
            if !exponentials.is_empty() {
                products
                    .iter_mut()
                    .zip(&exponentials)
                    .for_each(|(x, &e)| *x *= e);
            }
            products
        });
        Multiples {
            exponentials,
            products,
        }
    }
}

struct Tops<'a, T> {
    block: &'a Block<T>,
    shift: Shift<'a, T>,
    tops: &'a mut [T],
}

impl<T: Real> Tops<'_, T> {
    #[inline(always)]
    fn each(self, by: Option<&[T]>, shifted: impl Fn(T, T) -> T + Copy) {
        let rows = self.block.logs.chunks_exact(self.block.features);
        for (logs, top) in rows.zip(self.tops) {
            *top = max_of(logs, by.unwrap_or(logs), shifted);
        }
    }
}

impl<T: Real> Task for Tops<'_, T> {
    #[inline(always)]
    fn run<A: Arithmetic>(self, _: A) {
        match self.shift {
            Shift::None => self.each(None, |x, _| x),
            Shift::Plus(by) => self.each(Some(by), |x, by| x + by),
            Shift::Minus(by) => self.each(Some(by), |x, by| x - by),
        }
    }
}

struct Raise<'a, T> {
    logs: &'a [T],
    references: &'a mut [T],
}

impl<T: Real> Task for Raise<'_, T> {
    #[inline(always)]
    fn run<A: Arithmetic>(self, _: A) {
        for logs in self.logs.chunks_exact(self.references.len()) {
            for (reference, &x) in self.references.iter_mut().zip(logs) {
                *reference = if x > *reference { x } else { *reference };
            }
        }
    }
}

struct Relative<'a, T> {
    block: &'a Block<T>,
    shift: Shift<'a, T>,
    levels: &'a [T],
    out: &'a mut [T],
}

impl<T: Real> Relative<'_, T> {
    #[inline(always)]
    fn each<A: Arithmetic>(self, by: Option<&[T]>, shifted: impl Fn(T, T) -> T) {
        let (count, binary) = (self.block.features, T::of(LOG2_E));
        let rows = self
            .out
            .chunks_exact_mut(count)
            .zip(self.block.logs.chunks_exact(count));
        for (i, (out, logs)) in rows.enumerate() {
            let level = self.levels.get(i).copied().unwrap_or_default();
            for ((out, &x), &by) in out.iter_mut().zip(logs).zip(by.unwrap_or(logs)) {
                *out = exp2::<T, A>((shifted(x, by) - level) * binary);
            }
        }
    }
}

impl<T: Real> Task for Relative<'_, T> {
    #[inline(always)]
    fn run<A: Arithmetic>(self, _: A) {
        match self.shift {
            Shift::None => self.each::<A>(None, |x, _| x),
            Shift::Plus(by) => self.each::<A>(Some(by), |x, by| x + by),
            Shift::Minus(by) => self.each::<A>(Some(by), |x, by| x - by),
        }
    }
}
