//! Graphs that are too large to be classified at once.

use super::{Classified, NodeClassifier, Task};
use crate::Error;
use crate::training::device_error;
use bochner_graph::{
    AttributedGraph, FanOut, Features, GraphAttention, LayerError, NeighbourSampler, Neighbourhood,
    Nodes, SparseFeatures,
};
use bochner_nn::Element;
use bochner_numerics::{Seed, argument};
use bochner_ops::Mode;
use dfdx::tensor::{Cpu, Merge, PutTape, SplitTape, Tape};
use ndarray::{Array2, ArrayView2, Axis, s};
use serde::{Deserialize, Serialize};
use std::num::NonZeroUsize;

/// Neighbourhood sampling for large graphs. A step reads some training nodes, some of the nodes that they attend to,
/// some of the nodes that these attend to, and so on, a layer at a time.
///
/// # Reference
/// Hamilton, Ying and Leskovec 2017, *Inductive representation learning on large graphs*.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Sampling {
    /// Training nodes of a step.
    pub batch: NonZeroUsize,
    /// The edges that are kept into a node, in each layer from the first on.
    #[serde(alias = "fan_outs")]
    pub fan_outs: Vec<FanOut>,
}

impl<E: Element> NodeClassifier<E> {
    /// Returns the logits of the targets of the last neighbourhood, `[n, classes]`, and the layers' penalties, given
    /// a neighbourhood for each layer, and the attributes of the edges and the features of the whole graph. Requires
    /// attention.
    ///
    /// With [`FanOut::All`] and without dropout, the logits equal those of [`apply`](Self::apply), except with
    /// mechanisms that infer their spectral points from the nodes: those see the nodes of the sample.
    ///
    /// # Errors
    /// [`Error::Unsupported`] for convolution, whose weights are those of the whole graph; [`Error::Argument`] unless
    /// there is a neighbourhood for each layer; the errors of [`apply`](Self::apply).
    pub fn apply_sampled<T: Tape<E, Cpu> + Merge<T>>(
        &self,
        neighbourhoods: &[Neighbourhood],
        attributes: Option<ArrayView2<E>>,
        features: &SparseFeatures<E>,
        tape: T,
        mode: Mode,
    ) -> Result<Classified<E, T>, Error> {
        let layers = self.attention_layers()?;
        argument::shape("neighbourhoods", &[layers.len()], &[neighbourhoods.len()])?;
        let mode_of = |layer| mode.child(&super::name(layer));
        let mut pairs = layers.iter().zip(neighbourhoods);
        let (first, near) = pairs.next().expect("at least one layer");
        let [targets, sources] = ends(near, features)?;
        let (nodes, own) = (apart(&targets, &sources), attributes_of(near, attributes));
        let mut last = first.apply_features(attributed(near, &own), nodes, tape, mode_of(0))?;
        for (layer, (attention, near)) in (1..).zip(pairs) {
            let (sources, tape) = last.output.split_tape();
            let targets = sources.clone().put_tape(T::default());
            let targets = targets
                .try_slice((..near.targets().len(), ..))
                .map_err(device_error)?;
            let sources = sources.put_tape(tape);
            let own = attributes_of(near, attributes);
            let graph = attributed(near, &own);
            let next = attention.apply_bipartite(graph, targets, sources, mode_of(layer))?;
            last = super::with_penalty(next, last.penalty)?;
        }
        Ok(last)
    }

    /// The logits of all nodes in evaluation, `[N, classes]`: those of [`infer`](Self::infer), a layer
    /// after the other, some targets at a time with all that they attend to. Memory is that of the
    /// nodes' hidden features and of a block.
    ///
    /// # Errors
    /// [`Error::Unsupported`] for convolution, and for mechanisms that draw spectral points given all
    /// nodes; the errors of [`apply`](Self::apply).
    pub fn infer_in_blocks<'g>(
        &self,
        graph: impl Into<AttributedGraph<'g, E>>,
        features: &SparseFeatures<E>,
        block: NonZeroUsize,
    ) -> Result<Array2<E>, Error> {
        let (layers, graph) = (self.attention_layers()?, graph.into());
        let (first, others) = layers.split_first().expect("at least one layer");
        let mut hidden = in_blocks(first, graph, block, |near, graph| {
            let [targets, sources] = ends(near, features)?;
            first.infer(graph, apart(&targets, &sources))
        })?;
        for layer in others {
            hidden = in_blocks(layer, graph, block, |near, graph| {
                let sources = hidden.select(Axis(0), &near.nodes);
                let targets = sources.slice(s![..near.targets().len(), ..]);
                let nodes = Nodes::Apart {
                    targets: Features::Dense(targets),
                    sources: Features::Dense(sources.view()),
                };
                layer.infer(graph, nodes)
            })?;
        }
        Ok(hidden)
    }

    fn attention_layers(&self) -> Result<&[GraphAttention<E>], Error> {
        self.attention().ok_or(Error::Unsupported {
            what: "graph convolution on parts of a graph",
            instead: "attention, or the whole graph",
        })
    }
}

/// The attributes of the edges of a neighbourhood, from those of the whole graph.
fn attributes_of<E: Element>(
    near: &Neighbourhood,
    attributes: Option<ArrayView2<E>>,
) -> Option<Array2<E>> {
    attributes.map(|attributes| attributes.select(Axis(0), &near.edges))
}

fn attributed<'a, E>(
    near: &'a Neighbourhood,
    attributes: &'a Option<Array2<E>>,
) -> AttributedGraph<'a, E> {
    AttributedGraph {
        graph: &near.graph,
        attributes: attributes.as_ref().map(|attributes| attributes.view()),
    }
}

/// The output of a layer for all nodes, computed for a block of targets at a time.
fn in_blocks<E: Element>(
    layer: &GraphAttention<E>,
    AttributedGraph { graph, attributes }: AttributedGraph<E>,
    block: NonZeroUsize,
    f: impl Fn(&Neighbourhood, AttributedGraph<E>) -> Result<Array2<E>, LayerError>,
) -> Result<Array2<E>, Error> {
    if layer.config().infers_points() {
        return Err(Error::Unsupported {
            what: "inference in blocks with spectral points drawn given all nodes",
            instead: "the whole graph, ikan-direct, or an unconditional posterior",
        });
    }
    let mut sampler = NeighbourSampler::new(graph).map_err(LayerError::from)?;
    let mut all = Array2::zeros((graph.targets(), layer.config().outputs()));
    let nodes: Vec<usize> = (0..graph.targets()).collect();
    let rows = all.axis_chunks_iter_mut(Axis(0), block.get());
    for (targets, mut rows) in nodes.chunks(block.get()).zip(rows) {
        // Nothing is drawn.
        let layers = sampler.sample(targets, &[FanOut::All], Seed::new(0));
        let near = &layers.map_err(LayerError::from)?[0];
        let own = attributes_of(near, attributes);
        rows.assign(&f(near, attributed(near, &own))?);
    }
    Ok(all)
}

/// The features of a neighbourhood's targets and sources.
fn ends<E: Element>(
    neighbourhood: &Neighbourhood,
    features: &SparseFeatures<E>,
) -> Result<[SparseFeatures<E>; 2], LayerError> {
    let targets = features.select(neighbourhood.targets())?;
    Ok([targets, features.select(&neighbourhood.nodes)?])
}

fn apart<'a, E: Element>(
    targets: &'a SparseFeatures<E>,
    sources: &'a SparseFeatures<E>,
) -> Nodes<'a, E> {
    Nodes::Apart {
        targets: Features::Sparse(targets),
        sources: Features::Sparse(sources),
    }
}

impl Task {
    /// A sample of the graph around some nodes, in which they are the first.
    pub(super) fn neighbourhoods(
        &self,
        targets: &[usize],
        seed: Seed,
    ) -> Result<Vec<Neighbourhood>, Error> {
        let sampling = self.sampling().expect("a task that is sampled");
        let mut sampler = NeighbourSampler::new(self.graph()).map_err(LayerError::from)?;
        let drawn = sampler.sample(targets, &sampling.fan_outs, seed);
        Ok(drawn.map_err(LayerError::from)?)
    }
}
