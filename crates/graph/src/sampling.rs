//! Neighbourhoods drawn layer by layer, for graphs that are too large to be attended to at once.

use crate::{Error, Graph};
use bochner_numerics::Seed;
use rand::seq::index;
use serde::{Deserialize, Serialize};

/// The number of edges into a target that are kept. Its self loop, if it has one, always is, and does
/// not count.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FanOut {
    /// All edges are kept: nothing is drawn.
    All,
    /// At most this many, drawn without replacement, each as likely as any other.
    AtMost(usize),
}

/// Some nodes and what they attend to: one layer of a sample.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Neighbourhood {
    /// The edges from the sources to the targets of this layer, renumbered.
    pub graph: Graph,
    /// The numbers of the sources in the whole graph. The first ones are the targets, in order.
    pub nodes: Vec<usize>,
    /// The numbers of the edges in the whole graph.
    pub edges: Vec<usize>,
}

impl Neighbourhood {
    /// The numbers of the targets in the whole graph.
    pub fn targets(&self) -> &[usize] {
        &self.nodes[..self.graph.targets()]
    }
}

/// Draws the sources that some targets attend to, then the sources that these attend to, and so on: once for
/// each layer of attention.
///
/// Training takes a batch of targets with a few in-edges each. With [`FanOut::All`] one block of targets after
/// another has the results of the whole graph, to rounding, whatever the size of the graph. Layers that infer
/// their spectral points (`GraphAttentionConfig::infers_points`) are the exception: they see the means over the
/// nodes of the sample. `GraphAttention` shows training on samples.
///
/// ```
/// use bochner_graph::{FanOut, Graph, NeighbourSampler};
/// use bochner_numerics::Seed;
///
/// // A star: everybody is cited by node 0.
/// let graph = Graph::from_edges(10, (1..10).map(|node| (node, 0)))?;
/// let mut sampler = NeighbourSampler::new(&graph)?;
/// let fan_outs = [FanOut::All, FanOut::AtMost(3)];
/// let layers = sampler.sample(&[0], &fan_outs, Seed::new(1))?;
///
/// let last = &layers[1];
/// assert_eq!((last.targets(), last.graph.edge_count()), (&[0][..], 3));
/// // What the last layer reads is what the first one computes.
/// assert_eq!(layers[0].targets(), last.nodes);
/// # Ok::<(), bochner_graph::Error>(())
/// ```
///
/// # Reference
/// Hamilton, Ying and Leskovec 2017, *Inductive representation learning on large graphs*, algorithm 2.
#[derive(Debug)]
pub struct NeighbourSampler<'a> {
    graph: &'a Graph,
    /// The new number of each node of the layer that is being drawn.
    numbers: Vec<u32>,
}

/// The number of a node that has none yet.
const NONE: u32 = u32::MAX;

impl<'a> NeighbourSampler<'a> {
    /// A sampler of a graph whose targets are its sources.
    ///
    /// # Errors
    /// [`Error::NotSquare`].
    pub fn new(graph: &'a Graph) -> Result<Self, Error> {
        graph.expect_square("sampling neighbours")?;
        Ok(Self {
            graph,
            numbers: vec![NONE; graph.sources()],
        })
    }

    /// Returns the neighbourhoods of some targets, one for each fan-out. Fan-outs and neighbourhoods are in the order
    /// in which attention computes the layers, so that the last neighbourhood has the given targets (DGL's order;
    /// PyTorch Geometric's `num_neighbors` is the reverse).
    ///
    /// The draws for a target depend on the seed, the layer's distance from the last one and the target alone, not on
    /// other targets.
    ///
    /// # Errors
    /// [`Error::NotDistinct`] for a target out of range or given twice.
    pub fn sample(
        &mut self,
        targets: &[usize],
        fan_outs: &[FanOut],
        seed: Seed,
    ) -> Result<Vec<Neighbourhood>, Error> {
        self.check(targets)?;
        let mut layers: Vec<Neighbourhood> = Vec::with_capacity(fan_outs.len());
        for (distance, &fan_out) in fan_outs.iter().rev().enumerate() {
            let targets = layers.last().map_or(targets, |layer| &layer.nodes);
            let layer = self.layer(targets, fan_out, seed.nth(distance as u64))?;
            layers.push(layer);
        }
        layers.reverse();
        Ok(layers)
    }

    fn check(&mut self, targets: &[usize]) -> Result<(), Error> {
        let nodes = self.numbers.len();
        let wrong = targets.iter().position(|&target| {
            let again = self
                .numbers
                .get(target)
                .is_none_or(|&number| number != NONE);
            self.number(target, 0);
            again
        });
        self.forget(targets);
        match wrong {
            None => Ok(()),
            Some(at) => Err(Error::NotDistinct {
                what: "targets",
                at,
                got: targets[at],
                limit: nodes,
            }),
        }
    }

    fn layer(
        &mut self,
        targets: &[usize],
        fan_out: FanOut,
        seed: Seed,
    ) -> Result<Neighbourhood, Error> {
        let mut nodes = targets.to_vec();
        for (number, &target) in targets.iter().enumerate() {
            self.number(target, number as u32);
        }
        let (mut offsets, mut columns, mut edges) = (vec![0], Vec::new(), Vec::new());
        for &target in targets {
            for (source, edge) in self.kept(target, fan_out, seed) {
                if self.numbers[source] == NONE {
                    self.numbers[source] = nodes.len() as u32;
                    nodes.push(source);
                }
                columns.push(self.numbers[source] as usize);
                edges.push(edge);
            }
            offsets.push(columns.len());
        }
        self.forget(&nodes);
        Ok(Neighbourhood {
            graph: Graph::from_rows(nodes.len(), &offsets, &columns)?,
            nodes,
            edges,
        })
    }

    /// The edges that are kept of a target, with their sources.
    fn kept(&self, target: usize, fan_out: FanOut, seed: Seed) -> Vec<(usize, usize)> {
        let (own, others): (Vec<_>, Vec<_>) = self
            .graph
            .in_edges(target)
            .partition(|&(source, _)| source == target);
        let drawn = match fan_out {
            FanOut::AtMost(most) if most < others.len() => {
                let mut stream = seed.nth(target as u64).stream("neighbours");
                let mut places = index::sample(&mut stream, others.len(), most).into_vec();
                places.sort_unstable();
                places.into_iter().map(|place| others[place]).collect()
            }
            _ => others,
        };
        [own, drawn].concat()
    }

    fn number(&mut self, node: usize, number: u32) {
        if let Some(place) = self.numbers.get_mut(node) {
            *place = number;
        }
    }

    fn forget(&mut self, nodes: &[usize]) {
        nodes.iter().for_each(|&node| self.number(node, NONE));
    }
}
