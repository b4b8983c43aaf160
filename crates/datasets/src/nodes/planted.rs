//! Random graphs whose classes show in their edges and features.

use super::{CsrMatrix, EdgeList, GraphDefect};
use crate::draws::Draws;
use bochner_numerics::{ArgumentError, Seed, argument};
use std::collections::{BTreeSet, HashSet};

/// The description of a random graph with given numbers of nodes, classes, edges and features.
///
/// Node $i$ has class $i \bmod c$. Each edge begins at a node drawn uniformly; it ends at another
/// node of its class with probability `same_class`, and otherwise at a node of another class.
/// Features are ones: each is one of the columns of its class ($\lfloor d / c \rfloor$ of them)
/// with probability `own_words`, and otherwise any column. An edge that was drawn before, or a feature
/// that the node already has, is drawn again.
///
/// ```
/// use bochner_datasets::PlantedPartition;
/// use bochner_numerics::Seed;
///
/// let citations = PlantedPartition {
///     nodes: 2000, edges: 4000, classes: 7, features: 1400, words: 18,
///     same_class: 0.8, own_words: 0.3,
/// };
/// let graph = citations.draw(Seed::new(1))?;
/// assert_eq!(graph.edges.undirected().len(), 4000);
/// assert_eq!(graph.features.entries(), 2000 * 18);
/// # Ok::<(), bochner_datasets::GraphDefect>(())
/// ```
///
/// # Reference
/// A. Condon, R. M. Karp, *Algorithms for graph partitioning on the planted partition model*,
/// 2001; with the number of edges fixed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PlantedPartition {
    /// Number of nodes, $n$.
    pub nodes: usize,
    /// Number of edges without direction, at most a quarter of $n (\lfloor n / c \rfloor - 1)$.
    pub edges: usize,
    /// Number of classes, $c \geq 2$.
    pub classes: usize,
    /// Number of features, $d$.
    pub features: usize,
    /// Features of each node, at most half of $\lfloor d / c \rfloor$.
    pub words: usize,
    /// Probability that an edge stays in its class.
    pub same_class: f64,
    /// Probability that a feature is one of the class.
    pub own_words: f64,
}

/// A random graph.
#[derive(Clone, Debug, PartialEq)]
pub struct PlantedGraph {
    /// The edges, each in both directions; no self loops and no repetitions.
    pub edges: EdgeList,
    /// The class of each node, in the type that the graphs read from files have; none is `None`.
    pub labels: Vec<Option<usize>>,
    /// The features, shape `[n, d]`, all values 1.
    pub features: CsrMatrix,
}

impl PlantedPartition {
    /// Draws a graph. Edges and features are drawn from separate random streams.
    ///
    /// # Errors
    /// [`GraphDefect::Argument`] for sizes and probabilities beyond their bounds.
    pub fn draw(self, seed: Seed) -> Result<PlantedGraph, GraphDefect> {
        self.check()?;
        Ok(PlantedGraph {
            edges: self.draw_edges(&mut Draws::new(seed.child("edges")))?,
            labels: (0..self.nodes).map(|i| Some(i % self.classes)).collect(),
            features: self.draw_features(&mut Draws::new(seed.child("features")))?,
        })
    }

    /// The bounds leave at least half of all pairs free in every draw, so that drawing ends.
    fn check(&self) -> Result<(), ArgumentError> {
        let at_most = |name: &'static str, size: usize, most: usize| {
            argument::in_range(size <= most, name, size as f64, format!("at most {most}"))
        };
        argument::in_range(
            self.classes >= 2,
            "classes",
            self.classes as f64,
            "at least 2",
        )?;
        let others = (self.nodes / self.classes).saturating_sub(1);
        at_most("edges", self.edges, self.nodes.saturating_mul(others) / 4)?;
        at_most("words", self.words, self.features / self.classes / 2)?;
        for (name, value) in [
            ("same_class", self.same_class),
            ("own_words", self.own_words),
        ] {
            argument::in_range((0.0..=1.0).contains(&value), name, value, "from 0 to 1")?;
        }
        Ok(())
    }

    fn draw_edges(&self, draws: &mut Draws) -> Result<EdgeList, GraphDefect> {
        let mut seen = HashSet::with_capacity(self.edges);
        let mut entries = Vec::with_capacity(2 * self.edges);
        while seen.len() < self.edges {
            let from = draws.below(self.nodes);
            let to = self.draw_end(from, draws);
            if from != to && seen.insert([from.min(to), from.max(to)]) {
                entries.extend([[from, to], [to, from]]);
            }
        }
        EdgeList::new(self.nodes, entries)
    }

    fn draw_end(&self, from: usize, draws: &mut Draws) -> usize {
        let class = from % self.classes;
        if draws.happens(self.same_class) {
            let size = (self.nodes - class).div_ceil(self.classes);
            return class + self.classes * draws.below(size);
        }
        let mut ends = std::iter::repeat_with(|| draws.below(self.nodes));
        ends.find(|end| end % self.classes != class)
            .expect("there are nodes of other classes")
    }

    fn draw_features(&self, draws: &mut Draws) -> Result<CsrMatrix, GraphDefect> {
        let own = self.features / self.classes;
        let mut indices = Vec::with_capacity(self.nodes * self.words);
        for node in 0..self.nodes {
            let mut row = BTreeSet::new();
            while row.len() < self.words {
                row.insert(match draws.happens(self.own_words) {
                    true => node % self.classes * own + draws.below(own),
                    false => draws.below(self.features),
                });
            }
            indices.extend(row);
        }
        let indptr = (0..=self.nodes).map(|row| row * self.words).collect();
        let values = vec![1.0; indices.len()];
        CsrMatrix::new((self.nodes, self.features), indptr, indices, values)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SIZES: PlantedPartition = PlantedPartition {
        nodes: 1003,
        edges: 3000,
        classes: 4,
        features: 410,
        words: 12,
        same_class: 0.7,
        own_words: 0.4,
    };

    fn share(part: usize, all: usize) -> f64 {
        part as f64 / all as f64
    }

    #[test]
    fn sizes_are_those_asked_for() {
        let graph = SIZES.draw(Seed::new(3)).unwrap();
        // So there are neither self loops nor repetitions.
        assert_eq!(graph.edges.entries().len(), 6000);
        assert_eq!(graph.edges.undirected().len(), 3000);
        assert_eq!(
            (graph.features.rows(), graph.features.columns()),
            (1003, 410)
        );
        assert_eq!(graph.features.entries(), 12 * 1003);
        let labels: BTreeSet<_> = graph.labels.iter().copied().collect();
        assert_eq!(labels, (0..4).map(Some).collect());
    }

    #[test]
    fn edges_and_words_stay_in_their_class_as_often_as_asked_for() {
        let graph = SIZES.draw(Seed::new(4)).unwrap();
        let edges = graph.edges.undirected();
        let inside = edges.iter().filter(|[i, j]| i % 4 == j % 4).count();
        // Three standard deviations of a share of 3,000 draws are 0.025.
        assert!((share(inside, 3000) - 0.7).abs() < 0.025);
        let of_class = |node: usize| {
            let (words, _) = graph.features.row(node);
            words.iter().filter(|&&word| word / 102 == node % 4).count()
        };
        let own: usize = (0..1003).map(of_class).sum();
        // The expected share is 0.4 + 0.6 * 102 / 410, less the words that are drawn again, most of which
        // are the class's own.
        assert!((share(own, 12 * 1003) - 0.549).abs() < 0.03);
    }

    #[test]
    fn the_seed_decides() {
        let draw = |seed| SIZES.draw(Seed::new(seed)).unwrap();
        assert_eq!(draw(1), draw(1));
        assert_ne!(draw(1).edges, draw(2).edges);
        assert_ne!(draw(1).features, draw(2).features);
    }

    #[test]
    fn the_largest_sizes_are_drawn_and_larger_ones_refused() {
        let full = PlantedPartition {
            nodes: 40,
            edges: 90,
            words: 51,
            ..SIZES
        };
        for same_class in [0.0, 1.0] {
            let graph = PlantedPartition {
                same_class,
                own_words: 1.0,
                ..full
            }
            .draw(Seed::new(5));
            assert_eq!(graph.unwrap().edges.undirected().len(), 90);
        }
        for refused in [
            PlantedPartition { edges: 91, ..full },
            PlantedPartition { words: 52, ..full },
            PlantedPartition { classes: 1, ..full },
            PlantedPartition { classes: 0, ..full },
            PlantedPartition {
                nodes: 3,
                edges: 1,
                ..full
            },
            PlantedPartition {
                same_class: f64::NAN,
                ..full
            },
            PlantedPartition {
                own_words: 1.5,
                ..full
            },
        ] {
            assert!(refused.draw(Seed::new(5)).is_err(), "{refused:?}");
        }
        let empty = PlantedPartition {
            nodes: 0,
            edges: 0,
            ..full
        };
        assert_eq!(empty.draw(Seed::new(5)).unwrap().edges.nodes(), 0);
    }
}
