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

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Two rings with chords and self loops on every third node.
    fn graph() -> Graph {
        let nodes = 30;
        let ring = (0..nodes).flat_map(|i| [1, 2, 5, 7].map(move |step| ((i + step) % nodes, i)));
        let loops = (0..nodes).step_by(3).map(|i| (i, i));
        Graph::from_edges(nodes, ring.chain(loops)).unwrap()
    }

    proptest! {
        #[test]
        fn layers_are_parts_of_the_graph(
            targets in proptest::sample::subsequence((0..30).collect::<Vec<_>>(), 0..8),
            most in prop::collection::vec(0..6_usize, 0..4),
            seed in any::<u64>(),
        ) {
            let whole = graph();
            let all = whole.edges();
            let fan_outs: Vec<FanOut> = most.iter().map(|&most| FanOut::AtMost(most)).collect();
            let mut sampler = NeighbourSampler::new(&whole).unwrap();
            let layers = sampler.sample(&targets, &fan_outs, Seed::new(seed)).unwrap();
            prop_assert_eq!(layers.len(), most.len());
            let mut expected = &targets;
            for (layer, &most) in layers.iter().zip(&most).rev() {
                prop_assert_eq!(layer.targets(), &expected[..]);
                for ((source, target), &edge) in layer.graph.edges().into_iter().zip(&layer.edges) {
                    prop_assert_eq!((layer.nodes[source], layer.nodes[target]), all[edge]);
                }
                for (i, &target) in layer.targets().iter().enumerate() {
                    let own = usize::from(target % 3 == 0);
                    let degree = whole.in_degree(target);
                    prop_assert_eq!(layer.graph.in_degree(i), most.min(degree - own) + own);
                }
                let mut once = layer.edges.clone();
                once.sort_unstable();
                once.dedup();
                prop_assert_eq!(once.len(), layer.edges.len());
                expected = &layer.nodes;
            }
        }
    }

    #[test]
    fn what_is_drawn_for_a_target_does_not_depend_on_the_others() {
        let whole = graph();
        let mut sampler = NeighbourSampler::new(&whole).unwrap();
        let mut drawn = |targets: &[usize], seed| {
            let layers = sampler.sample(targets, &[FanOut::AtMost(2)], Seed::new(seed));
            let layer = layers.unwrap().remove(0);
            let place = targets.iter().position(|&target| target == 4).unwrap();
            let edges = layer.graph.in_edges(place);
            let mut edges: Vec<usize> = edges.map(|(_, edge)| layer.edges[edge]).collect();
            edges.sort_unstable();
            edges
        };
        assert_eq!(drawn(&[4], 1), drawn(&[9, 0, 4, 17], 1));
        assert!((2..9).any(|seed| drawn(&[4], seed) != drawn(&[4], 1)));
    }

    #[test]
    fn every_neighbour_is_as_likely() {
        let whole = Graph::from_edges(9, (1..9).map(|node| (node, 0))).unwrap();
        let mut sampler = NeighbourSampler::new(&whole).unwrap();
        let (mut times, runs) = ([0_u32; 8], 4000);
        for seed in 0..runs {
            let layers = sampler.sample(&[0], &[FanOut::AtMost(3)], Seed::new(seed));
            layers.unwrap()[0]
                .edges
                .iter()
                .for_each(|&edge| times[edge] += 1);
        }
        let (share, runs) = (3.0 / 8.0, runs as f64);
        let deviation = (runs * share * (1.0 - share)).sqrt();
        for times in times {
            assert!(
                (f64::from(times) - runs * share).abs() < 5.0 * deviation,
                "{times}"
            );
        }
    }

    #[test]
    fn with_all_neighbours_nothing_is_missing() {
        let whole = graph();
        let mut sampler = NeighbourSampler::new(&whole).unwrap();
        let targets: Vec<usize> = (0..30).collect();
        let layer = sampler
            .sample(&targets, &[FanOut::All], Seed::new(1))
            .unwrap()
            .remove(0);
        assert_eq!(layer.nodes, targets);
        let mut edges = layer.edges;
        edges.sort_unstable();
        assert!(edges.into_iter().eq(0..whole.edge_count()));
    }

    #[test]
    fn what_is_no_target_is_named() {
        let whole = graph();
        let mut sampler = NeighbourSampler::new(&whole).unwrap();
        for (targets, at) in [([1, 30], 1), ([7, 7], 1), ([usize::MAX, 1], 0)] {
            let got = targets[at];
            let refused = sampler.sample(&targets, &[FanOut::All], Seed::new(1));
            let (what, limit) = ("targets", 30);
            assert_eq!(
                refused,
                Err(Error::NotDistinct {
                    what,
                    at,
                    got,
                    limit
                })
            );
        }
        // The sampler remembers nothing of a refused call.
        assert!(
            sampler
                .sample(&[7, 1], &[FanOut::All], Seed::new(1))
                .is_ok()
        );
        let two = Graph::bipartite(2, 3, []).unwrap();
        assert!(matches!(
            NeighbourSampler::new(&two),
            Err(Error::NotSquare { .. })
        ));
    }
}
