//! The term that attributes of the edges add: $t_{ij} = b \cdot W_e e_{ij}$, which is $e_{ij} \cdot u$ with
//! $u_h = W_e^T b_h$.

use crate::features::dense;
use crate::score::EdgeTermGradients;
use crate::{EdgeTerm, Graph};
use bochner_numerics::Real;
use ndarray::{Array2, Array3, ArrayView2, Axis};

/// $t$ of all edges, `[E, H]` by place.
pub(super) fn by_place<T: Real>(graph: &Graph, term: &EdgeTerm<T>) -> Vec<T> {
    let u = directions(term);
    let heads = u.ncols();
    let u = u.as_slice().expect("allocated in row-major order");
    let by_edge = dense::times(term.attributes, u, heads);
    let order = graph.order.iter();
    let rows = order.flat_map(|&edge| &by_edge[edge as usize * heads..][..heads]);
    rows.copied().collect()
}

/// The gradients, from those along $t$ by place.
pub(super) fn pull_back<T: Real>(
    graph: &Graph,
    term: &EdgeTerm<T>,
    along_term: &[T],
) -> EdgeTermGradients<T> {
    let (heads, width) = term.b.dim();
    let mut by_edge = vec![T::zero(); along_term.len()];
    for (row, &edge) in along_term.chunks_exact(heads).zip(graph.order.iter()) {
        by_edge[edge as usize * heads..][..heads].copy_from_slice(row);
    }
    let columns = term.attributes.ncols();
    let along_u = dense::transposed_times(term.attributes, &by_edge, heads);
    let along_u = Array2::from_shape_vec((columns, heads), along_u).expect("one row a column");
    let by_edge = ArrayView2::from_shape((graph.edge_count(), heads), &by_edge);
    let by_edge = by_edge.expect("one row an edge");
    let attributes = dense::times_transposed(by_edge, directions(term).view());
    let attributes = Array2::from_shape_vec((graph.edge_count(), columns), attributes);
    let (weight, b) = along_parameters(term, &along_u, [columns, heads, width]);
    EdgeTermGradients {
        attributes: attributes.expect("one row an edge"),
        weight,
        b,
    }
}

/// $u$, `[G, H]`.
fn directions<T: Real>(term: &EdgeTerm<T>) -> Array2<T> {
    let (heads, width) = term.b.dim();
    Array2::from_shape_fn((term.weight.nrows(), heads), |(column, head)| {
        let weight = (0..width).map(|k| term.weight[[column, head * width + k]]);
        weight.zip(term.b.row(head)).map(|(w, &b)| w * b).sum()
    })
}

/// The gradients along the weight and the vectors.
fn along_parameters<T: Real>(
    term: &EdgeTerm<T>,
    along_u: &Array2<T>,
    [columns, heads, width]: [usize; 3],
) -> (Array2<T>, Array2<T>) {
    let weight = Array3::from_shape_fn((columns, heads, width), |(column, head, k)| {
        along_u[[column, head]] * term.b[[head, k]]
    });
    let weight = weight.into_shape_with_order((columns, heads * width));
    let b = Array2::from_shape_fn((heads, width), |(head, k)| {
        let along = along_u.index_axis(Axis(1), head);
        let weight = term.weight.index_axis(Axis(1), head * width + k);
        along.iter().zip(weight).map(|(&g, &w)| g * w).sum()
    });
    (weight.expect("as many elements"), b)
}
