//! Exact Gaussian similarities $e^{-|q_i - c a|^2 / 2}$ and $e^{-|c a - k_j|^2 / 2}$ of all nodes.

use crate::engine::Call;
use crate::engine::edge_sums::{by_nodes, map_nodes};
use crate::score::Half;
use crate::sums::sum_of;
use bochner_numerics::scaling::bounded;
use bochner_numerics::{Real, parallel};
use ndarray::ArrayView2;

/// One side's view of a score: nodes have coordinates in one half of $\mathbb{R}^{2F}$, zeros in the
/// other.
struct Side<'a, 'b, 'c, T: Real> {
    call: &'a Call<'a, 'b, T>,
    a: ArrayView2<'c, T>,
    half: Half,
    /// The two values of c.
    classes: [f64; 2],
}

impl<'a, 'b, 'c, T: Real> Side<'a, 'b, 'c, T> {
    fn new(call: &'a Call<'a, 'b, T>, a: ArrayView2<'c, T>, half: Half) -> Self {
        let classes = [1.0, call.settings.slope];
        Self {
            call,
            a,
            half,
            classes,
        }
    }

    /// A node's coordinates in one head.
    fn node(&self, node: usize, head: usize) -> impl Iterator<Item = f64> {
        let x = self.call.features(self.half);
        let shape = self.call.shape;
        let first = node * shape.columns() + head * shape.width;
        x[first..first + shape.width].iter().map(|x| x.as_f64())
    }

    /// $a$ of one head where nodes have coordinates, and where they have zeros.
    fn halves(&self, head: usize) -> [Vec<f64>; 2] {
        let a: Vec<f64> = self.a.row(head).iter().map(|a| a.as_f64()).collect();
        let (first, second) = a.split_at(self.call.shape.width);
        match self.half {
            Half::Target => [first.to_vec(), second.to_vec()],
            Half::Source => [second.to_vec(), first.to_vec()],
        }
    }
}

/// The logarithms of the similarities of one side, `[N, 2H]`.
pub(super) fn of_nodes<T: Real>(call: &Call<T>, a: ArrayView2<T>, half: Half) -> Vec<f64> {
    let (side, heads) = (Side::new(call, a, half), call.shape.heads);
    let halves: Vec<_> = (0..heads).map(|head| side.halves(head)).collect();
    let pieces = by_nodes(call.nodes(half));
    let parts = parallel::map(pieces.len(), |i| {
        let mut logarithms = Vec::with_capacity(pieces[i].len() * 2 * heads);
        for node in pieces[i].clone() {
            for c in side.classes {
                logarithms.extend(halves.iter().enumerate().map(|(head, [own, other])| {
                    let own = side.node(node, head).zip(own).map(|(x, a)| x - c * a);
                    let other = other.iter().map(|a| c * a);
                    -0.5 * own.chain(other).map(|x| x * x).sum::<f64>()
                }));
            }
        }
        logarithms
    });
    parts.concat()
}

/// Given the gradients with respect to one side's logarithms, `[N, 2H]`, adds the gradients with respect to
/// the nodes' features and to $a$, `[H, 2F]`.
pub(super) fn pull_back<T: Real>(
    call: &Call<T>,
    a: ArrayView2<T>,
    half: Half,
    along_logarithms: &[T],
    [along_nodes, along_a]: [&mut [T]; 2],
) {
    let (side, shape) = (Side::new(call, a, half), call.shape);
    let halves: Vec<_> = (0..shape.heads).map(|head| side.halves(head)).collect();
    let sums = map_nodes(along_nodes, shape.columns(), |nodes, along_nodes| {
        let mut sums = vec![0.0; 2 * shape.columns()];
        let rows = along_nodes.chunks_exact_mut(shape.columns());
        for (node, row) in nodes.zip(rows) {
            let g = &along_logarithms[node * 2 * shape.heads..][..2 * shape.heads];
            let heads = row.chunks_exact_mut(shape.width).zip(&halves);
            let heads = heads.zip(sums.chunks_exact_mut(2 * shape.width));
            for (head, ((row, halves), sums)) in heads.enumerate() {
                let x = side.node(node, head);
                let g = [g[head], g[shape.heads + head]].map(T::as_f64);
                add(x, halves, g, side.classes, row, sums);
            }
        }
        sums
    });
    let sums = sum_of(sums, 2 * shape.columns());
    let heads = along_a.chunks_exact_mut(2 * shape.width);
    for (along_a, sums) in heads.zip(sums.chunks_exact(2 * shape.width)) {
        let places = match half {
            Half::Target => [0, shape.width],
            Half::Source => [shape.width, 0],
        };
        for (n, &sum) in sums.iter().enumerate() {
            let place = places[n / shape.width] + n % shape.width;
            along_a[place] = bounded(along_a[place] + T::of(sum));
        }
    }
}

/// Adds the gradients of one node and head: along the node, and along $a$ where it has coordinates and
/// where it has zeros.
fn add<T: Real>(
    x: impl Iterator<Item = f64>,
    [own, other]: &[Vec<f64>; 2],
    g: [f64; 2],
    classes: [f64; 2],
    along_x: &mut [T],
    along_a: &mut [f64],
) {
    let (along_own, along_other) = along_a.split_at_mut(own.len());
    for (((x, a), along_x), along_a) in x.zip(own).zip(along_x).zip(along_own) {
        for (g, c) in g.into_iter().zip(classes) {
            *along_x = bounded(*along_x + T::of(g * (c * a - x)));
            *along_a += g * c * (x - c * a);
        }
    }
    for (a, along_a) in other.iter().zip(along_other) {
        for (g, c) in g.into_iter().zip(classes) {
            *along_a -= g * c * c * a;
        }
    }
}
