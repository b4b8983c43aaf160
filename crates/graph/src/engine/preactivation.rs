//! $u_{ij} = a_1 \cdot x_i + a_2 \cdot y_j + t_{ij}$, what the LeakyReLU is applied to.

use super::Call;
use super::edge_sums::{by_nodes, map_nodes};
use super::rows::{add_scaled_heads, dot_heads, row};
use crate::compressed::{filled, filled_with};
use crate::settings::Shape;
use crate::sums::{RowSum, sum_of};
use bochner_numerics::Real;
use bochner_numerics::instructions::{Arithmetic, Task, run};
use std::ops::Range;

/// The three parts of $u$.
#[derive(Debug)]
pub(crate) struct Preactivation<T> {
    /// $a_1 \cdot x_i$, `[Nt, H]`.
    pub(super) target: Vec<T>,
    /// $a_2 \cdot y_j$, `[Ns, H]`.
    pub(super) source: Vec<T>,
    /// $t_{ij}$, `[E, H]` by place.
    pub(super) edge: Option<Vec<T>>,
}

impl<T: Real> Preactivation<T> {
    pub(super) fn new(call: &Call<T>, a: &[T], edge: Option<Vec<T>>) -> Self {
        let (first, second) = halves(a, call.shape);
        Self {
            target: by_head(&call.targets, &first, call.shape),
            source: by_head(&call.sources, &second, call.shape),
            edge,
        }
    }

    /// $u$ of one edge and head.
    pub(super) fn value(&self, target: usize, source: usize, place: usize, head: [usize; 2]) -> T {
        let [head, heads] = head;
        let u = self.target[target * heads + head] + self.source[source * heads + head];
        match &self.edge {
            None => u,
            Some(edge) => u + edge[place * heads + head],
        }
    }

    /// Writes $u$ of one edge for all heads.
    #[inline(always)]
    pub(super) fn write(&self, target: usize, source: usize, place: usize, out: &mut [T]) {
        self.write_heads([target, source, place], [0, out.len()], out);
    }

    /// Writes $u$ of one edge, from its target to its place, for some of the heads: the first, and how many
    /// there are in all.
    #[inline(always)]
    pub(super) fn write_heads(
        &self,
        [target, source, place]: [usize; 3],
        [first, heads]: [usize; 2],
        out: &mut [T],
    ) {
        let target = &row(&self.target, target, heads)[first..];
        let source = &row(&self.source, source, heads)[first..];
        for ((u, &x), &y) in out.iter_mut().zip(target).zip(source) {
            *u = x + y;
        }
        if let Some(edge) = &self.edge {
            super::rows::add(out, &row(edge, place, heads)[first..]);
        }
    }
}

/// `a`, `[H, 2F]`, in its two halves `[H, F]`.
pub(super) fn halves<T: Real>(a: &[T], shape: Shape) -> (Vec<T>, Vec<T>) {
    let half = |first: usize| {
        let rows = a.chunks_exact(2 * shape.width);
        rows.flat_map(|row| &row[first..first + shape.width])
            .copied()
            .collect()
    };
    (half(0), half(shape.width))
}

/// $a_h \cdot x_{ih}$ of all nodes and heads: `x` is `[N, H F]`, `a` is `[H, F]`, the result `[N, H]`.
fn by_head<T: Real>(x: &[T], a: &[T], shape: Shape) -> Vec<T> {
    let columns = shape.columns();
    let pieces = by_nodes(x.len() / columns);
    filled(pieces.iter().map(Range::len), shape.heads, |i, out| {
        let nodes = &pieces[i];
        let x = &x[nodes.start * columns..nodes.end * columns];
        let width = shape.width;
        run(ByHead { x, a, width, out });
    })
}

struct ByHead<'a, T> {
    x: &'a [T],
    a: &'a [T],
    width: usize,
    out: &'a mut [T],
}

impl<T: Real> Task for ByHead<'_, T> {
    #[inline(always)]
    fn run<A: Arithmetic>(self, _: A) {
        let width = self.width;
        let (heads, columns) = (self.a.len() / width, self.a.len());
        let nodes = self
            .x
            .chunks_exact(columns)
            .zip(self.out.chunks_exact_mut(heads));
        for (x, out) in nodes {
            dot_heads::<T, A>(x, self.a, width, out);
        }
    }
}

/// The vector-Jacobian product of [`by_head`]: the gradients along `x` and along `a`.
pub(super) fn pull_back<T: Real>(
    x: &[T],
    a: &[T],
    cotangent: &[T],
    shape: Shape,
) -> (Vec<T>, Vec<T>) {
    let (nodes, columns) = (by_nodes(x.len() / shape.columns()), shape.columns());
    let (along_x, along_a) = filled_with(nodes.iter().map(Range::len), columns, |i, along_x| {
        pull_back_nodes([x, a, cotangent], shape, nodes[i].clone(), along_x)
    });
    (along_x, sum_of(along_a, columns))
}

/// [`pull_back`] with the gradient along `x` added to `along_x`; returns the gradient along `a`.
pub(super) fn add_pull_back<T: Real>(
    x: &[T],
    a: &[T],
    cotangent: &[T],
    shape: Shape,
    along_x: &mut [T],
) -> Vec<T> {
    let along_a = map_nodes(along_x, shape.columns(), |nodes, along_x| {
        pull_back_nodes([x, a, cotangent], shape, nodes, along_x)
    });
    sum_of(along_a, shape.columns())
}

/// Adds the gradient along `x` of some nodes to `along_x`; returns their part of the gradient along `a`.
fn pull_back_nodes<T: Real>(
    [x, a, cotangent]: [&[T]; 3],
    shape: Shape,
    nodes: Range<usize>,
    along_x: &mut [T],
) -> Vec<T> {
    let columns = shape.columns();
    let mut along_a = vec![T::zero(); columns];
    run(PullBack {
        x: &x[nodes.start * columns..nodes.end * columns],
        a,
        cotangent: &cotangent[nodes.start * shape.heads..nodes.end * shape.heads],
        width: shape.width,
        along_x,
        along_a: &mut along_a,
    });
    along_a
}

struct PullBack<'a, T> {
    x: &'a [T],
    a: &'a [T],
    cotangent: &'a [T],
    width: usize,
    along_x: &'a mut [T],
    along_a: &'a mut [T],
}

impl<T: Real> Task for PullBack<'_, T> {
    #[inline(always)]
    fn run<A: Arithmetic>(self, _: A) {
        let (width, columns) = (self.width, self.a.len());
        let rows = self
            .x
            .chunks_exact(columns)
            .zip(self.along_x.chunks_exact_mut(columns));
        let rows = rows.zip(self.cotangent.chunks_exact(columns / width));
        let mut along_a = RowSum::new(columns);
        for ((x, along_x), cotangent) in rows {
            add_scaled_heads::<T, A>(along_x, cotangent, self.a, width);
            add_scaled_heads::<T, A>(along_a.next(), cotangent, x, width);
        }
        along_a.add_to(self.along_a);
    }
}
