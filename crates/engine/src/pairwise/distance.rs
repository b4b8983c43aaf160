//! Squared distances from inner products.

use crate::lanes::{add, dot, sum};
use bochner_numerics::instructions::{self, Arithmetic, Task};
use bochner_numerics::operations::record;
use bochner_numerics::{Mat, Operations, Real};
use std::ops::Range;

/// The part of $|q|^2 + |k|^2$ below which $|q|^2 + |k|^2 - 2 q \cdot k$ has lost digits that matter.
///
/// Above it the relative error of a distance is at most `1 / NEAR` times that of the products, a few dozen of the type's
/// epsilons. Below it a pair is computed again by differences, whose relative error is a few epsilons wherever the points
/// lie. That is decided from the pair alone, so that no key matters to another. Where all pairs are near, a distance
/// costs a pass over both rows in place of its part of a product, five to nine times as much.
const NEAR: f64 = 1.0 / 32.0;

/// Rows of queries and of keys with the squared norms of the keys.
#[derive(Clone, Copy)]
pub(super) struct Points<'a, T> {
    pub(super) left: Mat<'a, T>,
    pub(super) right: Mat<'a, T>,
    /// The squared norms of the rows of `right`.
    pub(super) norms: &'a [T],
}

impl<T: Real> Points<'_, T> {
    /// Replaces $-2 q_i \cdot k_j$ by $|q_i - k_j|^2$ in rows of numbers, one for each of `keys`; adds the near pairs
    /// to a list, if there is one.
    pub(super) fn distances(
        &self,
        queries: Range<usize>,
        keys: &Range<usize>,
        block: &mut [T],
        mut near: Option<&mut Vec<(usize, usize)>>,
    ) {
        record(Operations::multiply_adds(block.len()));
        let norms = &self.norms[keys.clone()];
        for (i, row) in queries.zip(block.chunks_exact_mut(keys.len())) {
            let query = self.left.row(i);
            let norm = dot(query, query);
            let mut nearest = T::zero();
            instructions::run(Complete {
                row: &mut *row,
                norm,
                norms,
                nearest: &mut nearest,
            });
            if nearest < T::zero() {
                self.compute_near((i, keys.start), norm, row, near.as_deref_mut());
            }
        }
    }

    /// Computes the distances of the near pairs of a row by differences.
    #[cold]
    fn compute_near(
        &self,
        (i, first): (usize, usize),
        norm: T,
        row: &mut [T],
        mut near: Option<&mut Vec<(usize, usize)>>,
    ) {
        let keys = row.iter_mut().zip(&self.norms[first..]);
        for (j, (x, &other)) in (first..).zip(keys) {
            if *x < T::of(NEAR) * (norm + other) {
                let pairs = self.left.row(i).iter().zip(self.right.row(j));
                *x = pairs.map(|(&q, &k)| (q - k) * (q - k)).sum();
                if let Some(near) = &mut near {
                    near.push((i, j));
                }
            }
        }
    }

    /// Replaces the gradients along the distances of near pairs by zeros, and adds their share to the gradients along
    /// queries and keys; adds what the norms of all other pairs contribute.
    ///
    /// $-2 dx K$ and $-2 dx^\top Q$ are left for two matrix products.
    pub(super) fn pull(
        &self,
        (queries, keys): (&Range<usize>, &Range<usize>),
        near: &[(usize, usize)],
        dx: &mut [T],
        [d_left, d_right]: [&mut [T]; 2],
    ) {
        let (width, two) = (self.left.shape().1, T::of(2.0));
        for &(i, j) in near {
            let (row, column) = (i - queries.start, j - keys.start);
            let slope = two * std::mem::take(&mut dx[row * keys.len() + column]);
            let (dq, dk) = (
                &mut d_left[row * width..][..width],
                &mut d_right[column * width..][..width],
            );
            let pairs = self.left.row(i).iter().zip(self.right.row(j));
            for ((&q, &k), (dq, dk)) in pairs.zip(dq.iter_mut().zip(dk)) {
                *dq += slope * (q - k);
                *dk -= slope * (q - k);
            }
        }
        let mut sums = vec![T::zero(); keys.len()];
        let rows = dx
            .chunks_exact(keys.len())
            .zip(d_left.chunks_exact_mut(width));
        for (i, (dx, dq)) in queries.clone().zip(rows) {
            add(&mut sums, dx);
            let of_row = two * sum(dx);
            dq.iter_mut()
                .zip(self.left.row(i))
                .for_each(|(d, &q)| *d += of_row * q);
        }
        for ((j, &of_column), dk) in keys.clone().zip(&sums).zip(d_right.chunks_exact_mut(width)) {
            let pairs = dk.iter_mut().zip(self.right.row(j));
            pairs.for_each(|(d, &k)| *d += two * of_column * k);
        }
    }
}

/// Adds norms to a row of products, and finds the least distance beside its norms.
struct Complete<'a, T> {
    row: &'a mut [T],
    norm: T,
    norms: &'a [T],
    nearest: &'a mut T,
}

impl<T: Real> Task for Complete<'_, T> {
    #[inline(always)]
    fn run<A: Arithmetic>(self, _: A) {
        let Self {
            row,
            norm,
            norms,
            nearest,
        } = self;
        let near = T::of(NEAR);
        let complete = |x: T, other: T, least: T| {
            let norms = norm + other;
            let distance = x + norms;
            let excess = A::mul_add(-near, norms, distance);
            (distance, if excess < least { excess } else { least })
        };
        let mut lanes = [*nearest; 16];
        let ((chunks, rest), (of_chunks, of_rest)) =
            (row.as_chunks_mut::<16>(), norms.as_chunks::<16>());
        for (chunk, norms) in chunks.iter_mut().zip(of_chunks) {
            for ((x, &other), least) in chunk.iter_mut().zip(norms).zip(&mut lanes) {
                (*x, *least) = complete(*x, other, *least);
            }
        }
        for (x, &other) in rest.iter_mut().zip(of_rest) {
            (*x, lanes[0]) = complete(*x, other, lanes[0]);
        }
        *nearest = lanes
            .into_iter()
            .fold(*nearest, |a, b| if b < a { b } else { a });
    }
}
