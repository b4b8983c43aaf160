//! The exponents $u_{ij}$ that a magnitude adds to the logarithm of a weight.

use super::{PairDropout, blocks};
use bochner_numerics::elementary::{self, PNorm, SquaredNorms, p_norms_into};
use bochner_numerics::operations::record;
use bochner_numerics::{Buffer, Buffers, Mat, Real};
use std::ops::Range;

/// The exponents of one head's pairs: $u_{ij} = m_j$, or with the dropout of the released code
/// $u_{ij} = \delta_{ij} (m_i + m_j)$.
///
/// Held in double precision together with their logarithms: differences of huge magnitudes decide
/// who wins, and for small p a magnitude can be far above f32's range.
#[derive(Clone)]
pub(crate) struct Exponents {
    keys: Buffer<Level>,
    pairs: Option<Pairs>,
}

/// The query part and the dropout of the released code.
#[derive(Clone)]
struct Pairs {
    queries: Buffer<Level>,
    dropout: PairDropout,
    loudest: Option<Loudest>,
}

/// The loudest of keys that all queries see.
#[derive(Clone)]
struct Loudest {
    key: usize,
    magnitude: f64,
    /// How loud the keys of kept pairs are beside it, $\exp(u_{ij} - u_{i\,\text{loudest}})$.
    beside: Buffer<f64>,
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

    fn plain(value: f64) -> Self {
        Self { value, log: value }
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
    pub(crate) fn zero(buffers: &Buffers<Level>, keys: usize) -> Self {
        let zero = Level {
            value: 0.0,
            log: f64::NEG_INFINITY,
        };
        Self {
            keys: buffers.filled(keys, zero),
            pairs: None,
        }
    }

    /// $m_j = |k_j|_p^2 / \text{divisor}$.
    pub(crate) fn of_keys<T: Real>(
        buffers: &Buffers<Level>,
        keys: Mat<T>,
        p: f64,
        divisor: f64,
    ) -> Self {
        Self {
            keys: levels(buffers, keys, p, divisor),
            pairs: None,
        }
    }

    /// Adds the queries' magnitudes and the dropout that falls on the sum.
    pub(crate) fn with_pairs<T: Real>(
        self,
        buffers: &Buffers<Level>,
        queries: Mat<T>,
        p: f64,
        divisor: f64,
        dropout: PairDropout,
    ) -> Self {
        let pairs = Pairs {
            queries: levels(buffers, queries, p, divisor),
            dropout,
            loudest: None,
        };
        Self {
            pairs: Some(pairs),
            ..self
        }
    }

    /// Makes most rows' exponentials from those of the keys alone; only where every query sees every
    /// key, for a row must not depend on keys that it does not see.
    pub(crate) fn seen_by_all(mut self, doubles: &Buffers<f64>) -> Self {
        let Some(pairs) = &mut self.pairs else {
            return self;
        };
        let louder = |a: (usize, Level), b: (usize, Level)| if b.1.exceeds(a.1) { b } else { a };
        let levels = self.keys.iter().copied();
        if let Some((key, most)) = levels.clone().enumerate().reduce(louder) {
            let kept = pairs.dropout.mask.kept_factor();
            let mut beside = doubles.empty(self.keys.len());
            beside.extend(levels.map(|key| kept * key.minus(most)));
            elementary::exp_in_place(&mut beside);
            pairs.loudest = Some(Loudest {
                key,
                magnitude: most.value,
                beside,
            });
        }
        self
    }

    pub(crate) fn has_pairs(&self) -> bool {
        self.pairs.is_some()
    }

    /// The largest exponent of row `i` among the keys before `limit` that `kept` lets through.
    pub(crate) fn reference(&self, i: usize, limit: usize, kept: Option<&[bool]>) -> Level {
        let larger = |largest: Level, (j, level): (usize, Level)| {
            let counts = kept.is_none_or(|kept| kept[j]);
            if counts { largest.max(level) } else { largest }
        };
        let Some(pairs) = &self.pairs else {
            let keys = self.keys[..limit].iter().copied();
            return keys.enumerate().fold(Level::NONE, larger);
        };
        if let Some((_, reference)) = pairs.loudest_of(i) {
            return reference;
        }
        let (mut piece, mut reference) = ([0.0; PIECE], Level::NONE);
        for keys in blocks(0..limit, PIECE) {
            let values = &mut piece[..keys.len()];
            pairs.values(i, &self.keys, keys.clone(), values);
            let levels = values.iter().map(|&value| Level::plain(value));
            reference = keys.zip(levels).fold(reference, larger);
        }
        reference
    }

    /// The references of `rows` when each row keeps exactly the keys before its limit, and limits
    /// never decrease: one running maximum serves all.
    pub(crate) fn running_references(
        &self,
        limits: impl Iterator<Item = usize>,
    ) -> impl Iterator<Item = Level> {
        let (mut best, mut seen) = (Level::NONE, 0);
        limits.map(move |limit| {
            let new = self.keys[seen..limit].iter().copied();
            best = new.fold(best, Level::max);
            seen = limit;
            best
        })
    }

    /// Calls `f` with $u_{ij} - \text{reference}$ of some keys, a few at a time.
    pub(crate) fn differences(
        &self,
        i: usize,
        keys: Range<usize>,
        reference: Level,
        mut f: impl FnMut(Range<usize>, &mut [f64]),
    ) {
        let mut piece = [0.0; PIECE];
        for keys in blocks(keys, PIECE) {
            let piece = &mut piece[..keys.len()];
            match &self.pairs {
                None => {
                    let levels = piece.iter_mut().zip(&self.keys[keys.clone()]);
                    levels.for_each(|(x, level)| *x = level.minus(reference));
                }
                Some(pairs) => {
                    pairs.values(i, &self.keys, keys.clone(), piece);
                    let values = piece.iter_mut();
                    values.for_each(|x| *x = Level::plain(*x).minus(reference));
                }
            }
            f(keys, piece);
        }
    }

    /// Appends $\exp(u_{ij} - \text{reference})$ of some keys.
    pub(crate) fn relative<T: Real>(
        &self,
        i: usize,
        keys: Range<usize>,
        reference: Level,
        out: &mut Vec<T>,
    ) {
        if let Some(pairs) = &self.pairs
            && let Some((loudest, reference)) = pairs.loudest_of(i)
        {
            let (first, start) = (keys.start, out.len());
            out.extend(loudest.beside[keys].iter().map(|&x| T::of(x)));
            let dropped = T::of((-reference.value).exp());
            return (pairs.dropout).replace_dropped(i, first, &mut out[start..], dropped);
        }
        self.differences(i, keys, reference, |_, piece| {
            elementary::exp_in_place(piece);
            out.extend(piece.iter().map(|&x| T::of(x)));
        });
    }

    /// The largest exponent of all keys, where queries do not count.
    pub(crate) fn largest(&self) -> Option<Level> {
        (!self.has_pairs()).then(|| self.largest_from(0))
    }

    /// The largest exponent of the keys from one on.
    pub(crate) fn largest_from(&self, key: usize) -> Level {
        self.keys[key..]
            .iter()
            .copied()
            .fold(Level::NONE, Level::max)
    }

    /// Appends the exponents of more keys; not where queries count.
    pub(crate) fn append(&mut self, more: &Self) {
        self.keys.extend_from_slice(&more.keys);
    }

    /// Forgets all keys but the first ones.
    pub(crate) fn truncate(&mut self, keys: usize) {
        self.keys.truncate(keys);
    }

    /// Multiplies with the derivatives of $u_{ij}$, from key `j` on, with respect to $m_j$ and,
    /// where queries count, to $m_i$.
    pub(crate) fn scale_by_factors<T: Real>(&self, i: usize, j: usize, du: &mut [T]) {
        if let Some(pairs) = &self.pairs {
            pairs.dropout.scale(i, j, du);
        }
    }
}

impl Pairs {
    /// $u_{ij}$ of some keys.
    fn values(&self, i: usize, all: &[Level], keys: Range<usize>, out: &mut [f64]) {
        let query = self.queries[i].value;
        self.dropout.fill(i, keys.start, out);
        for (x, key) in out.iter_mut().zip(&all[keys]) {
            // What is dropped is zero, whatever it was.
            let kept = *x * (query + key.value);
            *x = if *x == 0.0 { 0.0 } else { kept };
        }
    }

    /// The loudest key and its $u_{ij}$, unless that pair is dropped or overflows: where the row's
    /// weights are those of its keys beside the loudest.
    fn loudest_of(&self, i: usize) -> Option<(&Loudest, Level)> {
        let loudest = self.loudest.as_ref()?;
        let value = self.dropout.mask.kept_factor() * (self.queries[i].value + loudest.magnitude);
        let counts = value.is_finite() && self.dropout.keeps(i, loudest.key);
        counts.then_some((loudest, Level::plain(value)))
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
