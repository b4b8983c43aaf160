//! Scores of a user's own: one generic function, whose slopes come from dual numbers.

use crate::kernel::{PairKernel, Tile};
use crate::{Error, Kind, Raw, Shape};
use bochner_numerics::instructions::{self, Arithmetic, Task};
use bochner_numerics::{Dual, Number, Real, Value, argument};
use ndarray::Array2;
use std::fmt::Debug;
use std::sync::Arc;

/// A query and a key, as a score sees them.
#[derive(Clone, Copy, Debug)]
pub struct Pair<N> {
    /// The position of the query among the keys: $i + T_k - T_q$.
    pub query: N,
    /// The position of the key.
    pub key: N,
    /// The head.
    pub head: usize,
    /// The width of queries and keys, d.
    pub width: usize,
}

/// The largest number of learnt numbers a head.
pub const MOST_PARAMETERS: usize = 8;

/// A score of a query and a key: all that a new kind of attention needs.
///
/// The function is compiled for plain numbers and for dual numbers in both precisions and for each instruction
/// set, and fused into the blocks of the engine. Write it without branches (`if_less`, `min`, `max`).
///
/// ```
/// use bochner_engine::{Kind, Number, Pair, Raw, Score};
///
/// /// Logits that stay within a bound: $c \tanh(q \cdot k / (c \sqrt d))$.
/// #[derive(Clone, Debug)]
/// struct SoftCap(f64);
///
/// impl Score for SoftCap {
///     const RAW: Raw = Raw::Product;
///
///     fn kind(&self) -> Kind {
///         Kind::Logit
///     }
///
///     #[inline(always)]
///     fn score<N: Number>(&self, raw: N, pair: Pair<N>, _: &[N]) -> N {
///         let scale = 1.0 / (self.0 * (pair.width as f64).sqrt());
///         N::of(self.0) * (raw * N::of(scale)).tanh()
///     }
/// }
/// ```
pub trait Score: Clone + Debug + Send + Sync + 'static {
    /// The raw score that the function is given.
    const RAW: Raw;

    /// The kind of the score. The normaliser of the settings must take this kind.
    fn kind(&self) -> Kind;

    /// The number of learnt numbers of each head, at most [`MOST_PARAMETERS`].
    fn parameters(&self) -> usize {
        0
    }

    /// Whether the score depends on the positions of the pair. A score that does not lets beams share cached positions.
    fn uses_positions(&self) -> bool {
        true
    }

    /// Checks the settings against the sizes of a call.
    ///
    /// # Errors
    /// Whatever is out of range.
    fn check(&self, _shape: &Shape) -> Result<(), Error> {
        Ok(())
    }

    /// The score. `parameters` are the learnt numbers of the pair's head.
    ///
    /// For finite arguments it must be finite, or hide the pair: minus infinity from a logit, 0 from a weight.
    fn score<N: Number>(&self, raw: N, pair: Pair<N>, parameters: &[N]) -> N;
}

/// A [`Score`] with its learnt numbers as a [`PairKernel`].
#[derive(Clone, Debug)]
pub struct Scored<S, T> {
    score: S,
    /// `[heads, n]`.
    parameters: Arc<Array2<T>>,
}

impl<S: Score, T: Real> Scored<S, T> {
    /// Returns the kernel of a score without learnt numbers.
    pub fn new(score: S) -> Self {
        Self::with_parameters(score, Array2::zeros((0, 0)))
    }

    /// Returns the kernel of a score with the learnt numbers of each head, `[heads, n]`.
    pub fn with_parameters(score: S, parameters: Array2<T>) -> Self {
        let parameters = Arc::new(parameters.as_standard_layout().into_owned());
        Self { score, parameters }
    }

    fn lanes<'a>(&'a self, tile: &'a Tile<'a, T>) -> Lanes<'a, S, T> {
        let mut parameters = [T::zero(); MOST_PARAMETERS];
        if self.score.parameters() > 0 {
            let row = self.parameters.row(tile.head);
            parameters.iter_mut().zip(row).for_each(|(x, &y)| *x = y);
        }
        Lanes {
            score: &self.score,
            parameters,
            tile,
        }
    }
}

impl<S: Score, T: Real> PairKernel<T> for Scored<S, T> {
    fn kind(&self) -> Kind {
        self.score.kind()
    }

    fn raw(&self) -> Raw {
        S::RAW
    }

    fn check(&self, shape: &Shape) -> Result<(), Error> {
        let count = self.score.parameters();
        let allowed = "at most 8 numbers a head";
        argument::in_range(
            count <= MOST_PARAMETERS,
            "parameters of the score",
            count as f64,
            allowed,
        )?;
        if count > 0 || !self.parameters.is_empty() {
            let expected = [shape.heads, count];
            argument::shape(
                "parameters of the score",
                &expected,
                self.parameters.shape(),
            )?;
            argument::finite("parameters of the score", &expected, self.parameters.iter())?;
        }
        self.score.check(shape)
    }

    fn uses_positions(&self) -> bool {
        self.score.uses_positions()
    }

    fn scores(&self, tile: &Tile<T>, raw: &mut [T]) {
        let lanes = self.lanes(tile);
        instructions::run(Scores { lanes, raw });
    }

    fn slopes(&self, tile: &Tile<T>, raw: &mut [T], scores: &mut [T]) {
        let lanes = self.lanes(tile);
        instructions::run(Slopes { lanes, raw, scores });
    }

    fn score_parameters(&self) -> usize {
        self.score.parameters()
    }

    fn parameter_slopes(&self, tile: &Tile<T>, n: usize, raw: &[T], slopes: &mut [T]) {
        let lanes = self.lanes(tile);
        instructions::run(ParameterSlopes {
            lanes,
            n,
            raw,
            slopes,
        });
    }
}

/// A score with the learnt numbers of a tile's head.
struct Lanes<'a, S, T> {
    score: &'a S,
    parameters: [T; MOST_PARAMETERS],
    tile: &'a Tile<'a, T>,
}

impl<S: Score, T: Real> Lanes<'_, S, T> {
    /// Returns the learnt numbers in the arithmetic of an instruction set.
    #[inline(always)]
    fn learnt<A: Arithmetic, N>(&self, number: impl Fn(Value<T, A>) -> N) -> [N; MOST_PARAMETERS] {
        self.parameters.map(|x| number(Value::new(x)))
    }

    /// Returns the score of a pair, given the positions of its query and its key.
    #[inline(always)]
    fn score<A: Arithmetic, N: Number>(
        &self,
        raw: N,
        (query, key): (i64, T),
        learnt: &[N; MOST_PARAMETERS],
        number: impl Fn(Value<T, A>) -> N,
    ) -> N {
        let pair = Pair {
            query: number(Value::new(T::of(query as f64))),
            key: number(Value::new(key)),
            head: self.tile.head,
            width: self.tile.width,
        };
        let count = self.score.parameters();
        self.score.score(raw, pair, &learnt[..count])
    }
}

struct Scores<'a, S, T> {
    lanes: Lanes<'a, S, T>,
    raw: &'a mut [T],
}

impl<S: Score, T: Real> Task for Scores<'_, S, T> {
    #[inline(always)]
    fn run<A: Arithmetic>(self, _: A) {
        let (lanes, tile) = (&self.lanes, self.lanes.tile);
        let learnt = lanes.learnt::<A, _>(|x| x);
        for (row, query) in self.raw.chunks_exact_mut(tile.keys.len()).zip(tile.query..) {
            for (x, &key) in row.iter_mut().zip(tile.keys) {
                let raw = Value::<T, A>::new(*x);
                *x = lanes.score(raw, (query, key), &learnt, |x| x).get();
            }
        }
    }
}

struct Slopes<'a, S, T> {
    lanes: Lanes<'a, S, T>,
    raw: &'a mut [T],
    scores: &'a mut [T],
}

impl<S: Score, T: Real> Task for Slopes<'_, S, T> {
    #[inline(always)]
    fn run<A: Arithmetic>(self, _: A) {
        let (lanes, tile) = (&self.lanes, self.lanes.tile);
        let learnt = lanes.learnt::<A, _>(Dual::constant);
        let rows = self.raw.chunks_exact_mut(tile.keys.len());
        let rows = rows.zip(self.scores.chunks_exact_mut(tile.keys.len()));
        for ((row, scores), query) in rows.zip(tile.query..) {
            for ((x, score), &key) in row.iter_mut().zip(scores).zip(tile.keys) {
                let raw = Dual::variable(Value::<T, A>::new(*x));
                let dual = lanes.score(raw, (query, key), &learnt, Dual::constant);
                (*score, *x) = (dual.value.get(), dual.slope.get());
            }
        }
    }
}

struct ParameterSlopes<'a, S, T> {
    lanes: Lanes<'a, S, T>,
    n: usize,
    raw: &'a [T],
    slopes: &'a mut [T],
}

impl<S: Score, T: Real> Task for ParameterSlopes<'_, S, T> {
    #[inline(always)]
    fn run<A: Arithmetic>(self, _: A) {
        let (lanes, tile) = (&self.lanes, self.lanes.tile);
        let mut learnt = lanes.learnt::<A, _>(Dual::constant);
        learnt[self.n] = Dual::variable(learnt[self.n].value);
        let rows = self.raw.chunks_exact(tile.keys.len());
        let rows = rows.zip(self.slopes.chunks_exact_mut(tile.keys.len()));
        for ((row, slopes), query) in rows.zip(tile.query..) {
            for ((&x, slope), &key) in row.iter().zip(slopes).zip(tile.keys) {
                let raw = Dual::constant(Value::<T, A>::new(x));
                let dual = lanes.score(raw, (query, key), &learnt, Dual::constant);
                *slope = dual.slope.get();
            }
        }
    }
}
