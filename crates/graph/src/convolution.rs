//! The normalised sum over neighbours.

use crate::engine::unit;
use crate::error::{finite, largest};
use crate::features::multiply::{Matrix, multiply};
use crate::{Error, Graph};
use bochner_numerics::scaling::bounded;
use bochner_numerics::{Real, argument};
use ndarray::{Array2, ArrayView2};

/// Edges of a piece of work.
const PIECE: usize = 2048;

/// Each node's sum over the nodes from which an edge leads to it,
/// $\hat A X$ with $\hat A = D^{-1/2} A D^{-1/2}$: $y_i = \sum_{j \to i} x_j / \sqrt{d_i d_j}$.
///
/// *where* $d$ are the numbers of edges that lead to a node, $D$ of the matrix. The self loops of
/// Kipf and Welling, $A + I$, are the caller's to add ([`Graph::with_self_loops`]).
///
/// # Shapes
/// `x: [N, F]` to `[N, F]`.
///
/// # Errors
/// [`Error::NotSquare`]; [`Error::Argument`] for another number of rows, NaN or infinity.
///
/// # Numerics
/// $O(E F)$ time. A node to which no edge leads receives zero and gives zero. A sum beyond the range of the
/// type is its largest number, never NaN.
///
/// # Reference
/// Kipf and Welling 2017, *Semi-supervised classification with graph convolutional networks*.
///
/// ```
/// use bochner_graph::{Graph, convolve};
/// use bochner_graph::ndarray::array;
///
/// let graph = Graph::from_edges(2, [(0, 1)])?.with_self_loops()?.graph;
/// let y = convolve(&graph, array![[2.0], [4.0]].view())?;
/// let want = array![[2.0], [2.0 / 2.0_f64.sqrt() + 4.0 / 2.0]];
/// assert!((y - want).iter().all(|off: &f64| off.abs() < 1e-12));
/// # Ok::<(), bochner_graph::Error>(())
/// ```
pub fn convolve<T: Real>(graph: &Graph, x: ArrayView2<T>) -> Result<Array2<T>, Error> {
    let inverse = inverse_roots::<T>(graph, "x", &x)?;
    let standard = x.as_standard_layout();
    let features = standard.as_slice().expect("brought to row-major order");
    finite("x", x.shape(), features)?;
    let rows = &graph.by_target;
    let values = (0..rows.count()).flat_map(|i| {
        let inverse = &inverse;
        rows.row(i)
            .iter()
            .map(move |&j| inverse[i] * inverse[j as usize])
    });
    Ok(times(rows, values.collect(), x))
}

/// The vector-Jacobian product of [`convolve`]: $\hat A^T \dot Y$.
///
/// # Shapes
/// `cotangent: [N, F]` to `[N, F]`.
///
/// # Errors
/// [`Error::NotSquare`]; [`Error::Argument`] for another number of rows. NaN and infinity in the cotangent
/// spread along the edges.
pub fn convolve_vjp<T: Real>(graph: &Graph, cotangent: ArrayView2<T>) -> Result<Array2<T>, Error> {
    let inverse = inverse_roots::<T>(graph, "cotangent", &cotangent)?;
    let rows = &graph.by_source;
    let values = (0..rows.count()).flat_map(|j| {
        let inverse = &inverse;
        rows.row(j)
            .iter()
            .map(move |&i| inverse[i as usize] * inverse[j])
    });
    Ok(times(rows, values.collect(), cotangent))
}

/// $1 / \sqrt{d_i}$ of each node, 0 where no edge leads.
fn inverse_roots<T: Real>(
    graph: &Graph,
    name: &'static str,
    x: &ArrayView2<T>,
) -> Result<Vec<T>, Error> {
    graph.expect_square("a convolution")?;
    argument::shape(name, &[graph.targets(), x.ncols()], x.shape())?;
    let degrees = (0..graph.targets()).map(|i| graph.in_degree(i) as f64);
    let inverse = |degree: f64| {
        if degree > 0.0 {
            1.0 / degree.sqrt()
        } else {
            0.0
        }
    };
    Ok(degrees.map(|degree| T::of(inverse(degree))).collect())
}

fn times<T: Real>(rows: &crate::compressed::Rows, values: Vec<T>, x: ArrayView2<T>) -> Array2<T> {
    let shape = x.raw_dim();
    if x.is_empty() {
        return Array2::zeros(shape);
    }
    let x = x.as_standard_layout();
    let right = x.as_slice().expect("brought to row-major order");
    let matrix = Matrix {
        rows,
        values: &values,
        places: None,
    };
    let unit = unit(right, largest());
    let y = if unit > T::one() {
        let right: Vec<T> = right.iter().map(|&x| x / unit).collect();
        let mut y = multiply(matrix, &right, shape[1], PIECE);
        y.iter_mut().for_each(|y| *y = bounded(*y * unit));
        y
    } else {
        multiply(matrix, right, shape[1], PIECE)
    };
    Array2::from_shape_vec(shape, y).expect("as many rows as there are nodes")
}
