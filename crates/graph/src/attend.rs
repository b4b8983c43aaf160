//! Attention along edges, and its vector-Jacobian product.

use crate::engine::{Alpha, Call, Cotangent, Prepared};
use crate::error::same_shape;
use crate::score::{EdgeTermGradients, PointsGradients};
use crate::settings::{Merge, Shape};
use crate::{Error, Graph, Settings};
use bochner_numerics::Real;
use ndarray::{Array2, ArrayView2, ArrayViewMut, Dimension};

/// The output of [`attend`], and what [`attend_vjp`] needs again.
#[derive(Debug)]
pub struct Attended<T> {
    /// What each target receives, `[Nt, H F]`, or `[Nt, F]` where the heads are averaged.
    pub output: Array2<T>,
    kept: Kept<T>,
}

/// What is kept between the passes.
#[derive(Debug)]
pub(crate) struct Kept<T> {
    graph: Graph,
    alpha: Alpha<T>,
    shape: Shape,
    prepared: Prepared<T>,
}

/// Weights with the edges that they belong to.
#[derive(Clone, Debug, PartialEq)]
pub struct EdgeWeights<T> {
    /// Pairs (source, target), in the caller's order.
    pub edges: Vec<(usize, usize)>,
    /// The weight of each edge and head, before dropout, `[E, H]`.
    pub weights: Array2<T>,
}

impl<T: Real> Attended<T> {
    /// The normalised weights before dropout, with their edges.
    pub fn weights(&self) -> EdgeWeights<T> {
        self.kept.weights()
    }
}

impl<T: Real> Kept<T> {
    pub(crate) fn weights(&self) -> EdgeWeights<T> {
        EdgeWeights {
            edges: self.graph.edges(),
            weights: by_edge(&self.graph, &self.alpha.normalised, self.shape.heads),
        }
    }

    /// `Ok` if this comes from such a call.
    fn check(&self, call: &Call<T>) -> Result<(), Error> {
        let of_heads = |shape: Shape| [shape.heads, shape.width];
        same_shape(
            "heads and width of what was attended",
            &of_heads(call.shape),
            &of_heads(self.shape),
        )?;
        if self.graph.is_clone_of(call.graph) || self.graph == *call.graph {
            return Ok(());
        }
        Err(Error::AnotherGraph)
    }
}

/// Gradients of [`attend`], shaped as its arguments.
#[derive(Clone, Debug, PartialEq)]
pub struct AttentionGradients<T> {
    /// Along the targets' features.
    pub targets: Array2<T>,
    /// Along the sources' features.
    pub sources: Array2<T>,
    /// Along `a` of the score.
    pub a: Array2<T>,
    /// Along the spectral points of a kernel score.
    pub points: Option<PointsGradients<T>>,
    /// Along what the attributes of the edges come with, if there are any.
    pub edges: Option<EdgeTermGradients<T>>,
}

/// Attention along the edges of a graph:
/// $o_{ih} = \sum_j \alpha_{ijh}\, y_{jh}$, $\alpha_{ijh} = e^{s_{ijh}} / \sum_l e^{s_{ilh}}$.
///
/// *where* $j$ and $l$ run over the sources from which an edge leads to the target $i$, $h$ over the
/// heads, $s$ is the [`Score`](crate::Score), and $y_j$ are the sources' transformed features, both
/// what is scored and what is received; weights and what is received may be dropped.
///
/// # Shapes
/// `targets: [Nt, H F]`, `sources: [Ns, H F]`, the columns of a head side by side; for a square graph
/// both may be the same array. The output is `[Nt, H F]` or `[Nt, F]`, see [`Merge`](crate::Merge).
///
/// # Errors
/// [`Error::ShapeMismatch`], [`Error::Empty`] if there is no head, no width or no spectral point,
/// [`Error::OutOfRange`], [`Error::NotANumber`] if an array holds NaN or a number beyond the fourth
/// root of the type's largest.
///
/// # Numerics
/// $O(N H F + E H F)$ time, for the dynamic score as well, and $O(N H R F + E H)$ more for a kernel
/// score; $O(E H + N H F)$ memory. The largest score of a target is taken off before the
/// exponentials. Kernel scores are compared in double precision; where a similarity is exactly zero
/// at $e = 0$, the weights are those of the limit $e \to 0+$, and where a squared norm overflows,
/// norms are compared by their logarithms. A target to which no edge leads receives zero. The result
/// is the same to the bit for any number of threads and, without dropout on the weights, any order of
/// the edges, but for repeated edges with different attributes.
///
/// # Reference
/// Veličković et al., *Graph attention networks*, 2018; Brody, Alon, Yahav, *How attentive are graph
/// attention networks?*, 2022; Song et al. 2021, equation 10.
///
/// ```
/// use bochner_graph::{Graph, Merge, Score, Settings, attend};
/// use ndarray::array;
///
/// let graph = Graph::from_edges(3, [(0, 2), (1, 2)])?;
/// let x = array![[1.0, 2.0], [3.0, 4.0], [0.0, 0.0]];
/// let a = array![[0.0, 0.0, 0.0, 0.0]]; // one head of width 2, that does not care
/// let settings = Settings {
///     score: Score::Classic { a: a.view() },
///     slope: 0.2,
///     edges: None,
///     merge: Merge::Concatenate,
///     dropout: None,
///     value_dropout: None,
/// };
/// let attended = attend(&graph, x.view(), x.view(), &settings)?;
/// assert_eq!(attended.output, array![[0.0, 0.0], [0.0, 0.0], [2.0, 3.0]]);
/// assert_eq!(attended.weights().weights, array![[0.5], [0.5]]);
/// # Ok::<(), bochner_graph::Error>(())
/// ```
pub fn attend<T: Real>(
    graph: &Graph,
    targets: ArrayView2<T>,
    sources: ArrayView2<T>,
    settings: &Settings<T>,
) -> Result<Attended<T>, Error> {
    let (output, kept) = attend_keeping(graph, targets, sources, settings)?;
    Ok(Attended { output, kept })
}

/// [`attend`] with what its vector-Jacobian product needs apart.
pub(crate) fn attend_keeping<T: Real>(
    graph: &Graph,
    targets: ArrayView2<T>,
    sources: ArrayView2<T>,
    settings: &Settings<T>,
) -> Result<(Array2<T>, Kept<T>), Error> {
    let call = Call::new(graph, targets, sources, settings)?;
    let prepared = call.prepare()?;
    let (alpha, output) = call.forward(&prepared);
    let output = match settings.merge {
        Merge::Concatenate => array(call.shape.columns(), output),
        Merge::Average => array(call.shape.width, averaged(output, call.shape)),
    };
    let kept = Kept {
        graph: graph.clone(),
        alpha,
        shape: call.shape,
        prepared,
    };
    Ok((output, kept))
}

/// The vector-Jacobian product of [`attend`].
///
/// With $G_{ij} = \delta_{ij}\, \dot o_i \cdot y_j$, $\delta$ the factors of dropout:
/// $\dot s_{ij} = \alpha_{ij} (G_{ij} - \sum_l \alpha_{il} G_{il})$, and on through the score, in
/// which $c$ is a constant; the values add $\dot y_j = \sum_i \delta_{ij} \alpha_{ij} \dot o_i$, times
/// their own factors of dropout.
///
/// # Shapes
/// `cotangent` is that of the output.
///
/// # Errors
/// As [`attend`], and [`Error::AnotherGraph`], [`Error::ShapeMismatch`] if the cotangent or what was
/// attended does not fit, [`Error::NotANumber`] if the cotangent is not finite.
///
/// # Numerics
/// Time and memory as [`attend`]. By target along the edges, by source through the transposed rows;
/// sums over nodes are taken in pieces that the shape decides and added in order. The slope of
/// $\log f^2$ at $e = 0$ is held within the fourth root of the type's largest number; a gradient
/// beyond the range of the type is its largest number, never NaN.
pub fn attend_vjp<T: Real>(
    graph: &Graph,
    targets: ArrayView2<T>,
    sources: ArrayView2<T>,
    settings: &Settings<T>,
    attended: &Attended<T>,
    cotangent: ArrayView2<T>,
) -> Result<AttentionGradients<T>, Error> {
    same_shape("cotangent", attended.output.shape(), cotangent.shape())?;
    attend_kept_vjp(graph, targets, sources, settings, &attended.kept, cotangent)
}

/// [`attend_vjp`] with what was kept alone.
pub(crate) fn attend_kept_vjp<T: Real>(
    graph: &Graph,
    targets: ArrayView2<T>,
    sources: ArrayView2<T>,
    settings: &Settings<T>,
    kept: &Kept<T>,
    cotangent: ArrayView2<T>,
) -> Result<AttentionGradients<T>, Error> {
    let call = Call::new(graph, targets, sources, settings)?;
    let shape = call.shape;
    let columns = match settings.merge {
        Merge::Concatenate => shape.columns(),
        Merge::Average => shape.width,
    };
    let expected = [graph.targets(), columns];
    same_shape("cotangent", &expected, cotangent.shape())?;
    kept.check(&call)?;
    let cotangent = Cotangent::new(cotangent, settings.merge, shape)?;
    let mut parts = call.backward(&kept.prepared, &kept.alpha, &cotangent.heads)?;
    cotangent.restore(&mut parts.targets);
    cotangent.restore(&mut parts.sources);
    cotangent.restore(&mut parts.a);
    if let Some(points) = &mut parts.points {
        restore(&cotangent, points.w1.view_mut());
        if let Some(w2) = &mut points.w2 {
            restore(&cotangent, w2.view_mut());
        }
    }
    if let Some(edges) = &mut parts.edges {
        for x in [&mut edges.attributes, &mut edges.weight, &mut edges.b] {
            restore(&cotangent, x.view_mut());
        }
    }
    let a = array(parts.a.len() / shape.heads, parts.a);
    Ok(AttentionGradients {
        targets: array(shape.columns(), parts.targets),
        sources: array(shape.columns(), parts.sources),
        a,
        points: parts.points,
        edges: parts.edges,
    })
}

/// The scores of all edges and heads, `[E, H]` in the caller's order, before the softmax.
///
/// Those of the kernel score include $\tfrac12 |q_i|_p^2$, which cancels in the weights.
///
/// # Shapes
/// As [`attend`].
///
/// # Errors
/// As [`attend`].
///
/// # Numerics
/// A score beyond the range of the type is its largest number.
pub fn scores<T: Real>(
    graph: &Graph,
    targets: ArrayView2<T>,
    sources: ArrayView2<T>,
    settings: &Settings<T>,
) -> Result<Array2<T>, Error> {
    let call = Call::new(graph, targets, sources, settings)?;
    let scores = call.scores(&call.prepare()?);
    Ok(by_edge(graph, &scores, call.shape.heads))
}

/// Rows by place, in the caller's order.
fn by_edge<T: Real>(graph: &Graph, x: &[T], heads: usize) -> Array2<T> {
    let mut rows = Array2::zeros((graph.edge_count(), heads));
    for (x, &edge) in x.chunks_exact(heads).zip(graph.order.iter()) {
        let mut row = rows.row_mut(edge as usize);
        row.iter_mut().zip(x).for_each(|(to, &x)| *to = x);
    }
    rows
}

/// The mean of the heads.
fn averaged<T: Real>(x: Vec<T>, shape: Shape) -> Vec<T> {
    if shape.heads == 1 {
        return x;
    }
    let share = T::of(shape.heads as f64).recip();
    let nodes = x.chunks_exact(shape.columns());
    let mean = |x: &[T], n: usize| -> T {
        let heads = x.iter().skip(n).step_by(shape.width);
        heads.map(|&x| x * share).sum()
    };
    nodes
        .flat_map(|x| (0..shape.width).map(move |n| mean(x, n)))
        .collect()
}

fn restore<T: Real, D: Dimension>(cotangent: &Cotangent<T>, mut x: ArrayViewMut<T, D>) {
    cotangent.restore(x.as_slice_mut().expect("allocated in row-major order"));
}

fn array<T>(columns: usize, data: Vec<T>) -> Array2<T> {
    Array2::from_shape_vec((data.len() / columns, columns), data).expect("whole rows")
}
