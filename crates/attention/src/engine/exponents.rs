//! The exponents that a magnitude adds to the logarithms of weights.

use super::blocks;
#[cfg(feature = "dfdx")]
use super::cache::keep_marked;
use crate::bias::RowBias;
use bochner_numerics::elementary::{self, PNorm, SquaredNorms, p_norms_into};
use bochner_numerics::memory::remove_first;
use bochner_numerics::operations::record;
use bochner_numerics::{Buffer, Buffers, Mat, Real};
use std::ops::Range;

/// The exponents $u_j$ of the keys of one head: what a magnitude adds to the logarithms of their weights.
///
/// They are held in double precision together with their logarithms: small differences of huge magnitudes decide which
/// key has the weight, and for small p a magnitude can be far above f32's range.
#[derive(Clone, Debug)]
pub(crate) struct Exponents {
    levels: Buffer<Level>,
    /// What the kernel itself takes from the raw scores of each key.
    terms: Option<Buffer<f64>>,
}

/// One exponent and its logarithm (which stays finite where the exponent overflows).
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Level {
    value: f64,
    log: f64,
}

impl Level {
    /// Below every exponent.
    pub(crate) const NONE: Self = Self {
        value: f64::NEG_INFINITY,
        log: f64::NEG_INFINITY,
    };

    /// The exponent itself, infinite where it overflows.
    pub(crate) fn value(self) -> f64 {
        self.value
    }

    /// Whether it exceeds `other`, overflowed or not; NaN exceeds nothing.
    fn exceeds(self, other: Self) -> bool {
        self.log > other.log
    }

    /// The larger of two.
    pub(crate) fn max(self, other: Self) -> Self {
        if other.exceeds(self) || self == Self::NONE {
            other
        } else {
            self
        }
    }

    /// The sum with a bias, which counts for nothing where the exponent overflows.
    fn plus(self, bias: f64) -> Self {
        let value = self.value + bias;
        Self { value, ..self }
    }

    /// Whether it exceeds `other` by its value, or by its logarithm where both overflow.
    pub(crate) fn is_above(self, other: Self) -> bool {
        match self.value == other.value {
            true => self.exceeds(other),
            false => self.value > other.value,
        }
    }

    /// `self - reference`.
    pub(crate) fn minus(self, reference: Self) -> f64 {
        if reference.value.is_finite() {
            self.value - reference.value
        } else if self.log >= reference.log {
            0.0
        } else {
            // The reference lies beyond 1e308: any difference that f64 can tell is astronomical.
            f64::NEG_INFINITY
        }
    }
}

impl Exponents {
    /// No magnitude: all exponents zero.
    pub(crate) fn zero(levels: &Buffers<Level>, keys: usize, terms: Option<Buffer<f64>>) -> Self {
        let zero = Level {
            value: 0.0,
            log: f64::NEG_INFINITY,
        };
        let levels = levels.filled(keys, zero);
        Self { levels, terms }
    }

    /// $u_j = |k_j|_p^2 / \text{divisor}$.
    pub(crate) fn of_keys<T: Real>(
        buffers: &Buffers<Level>,
        keys: Mat<T>,
        p: f64,
        divisor: f64,
        terms: Option<Buffer<f64>>,
    ) -> Self {
        let levels = levels(buffers, keys, p, divisor);
        Self { levels, terms }
    }

    /// What the kernel takes from the raw scores of a key.
    pub(crate) fn term(&self, key: usize) -> f64 {
        self.terms.as_ref().map_or(0.0, |terms| terms[key])
    }

    /// The largest exponent of some keys, those that count.
    pub(crate) fn reference(&self, keys: Range<usize>, counts: impl Fn(usize) -> bool) -> Level {
        let counting = keys.filter(|&j| counts(j));
        counting.fold(Level::NONE, |largest, j| largest.max(self.levels[j]))
    }

    /// The references of `rows` when each row keeps exactly the keys before its limit, and limits
    /// never decrease: one running maximum serves all.
    pub(crate) fn running_references(
        &self,
        limits: impl Iterator<Item = usize>,
    ) -> impl Iterator<Item = Level> {
        let (mut best, mut seen) = (Level::NONE, 0);
        limits.map(move |limit| {
            let new = self.levels[seen..limit].iter().copied();
            best = new.fold(best, Level::max);
            seen = limit;
            best
        })
    }

    /// [`Exponents::reference`] of sums with a bias.
    pub(crate) fn biased_reference<T: Real>(
        &self,
        bias: RowBias<T>,
        keys: Range<usize>,
        counts: impl Fn(usize) -> bool,
    ) -> Level {
        let (mut piece, mut largest) = ([0.0; PIECE], Level::NONE);
        for keys in blocks(keys, PIECE) {
            let piece = &mut piece[..keys.len()];
            piece.fill(0.0);
            bias.add_to(keys.clone(), piece);
            for (j, &bias) in keys.zip(&*piece) {
                let sum = self.levels[j].plus(bias);
                if counts(j) && sum.is_above(largest) {
                    largest = sum;
                }
            }
        }
        largest
    }

    /// Calls `f` with $u_j + b_j - \text{reference}$ of some keys, a few at a time.
    pub(crate) fn differences<T: Real>(
        &self,
        bias: Option<RowBias<T>>,
        keys: Range<usize>,
        reference: Level,
        mut f: impl FnMut(Range<usize>, &mut [f64]),
    ) {
        let mut piece = [0.0; PIECE];
        for keys in blocks(keys, PIECE) {
            let piece = &mut piece[..keys.len()];
            let levels = piece.iter_mut().zip(&self.levels[keys.clone()]);
            levels.for_each(|(x, level)| *x = level.minus(reference));
            if let Some(bias) = bias {
                bias.add_to(keys.clone(), piece);
            }
            // Only a key without weight can exceed the reference: one that is masked or whose similarity is
            // zero. It is clamped, because its exponential could overflow.
            let clamped = |x: f64| if x > 0.0 { 0.0 } else { x };
            piece.iter_mut().for_each(|x| *x = clamped(*x));
            f(keys, piece);
        }
    }

    /// Appends $\exp(u_j + b_j - \text{reference})$ of some keys.
    pub(crate) fn relative<T: Real>(
        &self,
        bias: Option<RowBias<T>>,
        keys: Range<usize>,
        reference: Level,
        out: &mut Vec<T>,
    ) {
        self.differences(bias, keys, reference, |_, piece| {
            elementary::exp_in_place(piece);
            out.extend(piece.iter().map(|&x| T::of(x)));
        });
    }

    /// The largest exponent of the keys from one on.
    pub(crate) fn largest_from(&self, key: usize) -> Level {
        let levels = self.levels[key..].iter().copied();
        levels.fold(Level::NONE, Level::max)
    }

    /// Appends the exponents of more keys.
    pub(crate) fn append(&mut self, more: &Self) {
        self.levels.extend_from_slice(&more.levels);
        if let (Some(terms), Some(more)) = (&mut self.terms, &more.terms) {
            terms.extend_from_slice(more);
        }
    }

    /// Forgets the first keys; see [`remove_first`] for `most`.
    pub(crate) fn remove_first(&mut self, keys: usize, most: usize) {
        remove_first(&mut self.levels, keys, most);
        if let Some(terms) = &mut self.terms {
            remove_first(terms, keys, most);
        }
    }

    /// Forgets the keys that are not marked.
    #[cfg(feature = "dfdx")]
    pub(crate) fn keep(&mut self, marks: &[bool]) {
        keep_marked(&mut self.levels, marks);
        if let Some(terms) = &mut self.terms {
            keep_marked(terms, marks);
        }
    }

    /// Forgets all keys but the first ones.
    pub(crate) fn truncate(&mut self, keys: usize) {
        self.levels.truncate(keys);
        if let Some(terms) = &mut self.terms {
            terms.truncate(keys);
        }
    }
}

/// Numbers that are computed at a time, on the stack.
const PIECE: usize = 128;

fn levels<T: Real>(buffers: &Buffers<Level>, x: Mat<T>, p: f64, divisor: f64) -> Buffer<Level> {
    record(SquaredNorms::cost(p, x.data().len()));
    let ((rows, width), log_divisor) = (x.shape(), divisor.ln());
    let mut levels = buffers.empty(rows);
    let mut norms = [PNorm::default(); PIECE];
    let (mut logs, mut values) = ([0.0; PIECE], [0.0; PIECE]);
    for rows in blocks(0..rows, PIECE) {
        let norms = &mut norms[..rows.len()];
        let (logs, values) = (&mut logs[..rows.len()], &mut values[..rows.len()]);
        p_norms_into(x.row_range(rows).data(), width, p, norms);
        elementary::log_squares(norms, p, logs);
        logs.iter_mut().for_each(|log| *log -= log_divisor);
        values.copy_from_slice(logs);
        elementary::exp_in_place(values);
        let both = logs.iter().zip(values.iter());
        levels.extend(both.map(|(&log, &value)| Level { value, log }));
    }
    levels
}
