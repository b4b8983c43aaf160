//! The trainable layer of graph attention.

use super::GraphAttentionConfig;
use super::arrays::Arrays;
use super::config::AttentionKind;
use super::operation::GraphAttentionOperation;
use super::plan::Passed;
use crate::layers::check_fields;
use crate::layers::nodes::{AttributedGraph, Nodes, OperationGraph, elements_of};
use crate::{EdgeWeights, Graph, LayerError};
use bochner_nn::{Element, Leaf, Parameters, TapeInputs, record};
use bochner_numerics::{Seed, argument};
use bochner_ops::Mode;
use dfdx::shapes::{Dim, HasShape};
use dfdx::tensor::{Cpu, Tape, Tensor};
use ndarray::{Array2, ArrayView1, ArrayView2, Ix1, Ix2};

/// Graph attention with any score: GAT, GATv2 and the kernel form.
///
/// $$o_i = \Big\Vert_h \sum_{j \to i} \alpha_{ijh} W_h y_j + b$$
///
/// *where* $\alpha$ are the weights of [`attend`](crate::attend) between $W x_i$ and $W y_j$, each with a bias if
/// [`weight_bias`](GraphAttentionConfig::weight_bias) says so, $x_i$ are
/// the features of target $i$ and $y_j$ those of source $j$, which in a square graph are the same
/// nodes'; the heads stand side by side or are averaged, a residual may be added, and all may go through
/// an [`Activation`](bochner_ops::Activation). In training, dropout applies to the input features, the values
/// and the weights, by masks that the pass's seed decides.
///
/// The spectral points of the kernel form come from a source of `bochner-spectral` at the width $2F$.
/// Where they are inferred, the inference network is fed the means $m_x$ and $m_y$ of the
/// transformed features over all targets and all sources, as $q = [m_x, 0]$ and $k = [0, m_y]$; its
/// divergence from the prior is the penalty.
///
/// A layer's parameters are visited as [`Parameters`](bochner_nn::Parameters), and so are those of a slice
/// of layers, by optimisers and by `bochner_nn::Checkpoint`, which saves and restores them.
///
/// The whole layer is one operation on the tape. Features can be a tensor, along which there is a
/// gradient ([`apply`](Self::apply)), or what is known of the nodes, dense or sparse, along which there
/// is none ([`apply_features`](Self::apply_features)): the product with sparse features takes time in
/// proportion to what is stored.
///
/// ```
/// use bochner_graph::{Graph, GraphAttention, GraphAttentionConfig, Merge, SparseFeatures};
/// use bochner_nn::{Adam, Parameter, cross_entropy};
/// use bochner_numerics::Seed;
/// use bochner_ops::{Activation, AdamConfig, Mode};
/// use bochner_spectral::Implicit;
/// use bochner_graph::dfdx::prelude::*;
///
/// let graph = Graph::from_edges(3, [(0, 1), (0, 2), (1, 2)])?.with_self_loops()?.graph;
/// let words = SparseFeatures::new(4, &[0, 2, 3, 5], &[0, 1, 1, 2, 3], vec![1.0; 5])?;
///
/// let device = Cpu::default();
/// let config = GraphAttentionConfig {
///     coefficient_dropout: 0.6,
///     ..GraphAttentionConfig::kernel(4, 2, 8, Implicit { points: 16, ..Implicit::default() })
/// };
/// let hidden: GraphAttention<f32> = GraphAttention::try_new(&device, &config, Seed::new(1))?;
/// let config = GraphAttentionConfig { merge: Merge::Average, ..GraphAttentionConfig::gat(16, 1, 2) };
/// let classes = GraphAttention::try_new(&device, &config, Seed::new(2))?;
///
/// let mode = Mode::Training(Seed::new(3));
/// let first = hidden.apply_features(&graph, &words, OwnedTape::default(), mode.child("hidden"))?;
/// let second = classes.apply(&graph, first.output, mode.child("classes"))?;
/// let loss = cross_entropy(second.output, &[0, 1, 1])? + first.penalty * (0.1 / 3.0);
/// let mut gradients = loss.backward();
/// assert_eq!(hidden.weight.gradient(&mut gradients)?.len(), 4 * 16);
/// let mut layers = [hidden, classes];
/// Adam::new(AdamConfig::default())?.step(&mut layers[..], &mut gradients)?;
///
/// let weights = layers[0].weights(&graph, &words)?;
/// assert_eq!((weights.edges.len(), weights.weights.dim()), (6, (6, 2)));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// Training, here on samples of a graph's neighbourhoods; on the whole graph it is the same with
/// [`apply_features`](Self::apply_features) and [`apply`](Self::apply):
///
/// ```
/// use bochner_graph::{
///     FanOut, Features, Graph, GraphAttention, GraphAttentionConfig, NeighbourSampler, Nodes,
///     SparseFeatures,
/// };
/// use bochner_nn::{Adam, alloc_gradients, cross_entropy, tape_adding_to, zero_gradients};
/// use bochner_numerics::Seed;
/// use bochner_ops::{Activation, AdamConfig, Mode};
/// use bochner_graph::dfdx::prelude::*;
/// use bochner_graph::ndarray::Array2;
///
/// // A hundred papers of four fields, each with a word of its own; all of a field cite each other.
/// let cited = (0..100).flat_map(|j| (0..100).map(move |i| (j, i)));
/// let cited = cited.filter(|&(j, i)| j / 25 == i / 25);
/// let graph = Graph::from_edges(100, cited)?;
/// let words = Array2::from_shape_fn((100, 100), |(i, j)| if i == j { 1.0 } else { 0.0 });
/// let words = SparseFeatures::from_dense(words.view())?;
/// let field = |node: usize| node / 25;
///
/// let device = Cpu::default();
/// let hidden = GraphAttentionConfig {
///     activation: Activation::Elu,
///     ..GraphAttentionConfig::gat(100, 2, 8)
/// };
/// let fields = GraphAttentionConfig::gat(hidden.outputs(), 1, 4);
/// let mut layers: [GraphAttention<f32>; 2] = [
///     GraphAttention::try_new(&device, &hidden, Seed::new(1))?,
///     GraphAttention::try_new(&device, &fields, Seed::new(2))?,
/// ];
///
/// let mut adam = Adam::new(AdamConfig { learning_rate: 0.02, ..AdamConfig::default() })?;
/// let mut sampler = NeighbourSampler::new(&graph)?;
/// let mut gradients = alloc_gradients(&layers[..])?;
/// let mut losses = Vec::new();
/// for step in 0..60 {
///     let seed = Seed::new(step);
///     let batch: Vec<usize> = (step as usize % 4..100).step_by(4).collect();
///     let samples = sampler.sample(&batch, &[FanOut::AtMost(5), FanOut::AtMost(3)], seed)?;
///     let [near, last] = &samples[..] else { unreachable!("a layer a fan-out") };
///
///     let (targets, sources) = (words.select(near.targets())?, words.select(&near.nodes)?);
///     let nodes = Nodes::Apart {
///         targets: Features::Sparse(&targets),
///         sources: Features::Sparse(&sources),
///     };
///     zero_gradients(&layers[..], &mut gradients)?;
///     let (tape, mode) = (tape_adding_to(gradients)?, Mode::Training(seed));
///     let first = layers[0].apply_features(&near.graph, nodes, tape, mode)?.output;
///     // The targets of the second layer are the first ones of its sources.
///     let (sources, tape) = first.split_tape();
///     let targets = sources.clone().put_tape(OwnedTape::default());
///     let targets = targets.slice((..last.targets().len(), ..));
///     let second =
///         layers[1].apply_bipartite(&last.graph, targets, sources.put_tape(tape), mode)?;
///
///     let labels: Vec<usize> = batch.iter().map(|&node| field(node)).collect();
///     let loss = cross_entropy(second.output, &labels)?;
///     losses.push(loss.array());
///     gradients = loss.backward();
///     adam.step(&mut layers[..], &mut gradients)?;
/// }
/// assert!(losses[59] < 0.2 * losses[0]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Reference
/// Veličković et al., *Graph attention networks*, 2018; Brody, Alon, Yahav, *How attentive are graph
/// attention networks?*, 2022; Song et al. 2021, equation 10.
#[derive(Clone, Debug)]
pub struct GraphAttention<E: Element> {
    /// The weight $W$, `[Fin, H F]`, of the targets' features, and of the sources' where they have no
    /// other.
    pub weight: Matrix<E>,
    /// The bias that is added to what `weight` maps to, `[H F]`.
    pub weight_bias: Option<Vector<E>>,
    /// The weight of the sources' features, `[Fs, H F]`, where they have their own.
    pub source_weight: Option<Matrix<E>>,
    /// The bias that is added to what `source_weight` maps to, `[H F]`.
    pub source_weight_bias: Option<Vector<E>>,
    /// The vectors $a$ of the score, `[H, 2F]`, or `[H, F]` of the dynamic one.
    pub a: Matrix<E>,
    /// The weight of the edges' attributes, `[G, H F]`.
    pub edge_weight: Option<Matrix<E>>,
    /// The vectors that turn transformed attributes into a term of the score, `[H, F]`; the dynamic score has none.
    pub edge_a: Option<Matrix<E>>,
    /// The bias that is added to the output, `[H F]`, or `[F]` where the heads are averaged.
    pub bias: Option<Vector<E>>,
    /// The weight of the residual, `[Fin, H F]` or `[Fin, F]`, where it needs one.
    pub residual: Option<Matrix<E>>,
    /// The parameters of the source of spectral points, flat, as
    /// [`Source::parameters`](bochner_spectral::Source::parameters) lists them for H heads of width 2F.
    pub kernel: Option<Vector<E>>,
    config: GraphAttentionConfig,
}

type Matrix<E> = Leaf<E, Ix2>;
type Vector<E> = Leaf<E, Ix1>;

/// The graph that a layer is applied to, and its edges' attributes where the layer takes some.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum GraphInput<'a, E: Element, T> {
    /// The attributes, if there are any, are known. They get no gradient.
    Known(AttributedGraph<'a, E>),
    /// The attributes are a tensor, along which there is a gradient.
    Attributed {
        /// The graph.
        graph: &'a Graph,
        /// The attributes, `[E, G]`, in the caller's order of the edges.
        attributes: Tensor<(usize, usize), E, Cpu, T>,
    },
}

impl<'a, E: Element, T, G: Into<AttributedGraph<'a, E>>> From<G> for GraphInput<'a, E, T> {
    fn from(graph: G) -> Self {
        Self::Known(graph.into())
    }
}

impl<'a, E: Element, T: Tape<E, Cpu>> GraphInput<'a, E, T> {
    /// The graph of an operation, and its inputs with the attributes behind them where they are a tensor.
    fn split(
        self,
        inputs: TapeInputs<E, T>,
    ) -> Result<(OperationGraph<'a, E>, TapeInputs<E, T>), LayerError> {
        Ok(match self {
            Self::Known(graph) => (graph.into(), inputs),
            Self::Attributed { graph, attributes } => {
                let graph = OperationGraph::AttributesAsInput(graph);
                (graph, inputs.with(attributes)?)
            }
        })
    }
}

/// The output and the penalty of a layer.
#[derive(Clone, Debug)]
pub struct GraphAttended<Out, Penalty> {
    /// The output of each target, `[Nt, H F]`, or `[Nt, F]` where the heads are averaged.
    pub output: Out,
    /// The term that the objective adds, already weighted ($\beta \mathrm{KL}$); zero for scores without
    /// inferred points. Divide by the number of training nodes.
    pub penalty: Penalty,
}

/// [`GraphAttended`] on a tape.
type Recorded<E, T> = GraphAttended<Tensor<(usize, usize), E, Cpu, T>, Tensor<(), E, Cpu, T>>;

impl<E: Element> GraphAttention<E> {
    /// A layer with random initial values.
    ///
    /// The values are those of [`GraphAttentionConfig::initial`].
    ///
    /// # Errors
    /// The errors of [`GraphAttentionConfig::initial`].
    pub fn try_new(
        device: &Cpu,
        config: &GraphAttentionConfig,
        seed: Seed,
    ) -> Result<Self, LayerError> {
        let values = config.initial(seed)?;
        let views: Vec<_> = values.iter().map(|x| x.view()).collect();
        let p = Arrays::new(config, &views);
        let matrix = |x: ArrayView2<E>| Leaf::new(device, x.to_owned());
        let vector = |x: ArrayView1<E>| Leaf::new(device, x.to_owned());
        Ok(Self {
            weight: matrix(p.weight)?,
            weight_bias: p.weight_bias.map(vector).transpose()?,
            source_weight: p.source_weight.map(matrix).transpose()?,
            source_weight_bias: p.source_weight_bias.map(vector).transpose()?,
            a: matrix(p.a)?,
            edge_weight: p.edge_weight.map(matrix).transpose()?,
            edge_a: p.edge_a.map(matrix).transpose()?,
            bias: p.bias.map(vector).transpose()?,
            residual: p.residual.map(matrix).transpose()?,
            kernel: p.kernel.map(vector).transpose()?,
            config: config.clone(),
        })
    }

    /// The layer's settings.
    pub fn config(&self) -> &GraphAttentionConfig {
        &self.config
    }

    /// The layer with another number of spectral points, which are drawn of the density that it has learned.
    ///
    /// # Errors
    /// The errors of [`EdgeKernel::with_points`](crate::EdgeKernel::with_points), and
    /// [`LayerError::Spectral`] for a score without a kernel.
    pub fn with_points(&self, points: usize) -> Result<Self, LayerError> {
        let AttentionKind::Kernel(kernel) = &self.config.kind else {
            return Err(bochner_spectral::Error::Unsupported {
                what: "spectral points of a score without a kernel",
                instead: "a kernel of an `Implicit` source",
            }
            .into());
        };
        let kind = AttentionKind::Kernel(kernel.with_points(points)?);
        let mut layer = self.clone();
        layer.config.kind = kind;
        Ok(layer)
    }

    /// Attention along the edges of a square graph; one operation on the tape.
    ///
    /// # Shapes
    /// `x: [N, Fin]` to `[N, H F]` or `[N, F]`.
    ///
    /// # Errors
    /// [`LayerError::Graph`] if graph, features, fields and settings do not fit each other, and for what
    /// [`attend`](crate::attend) refuses; [`LayerError::Nn`] for a graph without nodes, since dfdx has no
    /// empty tensors.
    pub fn apply<'g, N: Dim, I: Dim, T: Tape<E, Cpu>>(
        &self,
        graph: impl Into<GraphInput<'g, E, T>>,
        x: Tensor<(N, I), E, Cpu, T>,
        mode: Mode,
    ) -> Result<Recorded<E, T>, LayerError> {
        let (shapes, inputs) = ([dims(&x)], TapeInputs::<E, T>::new().with(x)?);
        self.apply_tensors(graph.into(), &shapes, inputs, mode)
    }

    /// Attention along the edges of a bipartite graph; one operation on the tape.
    ///
    /// Dropout treats equal places of both tensors alike, so that targets which are the first of the
    /// sources (those of a [`Neighbourhood`](crate::Neighbourhood)) stay what they are.
    ///
    /// # Shapes
    /// `targets: [Nt, Fin]`, `sources: [Ns, Fs]` to `[Nt, H F]` or `[Nt, F]`.
    ///
    /// # Errors
    /// The errors of [`apply`](Self::apply).
    pub fn apply_bipartite<'g, N, I, M, J, T>(
        &self,
        graph: impl Into<GraphInput<'g, E, T>>,
        targets: Tensor<(N, I), E, Cpu, T>,
        sources: Tensor<(M, J), E, Cpu, T>,
        mode: Mode,
    ) -> Result<Recorded<E, T>, LayerError>
    where
        N: Dim,
        I: Dim,
        M: Dim,
        J: Dim,
        T: Tape<E, Cpu>,
    {
        let shapes = [dims(&targets), dims(&sources)];
        let inputs = TapeInputs::<E, T>::new().with(targets)?.with(sources)?;
        self.apply_tensors(graph.into(), &shapes, inputs, mode)
    }

    /// Attention where no gradient along the features is asked for, as in the first layer. The output is
    /// recorded on the tape: `NoneTape`, `OwnedTape::default()`, or in training
    /// [`tape_adding_to`](bochner_nn::tape_adding_to) the gradients that the optimiser steps along.
    ///
    /// # Shapes
    /// The shapes of [`apply`](Self::apply) and [`apply_bipartite`](Self::apply_bipartite).
    ///
    /// # Errors
    /// The errors of [`apply`](Self::apply).
    ///
    /// # Numerics
    /// Dropout on sparse features drops what is stored. Dense features are copied.
    pub fn apply_features<'g, 'n, T: Tape<E, Cpu>>(
        &self,
        graph: impl Into<GraphInput<'g, E, T>>,
        nodes: impl Into<Nodes<'n, E>>,
        tape: T,
        mode: Mode,
    ) -> Result<Recorded<E, T>, LayerError> {
        let (graph, inputs) = graph.into().split(TapeInputs::on(tape))?;
        let operation = GraphAttentionOperation::of_features(&self.config, graph, nodes, mode)?;
        self.recorded(operation, inputs)
    }

    /// The output in evaluation, without a tape.
    ///
    /// # Shapes
    /// The shapes of [`apply`](Self::apply) and [`apply_bipartite`](Self::apply_bipartite).
    ///
    /// # Errors
    /// The errors of [`apply`](Self::apply).
    pub fn infer<'g, 'n>(
        &self,
        graph: impl Into<AttributedGraph<'g, E>>,
        nodes: impl Into<Nodes<'n, E>>,
    ) -> Result<Array2<E>, LayerError> {
        let (mut output, _) = self.pass(graph.into(), nodes.into())?;
        self.config.activation.apply(elements_of(&mut output));
        Ok(output)
    }

    /// The weights of all edges in evaluation, with the edges that they belong to.
    ///
    /// # Errors
    /// The errors of [`apply`](Self::apply).
    pub fn weights<'g, 'n>(
        &self,
        graph: impl Into<AttributedGraph<'g, E>>,
        nodes: impl Into<Nodes<'n, E>>,
    ) -> Result<EdgeWeights<E>, LayerError> {
        let graph = graph.into();
        let (_, passed) = self.pass(graph, nodes.into())?;
        Ok(passed.kept.weights(graph.graph))
    }

    /// The output in evaluation before the activation, and what is kept of it.
    pub(super) fn pass(
        &self,
        graph: AttributedGraph<E>,
        nodes: Nodes<E>,
    ) -> Result<(Array2<E>, Passed<E>), LayerError> {
        check_fields(self, &self.config.parameters())?;
        self.config.pass(graph, nodes, &self.arrays())
    }

    fn apply_tensors<T: Tape<E, Cpu>>(
        &self,
        graph: GraphInput<E, T>,
        shapes: &[[usize; 2]],
        inputs: TapeInputs<E, T>,
        mode: Mode,
    ) -> Result<Recorded<E, T>, LayerError> {
        let (graph, inputs) = graph.split(inputs)?;
        let operation = GraphAttentionOperation::of_inputs(&self.config, graph, shapes, mode)?;
        self.recorded(operation, inputs)
    }

    fn recorded<T: Tape<E, Cpu>>(
        &self,
        operation: GraphAttentionOperation<E>,
        inputs: TapeInputs<E, T>,
    ) -> Result<Recorded<E, T>, LayerError> {
        check_fields(self, &self.config.parameters())?;
        let [targets, outputs] = operation.output_shape();
        let shape = (targets, outputs);
        let name = "targets of a layer on the tape (infer takes a graph without nodes)";
        argument::at_least_one(name, shape.0)?;
        let mut outputs = record(operation, self.with_parameters(inputs))?;
        Ok(GraphAttended {
            output: outputs.take(shape)?,
            penalty: outputs.take(())?,
        })
    }

    /// Adds all parameters to the inputs of an operation, in the order in which they are visited.
    fn with_parameters<T: Tape<E, Cpu>>(&self, inputs: TapeInputs<E, T>) -> TapeInputs<E, T> {
        inputs
            .with_leaf(&self.weight)
            .with_leaf(&self.weight_bias)
            .with_leaf(&self.source_weight)
            .with_leaf(&self.source_weight_bias)
            .with_leaf(&self.a)
            .with_leaf(&self.edge_weight)
            .with_leaf(&self.edge_a)
            .with_leaf(&self.bias)
            .with_leaf(&self.residual)
            .with_leaf(&self.kernel)
    }

    fn arrays(&self) -> Arrays<'_, E> {
        Arrays {
            weight: self.weight.view(),
            weight_bias: self.weight_bias.as_ref().map(Leaf::view),
            source_weight: self.source_weight.as_ref().map(Leaf::view),
            source_weight_bias: self.source_weight_bias.as_ref().map(Leaf::view),
            a: self.a.view(),
            edge_weight: self.edge_weight.as_ref().map(Leaf::view),
            edge_a: self.edge_a.as_ref().map(Leaf::view),
            bias: self.bias.as_ref().map(Leaf::view),
            residual: self.residual.as_ref().map(Leaf::view),
            kernel: self.kernel.as_ref().map(Leaf::view),
        }
    }
}

impl<E: Element> Parameters<E> for GraphAttention<E> {
    bochner_nn::visit_fields!(E: weight, weight_bias, source_weight, source_weight_bias, a, edge_weight, edge_a, bias, residual, kernel);
}

fn dims<N: Dim, I: Dim, E: Element, T>(x: &Tensor<(N, I), E, Cpu, T>) -> [usize; 2] {
    let (rows, columns) = x.shape();
    [rows.size(), columns.size()]
}
