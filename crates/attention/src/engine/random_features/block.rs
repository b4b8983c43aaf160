//! Features of some rows, as logarithms.

use super::Frequencies;
use crate::engine::max_of;
use bochner_kernels::{AngleGradients, Logarithms, RandomFeatureMap};
use bochner_numerics::instructions::{self, Arithmetic, Task, exp2};
use bochner_numerics::operations::record;
use bochner_numerics::{Buffer, Buffers, Mat, MatMut, Operations, Real, matmul_in};
use std::f64::consts::LOG2_E;

/// How rows of one head become features.
#[derive(Clone, Copy)]
pub(super) struct Features<'a, T: Real> {
    pub(super) map: RandomFeatureMap,
    pub(super) frequencies: &'a Frequencies<T>,
    pub(super) numbers: &'a Buffers<T>,
}

/// The logarithms of the features of some rows.
#[derive(Clone)]
pub(super) struct Block<T> {
    pub(super) rows: usize,
    /// The rows times $d^{-1/4}$, `[rows, d]`.
    x: Buffer<T>,
    /// `[rows, features]`.
    pub(super) logs: Buffer<T>,
    /// What the exponentials are multiplied with, `[rows, features]`; empty if all are positive.
    pub(super) signs: Buffer<T>,
}

/// Numbers of one feature each that are added to the logarithms, or subtracted.
#[derive(Clone, Copy)]
pub(super) enum Shift<'a, T> {
    None,
    Plus(&'a [T]),
    Minus(&'a [T]),
}

/// Gradients along the angles and the logarithms of a block, to be added to.
pub(super) struct Pulled<T> {
    pub(super) angles: Buffer<T>,
    pub(super) logs: Buffer<T>,
}

/// The largest coordinate whose square, summed over a row, is well in range. Larger coordinates of queries and keys
/// are clamped to it.
fn largest_coordinate<T: Real>() -> T {
    T::max_value().sqrt() / T::of(1024.0)
}

impl<T: Real> Features<'_, T> {
    /// The number of features.
    pub(super) fn count(&self) -> usize {
        self.map.features(self.frequencies.count())
    }

    /// $d^{-1/4}$.
    pub(super) fn scale(&self) -> T {
        T::of((self.frequencies.width() as f64).powf(-0.25))
    }

    /// The features of some queries or keys.
    pub(super) fn of(&self, x: Mat<T>) -> Block<T> {
        let (rows, count) = (x.shape().0, self.count());
        let mut scaled = self.numbers.any(x.data().len());
        instructions::run(Scale {
            x: x.data(),
            by: self.scale(),
            out: &mut scaled,
        });
        let mut logs = self.numbers.any(rows * count);
        let signed = if self.map.is_positive() {
            0
        } else {
            logs.len()
        };
        let mut signs = self.numbers.any(signed);
        let mut out = Logarithms {
            logs: &mut logs,
            signs: &mut signs,
        };
        let x = Mat::new(&scaled, rows, x.shape().1);
        self.map
            .write_logarithms(x, &self.frequencies.transposed, &mut out);
        Block {
            rows,
            x: scaled,
            logs,
            signs,
        }
    }

    /// No gradients yet, of a block of `rows`.
    pub(super) fn pulled(&self, rows: usize) -> Pulled<T> {
        let zeros = |n| self.numbers.filled(n, T::zero());
        Pulled {
            angles: zeros(rows * self.frequencies.count()),
            logs: zeros(rows),
        }
    }

    /// Adds what a cotangent of multiples of the features comes to.
    pub(super) fn pull_back(
        &self,
        block: &Block<T>,
        multiples: &[T],
        cotangent: &[T],
        pulled: &mut Pulled<T>,
    ) {
        record(Operations::multiply_adds(2 * multiples.len()));
        let Pulled { angles, logs } = pulled;
        self.map.pull_back(
            (&block.logs, multiples),
            cotangent,
            AngleGradients { angles, logs },
        );
    }

    /// [`Features::pull_back`] of one row.
    pub(super) fn pull_back_row(
        &self,
        (block, i): (&Block<T>, usize),
        multiples: &[T],
        cotangent: &[T],
        Pulled { angles, logs }: &mut Pulled<T>,
    ) {
        let (features, count) = (self.count(), self.frequencies.count());
        let out = AngleGradients {
            angles: &mut angles[i * count..(i + 1) * count],
            logs: &mut logs[i..i + 1],
        };
        let own = &block.logs[i * features..(i + 1) * features];
        self.map.pull_back((own, multiples), cotangent, out);
    }

    /// Adds the gradients along a block's rows to `out`, and those along the frequencies.
    pub(super) fn finish(
        &self,
        block: &mut Block<T>,
        pulled: &mut Pulled<T>,
        out: &mut [T],
        along_frequencies: &mut [T],
    ) {
        let (count, width) = (self.frequencies.count(), self.frequencies.width());
        let Pulled { angles, logs } = pulled;
        let given = AngleGradients { angles, logs };
        let x = Mat::new(&block.x, block.rows, width);
        let mut along = self.numbers.filled(block.x.len(), T::zero());
        (self.map).add_input_gradients(x, &self.frequencies.rows, &given, &mut along);
        let scale = self.scale();
        out.iter_mut()
            .zip(along.iter())
            .for_each(|(out, &g)| *out += scale * g);
        if !along_frequencies.is_empty() {
            // A row that had no influence may hold anything, which zeros would not hide in a product.
            let rows = block
                .x
                .chunks_exact_mut(width)
                .zip(angles.chunks_exact(count));
            for (x, angles) in rows {
                if x.iter().any(|x| !x.is_finite()) && angles.iter().all(|&a| a == T::zero()) {
                    x.fill(T::zero());
                }
            }
            let x = Mat::new(&block.x, block.rows, width);
            let angles = Mat::new(angles, block.rows, count).t();
            let target = MatMut::new(along_frequencies, count, width);
            matmul_in(self.numbers, T::one(), angles, x, T::one(), target);
        }
    }
}

impl<T: Real> Block<T> {
    pub(super) fn count(&self) -> usize {
        self.logs.len() / self.rows.max(1)
    }

    /// The number of numbers.
    pub(super) fn size(&self) -> usize {
        self.x.len() + self.logs.len() + self.signs.len()
    }

    /// Appends the rows of another block.
    pub(super) fn append(&mut self, other: &Self) {
        self.rows += other.rows;
        self.x.extend_from_slice(&other.x);
        self.logs.extend_from_slice(&other.logs);
        self.signs.extend_from_slice(&other.signs);
    }

    /// Forgets all rows but the first.
    pub(super) fn truncate(&mut self, rows: usize) {
        for numbers in [&mut self.x, &mut self.logs, &mut self.signs] {
            let per_row = numbers.len() / self.rows;
            numbers.truncate(per_row * rows);
        }
        self.rows = rows;
    }

    /// The largest shifted logarithm of each row.
    pub(super) fn tops(&self, shift: Shift<T>, numbers: &Buffers<T>) -> Buffer<T> {
        let mut tops = numbers.any(self.rows);
        instructions::run(Tops {
            block: self,
            shift,
            tops: &mut tops,
        });
        tops
    }

    /// Raises numbers of one feature each to the largest logarithms of any row.
    pub(super) fn raise(&self, references: &mut [T]) {
        instructions::run(Raise {
            logs: &self.logs,
            references,
        });
    }

    /// The features relative to a shift and, if there are any, to the levels of the rows; not above one, but
    /// for rounding.
    pub(super) fn relative(
        &self,
        shift: Shift<T>,
        levels: &[T],
        numbers: &Buffers<T>,
    ) -> Buffer<T> {
        record(Operations::exponentials(self.logs.len()));
        let mut out = numbers.any(self.logs.len());
        instructions::run(Relative {
            block: self,
            shift,
            levels,
            out: &mut out,
        });
        out
    }
}

/// Rows times a number, as far as their squares stay in range.
struct Scale<'a, T> {
    x: &'a [T],
    by: T,
    out: &'a mut [T],
}

impl<T: Real> Task for Scale<'_, T> {
    #[inline(always)]
    fn run<A: Arithmetic>(self, _: A) {
        let bound = largest_coordinate::<T>();
        for (out, &x) in self.out.iter_mut().zip(self.x) {
            // NaN stays.
            let x = x * self.by;
            let x = if x > bound { bound } else { x };
            *out = if x < -bound { -bound } else { x };
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
        let rows = self.block.logs.chunks_exact(self.block.count().max(1));
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
        let (count, binary) = (self.block.count().max(1), T::of(LOG2_E));
        let rows = self.out.chunks_exact_mut(count);
        for (i, (out, logs)) in rows.zip(self.block.logs.chunks_exact(count)).enumerate() {
            let level = self.levels.get(i).copied().unwrap_or_default();
            for ((out, &x), &by) in out.iter_mut().zip(logs).zip(by.unwrap_or(logs)) {
                *out = exp2::<T, A>((shifted(x, by) - level) * binary);
            }
        }
        for (out, &sign) in self.out.iter_mut().zip(self.block.signs.iter()) {
            *out *= sign;
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
