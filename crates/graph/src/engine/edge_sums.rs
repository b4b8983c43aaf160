//! Sums over the edges of a node, and over nodes, in a fixed order.

use super::PIECE;
use super::rows::{add, row};
use crate::Graph;
use crate::compressed::{Rows, filled};
use crate::sums::RowSum;
use bochner_numerics::instructions::{Arithmetic, Task, run};
use bochner_numerics::{Real, parallel};
use std::ops::Range;

/// The sums of `x`, `[E, width]` by place, over the edges of each target.
pub(super) fn by_target<T: Real>(graph: &Graph, x: &[T], width: usize) -> Vec<T> {
    sums(&graph.by_target, None, x, width)
}

/// The sums of `x`, `[E, width]` by place, over the edges of each source.
pub(super) fn by_source<T: Real>(graph: &Graph, x: &[T], width: usize) -> Vec<T> {
    sums(&graph.by_source, Some(&graph.places), x, width)
}

fn sums<T: Real>(rows: &Rows, places: Option<&[u32]>, x: &[T], width: usize) -> Vec<T> {
    let pieces = rows.pieces(PIECE);
    filled(pieces.iter().map(Range::len), width, |i, out| {
        run(Sums {
            rows,
            places,
            range: pieces[i].clone(),
            x,
            width,
            out,
        });
    })
}

struct Sums<'a, T> {
    rows: &'a Rows,
    /// The place in `x` of each entry of the rows; without, `x` is in the order of the rows.
    places: Option<&'a [u32]>,
    range: Range<usize>,
    x: &'a [T],
    width: usize,
    out: &'a mut [T],
}

impl<T: Real> Task for Sums<'_, T> {
    #[inline(always)]
    fn run<A: Arithmetic>(self, _: A) {
        let mut sum = RowSum::new(self.width);
        for (node, out) in self.range.zip(self.out.chunks_exact_mut(self.width)) {
            for entry in self.rows.places(node) {
                let place = match self.places {
                    None => entry,
                    Some(places) => places[entry] as usize,
                };
                add(sum.next(), row(self.x, place, self.width));
            }
            sum.add_to(out);
        }
    }
}

/// The number of nodes of a piece of work, by the number of all alone: so many pieces, a power of two or a
/// multiple of eight, that a few threads have nearly the same work.
fn nodes_of_a_piece(nodes: usize) -> usize {
    /// Nodes of a piece, and the most pieces there are.
    const NODES: usize = 256;
    const PIECES: usize = 64;
    let pieces = nodes.div_ceil(NODES).clamp(1, PIECES);
    let pieces = pieces.next_multiple_of(pieces.next_power_of_two().min(8));
    nodes.div_ceil(pieces).max(1)
}

/// Consecutive nodes, cut by their number alone.
pub(super) fn by_nodes(nodes: usize) -> Vec<Range<usize>> {
    let each = nodes_of_a_piece(nodes);
    let starts = (0..nodes).step_by(each);
    starts
        .map(|first| first..(first + each).min(nodes))
        .collect()
}

/// Calls `f` with the nodes of [`by_nodes`] and their rows of `x`, `width` numbers a node, by all threads;
/// the results come in order.
pub(super) fn map_nodes<T: Real, R: Send>(
    x: &mut [T],
    width: usize,
    f: impl Fn(Range<usize>, &mut [T]) -> R + Send + Sync,
) -> Vec<R> {
    let each = nodes_of_a_piece(x.len() / width);
    parallel::map_chunks(x, each * width, |i, x| {
        f(i * each..i * each + x.len() / width, x)
    })
}
