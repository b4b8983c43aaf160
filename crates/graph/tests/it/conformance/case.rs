//! Graphs, features and parameters to test with.

use bochner_graph::{
    EdgeAttention, EdgeAttentionGradients, EdgeTerm, Graph, Merge, Points, Score, Settings, attend,
    attend_vjp,
};
use bochner_numerics::check::random;
use bochner_numerics::{DropoutMask, Real, Seed};
use ndarray::{Array2, Array3};

#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Kind {
    Classic,
    Dynamic,
    Stationary { p: f64, floor: f64 },
    Nonstationary { p: f64, floor: f64 },
    Gaussian { p: Option<f64> },
}

/// One of each, and kernels of several norms and floors.
pub(crate) const KINDS: [Kind; 10] = [
    Kind::Classic,
    Kind::Dynamic,
    Kind::Stationary {
        p: 2.0,
        floor: 1e-5,
    },
    Kind::Stationary {
        p: 0.5,
        floor: 1e-3,
    },
    Kind::Stationary { p: 2.0, floor: 0.0 },
    Kind::Nonstationary {
        p: 1.5,
        floor: 1e-5,
    },
    Kind::Nonstationary { p: 1.0, floor: 0.0 },
    Kind::Gaussian { p: None },
    Kind::Gaussian { p: Some(2.0) },
    Kind::Gaussian { p: Some(0.7) },
];

/// One of each engine.
pub(crate) const ENGINES: [Kind; 4] = [KINDS[0], KINDS[1], KINDS[5], KINDS[8]];

/// Everything that attention is computed from.
#[derive(Clone, Debug)]
pub(crate) struct Case<T> {
    pub(crate) graph: Graph,
    pub(crate) kind: Kind,
    pub(crate) targets: Array2<T>,
    pub(crate) sources: Array2<T>,
    pub(crate) a: Array2<T>,
    pub(crate) w1: Array3<T>,
    pub(crate) w2: Array3<T>,
    pub(crate) attributes: Option<Attributes<T>>,
    pub(crate) slope: f64,
    pub(crate) merge: Merge,
    pub(crate) dropout: Option<DropoutMask>,
    pub(crate) value_dropout: Option<DropoutMask>,
}

#[derive(Clone, Debug)]
pub(crate) struct Attributes<T> {
    pub(crate) values: Array2<T>,
    pub(crate) weight: Array2<T>,
    pub(crate) b: Option<Array2<T>>,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Size {
    pub(crate) heads: usize,
    pub(crate) width: usize,
    pub(crate) points: usize,
}

pub(crate) const SMALL: Size = Size {
    heads: 2,
    width: 3,
    points: 4,
};

/// Six nodes. No edge leads to node 4, none touches node 5, node 1 has a self loop, and one edge is there
/// twice.
pub(crate) fn small_graph() -> Graph {
    let edges = [
        (0, 1),
        (2, 1),
        (3, 2),
        (1, 1),
        (4, 0),
        (2, 0),
        (0, 1),
        (1, 3),
        (2, 3),
        (3, 0),
    ];
    Graph::from_edges(6, edges).unwrap()
}

/// Pseudo-random edges between any nodes, some nodes of many.
pub(crate) fn random_graph(targets: usize, sources: usize, edges: usize) -> Graph {
    let draws: Array2<f64> = random((edges, 2), "edges");
    let pick = |x: f64, count: usize| ((x.abs() * 1e4) as usize * 7919) % count;
    let ends = draws
        .rows()
        .into_iter()
        .map(|x| (pick(x[0], sources), pick(x[1], targets)));
    Graph::bipartite(targets, sources, ends).unwrap()
}

impl<T: Real> Case<T> {
    pub(crate) fn new(graph: Graph, kind: Kind, size: Size) -> Self {
        let Size {
            heads,
            width,
            points,
        } = size;
        let columns = match kind {
            Kind::Dynamic => width,
            _ => 2 * width,
        };
        let half = |x: T| x * T::of(0.5);
        Self {
            // Small enough for several sources to compete, even by a quasi-norm.
            targets: random((graph.targets(), heads * width), "targets").mapv(half),
            sources: random((graph.sources(), heads * width), "sources").mapv(half),
            a: random((heads, columns), "a"),
            w1: random((heads, points, 2 * width), "w1").mapv(half),
            w2: random((heads, points, 2 * width), "w2").mapv(half),
            attributes: None,
            slope: 0.2,
            merge: Merge::Concatenate,
            dropout: None,
            value_dropout: None,
            graph,
            kind,
        }
    }

    pub(crate) fn small(kind: Kind) -> Self {
        Self::new(small_graph(), kind, SMALL)
    }

    /// The case with attributes of the edges.
    pub(crate) fn with_attributes(self) -> Self {
        let (heads, edges) = (self.a.nrows(), self.graph.edge_count());
        let dynamic = self.kind == Kind::Dynamic;
        let width = if dynamic { self.a.ncols() } else { 2 };
        let attributes = Attributes {
            values: random((edges, 3), "attributes"),
            weight: random((3, heads * width), "weight of the edges"),
            b: (!dynamic).then(|| random((heads, width), "b")),
        };
        Self {
            attributes: Some(attributes),
            ..self
        }
    }

    pub(crate) fn with_dropout(self, rate: f64) -> Self {
        Self {
            dropout: Some(DropoutMask::new(rate, Seed::new(5)).unwrap()),
            ..self
        }
    }

    pub(crate) fn with_value_dropout(self, rate: f64) -> Self {
        Self {
            value_dropout: Some(DropoutMask::new(rate, Seed::new(6)).unwrap()),
            ..self
        }
    }

    pub(crate) fn settings(&self) -> Settings<'_, T> {
        let (a, w1, w2) = (self.a.view(), self.w1.view(), self.w2.view());
        let kernel = |points, p, floor| Score::Kernel {
            a,
            points,
            p,
            floor,
        };
        Settings {
            score: match self.kind {
                Kind::Classic => Score::Classic { a },
                Kind::Dynamic => Score::Dynamic { a },
                Kind::Stationary { p, floor } => kernel(Points::Stationary { w: w1 }, p, floor),
                Kind::Gaussian { p } => Score::Gaussian { a, p },
                Kind::Nonstationary { p, floor } => {
                    kernel(Points::Nonstationary { w1, w2 }, p, floor)
                }
            },
            slope: self.slope,
            edges: self.attributes.as_ref().map(|own| EdgeTerm {
                attributes: own.values.view(),
                weight: own.weight.view(),
                b: own.b.as_ref().map(|b| b.view()),
            }),
            merge: self.merge,
            dropout: self.dropout,
            value_dropout: self.value_dropout,
        }
    }

    pub(crate) fn attend(&self) -> EdgeAttention<'_, '_, T> {
        let (targets, sources) = (self.targets.view(), self.sources.view());
        attend(&self.graph, targets, sources, &self.settings()).unwrap()
    }

    pub(crate) fn weights(&self) -> Array2<T> {
        self.attend().weights().weights
    }

    /// A cotangent of the output.
    pub(crate) fn cotangent(&self) -> Array2<T> {
        let heads = match self.merge {
            Merge::Concatenate => 1,
            Merge::Average => self.a.nrows(),
        };
        random(
            (self.targets.nrows(), self.targets.ncols() / heads),
            "cotangent",
        )
    }

    pub(crate) fn gradients(&self) -> EdgeAttentionGradients<T> {
        self.gradients_from(&self.cotangent())
    }

    pub(crate) fn gradients_from(&self, cotangent: &Array2<T>) -> EdgeAttentionGradients<T> {
        attend_vjp(&self.attend(), cotangent.view()).unwrap()
    }
}

/// All gradients by name, flat.
pub(crate) fn named<T: Real>(g: &EdgeAttentionGradients<T>) -> Vec<(&'static str, Vec<T>)> {
    let mut all = vec![
        ("targets", g.targets.iter().copied().collect()),
        ("sources", g.sources.iter().copied().collect()),
        ("a", g.a.iter().copied().collect()),
    ];
    if let Some(points) = &g.points {
        all.push(("w1", points.w1.iter().copied().collect()));
        all.extend(
            points
                .w2
                .iter()
                .map(|w2| ("w2", w2.iter().copied().collect())),
        );
    }
    if let Some(edges) = &g.edges {
        all.push(("attributes", edges.attributes.iter().copied().collect()));
        all.push((
            "weight of the edges",
            edges.weight.iter().copied().collect(),
        ));
        let b = edges.b.iter().map(|b| ("b", b.iter().copied().collect()));
        all.extend(b);
    }
    all
}
