//! The trainable layer of graph attention.

mod arrays;
mod config;
mod inspection;
mod operation;
mod parameters;
mod points;

pub use config::{AttentionKind, Bias, GraphAttentionConfig, Residual};
pub use inspection::GraphInspection;

use super::glorot;
use super::nodes::{AttributedGraph, GivenNodes, Nodes, OwnedFeatures, elements_of};
use crate::{EdgeWeights, Features, LayerError};
use arrays::Arrays;
use bochner_nn::{Element, Leaf, TapeInputs, record};
use bochner_numerics::{Seed, argument};
use bochner_ops::Mode;
use dfdx::shapes::{Dim, HasShape};
use dfdx::tensor::{Cpu, Tape, Tensor};
use ndarray::{Array1, Array2, Dimension, Ix1, Ix2};
use operation::{GraphAttentionOperation, Passed, Plan};

/// Graph attention with any score: GAT, GATv2 and the kernel form.
///
/// $$o_i = \Big\Vert_h \sum_{j \to i} \alpha_{ijh}\, W_h y_j + b$$
///
/// *where* $\alpha$ are the weights of [`attend`](crate::attend) between $W x_i$ and $W y_j$, $x_i$ are
/// the features of target $i$ and $y_j$ those of source $j$, which in a square graph are the same
/// nodes'; the heads stand side by side or are averaged, a residual may be added, and all may go through
/// an [`Activation`](bochner_ops::Activation). In training what comes in, the values and the weights are dropped, by masks that the
/// pass's seed decides.
///
/// The spectral points of the kernel form come from a mechanism of `bochner-attention` at the width
/// $2F$. Where they are inferred, the inference network is fed the means $m_x$ and $m_y$ of the
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
/// use bochner_attention::Mikan;
/// use bochner_graph::{Graph, GraphAttention, GraphAttentionConfig, Merge, SparseFeatures};
/// use bochner_nn::{Adam, Parameter, cross_entropy};
/// use bochner_numerics::Seed;
/// use bochner_ops::{Activation, AdamConfig, Mode};
/// use dfdx::prelude::*;
///
/// let graph = Graph::from_edges(3, [(0, 1), (0, 2), (1, 2)])?.with_self_loops()?.graph;
/// let words = SparseFeatures::new(4, &[0, 2, 3, 5], &[0, 1, 1, 2, 3], vec![1.0; 5])?;
///
/// let device = Cpu::default();
/// let config = GraphAttentionConfig {
///     coefficient_dropout: 0.6,
///     ..GraphAttentionConfig::kernel(4, 2, 8, Mikan { points: 16, ..Mikan::default() })
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
/// use dfdx::prelude::*;
/// use ndarray::Array2;
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
    /// The weight of the sources' features, `[Fs, H F]`, where they have their own.
    pub source_weight: Option<Matrix<E>>,
    /// The vectors $a$ of the score, `[H, 2F]`, or `[H, F]` of the dynamic one.
    pub a: Matrix<E>,
    /// The weight of the edges' attributes, `[G, H F]`.
    pub edge_weight: Option<Matrix<E>>,
    /// The vectors that turn transformed attributes into a term of the score, `[H, F]`.
    pub edge_a: Option<Matrix<E>>,
    /// What is added to the output, `[H F]`, or `[F]` where the heads are averaged.
    pub bias: Option<Vector<E>>,
    /// The weight of the residual, `[Fin, H F]` or `[Fin, F]`, where it needs one.
    pub residual: Option<Matrix<E>>,
    /// The mechanism's own parameters, flat, as
    /// [`Mechanism::parameters`](bochner_attention::Mechanism::parameters) lists them for H heads of width 2F.
    pub kernel: Option<Vector<E>>,
    config: GraphAttentionConfig,
}

type Matrix<E> = Leaf<E, Ix2>;
type Vector<E> = Leaf<E, Ix1>;

/// What a layer gives.
#[derive(Clone, Debug)]
pub struct GraphAttended<Out, Penalty> {
    /// What each target receives, `[Nt, H F]`, or `[Nt, F]` where the heads are averaged.
    pub output: Out,
    /// What the objective adds, already weighted ($\beta\,\mathrm{KL}$); zero for scores without
    /// inferred points. Divide by the number of training nodes.
    pub penalty: Penalty,
}

/// [`GraphAttended`] on a tape.
type Recorded<E, T> = GraphAttended<Tensor<(usize, usize), E, Cpu, T>, Tensor<(), E, Cpu, T>>;

impl<E: Element> GraphAttention<E> {
    /// A layer with random initial values.
    ///
    /// All weights start uniform after Glorot and Bengio (2010), each head's as a map of its own, as in
    /// the code that was published with GAT, and the bias zero. Layers of one seed start with the same
    /// weights, whatever their score.
    ///
    /// # Errors
    /// [`LayerError::Graph`] for a size of zero, a rate or a slope out of range;
    /// [`LayerError::Attention`] for a mechanism without spectral points, or with settings out of
    /// range.
    pub fn try_new(
        device: &Cpu,
        config: &GraphAttentionConfig,
        seed: Seed,
    ) -> Result<Self, LayerError> {
        config.validate()?;
        let (inputs, outputs, columns) = (config.inputs, config.outputs(), config.columns());
        let (heads, width, edges) = (config.heads, config.width, config.edge_inputs);
        let matrix = |name: &str, shape, map| glorot::matrix(device, shape, map, seed.child(name));
        let of_inputs = |name: &str, n: usize| matrix(name, (n, columns), [n, width]);
        let a = (heads, config.score_width());
        let vector = |values: Array1<E>| Leaf::new(device, values);
        let kernel = match &config.kind {
            AttentionKind::Kernel(variant) => {
                points::initial(variant, config, seed.child("kernel"))?
            }
            _ => Vec::new(),
        };
        let source = config.source_inputs.map(|n| of_inputs("source weight", n));
        let edge_weight = (edges > 0).then(|| of_inputs("edge weight", edges));
        let edge_a = (edges > 0).then(|| matrix("edge a", (heads, width), [width, 1]));
        let residual =
            (config.projects()).then(|| matrix("residual", (inputs, outputs), [inputs, width]));
        let bias = (config.bias == Bias::Learned).then(|| vector(Array1::zeros(outputs)));
        Ok(Self {
            weight: of_inputs("weight", inputs)?,
            source_weight: source.transpose()?,
            a: matrix("a", a, [width, 1])?,
            edge_weight: edge_weight.transpose()?,
            edge_a: edge_a.transpose()?,
            bias: bias.transpose()?,
            residual: residual.transpose()?,
            kernel: (!kernel.is_empty())
                .then(|| vector(kernel.into()))
                .transpose()?,
            config: config.clone(),
        })
    }

    /// The layer's settings.
    pub fn config(&self) -> &GraphAttentionConfig {
        &self.config
    }

    /// Attention along the edges of a square graph; one operation on the tape.
    ///
    /// # Shapes
    /// `x: [N, Fin]` to `[N, H F]` or `[N, F]`.
    ///
    /// # Errors
    /// Whatever does not fit, and as [`attend`](crate::attend); a graph without nodes, since dfdx has no
    /// empty tensors.
    pub fn apply<'g, N: Dim, I: Dim, T: Tape<E, Cpu>>(
        &self,
        graph: impl Into<AttributedGraph<'g, E>>,
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
    /// As [`apply`](Self::apply).
    pub fn apply_bipartite<'g, N, I, M, J, T>(
        &self,
        graph: impl Into<AttributedGraph<'g, E>>,
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

    /// Attention where no gradient along the features is asked for: of the first layer. The tape is that
    /// of the output: `NoneTape`, `OwnedTape::default()`, or in training
    /// [`tape_adding_to`](bochner_nn::tape_adding_to) the gradients that the optimiser steps along.
    ///
    /// # Shapes
    /// As [`apply`](Self::apply) and [`apply_bipartite`](Self::apply_bipartite).
    ///
    /// # Errors
    /// As [`apply`](Self::apply).
    ///
    /// # Numerics
    /// Dropout on sparse features drops what is stored. Dense features are copied.
    pub fn apply_features<'g, 'n, T: Tape<E, Cpu>>(
        &self,
        graph: impl Into<AttributedGraph<'g, E>>,
        nodes: impl Into<Nodes<'n, E>>,
        tape: T,
        mode: Mode,
    ) -> Result<Recorded<E, T>, LayerError> {
        let (graph, nodes) = (graph.into(), nodes.into().ends());
        self.check_features(graph, &nodes)?;
        let plan = Plan::new(&self.config, graph.graph, graph.attributes, mode);
        let dropped = |x| OwnedFeatures::dropped_out(x, plan.input_dropout.as_ref());
        let operation = GraphAttentionOperation {
            nodes: GivenNodes::features(nodes.into_iter().map(dropped).collect()),
            plan,
        };
        self.recorded(operation, TapeInputs::on(tape))
    }

    /// What the nodes receive in evaluation, without a tape.
    ///
    /// # Shapes
    /// As [`apply`](Self::apply) and [`apply_bipartite`](Self::apply_bipartite).
    ///
    /// # Errors
    /// As [`apply`](Self::apply).
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
    /// As [`apply`](Self::apply).
    pub fn weights<'g, 'n>(
        &self,
        graph: impl Into<AttributedGraph<'g, E>>,
        nodes: impl Into<Nodes<'n, E>>,
    ) -> Result<EdgeWeights<E>, LayerError> {
        let graph = graph.into();
        let (_, passed) = self.pass(graph, nodes.into())?;
        Ok(passed.kept.weights(graph.graph))
    }

    /// The output before the activation, and what is kept of it.
    fn pass(
        &self,
        graph: AttributedGraph<E>,
        nodes: Nodes<E>,
    ) -> Result<(Array2<E>, Passed<E>), LayerError> {
        let nodes = nodes.ends();
        self.check_features(graph, &nodes)?;
        let plan = Plan::new(
            &self.config,
            graph.graph,
            graph.attributes,
            Mode::Evaluation,
        );
        let (output, _, passed) = plan.forward(&nodes, &self.arrays())?;
        Ok((output, passed))
    }

    fn apply_tensors<T: Tape<E, Cpu>>(
        &self,
        graph: AttributedGraph<E>,
        shapes: &[[usize; 2]],
        inputs: TapeInputs<E, T>,
        mode: Mode,
    ) -> Result<Recorded<E, T>, LayerError> {
        self.check(graph, shapes)?;
        let plan = Plan::new(&self.config, graph.graph, graph.attributes, mode);
        let nodes = GivenNodes::tensors(shapes.len(), plan.input_dropout);
        let operation = GraphAttentionOperation { plan, nodes };
        self.recorded(operation, inputs)
    }

    fn recorded<T: Tape<E, Cpu>>(
        &self,
        operation: GraphAttentionOperation<E>,
        inputs: TapeInputs<E, T>,
    ) -> Result<Recorded<E, T>, LayerError> {
        let shape = (operation.plan.targets(), self.config.outputs());
        let name = "targets of a layer on the tape (`infer` takes a graph without nodes)";
        argument::at_least_one(name, shape.0)?;
        let mut outputs = record(operation, self.with_parameters(inputs))?;
        Ok(GraphAttended {
            output: outputs.take(shape)?,
            penalty: outputs.take(())?,
        })
    }

    /// Adds all parameters to the inputs of an operation, in the order in which they are visited.
    fn with_parameters<T: Tape<E, Cpu>>(&self, inputs: TapeInputs<E, T>) -> TapeInputs<E, T> {
        let inputs = with(inputs.with_leaf(&self.weight), &self.source_weight);
        let inputs = with(inputs.with_leaf(&self.a), &self.edge_weight);
        let inputs = with(with(inputs, &self.edge_a), &self.bias);
        with(with(inputs, &self.residual), &self.kernel)
    }

    fn arrays(&self) -> Arrays<'_, E> {
        let edges = self.edge_weight.as_ref().zip(self.edge_a.as_ref());
        Arrays {
            weight: self.weight.view(),
            source_weight: self.source_weight.as_ref().map(Leaf::view),
            a: self.a.view(),
            edges: edges.map(|(weight, b)| [weight.view(), b.view()]),
            bias: self.bias.as_ref().map(Leaf::view),
            residual: self.residual.as_ref().map(Leaf::view),
            kernel: self.kernel.as_ref().map(Leaf::view),
        }
    }

    fn check_features(
        &self,
        graph: AttributedGraph<E>,
        nodes: &[Features<E>],
    ) -> Result<(), LayerError> {
        let shapes: Vec<_> = nodes.iter().map(|x| [x.rows(), x.columns()]).collect();
        self.check(graph, &shapes)
    }

    /// `Ok` if the graph, what is known of its nodes and of its edges fit the layer and each other.
    fn check(&self, graph: AttributedGraph<E>, nodes: &[[usize; 2]]) -> Result<(), LayerError> {
        let AttributedGraph { graph, attributes } = graph;
        let columns = [
            self.config.inputs,
            self.config.source_inputs.unwrap_or(self.config.inputs),
        ];
        if nodes.len() == 1 {
            graph.expect_square(
                "one set of features for both ends (`Nodes::Apart`, `apply_bipartite` take two)",
            )?;
        }
        let targets = [graph.targets(), columns[0]];
        let sources = [graph.sources(), columns[1]];
        argument::shape("features of the targets", &targets, &nodes[0])?;
        argument::shape("features of the sources", &sources, &nodes[nodes.len() - 1])?;
        let wanted = [graph.edge_count(), self.config.edge_inputs];
        let (name, given) = match attributes {
            Some(x) => ("attributes of the edges", [x.nrows(), x.ncols()]),
            None => (
                "attributes of the edges (give an `AttributedGraph`)",
                [graph.edge_count(), 0],
            ),
        };
        Ok(argument::shape(name, &wanted, &given)?)
    }
}

fn dims<N: Dim, I: Dim, E: Element, T>(x: &Tensor<(N, I), E, Cpu, T>) -> [usize; 2] {
    let (rows, columns) = x.shape();
    [rows.size(), columns.size()]
}

/// Adds a parameter that there may be to the inputs of an operation.
fn with<E: Element, D: Dimension, T: Tape<E, Cpu>>(
    inputs: TapeInputs<E, T>,
    parameter: &Option<Leaf<E, D>>,
) -> TapeInputs<E, T> {
    match parameter {
        Some(parameter) => inputs.with_leaf(parameter),
        None => inputs,
    }
}
