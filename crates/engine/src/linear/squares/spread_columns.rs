//! Sums for narrow values, spread over the columns of x instead of over its features.

use super::sums::Augmented;
use super::symmetric_features::{add_transposed, transpose};
use crate::linear::BLOCK;
use bochner_numerics::instructions::{self, Arithmetic, Task};
use bochner_numerics::operations::record;
use bochner_numerics::{Buffer, Buffers, Mat, MatMut, Operations, Real, matmul_in};
use std::ops::Range;

/// Columns of x that are spread over values at a time.
const GROUP: usize = 8;

/// Rows x, from which $(x \cdot y)^2$ is summed up as $x^T (\sum_j y_j y_j^T) x$.
///
/// Features of pairs of columns take part in one product with each value: for narrow values that is
/// less than it takes to write them down. Here a product of a column and a value is written down, and
/// takes part in one product with each later column. Of the symmetric matrix $\sum_j y_{jn} x_j x_j^T$
/// a group of columns has the rows from its own first one on; those below its own are doubled, so that
/// $\sum_{ab} S_{nab} x_a x_b$ over what is stored is what it is over the whole.
pub(crate) struct Columns<T> {
    /// The scaled rows x, and the same transposed.
    rows: Buffer<T>,
    columns: Buffer<T>,
    width: usize,
    scale: T,
    buffers: Buffers<T>,
}

/// Columns that are spread at a time, and where their part of S begins, counted in matrix entries.
struct Group {
    columns: Range<usize>,
    start: usize,
}

impl Group {
    /// Their part of S for some values: rows of x's later columns, `values` times the group wide.
    fn part(&self, width: usize, values: usize) -> Range<usize> {
        let entries = (width - self.columns.start) * self.columns.len();
        self.start * values..(self.start + entries) * values
    }
}

fn groups(width: usize) -> impl Iterator<Item = Group> {
    (0..width).step_by(GROUP).scan(0, move |start, first| {
        let columns = first..(first + GROUP).min(width);
        let group = Group {
            start: *start,
            columns,
        };
        *start = group.part(width, 1).end;
        Some(group)
    })
}

/// The entries stored of one symmetric matrix.
pub(super) fn count(width: usize) -> usize {
    groups(width)
        .last()
        .map_or(0, |last| last.part(width, 1).end)
}

impl<T: Real> Columns<T> {
    /// No rows; later $x = $ `scale` times rows of `width` numbers, about [`BLOCK`] at a time.
    pub(super) fn new(buffers: &Buffers<T>, width: usize, scale: T) -> Self {
        Self {
            rows: buffers.empty(BLOCK * width),
            columns: buffers.empty(BLOCK * width),
            width,
            scale,
            buffers: buffers.clone(),
        }
    }

    /// Takes other rows, in the same memory.
    pub(super) fn of(&mut self, phi: Mat<T>) -> &mut Self {
        record(Operations::multiply_adds(phi.data().len()));
        self.rows.clear();
        self.rows.extend(phi.data().iter().map(|&x| self.scale * x));
        self.columns.resize(self.rows.len(), T::zero());
        transpose(&self.rows, self.width, T::one(), &mut self.columns);
        self
    }

    fn len(&self) -> usize {
        self.rows.len() / self.width
    }

    /// Columns of x as rows, from one on.
    fn columns_from(&self, first: usize) -> Mat<'_, T> {
        let rows = self.len();
        Mat::new(&self.columns[first * rows..], self.width - first, rows)
    }

    /// $S \leftarrow S + \sum_i x_i x_i^T y_i$.
    pub(super) fn add_to(&self, y: &Augmented<T>, moments: &mut Augmented<T>) {
        let width = y.width();
        self.add_values(&y.wide, width, &mut moments.wide);
        self.add_values(&y.last, 1, &mut moments.last);
    }

    fn add_values(&self, y: &[T], values: usize, moments: &mut [T]) {
        let mut spread = self.buffers.empty(self.len() * values * GROUP);
        for group in groups(self.width) {
            let (own, wide) = (group.columns.len(), values * group.columns.len());
            spread.resize(self.len() * wide, T::zero());
            record(Operations::multiply_adds(spread.len()));
            instructions::run(SpreadRows {
                rows: &self.rows,
                width: self.width,
                columns: group.columns.clone(),
                y,
                values,
                spread: &mut spread,
            });
            let spread = Mat::new(&spread, self.len(), wide);
            let part = &mut moments[group.part(self.width, values)];
            let (diagonal, below) = part.split_at_mut(own * wide);
            let left = self.columns_from(group.columns.start);
            let (own_rows, later) = (left.row_range(0..own), left.row_range(own..left.shape().0));
            let one = T::one();
            let target = MatMut::new(diagonal, own, wide);
            matmul_in(&self.buffers, one, own_rows, spread, one, target);
            let target = MatMut::new(below, later.shape().0, wide);
            matmul_in(&self.buffers, one + one, later, spread, one, target);
        }
    }

    /// $\sum_{ab} S_{nab} x_{ia} x_{ib}$ of each row.
    pub(super) fn read(&self, moments: &Augmented<T>) -> Augmented<T> {
        let values = moments.width();
        Augmented {
            wide: self.walk(&moments.wide, values, None),
            last: self.walk(&moments.last, 1, None),
        }
    }

    /// Reads as [`Columns::read`] does, and adds to the gradient with respect to `phi` that of $\sum_i y_i$
    /// times what is read.
    pub(super) fn pull_back(
        &self,
        moments: &Augmented<T>,
        y: &Augmented<T>,
        gradient: &mut [T],
    ) -> Augmented<T> {
        let mut d_columns = self.buffers.filled(self.columns.len(), T::zero());
        let read = Augmented {
            wide: self.walk(&moments.wide, y.width(), Some((&y.wide, &mut d_columns))),
            last: self.walk(&moments.last, 1, Some((&y.last, &mut d_columns))),
        };
        add_transposed(&d_columns, self.width, self.scale, gradient);
        read
    }

    /// Returns the product of each row with the moments. If y and the transposed gradient of the rows are given, the
    /// walk adds to that gradient too.
    fn walk(&self, moments: &[T], values: usize, mut pull: Option<(&[T], &mut [T])>) -> Buffer<T> {
        let rows = self.len();
        let mut read = self.buffers.filled(values * rows, T::zero());
        let mut y_columns = self.buffers.empty(values * rows);
        if let Some((y, _)) = pull {
            y_columns.resize(values * rows, T::zero());
            transpose(y, values, T::one(), &mut y_columns);
        }
        let mut product = self.buffers.empty(values * GROUP * rows);
        for group in groups(self.width) {
            let (first, wide) = (group.columns.start, values * group.columns.len());
            product.resize(wide * rows, T::zero());
            let part = &moments[group.part(self.width, values)];
            let part = Mat::new(part, self.width - first, wide);
            let target = MatMut::new(&mut product, wide, rows);
            let (columns, buffers) = (self.columns_from(first), &self.buffers);
            matmul_in(buffers, T::one(), part.t(), columns, T::zero(), target);
            record(Operations::multiply_adds(product.len()));
            let columns = &self.columns[first * rows..group.columns.end * rows];
            instructions::run(Contract {
                columns,
                rows,
                product: &product,
                read: &mut read,
            });
            let Some((_, d_columns)) = &mut pull else {
                continue;
            };
            record(Operations::multiply_adds(2 * product.len()));
            let later = &mut d_columns[first * rows..];
            instructions::run(PullGroup {
                columns,
                rows,
                y: &y_columns,
                product: &mut product,
                d_columns: &mut later[..columns.len()],
            });
            let spread = Mat::new(&product, wide, rows);
            let target = MatMut::new(later, self.width - first, rows);
            matmul_in(buffers, T::one(), part, spread, T::one(), target);
        }
        let mut by_row = self.buffers.filled(read.len(), T::zero());
        transpose(&read, rows, T::one(), &mut by_row);
        by_row
    }
}

/// $y_{in} x_{ia}$, a row for each row, a value after the other.
struct SpreadRows<'a, T> {
    rows: &'a [T],
    width: usize,
    columns: Range<usize>,
    y: &'a [T],
    values: usize,
    spread: &'a mut [T],
}

impl<T: Real> Task for SpreadRows<'_, T> {
    #[inline(always)]
    fn run<A: Arithmetic>(self, _: A) {
        let (values, own) = (self.values, self.columns.len());
        let rows = self
            .rows
            .chunks_exact(self.width)
            .zip(self.y.chunks_exact(values));
        for ((x, y), spread) in rows.zip(self.spread.chunks_exact_mut(values * own)) {
            let x = &x[self.columns.clone()];
            for (&y, spread) in y.iter().zip(spread.chunks_exact_mut(own)) {
                let spread = spread.iter_mut().zip(x);
                spread.for_each(|(spread, &x)| *spread = y * x);
            }
        }
    }
}

/// $\sum_a x_{ia} P_{nai}$ of each row and value, P being the group's product.
struct Contract<'a, T> {
    columns: &'a [T],
    rows: usize,
    product: &'a [T],
    read: &'a mut [T],
}

impl<T: Real> Task for Contract<'_, T> {
    #[inline(always)]
    fn run<A: Arithmetic>(self, _: A) {
        let values = self.product.chunks_exact(self.columns.len());
        for (product, read) in values.zip(self.read.chunks_exact_mut(self.rows)) {
            let columns = self.columns.chunks_exact(self.rows);
            for (x, product) in columns.zip(product.chunks_exact(self.rows)) {
                for ((read, &x), &p) in read.iter_mut().zip(x).zip(product) {
                    *read = A::mul_add(x, p, *read);
                }
            }
        }
    }
}

/// Adds $\sum_n y_{in} P_{nai}$ to the gradient of each column and row; then $y_{in} x_{ia}$ stands
/// where P was.
struct PullGroup<'a, T> {
    columns: &'a [T],
    rows: usize,
    y: &'a [T],
    product: &'a mut [T],
    d_columns: &'a mut [T],
}

impl<T: Real> Task for PullGroup<'_, T> {
    #[inline(always)]
    fn run<A: Arithmetic>(self, _: A) {
        let rows = self.rows;
        let values = self.product.chunks_exact_mut(self.columns.len());
        for (product, y) in values.zip(self.y.chunks_exact(rows)) {
            let columns = self.columns.chunks_exact(rows);
            let columns = columns.zip(self.d_columns.chunks_exact_mut(rows));
            for ((x, d), product) in columns.zip(product.chunks_exact_mut(rows)) {
                for (((d, p), &x), &y) in d.iter_mut().zip(product).zip(x).zip(y) {
                    *d = A::mul_add(y, *p, *d);
                    *p = x * y;
                }
            }
        }
    }
}
