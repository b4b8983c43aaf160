//! `gat_classic` and `gat_kernel`: attention along the edges of a graph.

use super::is_stationary;
use crate::case_file::CaseFile;
use crate::comparison::Computed;
use crate::error::Fault;
use bochner_graph::{
    EdgeAttentionGradients, Features, Graph, Merge, Points, Score, Settings, attend, attend_vjp,
    scores,
};
use bochner_numerics::Real;
use ndarray::{Array2, Array3, ArrayView2, Ix2};

/// The score of GAT.
pub(super) fn classic<T: Real>(file: &CaseFile) -> Result<Computed, Fault> {
    let a: Array2<T> = file.array("a")?;
    let score = Score::Classic { a: a.view() };
    Nodes::read(file)?.compute(file, score)
}

/// The kernel score.
pub(super) fn kernel<T: Real>(file: &CaseFile) -> Result<Computed, Fault> {
    let a: Array2<T> = file.array("a")?;
    let w1: Array3<T> = file.array("w1")?;
    let w2: Option<Array3<T>> = match is_stationary(file)? {
        true => None,
        false => Some(file.array("w2")?),
    };
    let score = Score::Kernel {
        a: a.view(),
        points: match &w2 {
            None => Points::Stationary { w: w1.view() },
            Some(w2) => Points::Nonstationary {
                w1: w1.view(),
                w2: w2.view(),
            },
        },
        p: file.number("p")?,
        floor: file.number("floor")?,
    };
    Nodes::read(file)?.compute(file, score)
}

/// The graph, and its nodes' features before and after their transformation.
struct Nodes<T> {
    graph: Graph,
    x: Array2<T>,
    /// The shape `[H, F, Fin]` of the weight in the file.
    shape: (usize, usize, usize),
    /// `[Fin, H F]`.
    weight: Array2<T>,
    /// `[N, H F]`.
    transformed: Array2<T>,
}

impl<T: Real> Nodes<T> {
    fn read(file: &CaseFile) -> Result<Self, Fault> {
        // Self loops are among the edges, or not to be there.
        file.choice("self_loops", &["given", "none"])?;
        let (x, w): (Array2<T>, Array3<T>) = (file.array("x")?, file.array("w")?);
        let (sources, targets) = (file.lengths("src")?, file.lengths("dst")?);
        if sources.len() != targets.len() {
            return Err(Fault::Shape {
                tensor: "in.dst".to_owned(),
                expected: format!("[{}], as in.src", sources.len()),
                got: vec![targets.len()],
            });
        }
        let edges = sources.into_iter().zip(targets);
        let graph = Graph::from_edges(x.nrows(), edges).map_err(Fault::refused)?;
        let shape = w.dim();
        let (heads, width, inputs) = shape;
        let rows = w.into_shape_with_order((heads * width, inputs));
        let weight = rows.expect("as many elements").reversed_axes();
        let transformed = Features::Dense(x.view()).product(weight.view());
        Ok(Self {
            graph,
            shape,
            transformed: transformed.map_err(Fault::refused)?,
            x,
            weight,
        })
    }

    fn compute(&self, file: &CaseFile, score: Score<T>) -> Result<Computed, Fault> {
        let settings = Settings {
            score,
            slope: file.number("slope")?,
            edges: None,
            merge: Merge::Concatenate,
            dropout: None,
            value_dropout: None,
        };
        let (graph, h) = (&self.graph, self.transformed.view());
        let attended = attend(graph, h, h, &settings).map_err(Fault::refused)?;
        let mut computed = Computed::default();
        computed.output("output", &attended.output);
        let alpha = attended.weights().weights;
        computed.output("alpha", &alpha);
        let scores = scores(graph, h, h, &settings).map_err(Fault::refused)?;
        computed.output("score", &scores);
        if let Some(g) = file.ranked_cotangent::<T, Ix2>()? {
            let g = attend_vjp(&attended, g.view());
            self.record(&g.map_err(Fault::refused)?, &mut computed)?;
        }
        Ok(computed)
    }

    fn record(&self, g: &EdgeAttentionGradients<T>, computed: &mut Computed) -> Result<(), Fault> {
        let along: Array2<T> = &g.targets + &g.sources;
        self.through_weight(along.view(), computed)?;
        computed.gradient("a", &g.a);
        if let Some(points) = &g.points {
            computed.gradient("w1", &points.w1);
            if let Some(w2) = &points.w2 {
                computed.gradient("w2", w2);
            }
        }
        Ok(())
    }

    fn through_weight(&self, along: ArrayView2<T>, computed: &mut Computed) -> Result<(), Fault> {
        let x = Features::Dense(self.x.view());
        let along_x = x.features_vjp(self.weight.view(), along);
        let along_x = along_x.map_err(Fault::refused)?;
        computed.gradient("x", &along_x.expect("of dense features"));
        let weight = x.weight_vjp(along).map_err(Fault::refused)?;
        let weight = weight.reversed_axes().as_standard_layout().into_owned();
        let weight = weight.into_shape_with_order(self.shape);
        computed.gradient("w", &weight.expect("as many elements"));
        Ok(())
    }
}
