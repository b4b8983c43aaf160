//! Arguments that do not fit are named in the error.

use crate::layer::setting::{bipartite, graph, kinds, layer, normal, tensor};
use bochner_graph::{
    AttributedGraph, Error, Features, Graph, GraphAttention, GraphAttentionConfig, LayerError,
    Nodes,
};
use bochner_numerics::{ArgumentError, Seed};
use bochner_ops::Mode;
use bochner_spectral::Direct;
use dfdx::tensor::{Cpu, NoneTape};
use ndarray::Array2;

fn misshapen<V>(result: Result<V, LayerError>) -> String {
    match result {
        Err(LayerError::Graph(Error::Argument(ArgumentError::Shape { name, .. }))) => name.into(),
        Err(other) => panic!("{other}"),
        Ok(_) => panic!("not refused"),
    }
}

/// Settings that reading refuses are refused by the constructor too.
#[test]
fn settings_out_of_range() {
    let none = Direct {
        points: 0,
        ..Direct::default()
    };
    for (config, start) in [
        (
            GraphAttentionConfig::gat(0, 2, 3),
            "`inputs` is 0, but must be at least 1",
        ),
        (GraphAttentionConfig::kernel(5, 2, 3, none), "`points` is 0"),
    ] {
        let built = GraphAttention::<f32>::try_new(&Cpu::default(), &config, Seed::new(0));
        let error = built.unwrap_err().to_string();
        assert!(error.starts_with(start), "{error}");
    }
}

#[test]
fn features_that_do_not_fit() {
    let layer = layer(&kinds()[0]);
    let (graph, apart) = (graph(), bipartite());
    let of = |rows, columns| normal((rows, columns), "x");
    let targets = "features of the targets";
    assert_eq!(misshapen(layer.infer(&graph, of(6, 4).view())), targets);
    assert_eq!(misshapen(layer.infer(&graph, of(5, 5).view())), targets);
    let few = tensor(&of(5, 5));
    assert_eq!(
        misshapen(layer.apply(&graph, few, Mode::Evaluation)),
        targets
    );
    let (x, y) = (of(4, 5), of(6, 5));
    let nodes = Nodes::Apart {
        targets: Features::Dense(x.view()),
        sources: Features::Dense(y.view()),
    };
    assert_eq!(
        misshapen(layer.infer(&apart, nodes)),
        "features of the sources"
    );
    // A bipartite graph, and features of one kind of node.
    let errors = [
        layer.infer(&apart, x.view()).unwrap_err(),
        layer
            .apply(&apart, tensor(&x), Mode::Evaluation)
            .map(|_| ())
            .unwrap_err(),
    ];
    for error in errors {
        assert!(error.to_string().contains("`apply_bipartite`"), "{error}");
        assert!(
            matches!(error, LayerError::Graph(Error::NotSquare { .. })),
            "{error}"
        );
    }
}

#[test]
fn a_graph_without_nodes_is_for_inference() {
    let layer = layer(&kinds()[0]);
    let (graph, x) = (Graph::from_edges(0, []).unwrap(), Array2::zeros((0, 5)));
    assert_eq!(layer.infer(&graph, x.view()).unwrap().nrows(), 0);
    let recorded = layer.apply_features(&graph, x.view(), NoneTape, Mode::Evaluation);
    let error = recorded.map(|_| ()).unwrap_err();
    assert!(
        error
            .to_string()
            .contains("(infer takes a graph without nodes)"),
        "{error}"
    );
}

#[test]
fn attributes_that_do_not_fit() {
    let graph = graph();
    let with = layer(&GraphAttentionConfig {
        edge_inputs: 2,
        ..kinds()[0].clone()
    });
    let x = normal((6, 5), "x");
    assert_eq!(
        misshapen(with.infer(&graph, x.view())),
        "attributes of the edges (give an `AttributedGraph`)"
    );
    let what = "attributes of the edges";
    for shape in [(10, 3), (9, 2)] {
        let attributes = normal(shape, "attributes");
        let given = AttributedGraph {
            graph: &graph,
            attributes: Some(attributes.view()),
        };
        assert_eq!(misshapen(with.infer(given, x.view())), what);
    }
    let attributes = normal((10, 2), "attributes");
    let given = AttributedGraph {
        graph: &graph,
        attributes: Some(attributes.view()),
    };
    assert_eq!(misshapen(layer(&kinds()[0]).infer(given, x.view())), what);
}

#[test]
fn what_is_not_finite() {
    let (graph, mut x) = (graph(), normal((6, 5), "x"));
    x[[1, 2]] = f64::NAN;
    let layer = layer(&kinds()[0]);
    let inferred = layer.infer(&graph, x.view()).unwrap_err();
    let applied = layer.apply(&graph, tensor(&x), Mode::Evaluation);
    for error in [inferred, applied.map(|_| ()).unwrap_err()] {
        assert!(
            matches!(error, LayerError::Graph(Error::Argument(_))),
            "{error}"
        );
        assert!(error.to_string().contains("is NaN at [1, 2]"), "{error}");
    }
}
