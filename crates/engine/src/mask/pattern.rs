//! Hidden pairs by blocks: matrices and functions of positions.

use bochner_numerics::parallel;
use ndarray::{ArrayView2, ArrayView4};
use std::fmt;
use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};

/// Positions of a block.
const BLOCK: usize = 64;

/// The pairs that a mask keeps, block by block, for one or all examples and heads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Pattern {
    /// `[1 or B, 1 or M, Tq, Tk]`.
    shape: [usize; 4],
    /// The pairs of each example and head.
    heads: Vec<Pairs>,
}

/// The pairs of one head.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Pairs {
    queries: usize,
    keys: usize,
    /// The blocks, row after row.
    blocks: Vec<Block>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Block {
    Hidden,
    Kept,
    /// The pairs of the block, `[queries, keys]`.
    Mixed(Box<[bool]>),
}

impl Block {
    fn new(pairs: Box<[bool]>) -> Self {
        match pairs.iter().filter(|&&keeps| keeps).count() {
            0 => Self::Hidden,
            n if n == pairs.len() => Self::Kept,
            _ => Self::Mixed(pairs),
        }
    }
}

impl Pairs {
    fn new(queries: usize, keys: usize, keeps: impl Fn(usize, usize) -> bool + Sync) -> Self {
        let columns = keys.div_ceil(BLOCK);
        let block = |n: usize| {
            let (i, j) = (n / columns * BLOCK, n % columns * BLOCK);
            let (rows, columns) = (i..queries.min(i + BLOCK), j..keys.min(j + BLOCK));
            let pairs = rows.flat_map(|i| columns.clone().map(move |j| (i, j)));
            Block::new(pairs.map(|(i, j)| keeps(i, j)).collect())
        };
        let blocks = parallel::map(queries.div_ceil(BLOCK) * columns, block);
        Self {
            queries,
            keys,
            blocks,
        }
    }
}

impl Pattern {
    pub(crate) fn from_matrices(matrices: ArrayView4<bool>) -> Self {
        let (examples, heads, queries, keys) = matrices.dim();
        let of_head = |matrix: ArrayView2<bool>| Pairs::new(queries, keys, |i, j| matrix[[i, j]]);
        let heads_of = matrices.outer_iter();
        let all =
            heads_of.flat_map(|example| example.outer_iter().map(of_head).collect::<Vec<_>>());
        Self {
            shape: [examples, heads, queries, keys],
            heads: all.collect(),
        }
    }

    pub(crate) fn shape(&self) -> [usize; 4] {
        self.shape
    }

    /// The pattern of an example and a head.
    #[inline]
    pub(crate) fn of_head(&self, example: usize, head: usize) -> HeadPattern<'_> {
        let [examples, heads, ..] = self.shape;
        HeadPattern(&self.heads[(example % examples) * heads + head % heads])
    }
}

/// The pattern of one head.
#[derive(Clone, Copy, Debug)]
pub(crate) struct HeadPattern<'a>(&'a Pairs);

impl HeadPattern<'_> {
    fn block(&self, i: usize, j: usize) -> &Block {
        &self.0.blocks[i / BLOCK * self.0.keys.div_ceil(BLOCK) + j / BLOCK]
    }

    /// The number of keys of the block in which key `j` stands.
    fn columns(&self, j: usize) -> usize {
        (self.0.keys - j / BLOCK * BLOCK).min(BLOCK)
    }

    pub(crate) fn keeps(&self, i: usize, j: usize) -> bool {
        match self.block(i, j) {
            Block::Hidden => false,
            Block::Kept => true,
            Block::Mixed(pairs) => pairs[i % BLOCK * self.columns(j) + j % BLOCK],
        }
    }

    /// Whether all blocks that hold pairs of some queries and keys are hidden.
    pub(crate) fn hides(&self, queries: &Range<usize>, keys: &Range<usize>) -> bool {
        let blocks = |range: &Range<usize>| {
            (range.start / BLOCK..range.end.div_ceil(BLOCK)).map(|n| n * BLOCK)
        };
        let hidden = |i, j| *self.block(i, j) == Block::Hidden;
        blocks(queries).all(|i| blocks(keys).all(|j| hidden(i.min(self.0.queries - 1), j)))
    }

    /// Overwrites the numbers of hidden keys in a row that holds one for each key from `first` on.
    pub(crate) fn fill_hidden<T: Copy>(&self, i: usize, first: usize, row: &mut [T], value: T) {
        let end = first + row.len();
        let mut j = first;
        while j < end {
            let next = (j / BLOCK * BLOCK + BLOCK).min(end);
            let piece = &mut row[j - first..next - first];
            match self.block(i, j) {
                Block::Hidden => piece.fill(value),
                Block::Kept => {}
                Block::Mixed(pairs) => {
                    let kept = &pairs[i % BLOCK * self.columns(j) + j % BLOCK..];
                    for (x, &keeps) in piece.iter_mut().zip(kept) {
                        *x = if keeps { *x } else { value };
                    }
                }
            }
            j = next;
        }
    }
}

/// A function of the positions of a query and a key.
type Keeps = dyn Fn(i64, i64) -> bool + Send + Sync;

/// A function of positions with the pattern of the last sizes it was asked for.
#[derive(Clone)]
pub(crate) struct PairRule {
    keeps: Arc<Keeps>,
    last: Arc<Mutex<Option<Arc<Pattern>>>>,
}

impl PairRule {
    pub(super) fn new(keeps: Arc<Keeps>) -> Self {
        let last = Arc::default();
        Self { keeps, last }
    }

    pub(crate) fn keeps(&self, query: i64, key: i64) -> bool {
        (self.keeps)(query, key)
    }

    /// Returns the pattern of sequences of so many queries and keys.
    pub(super) fn pattern(&self, queries: usize, keys: usize) -> Arc<Pattern> {
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        let shape = [1, 1, queries, keys];
        if let Some(pattern) = last.as_ref().filter(|pattern| pattern.shape == shape) {
            return pattern.clone();
        }
        let position = |i: usize| (i + keys) as i64 - queries as i64;
        let pairs = Pairs::new(queries, keys, |i, j| self.keeps(position(i), j as i64));
        let pattern = Arc::new(Pattern {
            shape,
            heads: vec![pairs],
        });
        *last = Some(pattern.clone());
        pattern
    }
}

/// Two rules are equal if they are clones of one.
impl PartialEq for PairRule {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.keeps, &other.keeps)
    }
}

impl fmt::Debug for PairRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("PairRule")
    }
}
