//! The trainable layer of a graph convolutional network.

mod operation;

use super::attention::Bias;
use super::nodes::{GivenNodes, OwnedFeatures};
use super::rows::add_to_rows;
use super::{glorot, mask};
use crate::{Error, Features, Graph, LayerError, convolve};
use bochner_nn::{Element, Leaf, Parameters, TapeInputs, record_one};
use bochner_numerics::{ArgumentError, DropoutMask, Seed, argument};
use bochner_ops::Mode;
use dfdx::shapes::{Dim, HasShape};
use dfdx::tensor::{Cpu, Tape, Tensor};
use ndarray::{Array1, Array2, Ix1, Ix2};
use operation::GraphConvolutionOperation;
use serde::{Deserialize, Serialize};

/// Settings of a [`GraphConvolution`] layer.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", remote = "Self")]
pub struct GraphConvolutionConfig {
    /// The number of columns of the features.
    pub inputs: usize,
    /// The number of columns of the output.
    pub outputs: usize,
    /// The rate of the dropout on the features that come in, at least 0 and below 1.
    #[serde(default)]
    pub input_dropout: f64,
    /// The vector that is added to the output.
    #[serde(default)]
    pub bias: Bias,
}

bochner_numerics::checked_when_read!(GraphConvolutionConfig);

impl GraphConvolutionConfig {
    fn validate(&self) -> Result<(), ArgumentError> {
        argument::at_least_one("inputs", self.inputs)?;
        argument::at_least_one("outputs", self.outputs)?;
        argument::rate("input_dropout", self.input_dropout)
    }
}

/// A graph convolution, $\hat A X W + b$ with the sum over neighbours $\hat A$ of
/// [`convolve`](crate::convolve).
///
/// Self loops are the caller's to add ([`Graph::with_self_loops`]). One operation on the tape; features
/// are given as to [`GraphAttention`](crate::GraphAttention).
///
/// ```
/// use bochner_graph::{Features, Graph, GraphConvolution, GraphConvolutionConfig, SparseFeatures};
/// use bochner_nn::activate;
/// use bochner_numerics::Seed;
/// use bochner_ops::{Activation, Mode};
/// use dfdx::prelude::*;
///
/// let graph = Graph::from_edges(3, [(0, 1), (1, 0), (1, 2), (2, 1)])?.with_self_loops()?.graph;
/// let words = SparseFeatures::new(4, &[0, 2, 3, 5], &[0, 1, 1, 2, 3], vec![1.0; 5])?;
/// let layer = |inputs, outputs, seed| {
///     let config = GraphConvolutionConfig {
///         inputs,
///         outputs,
///         input_dropout: 0.5,
///         bias: Default::default(),
///     };
///     GraphConvolution::<f32>::try_new(&Cpu::default(), &config, Seed::new(seed))
/// };
/// let (first, second) = (layer(4, 16, 1)?, layer(16, 2, 2)?);
/// let mode = Mode::Training(Seed::new(3));
/// let hidden = first.apply_features(&graph, &words, OwnedTape::default(), mode)?;
/// let logits = second.apply(&graph, activate(hidden, Activation::Elu)?, mode.nth(1))?;
/// assert_eq!(logits.shape(), &(3, 2));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Reference
/// Kipf and Welling 2017, *Semi-supervised classification with graph convolutional networks*.
#[derive(Clone, Debug)]
pub struct GraphConvolution<E: Element> {
    /// The weight $W$, `[Fin, Fout]`.
    pub weight: Leaf<E, Ix2>,
    /// The bias $b$, `[Fout]`.
    pub bias: Option<Leaf<E, Ix1>>,
    config: GraphConvolutionConfig,
}

impl<E: Element> GraphConvolution<E> {
    /// A layer with a weight after Glorot and Bengio (2010) and a bias of zero.
    ///
    /// # Errors
    /// [`LayerError::Graph`] for a size of zero or a rate out of range.
    pub fn try_new(
        device: &Cpu,
        config: &GraphConvolutionConfig,
        seed: Seed,
    ) -> Result<Self, LayerError> {
        let GraphConvolutionConfig {
            inputs, outputs, ..
        } = *config;
        config.validate()?;
        let (shape, map) = (Ix2(inputs, outputs), [inputs, outputs]);
        let zeros = || Leaf::new(device, Array1::zeros(outputs));
        let bias = (config.bias == Bias::Learned).then(zeros);
        Ok(Self {
            weight: Leaf::new(device, glorot::array(shape, map, seed.child("weight")))?,
            bias: bias.transpose()?,
            config: *config,
        })
    }

    /// The layer's settings.
    pub fn config(&self) -> &GraphConvolutionConfig {
        &self.config
    }

    /// The convolution of features along which there is a gradient; one operation on the tape.
    ///
    /// # Shapes
    /// `x: [N, Fin]` to `[N, Fout]`.
    ///
    /// # Errors
    /// [`LayerError::Graph`] if graph and features do not fit the settings; [`LayerError::Nn`] for a graph
    /// without nodes, since dfdx has no empty tensors.
    pub fn apply<N: Dim, I: Dim, T: Tape<E, Cpu>>(
        &self,
        graph: &Graph,
        x: Tensor<(N, I), E, Cpu, T>,
        mode: Mode,
    ) -> Result<Tensor<(usize, usize), E, Cpu, T>, LayerError> {
        let (rows, columns) = *x.shape();
        self.check(graph, [rows.size(), columns.size()])?;
        let nodes = GivenNodes::tensors(&[[rows.size(), columns.size()]], self.dropout(mode));
        self.recorded(graph, nodes, TapeInputs::<E, T>::new().with(x)?)
    }

    /// The convolution of features along which there is no gradient; the output is recorded on the tape.
    ///
    /// # Errors
    /// The errors of [`apply`](Self::apply).
    pub fn apply_features<'a, T: Tape<E, Cpu>>(
        &self,
        graph: &Graph,
        features: impl Into<Features<'a, E>>,
        tape: T,
        mode: Mode,
    ) -> Result<Tensor<(usize, usize), E, Cpu, T>, LayerError> {
        let features = features.into();
        self.check(graph, [features.rows(), features.columns()])?;
        let features = OwnedFeatures::dropped_out(features, self.dropout(mode).as_ref());
        let nodes = GivenNodes::features(vec![features]);
        self.recorded(graph, nodes, TapeInputs::on(tape))
    }

    /// The output in evaluation, without a tape.
    ///
    /// # Errors
    /// The errors of [`apply`](Self::apply).
    pub fn infer<'a>(
        &self,
        graph: &Graph,
        features: impl Into<Features<'a, E>>,
    ) -> Result<Array2<E>, LayerError> {
        let features = features.into();
        self.check(graph, [features.rows(), features.columns()])?;
        let h = features.product(self.weight.view())?;
        let mut output = convolve(graph, h.view())?;
        if let Some(bias) = &self.bias {
            add_to_rows(&mut output, bias.view());
        }
        Ok(output)
    }

    fn dropout(&self, mode: Mode) -> Option<DropoutMask> {
        mask(self.config.input_dropout, mode.child("input dropout"))
    }

    fn check(&self, graph: &Graph, nodes: [usize; 2]) -> Result<(), Error> {
        graph.expect_square("a convolution")?;
        let wanted = [graph.targets(), self.config.inputs];
        Ok(argument::shape("features", &wanted, &nodes)?)
    }

    fn recorded<T: Tape<E, Cpu>>(
        &self,
        graph: &Graph,
        nodes: GivenNodes<E>,
        inputs: TapeInputs<E, T>,
    ) -> Result<Tensor<(usize, usize), E, Cpu, T>, LayerError> {
        let mut inputs = inputs.with_leaf(&self.weight);
        if let Some(bias) = &self.bias {
            inputs = inputs.with_leaf(bias);
        }
        let shape = (graph.targets(), self.config.outputs);
        let graph = graph.clone();
        let operation = GraphConvolutionOperation {
            config: self.config,
            graph,
            nodes,
        };
        Ok(record_one(operation, inputs, shape)?)
    }
}

impl<E: Element> Parameters<E> for GraphConvolution<E> {
    bochner_nn::visit_fields!(E: weight, bias);
}
