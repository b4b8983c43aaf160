//! Scores of a user's own: one generic function, whose slopes come from dual numbers.

use crate::kernel::{PairKernel, Tile};
use crate::{Error, Shape};
use bochner_numerics::instructions::{self, Arithmetic, Task};
use bochner_numerics::{Dual, Number, Real, Value, argument};
use ndarray::Array2;
use std::fmt::Debug;
use std::sync::Arc;

/// The raw score of a pair.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Raw {
    /// The inner product $q \cdot k$.
    Product,
    /// The squared distance $|q - k|^2$.
    SquaredDistance,
}

/// The kind of a score.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// The logarithm of a weight; minus infinity hides the pair.
    Logit,
    /// The weight itself; 0 hides the pair.
    Weight,
}

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

    fn parameters_of(&self, head: usize) -> [T; MOST_PARAMETERS] {
        let mut all = [T::zero(); MOST_PARAMETERS];
        if self.score.parameters() > 0 {
            let row = self.parameters.row(head);
            all.iter_mut().zip(row).for_each(|(x, &y)| *x = y);
        }
        all
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
        let parameters = &self.parameters_of(tile.head);
        instructions::run(Scores {
            score: &self.score,
            parameters,
            tile,
            raw,
        });
    }

    fn slopes(&self, tile: &Tile<T>, raw: &mut [T], scores: &mut [T]) {
        let parameters = &self.parameters_of(tile.head);
        instructions::run(Slopes {
            score: &self.score,
            parameters,
            tile,
            raw,
            scores,
        });
    }

    fn score_parameters(&self) -> usize {
        self.score.parameters()
    }

    fn parameter_slopes(&self, tile: &Tile<T>, n: usize, raw: &[T], slopes: &mut [T]) {
        let parameters = &self.parameters_of(tile.head);
        instructions::run(ParameterSlopes {
            score: &self.score,
            parameters,
            n,
            tile,
            raw,
            slopes,
        });
    }
}

/// Returns the learnt numbers in the arithmetic of an instruction set.
#[inline(always)]
fn values<T: Real, A: Arithmetic, N>(
    parameters: &[T; MOST_PARAMETERS],
    number: impl Fn(Value<T, A>) -> N,
) -> [N; MOST_PARAMETERS] {
    parameters.map(|x| number(Value::new(x)))
}

struct Scores<'a, S, T> {
    score: &'a S,
    parameters: &'a [T; MOST_PARAMETERS],
    tile: &'a Tile<'a, T>,
    raw: &'a mut [T],
}

impl<S: Score, T: Real> Task for Scores<'_, S, T> {
    #[inline(always)]
    fn run<A: Arithmetic>(self, _: A) {
        let (tile, n) = (self.tile, self.score.parameters());
        let parameters = values::<T, A, _>(self.parameters, |x| x);
        for (row, query) in self.raw.chunks_exact_mut(tile.keys.len()).zip(tile.query..) {
            let query = Value::new(T::of(query as f64));
            for (x, &key) in row.iter_mut().zip(tile.keys) {
                let pair = Pair {
                    query,
                    key: Value::new(key),
                    head: tile.head,
                    width: tile.width,
                };
                *x = self
                    .score
                    .score(Value::<T, A>::new(*x), pair, &parameters[..n])
                    .get();
            }
        }
    }
}

struct Slopes<'a, S, T> {
    score: &'a S,
    parameters: &'a [T; MOST_PARAMETERS],
    tile: &'a Tile<'a, T>,
    raw: &'a mut [T],
    scores: &'a mut [T],
}

impl<S: Score, T: Real> Task for Slopes<'_, S, T> {
    #[inline(always)]
    fn run<A: Arithmetic>(self, _: A) {
        let (tile, n) = (self.tile, self.score.parameters());
        let parameters = values::<T, A, _>(self.parameters, Dual::constant);
        let keys = tile.keys.len();
        let rows = self
            .raw
            .chunks_exact_mut(keys)
            .zip(self.scores.chunks_exact_mut(keys));
        for ((row, scores), query) in rows.zip(tile.query..) {
            let query = Dual::constant(Value::new(T::of(query as f64)));
            for ((x, score), &key) in row.iter_mut().zip(scores).zip(tile.keys) {
                let key = Dual::constant(Value::new(key));
                let pair = Pair {
                    query,
                    key,
                    head: tile.head,
                    width: tile.width,
                };
                let raw = Dual::variable(Value::<T, A>::new(*x));
                let dual = self.score.score(raw, pair, &parameters[..n]);
                (*score, *x) = (dual.value.get(), dual.slope.get());
            }
        }
    }
}

struct ParameterSlopes<'a, S, T> {
    score: &'a S,
    parameters: &'a [T; MOST_PARAMETERS],
    n: usize,
    tile: &'a Tile<'a, T>,
    raw: &'a [T],
    slopes: &'a mut [T],
}

impl<S: Score, T: Real> Task for ParameterSlopes<'_, S, T> {
    #[inline(always)]
    fn run<A: Arithmetic>(self, _: A) {
        let (tile, n) = (self.tile, self.score.parameters());
        let mut parameters = values::<T, A, _>(self.parameters, Dual::constant);
        parameters[self.n] = Dual::variable(parameters[self.n].value);
        let keys = tile.keys.len();
        let rows = self
            .raw
            .chunks_exact(keys)
            .zip(self.slopes.chunks_exact_mut(keys));
        for ((row, slopes), query) in rows.zip(tile.query..) {
            let query = Dual::constant(Value::new(T::of(query as f64)));
            for ((&x, slope), &key) in row.iter().zip(slopes).zip(tile.keys) {
                let key = Dual::constant(Value::new(key));
                let pair = Pair {
                    query,
                    key,
                    head: tile.head,
                    width: tile.width,
                };
                let raw = Dual::constant(Value::<T, A>::new(x));
                *slope = self.score.score(raw, pair, &parameters[..n]).slope.get();
            }
        }
    }
}
