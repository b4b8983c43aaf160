//! `gat_classic` and `gat_kernel`: attention along the edges of a graph.

use super::is_stationary;
use crate::case::{Case, Done};
use crate::error::Fault;
use bochner_graph::{Features, Graph, Merge, Points, Score, Settings, attend, attend_vjp, scores};
use bochner_numerics::Real;
use ndarray::{Array2, Array3};

/// The score of GAT.
pub(super) fn classic<T: Real>(c: &Case<T>) -> Done {
    let a: Array2<T> = c.array("a")?;
    by_score(c, Score::Classic { a: a.view() })
}

/// The kernel score.
pub(super) fn kernel<T: Real>(c: &Case<T>) -> Done {
    let (a, w1): (Array2<T>, Array3<T>) = (c.array("a")?, c.array("w1")?);
    let w2: Array3<T>;
    let points = match is_stationary(c)? {
        true => Points::Stationary { w: w1.view() },
        false => {
            w2 = c.array("w2")?;
            Points::Nonstationary {
                w1: w1.view(),
                w2: w2.view(),
            }
        }
    };
    let score = Score::Kernel {
        a: a.view(),
        points,
        p: c.number("p")?,
        floor: c.number("floor")?,
    };
    by_score(c, score)
}

fn by_score<T: Real>(c: &Case<T>, score: Score<T>) -> Done {
    // Self loops are among the edges, or not to be there.
    c.choice("self_loops", &["given", "none"])?;
    let (x, w): (Array2<T>, Array3<T>) = (c.array("x")?, c.array("w")?);
    let (sources, targets) = (c.counts("src")?, c.counts("dst")?);
    if sources.len() != targets.len() {
        let expected = format!("of shape [{}], as in.src", sources.len());
        return Err(Fault::shape("in.dst", &expected, &[targets.len()]).into());
    }
    let graph = &Graph::from_edges(x.nrows(), sources.into_iter().zip(targets))?;
    let (heads, width, inputs) = w.dim();
    let weight = w
        .into_shape_with_order((heads * width, inputs))?
        .reversed_axes();
    let x = Features::Dense(x.view());
    let h = x.product(weight.view())?;
    let h = h.view();
    let settings = Settings {
        score,
        slope: c.number("slope")?,
        edges: None,
        merge: Merge::Concatenate,
        dropout: None,
        value_dropout: None,
    };
    let attended = attend(graph, h, h, &settings)?;
    c.output("output", attended.output.iter().copied());
    c.output("alpha", attended.weights().weights.iter().copied());
    c.output("score", scores(graph, h, h, &settings)?);
    c.pull(|g: Array2<T>| {
        let g = attend_vjp(&attended, g.view())?;
        let along: Array2<T> = &g.targets + &g.sources;
        let along_x = x.features_vjp(weight.view(), along.view())?;
        c.gradient("x", along_x.expect("of dense features"));
        c.gradient("w", x.weight_vjp(along.view())?.reversed_axes());
        c.gradient("a", g.a);
        if let Some(points) = g.points {
            c.gradient("w1", points.w1);
            c.gradient("w2", points.w2.into_iter().flatten());
        }
        Ok(())
    })
}
