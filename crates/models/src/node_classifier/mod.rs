//! Classification of the nodes of a graph: two layers of graph attention, or of graph convolution.

mod config;
mod fingerprint;
mod sampled;
mod task;
mod trainer;

pub use crate::assessment::Assessment;
pub use crate::training::{EpochReport, TrainingConfig};
pub use config::{Architecture, NodeClassifierConfig};
pub use sampled::Sampling;
pub use task::Task;
pub use trainer::{Batch, Trainer};

use crate::Error;
use crate::assessment::array;
use bochner_graph::{
    Bias, Features, Graph, GraphAttended, GraphAttention, GraphAttentionConfig, GraphConvolution,
    GraphConvolutionConfig, GraphInspection, Merge, SparseFeatures,
};
use bochner_nn::{Element, Parameter, ParameterMut, Parameters, join};
use bochner_numerics::Seed;
use bochner_ops::{Activation, Mode};
use dfdx::tensor::{Cpu, Merge as MergeTapes, NoneTape, PutTape, Tape, Tensor, ZerosTensor};
use dfdx::tensor_ops::TryAdd;
use ndarray::Array2;

/// Logits of the classes of a graph's nodes, from two layers.
///
/// With attention ([`Architecture::Attention`]) as GAT has it:
///
/// $$h = \mathrm{ELU}\bigl(\mathrm{GraphAttention}_1(x)\bigr), \qquad
/// y = \mathrm{GraphAttention}_2(h)$$
///
/// *where* the heads of the first layer stand side by side and those of the second, each as wide as
/// there are classes, are averaged. With convolution ([`Architecture::Convolution`]) as GCN has it: two
/// layers of it without bias, a rectifier between them. No layer adds self loops to the graph it is given.
///
/// # Reference
/// Veličković et al., *Graph attention networks*, 2018; Kipf, Welling, *Semi-supervised classification
/// with graph convolutional networks*, 2017; Song et al. 2021, equation 10 and Table 5.
#[derive(Clone, Debug)]
pub struct NodeClassifier<E: Element> {
    layers: Layers<E>,
}

#[derive(Clone, Debug)]
enum Layers<E: Element> {
    Attention(Box<[GraphAttention<E>; 2]>),
    Convolution(Box<[GraphConvolution<E>; 2]>),
}

/// A number for each node and class, `[N, classes]`.
type Logits<E, T> = Tensor<(usize, usize), E, Cpu, T>;

/// Logits and the penalties of the layers.
type Classified<E, T> = GraphAttended<Logits<E, T>, Tensor<(), E, Cpu, T>>;

impl<E: Element> NodeClassifier<E> {
    /// A classifier with random initial values.
    ///
    /// Classifiers of one seed that differ in how edges are weighed alone share the initial values of
    /// everything else.
    ///
    /// # Errors
    /// A setting that is out of range is refused.
    pub fn try_new(device: &Cpu, config: &NodeClassifierConfig, seed: Seed) -> Result<Self, Error> {
        config.validate()?;
        let [first, second] = NAMES.map(|layer| seed.child(layer));
        let layers = match &config.architecture {
            Architecture::Attention { .. } => {
                let [of_first, of_second] = attention(config, seed);
                Layers::Attention(Box::new([
                    GraphAttention::try_new(device, &of_first, first)?,
                    GraphAttention::try_new(device, &of_second, second)?,
                ]))
            }
            &Architecture::Convolution { hidden } => {
                let layer = |inputs, outputs| GraphConvolutionConfig {
                    inputs,
                    outputs,
                    input_dropout: config.dropout,
                    bias: Bias::None,
                };
                let (of_first, of_second) =
                    (layer(config.inputs, hidden), layer(hidden, config.classes));
                Layers::Convolution(Box::new([
                    GraphConvolution::try_new(device, &of_first, first)?,
                    GraphConvolution::try_new(device, &of_second, second)?,
                ]))
            }
        };
        Ok(Self { layers })
    }

    /// The logits, `[N, classes]`, of all nodes, and the sum of the layers' penalties. The tape is that
    /// of the logits: `NoneTape`, `OwnedTape::default()`, or one [adding to
    /// gradients](bochner_nn::tape_adding_to).
    ///
    /// # Errors
    /// [`Error::GraphLayer`] if there is not one row of features a node, or a row has another length than
    /// the classifier takes.
    pub fn apply<T: Tape<E, Cpu> + MergeTapes<T>>(
        &self,
        graph: &Graph,
        features: &SparseFeatures<E>,
        tape: T,
        mode: Mode,
    ) -> Result<Classified<E, T>, Error> {
        let modes = NAMES.map(|layer| mode.child(layer));
        match &self.layers {
            Layers::Attention(layers) => {
                let [first, second] = &**layers;
                let hidden = first.apply_features(graph, features, tape, modes[0])?;
                let classified = second.apply(graph, hidden.output, modes[1])?;
                let penalty = classified.penalty.try_add(hidden.penalty);
                Ok(GraphAttended {
                    output: classified.output,
                    penalty: penalty.map_err(bochner_nn::Error::from)?,
                })
            }
            Layers::Convolution(layers) => {
                let [first, second] = &**layers;
                let features = Features::Sparse(features);
                let hidden = first.apply_features(graph, features, tape, modes[0])?;
                let hidden = hidden.try_relu().map_err(bochner_nn::Error::from)?;
                let output = second.apply(graph, hidden, modes[1])?;
                let penalty = Cpu::default()
                    .try_zeros()
                    .map_err(bochner_nn::Error::from)?;
                Ok(GraphAttended {
                    output,
                    penalty: penalty.put_tape(T::default()),
                })
            }
        }
    }

    /// The logits of all nodes in evaluation, `[N, classes]`.
    ///
    /// # Errors
    /// The errors of [`apply`](Self::apply).
    pub fn infer(&self, graph: &Graph, features: &SparseFeatures<E>) -> Result<Array2<E>, Error> {
        let classified = self.apply(graph, features, NoneTape, Mode::Evaluation)?;
        Ok(array(&classified.output))
    }

    /// The two layers, if they are of attention.
    pub fn attention(&self) -> Option<&[GraphAttention<E>; 2]> {
        match &self.layers {
            Layers::Attention(layers) => Some(layers),
            Layers::Convolution(_) => None,
        }
    }

    /// Weights of every edge and head, spectral points and the correlation of the heads of both layers.
    ///
    /// ```
    /// # use bochner_graph::{AttentionKind, Graph, SparseFeatures};
    /// # use bochner_models::node_classifier::{Architecture, NodeClassifier, NodeClassifierConfig};
    /// # let graph = Graph::from_edges(3, [(0, 1), (1, 2), (2, 2)])?;
    /// # let features = SparseFeatures::from_dense(ndarray::array![[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]].view())?;
    /// # let architecture = Architecture::attention(AttentionKind::Classic);
    /// # let config = NodeClassifierConfig { inputs: 2, classes: 2, architecture, dropout: 0.0 };
    /// # let seed = bochner_numerics::Seed::new(1);
    /// # let model = NodeClassifier::<f32>::try_new(&dfdx::tensor::Cpu::default(), &config, seed)?;
    /// let [first, second] = model.inspect(&graph, &features)?;
    /// assert_eq!(first.weights.weights.dim(), (3, 8));
    /// assert_eq!(second.weights.weights.dim(), (3, 1));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Unsupported`] for convolution, whose weights are those of the graph alone; the errors of
    /// [`apply`](Self::apply).
    pub fn inspect(
        &self,
        graph: &Graph,
        features: &SparseFeatures<E>,
    ) -> Result<[GraphInspection<E>; 2], Error> {
        let [first, second] = self.attention().ok_or(Error::Unsupported {
            what: "inspection of graph convolution",
            instead: "attention, or the graph, whose degrees are all the weights",
        })?;
        let hidden = first.infer(graph, features)?;
        let hidden = Features::Dense(hidden.view());
        Ok([
            first.inspect(graph, features)?,
            second.inspect(graph, hidden)?,
        ])
    }

    /// The parameters under the L2 penalty: all of an attention network, as GAT's code has it, and the first
    /// layer of a convolutional one, as GCN's has it.
    pub(super) fn penalised(&self) -> &dyn Parameters<E> {
        match &self.layers {
            Layers::Attention(_) => self,
            Layers::Convolution(layers) => &layers[0],
        }
    }

    fn parts(&self) -> [&dyn Parameters<E>; 2] {
        match &self.layers {
            Layers::Attention(layers) => layers.each_ref().map(|layer| layer as _),
            Layers::Convolution(layers) => layers.each_ref().map(|layer| layer as _),
        }
    }

    fn parts_mut(&mut self) -> [&mut dyn Parameters<E>; 2] {
        match &mut self.layers {
            Layers::Attention(layers) => layers.each_mut().map(|layer| layer as _),
            Layers::Convolution(layers) => layers.each_mut().map(|layer| layer as _),
        }
    }
}

/// The names of the layers.
const NAMES: [&str; 2] = ["first", "second"];

/// The settings of two layers of attention.
fn attention(config: &NodeClassifierConfig, seed: Seed) -> [GraphAttentionConfig; 2] {
    let Architecture::Attention {
        kind,
        heads,
        width,
        output_heads,
    } = &config.architecture
    else {
        unreachable!("asked of attention only")
    };
    let first = GraphAttentionConfig {
        activation: Activation::Elu,
        kind: kind.clone(),
        input_dropout: config.dropout,
        value_dropout: config.dropout,
        coefficient_dropout: config.dropout,
        seed: seed.child("evaluation of the first layer"),
        ..GraphAttentionConfig::gat(config.inputs, *heads, *width)
    };
    let second = GraphAttentionConfig {
        inputs: first.outputs(),
        heads: *output_heads,
        width: config.classes,
        merge: Merge::Average,
        activation: Activation::Identity,
        seed: seed.child("evaluation of the second layer"),
        ..first.clone()
    };
    [first, second]
}

impl<E: Element> Parameters<E> for NodeClassifier<E> {
    fn for_each(&self, prefix: &str, f: &mut dyn FnMut(&str, &dyn Parameter<E>)) {
        for (part, name) in self.parts().into_iter().zip(NAMES) {
            part.for_each(&join(prefix, name), f);
        }
    }

    fn for_each_mut(&mut self, prefix: &str, f: &mut dyn FnMut(&str, &mut dyn ParameterMut<E>)) {
        for (part, name) in self.parts_mut().into_iter().zip(NAMES) {
            part.for_each_mut(&join(prefix, name), f);
        }
    }
}
