//! The features whose inner product is the squared kernel.

use super::sums::Augmented;
use crate::linear::BLOCK;
use bochner_numerics::instructions::{self, Arithmetic, Task};
use bochner_numerics::operations::record;
use bochner_numerics::{Buffer, Buffers, Mat, MatMut, Operations, Panels, Real, matmul};
use std::ops::Range;

/// $\psi$ of a block of rows, a feature a row: $\psi_{aa} = x_a^2$ and, for a < b,
/// $\psi_{ab} = \sqrt 2  x_a x_b$, so that $\psi(x) \cdot \psi(y) = (x \cdot y)^2$.
///
/// A feature a row: then each is one product of two rows of x, and $\psi$ may stand on either side
/// of a matrix product as it is. Features are made as many at a time as the cache has room for, and
/// again whenever they are needed: that is one multiplication, where each then takes part in dv.
pub(crate) struct SymmetricFeatures<T> {
    /// The scaled rows x, transposed.
    columns: Buffer<T>,
    rows: usize,
    width: usize,
    scale: T,
    scratch: Scratch<T>,
}

/// Room for some features, for their gradients and for those of x, transposed.
struct Scratch<T> {
    /// One row of x.
    scaled: Buffer<T>,
    psi: Buffer<T>,
    d_psi: Vec<T>,
    d_columns: Vec<T>,
}

/// The number of features of a row of some width.
pub(super) fn count(width: usize) -> usize {
    width * (width + 1) / 2
}

/// Numbers of the features of a piece, if it has more than those of one column.
const PIECE: usize = 1 << 15;

/// Consecutive features, and the columns a that they begin with.
struct Piece {
    columns: Range<usize>,
    features: Range<usize>,
}

/// All features of rows of some width, in pieces.
fn pieces(rows: usize, width: usize) -> impl Iterator<Item = Piece> {
    let mut next = (0, 0);
    std::iter::from_fn(move || {
        let (column, feature) = next;
        while next.0 < width {
            let end = next.1 + width - next.0;
            if next.0 > column && (end - feature) * rows > PIECE {
                break;
            }
            next = (next.0 + 1, end);
        }
        (next.0 > column).then_some(Piece {
            columns: column..next.0,
            features: feature..next.1,
        })
    })
}

impl<T: Real> SymmetricFeatures<T> {
    /// Features of no rows; later of $x = $ `scale` times rows of `width` numbers, about [`BLOCK`] at a time.
    pub(super) fn new(buffers: &Buffers<T>, width: usize, scale: T) -> Self {
        Self {
            columns: buffers.empty(BLOCK * width),
            rows: 0,
            width,
            scale,
            scratch: Scratch {
                scaled: buffers.empty(BLOCK),
                psi: buffers.empty(PIECE.max(BLOCK * width)),
                d_psi: Vec::new(),
                d_columns: Vec::new(),
            },
        }
    }

    /// Takes other rows, in the same memory.
    pub(super) fn of(&mut self, phi: Mat<T>) -> &mut Self {
        let (rows, width) = phi.shape();
        record(Operations::multiply_adds(rows * width));
        self.rows = rows;
        self.columns.resize(rows * width, T::zero());
        transpose(phi.data(), width, self.scale, &mut self.columns);
        self
    }

    /// Calls `f` with pieces of $\psi^T$, `[features, rows]`.
    fn for_each_piece(&mut self, mut f: impl FnMut(&Piece, &[T])) {
        // Each feature, and each entry once by the root of two.
        let features = count(self.width) + self.width;
        record(Operations::multiply_adds(self.rows * features));
        let Scratch { scaled, psi, .. } = &mut self.scratch;
        scaled.resize(self.rows, T::zero());
        for piece in pieces(self.rows, self.width) {
            psi.resize(piece.features.len() * self.rows, T::zero());
            instructions::run(Products {
                columns: &self.columns,
                piece: &piece,
                rows: self.rows,
                scaled,
                psi,
            });
            f(&piece, psi);
        }
    }

    /// $S \leftarrow S + \sum_i \psi_i y_i^T$.
    pub(super) fn add_to(&mut self, y: &Augmented<T>, moments: &mut Augmented<T>) {
        let (rows, width) = (self.rows, y.width());
        record(Operations::multiply_adds(rows * count(self.width)));
        self.for_each_piece(|Piece { features, .. }, psi| {
            let wide = &mut moments.wide[features.start * width..features.end * width];
            let target = MatMut::new(wide, features.len(), width);
            let psi_matrix = Mat::new(psi, features.len(), rows);
            matmul(T::one(), psi_matrix, y.matrix(), T::one(), target);
            instructions::run(Sums {
                psi,
                y: &y.last,
                sums: &mut moments.last[features.clone()],
            });
        });
    }

    /// $S^T \psi_i$ of each row.
    pub(super) fn read(&mut self, moments: &Augmented<T>, buffers: &Buffers<T>) -> Augmented<T> {
        let (rows, width) = (self.rows, moments.width());
        record(Operations::multiply_adds(rows * count(self.width)));
        let mut read = Augmented::zeros(buffers, rows, width);
        self.for_each_piece(|Piece { features, .. }, psi| {
            let wide = &moments.wide[features.start * width..features.end * width];
            let psi_matrix = Mat::new(psi, features.len(), rows).t();
            let target = MatMut::new(&mut read.wide, rows, width);
            let moments_matrix = Mat::new(wide, features.len(), width);
            matmul(T::one(), psi_matrix, moments_matrix, T::one(), target);
            instructions::run(Reading {
                psi,
                moments: &moments.last[features.clone()],
                out: &mut read.last,
            });
        });
        read
    }

    /// Adds to the gradient with respect to `phi` what that with respect to $\psi_i$, namely
    /// $S y_i$, comes to.
    ///
    /// It is the product of the symmetric matrix of which $S y_i$ holds one half with x.
    pub(super) fn pull_back(
        &mut self,
        moments: &Augmented<T>,
        y: &Augmented<T>,
        gradient: &mut [T],
    ) {
        let (rows, width) = (self.rows, y.width());
        let Scratch {
            d_psi, d_columns, ..
        } = &mut self.scratch;
        d_columns.clear();
        d_columns.resize(self.columns.len(), T::zero());
        record(Operations::multiply_adds(3 * rows * count(self.width)));
        let y_transposed = Panels::new(y.matrix().t());
        for piece in pieces(rows, self.width) {
            let features = piece.features.clone();
            d_psi.resize(features.len() * rows, T::zero());
            let wide = &moments.wide[features.start * width..features.end * width];
            let moments_matrix = Mat::new(wide, features.len(), width);
            let target = MatMut::new(d_psi, features.len(), rows);
            matmul(T::one(), moments_matrix, &y_transposed, T::zero(), target);
            instructions::run(PullBack {
                columns: &self.columns,
                piece: &piece,
                d_psi,
                moments: &moments.last[features],
                y: &y.last,
                d_columns,
            });
        }
        add_transposed(d_columns, self.width, self.scale, gradient);
    }
}

/// From transposed rows to their features.
struct Products<'a, T> {
    columns: &'a [T],
    piece: &'a Piece,
    rows: usize,
    /// Room for a row.
    scaled: &'a mut [T],
    psi: &'a mut [T],
}

impl<T: Real> Task for Products<'_, T> {
    #[inline(always)]
    fn run<A: Arithmetic>(self, _: A) {
        let Self {
            columns,
            rows,
            scaled,
            ..
        } = self;
        let mut features = self.psi.chunks_exact_mut(rows);
        for a in self.piece.columns.clone() {
            let x = &columns[a * rows..(a + 1) * rows];
            let squares = features.next().expect("a feature of each column alone");
            squares.iter_mut().zip(x).for_each(|(f, &x)| *f = x * x);
            let root = scaled.iter_mut().zip(x);
            root.for_each(|(scaled, &x)| *scaled = T::SQRT_2() * x);
            let later = columns[(a + 1) * rows..].chunks_exact(rows);
            for (y, feature) in later.zip(&mut features) {
                for ((f, &x), &y) in feature.iter_mut().zip(&*scaled).zip(y) {
                    *f = x * y;
                }
            }
        }
    }
}

/// Adds $\sum_i \psi_{ia} y_i$ to each sum.
struct Sums<'a, T> {
    psi: &'a [T],
    y: &'a [T],
    sums: &'a mut [T],
}

impl<T: Real> Task for Sums<'_, T> {
    #[inline(always)]
    fn run<A: Arithmetic>(self, _: A) {
        let features = self.psi.chunks_exact(self.y.len());
        for (sum, feature) in self.sums.iter_mut().zip(features) {
            *sum += dot::<T, A>(feature, self.y);
        }
    }
}

/// A product of two slices, in sixteen lanes.
#[inline(always)]
fn dot<T: Real, A: Arithmetic>(x: &[T], y: &[T]) -> T {
    let ((x, x_rest), (y, y_rest)) = (x.as_chunks::<16>(), y.as_chunks::<16>());
    let mut lanes = [T::zero(); 16];
    for (x, y) in x.iter().zip(y) {
        for ((lane, &x), &y) in lanes.iter_mut().zip(x).zip(y) {
            *lane = A::mul_add(x, y, *lane);
        }
    }
    for ((lane, &x), &y) in lanes.iter_mut().zip(x_rest).zip(y_rest) {
        *lane = A::mul_add(x, y, *lane);
    }
    lanes.iter().fold(T::zero(), |sum, &lane| sum + lane)
}

/// $\sum_a S_a \psi_{ia}$ of each row.
struct Reading<'a, T> {
    psi: &'a [T],
    moments: &'a [T],
    out: &'a mut [T],
}

impl<T: Real> Task for Reading<'_, T> {
    #[inline(always)]
    fn run<A: Arithmetic>(self, _: A) {
        let features = self.psi.chunks_exact(self.out.len());
        for (&moment, feature) in self.moments.iter().zip(features) {
            for (out, &f) in self.out.iter_mut().zip(feature) {
                *out = A::mul_add(moment, f, *out);
            }
        }
    }
}

/// From the gradients of features to those of transposed rows.
struct PullBack<'a, T> {
    columns: &'a [T],
    piece: &'a Piece,
    d_psi: &'a [T],
    moments: &'a [T],
    y: &'a [T],
    d_columns: &'a mut [T],
}

impl<T: Real> Task for PullBack<'_, T> {
    #[inline(always)]
    fn run<A: Arithmetic>(self, _: A) {
        let Self { columns, y, .. } = self;
        let rows = y.len();
        let mut pairs = self.d_psi.chunks_exact(rows).zip(self.moments);
        for a in self.piece.columns.clone() {
            let x = &columns[a * rows..(a + 1) * rows];
            let (own, later) = self.d_columns[a * rows..].split_at_mut(rows);
            let pair = pairs.next().expect("a pair of the column with itself");
            pull_pair::<T, A>(pair, y, |i, d| own[i] += (d + d) * x[i]);
            let others = columns[(a + 1) * rows..].chunks_exact(rows);
            let others = others.zip(later.chunks_exact_mut(rows));
            for ((z, other), pair) in others.zip(&mut pairs) {
                pull_pair::<T, A>(pair, y, |i, d| {
                    let d = T::SQRT_2() * d;
                    own[i] = A::mul_add(d, z[i], own[i]);
                    other[i] = A::mul_add(d, x[i], other[i]);
                });
            }
        }
    }
}

/// Calls `f` with the gradient of a feature of each row.
#[inline(always)]
fn pull_pair<T: Real, A: Arithmetic>(
    (d_psi, &moment): (&[T], &T),
    y: &[T],
    mut f: impl FnMut(usize, T),
) {
    for (i, (&d, &y)) in d_psi.iter().zip(y).enumerate() {
        f(i, A::mul_add(moment, y, d));
    }
}

/// Rows of `width` numbers, scaled and transposed.
pub(super) fn transpose<T: Real>(x: &[T], width: usize, scale: T, out: &mut [T]) {
    let rows = out.len() / width;
    for (i, row) in x.chunks_exact(width).enumerate() {
        for (&x, column) in row.iter().zip(out.chunks_exact_mut(rows)) {
            column[i] = scale * x;
        }
    }
}

/// Adds what is `width` columns, scaled, to as many rows.
pub(super) fn add_transposed<T: Real>(columns: &[T], width: usize, scale: T, rows: &mut [T]) {
    let length = columns.len() / width;
    for (i, row) in rows.chunks_exact_mut(width).enumerate() {
        for (x, column) in row.iter_mut().zip(columns.chunks_exact(length)) {
            *x += scale * column[i];
        }
    }
}
