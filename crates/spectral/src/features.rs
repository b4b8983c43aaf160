//! Queries and keys that a posterior is inferred from, and the masks of their positions.

use crate::Error;
use bochner_numerics::{Real, argument, parallel};
use ndarray::{Array4, ArrayView1, ArrayView2, ArrayView4, Zip, s};

/// Queries and keys that a posterior may be inferred from.
///
/// Positions outside the masks are never read, so that padding may hold anything.
///
/// # Shapes
/// `q` is `[B, M, Tq, d]`, `k` is `[B, M, Tk, d]`; `q_kept` is `[B, Tq]` and `k_kept` `[B, Tk]`, true where a position
/// counts. `None` counts all positions.
#[derive(Clone, Copy, Debug)]
pub struct Features<'a, T> {
    /// The queries.
    pub q: ArrayView4<'a, T>,
    /// The keys.
    pub k: ArrayView4<'a, T>,
    /// The mask of the queries, true where a query counts.
    pub q_kept: Option<ArrayView2<'a, bool>>,
    /// The mask of the keys, true where a key counts.
    pub k_kept: Option<ArrayView2<'a, bool>>,
}

impl<'a, T: Real> Features<'a, T> {
    /// Features of which every position counts.
    pub fn new(q: ArrayView4<'a, T>, k: ArrayView4<'a, T>) -> Self {
        Self {
            q,
            k,
            q_kept: None,
            k_kept: None,
        }
    }

    /// Batch, heads and width, if everything fits the queries.
    pub(crate) fn checked(&self) -> Result<(usize, usize, usize), Error> {
        let (batch, heads, queries, width) = self.q.dim();
        let keys = self.k.dim().2;
        argument::at_least_one("width", width)?;
        argument::shape("k", &[batch, heads, keys, width], self.k.shape())?;
        if let Some(kept) = &self.q_kept {
            argument::shape("q_kept", &[batch, queries], kept.shape())?;
        }
        if let Some(kept) = &self.k_kept {
            argument::shape("k_kept", &[batch, keys], kept.shape())?;
        }
        Ok((batch, heads, width))
    }

    /// The means of queries and keys over the positions that count, `[B, M, 2d]`, of features that fit.
    pub(crate) fn means(&self) -> Vec<T> {
        let (batch, heads, _, width) = self.q.dim();
        let [q, k] = self.positions();
        let mut means = vec![T::zero(); batch * heads * 2 * width];
        parallel::for_each_chunk(&mut means, 2 * width, |i, row| {
            let (b, m) = (i / heads, i % heads);
            let (q_mean, k_mean) = row.split_at_mut(width);
            q.mean(b, m, q_mean);
            k.mean(b, m, k_mean);
        });
        means
    }

    pub(crate) fn positions(&self) -> [Positions<'a, T>; 2] {
        [(self.q, self.q_kept), (self.k, self.k_kept)].map(|(x, kept)| Positions { x, kept })
    }

    /// The error that names the first number that is not finite at a position that counts.
    pub(crate) fn expect_finite(&self) -> Result<(), Error> {
        for (name, positions) in ["q", "k"].into_iter().zip(self.positions()) {
            let x = positions.x;
            let read = x.indexed_iter().map(
                |((b, _, t, _), x)| {
                    if positions.keeps(b, t) { *x } else { T::zero() }
                },
            );
            argument::finite(name, x.shape(), &read.collect::<Vec<_>>())?;
        }
        Ok(())
    }
}

/// Whether two arrays hold the same values, NaN where the other does.
pub(crate) fn same_values<T: Real>(a: &[T], b: &[T]) -> bool {
    let same = |(a, b): (&T, &T)| a == b || (a.is_nan() && b.is_nan());
    a.len() == b.len() && a.iter().zip(b).all(same)
}

/// Queries or keys `[B, M, T, d]` with the positions `[B, T]` that count; `None` counts all.
pub(crate) struct Positions<'a, T> {
    x: ArrayView4<'a, T>,
    kept: Option<ArrayView2<'a, bool>>,
}

impl<T: Real> Positions<'_, T> {
    /// The mean of head `m` of example `b`, in double precision; zero if nothing is kept.
    pub(crate) fn mean(&self, b: usize, m: usize, mean: &mut [T]) {
        let x = self.x.slice(s![b, m, .., ..]);
        let mut sum = vec![0.0; mean.len()];
        for (_, row) in x
            .outer_iter()
            .enumerate()
            .filter(|&(t, _)| self.keeps(b, t))
        {
            Zip::from(&mut sum[..])
                .and(row)
                .for_each(|sum, x| *sum += x.as_f64());
        }
        let share = self.share(b);
        for (mean, sum) in mean.iter_mut().zip(sum) {
            *mean = T::of(sum * share);
        }
    }

    /// The gradient along all positions, given `along_mean(b, m)`, that along each mean: every
    /// kept position takes an equal share, and the others none.
    pub(crate) fn spread<'b>(
        &self,
        along_mean: impl Fn(usize, usize) -> ArrayView1<'b, T> + Send + Sync,
    ) -> Array4<T>
    where
        T: 'b,
    {
        let (_, heads, length, width) = self.x.dim();
        let mut along_x = Array4::zeros(self.x.dim());
        if along_x.is_empty() {
            return along_x;
        }
        let data = along_x.as_slice_mut().expect("a new array is row-major");
        parallel::for_each_chunk(data, length * width, |i, head| {
            let (b, m) = (i / heads, i % heads);
            let share = T::of(self.share(b));
            let each: Vec<T> = along_mean(b, m).iter().map(|&x| x * share).collect();
            let rows = head.chunks_exact_mut(width).enumerate();
            for (_, row) in rows.filter(|&(t, _)| self.keeps(b, t)) {
                row.copy_from_slice(&each);
            }
        });
        along_x
    }

    fn keeps(&self, b: usize, t: usize) -> bool {
        self.kept.is_none_or(|kept| kept[[b, t]])
    }

    /// One over the number of kept positions, or zero.
    fn share(&self, b: usize) -> f64 {
        let count = (0..self.x.dim().2).filter(|&t| self.keeps(b, t)).count();
        if count == 0 { 0.0 } else { 1.0 / count as f64 }
    }
}
