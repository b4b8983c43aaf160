//! The term that attributes of the edges add within the score.
//!
//! That of the dynamic score is the vector $z_{ij} = W_e e_{ij}$. That of all others is a number,
//! $t_{ij} = b \cdot W_e e_{ij}$, which is $e_{ij} \cdot u$ with $u_h = W_e^T b_h$.

use super::by_edge;
use crate::error::scorable;
use crate::features::dense;
use crate::score::EdgeTermGradients;
use crate::{EdgeTerm, Error, Graph};
use bochner_numerics::Real;
use ndarray::{Array2, Array3, ArrayView2, Axis};

/// $z$ of all edges, `[E, H F]` by place.
pub(super) fn vectors_by_place<T: Real>(
    graph: &Graph,
    term: &EdgeTerm<T>,
) -> Result<Vec<T>, Error> {
    let attributes = attributes_by_place(graph, term);
    let weight = term.weight.as_standard_layout();
    let elements = weight.as_slice().expect("brought to row-major order");
    let z = dense::times(attributes.view(), elements, weight.ncols());
    // They are added to the features, which are within the same limit.
    let rows = ArrayView2::from_shape((graph.edge_count(), weight.ncols()), &z);
    scorable(
        "transformed attributes of the edges",
        rows.expect("a row an edge"),
    )?;
    Ok(z)
}

/// The gradients, from those along $z$ by place.
pub(super) fn pull_back_vectors<T: Real>(
    graph: &Graph,
    term: &EdgeTerm<T>,
    along_vectors: &[T],
) -> EdgeTermGradients<T> {
    let (columns, width) = term.weight.dim();
    let attributes = attributes_by_place(graph, term);
    let weight = dense::transposed_times(attributes.view(), along_vectors, width);
    let along_vectors = ArrayView2::from_shape((graph.edge_count(), width), along_vectors);
    let along_vectors = along_vectors.expect("a row an edge");
    let along_attributes = dense::times_transposed(along_vectors, term.weight);
    EdgeTermGradients {
        attributes: by_edge(graph, &along_attributes, columns),
        weight: array([columns, width], weight),
        b: None,
    }
}

fn attributes_by_place<T: Real>(graph: &Graph, term: &EdgeTerm<T>) -> Array2<T> {
    let order: Vec<usize> = graph.order.iter().map(|&edge| edge as usize).collect();
    term.attributes.select(Axis(0), &order)
}

/// $t$ of all edges, `[E, H]` by place.
pub(super) fn numbers_by_place<T: Real>(graph: &Graph, term: &EdgeTerm<T>) -> Vec<T> {
    let u = directions(term);
    let heads = u.ncols();
    let u = u.as_slice().expect("allocated in row-major order");
    let by_edge = dense::times(term.attributes, u, heads);
    let order = graph.order.iter();
    let rows = order.flat_map(|&edge| &by_edge[edge as usize * heads..][..heads]);
    rows.copied().collect()
}

/// The gradients, from those along $t$ by place.
pub(super) fn pull_back_numbers<T: Real>(
    graph: &Graph,
    term: &EdgeTerm<T>,
    along_numbers: &[T],
) -> EdgeTermGradients<T> {
    let (columns, heads) = (term.attributes.ncols(), vectors(term).nrows());
    let along = by_edge(graph, along_numbers, heads);
    let elements = along.as_slice().expect("allocated in row-major order");
    let along_u = dense::transposed_times(term.attributes, elements, heads);
    let along_u = array([columns, heads], along_u);
    let attributes = dense::times_transposed(along.view(), directions(term).view());
    let (weight, b) = along_parameters(term, &along_u);
    EdgeTermGradients {
        attributes: array([graph.edge_count(), columns], attributes),
        weight,
        b: Some(b),
    }
}

fn array<T>([rows, columns]: [usize; 2], elements: Vec<T>) -> Array2<T> {
    Array2::from_shape_vec((rows, columns), elements).expect("as many elements")
}

/// $b$ of a term that is a number.
fn vectors<'a, T>(term: &EdgeTerm<'a, T>) -> ArrayView2<'a, T> {
    term.b.expect("vectors of a score that is not dynamic")
}

/// $u$, `[G, H]`.
fn directions<T: Real>(term: &EdgeTerm<T>) -> Array2<T> {
    let (heads, width) = vectors(term).dim();
    Array2::from_shape_fn((term.weight.nrows(), heads), |(column, head)| {
        let weight = (0..width).map(|k| term.weight[[column, head * width + k]]);
        weight
            .zip(vectors(term).row(head))
            .map(|(w, &b)| w * b)
            .sum()
    })
}

/// The gradients along the weight and the vectors.
fn along_parameters<T: Real>(term: &EdgeTerm<T>, along_u: &Array2<T>) -> (Array2<T>, Array2<T>) {
    let ((columns, heads), b) = (along_u.dim(), vectors(term));
    let width = b.ncols();
    let weight = Array3::from_shape_fn((columns, heads, width), |(column, head, k)| {
        along_u[[column, head]] * b[[head, k]]
    });
    let weight = weight.into_shape_with_order((columns, heads * width));
    let b = Array2::from_shape_fn((heads, width), |(head, k)| {
        let along = along_u.index_axis(Axis(1), head);
        let weight = term.weight.index_axis(Axis(1), head * width + k);
        along.iter().zip(weight).map(|(&g, &w)| g * w).sum()
    });
    (weight.expect("as many elements"), b)
}
