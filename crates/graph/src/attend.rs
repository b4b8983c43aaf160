//! Attention along edges, and its vector-Jacobian product.

use crate::engine::{Alpha, Call, Cotangent, Prepared, by_edge};
use crate::score::{EdgeTermGradients, PointsGradients};
use crate::settings::{Merge, Shape};
use crate::{Error, Graph, Settings};
use bochner_numerics::{Real, argument};
use ndarray::{Array2, ArrayView2, ArrayViewMut, Dimension};

/// The result of [`attend`]. It borrows the arguments, so that [`attend_vjp`] cannot be given others.
///
/// ```compile_fail,E0506
/// # use bochner_graph::{Graph, Score, Settings, attend, attend_vjp};
/// # use bochner_graph::ndarray::array;
/// let graph = Graph::from_edges(2, [(0, 1)]).unwrap();
/// let (mut x, a) = (array![[1.0], [2.0]], array![[0.5, 1.0]]);
/// let settings = Settings::new(Score::Classic { a: a.view() });
/// let attended = attend(&graph, x.view(), x.view(), &settings).unwrap();
/// x[[0, 0]] = 3.0; // error: `x` is still borrowed
/// let gradients = attend_vjp(&attended, array![[1.0], [1.0]].view());
/// ```
#[derive(Debug)]
pub struct EdgeAttention<'a, 'b, T: Real> {
    /// The output of each target, `[Nt, H F]`, or `[Nt, F]` where the heads are averaged.
    pub output: Array2<T>,
    call: Call<'a, 'b, T>,
    kept: Kept<T>,
}

/// The values that a forward pass keeps for the backward pass.
#[derive(Debug)]
pub(crate) struct Kept<T> {
    heads: usize,
    alpha: Alpha<T>,
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

impl<T: Real> EdgeAttention<'_, '_, T> {
    /// The normalised weights before dropout, with their edges.
    pub fn weights(&self) -> EdgeWeights<T> {
        self.kept.weights(self.call.graph)
    }
}

impl<T: Real> Kept<T> {
    /// The weights, given the graph of the forward pass.
    pub(crate) fn weights(&self, graph: &Graph) -> EdgeWeights<T> {
        EdgeWeights {
            edges: graph.edges(),
            weights: by_edge(graph, &self.alpha.normalised, self.heads),
        }
    }
}

/// Gradients of [`attend`], shaped like its arguments.
#[derive(Clone, Debug, PartialEq)]
pub struct EdgeAttentionGradients<T> {
    /// The gradient along the targets' features.
    pub targets: Array2<T>,
    /// The gradient along the sources' features.
    pub sources: Array2<T>,
    /// The gradient along `a` of the score.
    pub a: Array2<T>,
    /// The gradient along the spectral points of a kernel score.
    pub points: Option<PointsGradients<T>>,
    /// The gradients along the attributes of the edges and their parameters, if there are any.
    pub edges: Option<EdgeTermGradients<T>>,
}

/// Attention along the edges of a graph:
/// $o_{ih} = \sum_j \alpha_{ijh} y_{jh}$, $\alpha_{ijh} = e^{s_{ijh}} / \sum_l e^{s_{ilh}}$.
///
/// *where* $j$ and $l$ run over the sources from which an edge leads to the target $i$, $h$ over the heads, $s$ is the
/// [`Score`](crate::Score), and $y_j$ are the sources' transformed features, which are scored and received. Dropout may
/// apply to the weights and to the received features.
///
/// # Shapes
/// `targets: [Nt, H F]`, `sources: [Ns, H F]`, the columns of a head side by side; for a square graph
/// both may be the same array. The output is `[Nt, H F]` or `[Nt, F]`, see [`Merge`](crate::Merge).
///
/// # Errors
/// [`Error::Argument`] for a wrong shape, for no head, width or spectral point, for a setting out of range
/// and for NaN or infinity; [`Error::TooLarge`] for numbers beyond the fourth root of the type's largest
/// (4e9 in single precision, 1e77 in double): a gradient multiplies three such numbers.
///
/// # Numerics
/// $O(N H F + E H F)$ time, for the dynamic score as well, and $O(N H R F + E H)$ more for a kernel
/// score; $O(E H + N H F)$ memory, and $O(E H F)$ for the dynamic score with attributes of the edges. The largest score of a target is taken off before the
/// exponentials. Kernel scores are compared in double precision; where a similarity is exactly zero
/// at $e = 0$, the weights are those of the limit $e \to 0+$, and where a squared norm overflows,
/// norms are compared by their logarithms. A target to which no edge leads receives zero. The result is the same to the
/// bit for any number of threads and, without dropout on the weights, for any order of the edges, except for repeated
/// edges with different attributes.
///
/// # Reference
/// Veličković et al., *Graph attention networks*, 2018; Brody, Alon, Yahav, *How attentive are graph
/// attention networks?*, 2022; Song et al. 2021, equation 10.
///
/// ```
/// use bochner_graph::{Graph, Merge, Score, Settings, attend};
/// use bochner_graph::ndarray::array;
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
pub fn attend<'a, 'b, T: Real>(
    graph: &'a Graph,
    targets: ArrayView2<'a, T>,
    sources: ArrayView2<'a, T>,
    settings: &Settings<'b, T>,
) -> Result<EdgeAttention<'a, 'b, T>, Error> {
    let call = Call::new(graph, targets, sources, settings)?;
    let (output, kept) = call.attend()?;
    Ok(EdgeAttention { output, call, kept })
}

/// The vector-Jacobian product of [`attend`].
///
/// With the factors of dropout $\delta$ and $G_{ij} = \delta_{ij} \dot o_i \cdot y_j$:
/// $\dot s_{ij} = \alpha_{ij} (G_{ij} - \sum_l \alpha_{il} G_{il})$, and on through the score, in
/// which $c$ is a constant. The values add $\dot y_j = \sum_i \delta_{ij} \alpha_{ij} \dot o_i$, times
/// their own factors of dropout.
///
/// # Shapes
/// The cotangent has the shape of the output.
///
/// # Errors
/// [`Error::Argument`] if the cotangent has another shape or is not finite.
///
/// # Numerics
/// Time and memory are those of [`attend`]. Gradients are summed by target along the edges and by source
/// through the transposed rows; sums over nodes are taken in pieces that depend on the shape alone and
/// added in order. The slope of $\log f^2$ at $e = 0$ is clamped to the fourth root of the type's largest
/// number. A gradient beyond the range of the type is its largest number, never NaN.
pub fn attend_vjp<T: Real>(
    attended: &EdgeAttention<T>,
    cotangent: ArrayView2<T>,
) -> Result<EdgeAttentionGradients<T>, Error> {
    attended.call.vjp(&attended.kept, cotangent)
}

impl<T: Real> Call<'_, '_, T> {
    /// The output, and what [`vjp`](Self::vjp) needs.
    pub(crate) fn attend(&self) -> Result<(Array2<T>, Kept<T>), Error> {
        let prepared = self.prepare()?;
        let (alpha, output) = self.forward(&prepared);
        let output = match self.settings.merge {
            Merge::Concatenate => output,
            Merge::Average => averaged(output, self.shape),
        };
        let heads = self.shape.heads;
        let kept = Kept {
            heads,
            alpha,
            prepared,
        };
        Ok((array(self.output_columns(), output), kept))
    }

    /// The gradients, given what [`attend`](Self::attend) kept of an equal call.
    pub(crate) fn vjp(
        &self,
        kept: &Kept<T>,
        cotangent: ArrayView2<T>,
    ) -> Result<EdgeAttentionGradients<T>, Error> {
        let shape = self.shape;
        let expected = [self.graph.targets(), self.output_columns()];
        argument::shape("cotangent", &expected, cotangent.shape())?;
        let cotangent = Cotangent::new(cotangent, self.settings.merge, shape)?;
        let mut parts = self.backward(&kept.prepared, &kept.alpha, &cotangent.heads)?;
        for x in [&mut parts.targets, &mut parts.sources, &mut parts.a] {
            cotangent.restore(x);
        }
        if let Some(points) = &mut parts.points {
            restore(&cotangent, points.w1.view_mut());
            if let Some(w2) = &mut points.w2 {
                restore(&cotangent, w2.view_mut());
            }
        }
        if let Some(edges) = &mut parts.edges {
            let arrays = [&mut edges.attributes, &mut edges.weight].into_iter();
            for x in arrays.chain(&mut edges.b) {
                restore(&cotangent, x.view_mut());
            }
        }
        Ok(EdgeAttentionGradients {
            targets: array(shape.columns(), parts.targets),
            sources: array(shape.columns(), parts.sources),
            a: array(parts.a.len() / shape.heads, parts.a),
            points: parts.points,
            edges: parts.edges,
        })
    }

    fn output_columns(&self) -> usize {
        match self.settings.merge {
            Merge::Concatenate => self.shape.columns(),
            Merge::Average => self.shape.width,
        }
    }
}

/// The scores of all edges and heads, `[E, H]` in the caller's order, before the softmax.
///
/// Kernel scores include $\tfrac12 |q_i|_p^2$, which cancels in the weights.
///
/// # Shapes
/// The arguments are those of [`attend`].
///
/// # Errors
/// The errors of [`attend`].
///
/// # Numerics
/// A score beyond the range of the type is its largest number. If the squared p-norm of one source or of `a`
/// is beyond $e^{708}$, all kernel scores are; [`attend`] then compares the norms by their logarithms.
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

/// The mean of each node's heads.
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
