//! Classification of the nodes of a graph: layers of graph attention, or of graph convolution.

mod config;
mod sampled;
mod task;
mod trainer;

pub use crate::assessment::Assessment;
pub use crate::training::{EpochReport, TrainingConfig};
pub use config::{Architecture, AttentionLayers, Dropout, NodeClassifierConfig};
pub use sampled::Sampling;
pub use task::Task;
pub use trainer::{Batch, Trainer};

use crate::Error;
use crate::assessment::array;
use bochner_graph::{
    AttentionKind, AttributedGraph, Bias, Features, Graph, GraphAttended, GraphAttention,
    GraphAttentionConfig, GraphConvolution, GraphConvolutionConfig, GraphInspection, Merge,
    SparseFeatures,
};
use bochner_nn::{Element, Parameter, ParameterMut, Parameters, join};
use bochner_numerics::Seed;
use bochner_ops::{Activation, Mode};
use dfdx::tensor::{Cpu, Merge as MergeTapes, NoneTape, PutTape, Tape, Tensor, ZerosTensor};
use dfdx::tensor_ops::TryAdd;
use ndarray::Array2;
use std::borrow::Cow;

/// Logits of the classes of a graph's nodes, from L layers.
///
/// With attention ([`Architecture::Attention`]) as GAT has it:
///
/// $$h_0 = x, \qquad h_l = \mathrm{ELU}\bigl(\mathrm{GraphAttention}\_l(h_{l-1})\bigr), \qquad
/// y = \mathrm{GraphAttention}\_L(h_{L-1})$$
///
/// *where* the heads of the hidden layers stand side by side and those of the last, each as wide as
/// there are classes, are averaged. All layers may have residuals and read attributes of the edges. With convolution
/// ([`Architecture::Convolution`]) as GCN has it: layers of it without bias, a rectifier between them. No layer adds
/// self loops to the graph it is given.
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
    Attention(Vec<GraphAttention<E>>),
    Convolution(Vec<GraphConvolution<E>>),
}

/// A number for each node and class, `[N, classes]`.
type Logits<E, T> = Tensor<(usize, usize), E, Cpu, T>;

/// Logits and the penalties of the layers.
pub type Classified<E, T> = GraphAttended<Logits<E, T>, Tensor<(), E, Cpu, T>>;

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
        let seeds = (0..config.architecture.layers()).map(|layer| seed.child(&name(layer)));
        let layers = match &config.architecture {
            Architecture::Attention(own) => {
                let layers = attention(config, own, seed).into_iter().zip(seeds);
                let layers = layers.map(|(own, seed)| GraphAttention::try_new(device, &own, seed));
                Layers::Attention(layers.collect::<Result<_, _>>()?)
            }
            &Architecture::Convolution { hidden, layers } => {
                let layer = |(layer, seed)| {
                    let own = GraphConvolutionConfig {
                        inputs: if layer == 0 { config.inputs } else { hidden },
                        outputs: if layer + 1 == layers {
                            config.classes
                        } else {
                            hidden
                        },
                        input_dropout: config.dropout.inputs,
                        bias: Bias::None,
                    };
                    GraphConvolution::try_new(device, &own, seed)
                };
                Layers::Convolution(seeds.enumerate().map(layer).collect::<Result<_, _>>()?)
            }
        };
        Ok(Self { layers })
    }

    /// The logits, `[N, classes]`, of all nodes, and the sum of the layers' penalties. The tape is that
    /// of the logits: `NoneTape`, `OwnedTape::default()`, or one [adding to
    /// gradients](bochner_nn::tape_adding_to).
    ///
    /// # Errors
    /// [`Error::GraphLayer`] if there is not one row of features a node, a row has another length than the classifier
    /// takes, or the edges' attributes are not those that it reads.
    pub fn apply<'g, T: Tape<E, Cpu> + MergeTapes<T>>(
        &self,
        graph: impl Into<AttributedGraph<'g, E>>,
        features: &SparseFeatures<E>,
        tape: T,
        mode: Mode,
    ) -> Result<Classified<E, T>, Error> {
        let graph = graph.into();
        match &self.layers {
            Layers::Attention(layers) => {
                let (first, others) = layers.split_first().expect("at least one layer");
                let mode_of = |layer| mode.child(&name(layer));
                let mut last = first.apply_features(graph, features, tape, mode_of(0))?;
                for (layer, attention) in (1..).zip(others) {
                    let next = attention.apply(graph, last.output, mode_of(layer))?;
                    last = with_penalty(next, last.penalty)?;
                }
                Ok(last)
            }
            Layers::Convolution(layers) => {
                let graph = without_attributes(graph)?;
                let (first, others) = layers.split_first().expect("at least one layer");
                let mode_of = |layer| mode.child(&name(layer));
                let features = Features::Sparse(features);
                let mut output = first.apply_features(graph, features, tape, mode_of(0))?;
                for (layer, convolution) in (1..).zip(others) {
                    let hidden = output.try_relu().map_err(bochner_nn::Error::from)?;
                    output = convolution.apply(graph, hidden, mode_of(layer))?;
                }
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
    pub fn infer<'g>(
        &self,
        graph: impl Into<AttributedGraph<'g, E>>,
        features: &SparseFeatures<E>,
    ) -> Result<Array2<E>, Error> {
        let classified = self.apply(graph, features, NoneTape, Mode::Evaluation)?;
        Ok(array(&classified.output))
    }

    /// The layers, if they are of attention.
    pub fn attention(&self) -> Option<&[GraphAttention<E>]> {
        match &self.layers {
            Layers::Attention(layers) => Some(layers),
            Layers::Convolution(_) => None,
        }
    }

    /// Weights of every edge and head, spectral points and the correlation of the heads of all layers.
    ///
    /// ```
    /// # use bochner_graph::{AttentionKind, Graph, SparseFeatures};
    /// # use bochner_models::node_classifier::{Architecture, Dropout, NodeClassifier, NodeClassifierConfig};
    /// # let graph = Graph::from_edges(3, [(0, 1), (1, 2), (2, 2)])?;
    /// # let features = SparseFeatures::from_dense(ndarray::array![[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]].view())?;
    /// # let architecture = Architecture::attention(AttentionKind::Classic);
    /// # let dropout = Dropout::default();
    /// # let config = NodeClassifierConfig { inputs: 2, classes: 2, architecture, dropout };
    /// # let seed = bochner_numerics::Seed::new(1);
    /// # let model = NodeClassifier::<f32>::try_new(&dfdx::tensor::Cpu::default(), &config, seed)?;
    /// let layers = model.inspect(&graph, &features)?;
    /// assert_eq!(layers[0].weights.weights.dim(), (3, 8));
    /// assert_eq!(layers[1].weights.weights.dim(), (3, 1));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Unsupported`] for convolution, whose weights are those of the graph alone; the errors of
    /// [`apply`](Self::apply).
    pub fn inspect<'g>(
        &self,
        graph: impl Into<AttributedGraph<'g, E>>,
        features: &SparseFeatures<E>,
    ) -> Result<Vec<GraphInspection<E>>, Error> {
        let layers = self.attention().ok_or(Error::Unsupported {
            what: "inspection of graph convolution",
            instead: "attention, or the graph, whose degrees are all the weights",
        })?;
        let (graph, mut inspected) = (graph.into(), Vec::new());
        let mut hidden: Option<Array2<E>> = None;
        for layer in layers {
            let of_hidden = hidden.as_ref().map(|x| Features::Dense(x.view()));
            let features = of_hidden.unwrap_or(Features::Sparse(features));
            inspected.push(layer.inspect(graph, features)?);
            hidden = Some(layer.infer(graph, features)?);
        }
        Ok(inspected)
    }

    /// The parameters under the L2 penalty: all of an attention network, as GAT's code has it, and the first
    /// layer of a convolutional one, as GCN's has it.
    pub(crate) fn penalised(&self) -> &dyn Parameters<E> {
        match &self.layers {
            Layers::Attention(_) => self,
            Layers::Convolution(layers) => &layers[0],
        }
    }

    fn parts(&self) -> Vec<&dyn Parameters<E>> {
        match &self.layers {
            Layers::Attention(layers) => layers.iter().map(|layer| layer as _).collect(),
            Layers::Convolution(layers) => layers.iter().map(|layer| layer as _).collect(),
        }
    }

    fn parts_mut(&mut self) -> Vec<&mut dyn Parameters<E>> {
        match &mut self.layers {
            Layers::Attention(layers) => layers.iter_mut().map(|layer| layer as _).collect(),
            Layers::Convolution(layers) => layers.iter_mut().map(|layer| layer as _).collect(),
        }
    }
}

/// The name of a layer, by which its parameters, seeds and dropout are told apart.
fn name(layer: usize) -> Cow<'static, str> {
    // Networks of two layers keep the initial values that they had when there were no others.
    match layer {
        0 => "first".into(),
        1 => "second".into(),
        _ => format!("layer {}", layer + 1).into(),
    }
}

/// The sum of the penalties of a layer and of those before.
fn with_penalty<E: Element, T: Tape<E, Cpu> + MergeTapes<T>>(
    attended: Classified<E, T>,
    before: Tensor<(), E, Cpu, T>,
) -> Result<Classified<E, T>, Error> {
    let penalty = attended.penalty.try_add(before);
    Ok(GraphAttended {
        output: attended.output,
        penalty: penalty.map_err(bochner_nn::Error::from)?,
    })
}

/// The graph of a convolution, which reads no attributes.
fn without_attributes<E>(graph: AttributedGraph<'_, E>) -> Result<&Graph, Error> {
    match graph.attributes {
        None => Ok(graph.graph),
        Some(_) => Err(Error::Unsupported {
            what: "attributes of the edges in graph convolution",
            instead: "attention, or the graph alone",
        }),
    }
}

/// The settings of the layers of attention.
fn attention(
    config: &NodeClassifierConfig,
    own: &AttentionLayers,
    seed: Seed,
) -> Vec<GraphAttentionConfig> {
    let Dropout {
        inputs,
        values,
        coefficients,
    } = config.dropout;
    let layer = |layer: usize| {
        let inputs_of = if layer == 0 {
            config.inputs
        } else {
            own.heads * own.width
        };
        let is_last = layer + 1 == own.layers;
        let (heads, width) = if is_last {
            (own.output_heads, config.classes)
        } else {
            (own.heads, own.width)
        };
        let plain = match own.kind {
            AttentionKind::Dynamic => GraphAttentionConfig::gatv2(inputs_of, heads, width),
            _ => GraphAttentionConfig::gat(inputs_of, heads, width),
        };
        GraphAttentionConfig {
            kind: own.kind.clone(),
            edge_inputs: own.edge_inputs,
            merge: if is_last {
                Merge::Average
            } else {
                Merge::Concatenate
            },
            activation: if is_last {
                Activation::Identity
            } else {
                Activation::Elu
            },
            residual: own.residual,
            initial_map: own.initial_map,
            input_dropout: inputs,
            value_dropout: values,
            coefficient_dropout: coefficients,
            seed: seed.child(&format!("evaluation of the {} layer", name(layer))),
            ..plain
        }
    };
    (0..own.layers).map(layer).collect()
}

impl<E: Element> Parameters<E> for NodeClassifier<E> {
    fn for_each(&self, prefix: &str, f: &mut dyn FnMut(&str, &dyn Parameter<E>)) {
        for (layer, part) in self.parts().into_iter().enumerate() {
            part.for_each(&join(prefix, &name(layer)), f);
        }
    }

    fn for_each_mut(&mut self, prefix: &str, f: &mut dyn FnMut(&str, &mut dyn ParameterMut<E>)) {
        for (layer, part) in self.parts_mut().into_iter().enumerate() {
            part.for_each_mut(&join(prefix, &name(layer)), f);
        }
    }
}
