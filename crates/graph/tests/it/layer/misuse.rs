//! What does not fit is named.

use crate::layer::setting::{bipartite, graph, kinds, layer, normal, tensor};
use bochner_graph::{
    AttributedGraph, EdgeKernel, Error, Features, Graph, GraphAttention, GraphAttentionConfig,
    LayerError, Nodes,
};
use bochner_numerics::{ArgumentError, Seed};
use bochner_ops::Mode;
use bochner_spectral::{Direct, Implicit, Preset};
use dfdx::tensor::{Cpu, NoneTape};
use ndarray::Array2;

fn refused(config: &GraphAttentionConfig) -> LayerError {
    GraphAttention::<f32>::try_new(&Cpu::default(), config, Seed::new(0)).unwrap_err()
}

fn misshapen<V>(result: Result<V, LayerError>) -> String {
    match result {
        Err(LayerError::Graph(Error::Argument(ArgumentError::Shape { name, .. }))) => name.into(),
        Err(other) => panic!("{other}"),
        Ok(_) => panic!("not refused"),
    }
}

#[test]
fn settings_out_of_range() {
    let gat = GraphAttentionConfig::gat;
    let no_sources = GraphAttentionConfig {
        source_inputs: Some(0),
        ..gat(5, 2, 3)
    };
    for (empty, setting) in [
        (gat(0, 2, 3), "inputs"),
        (no_sources, "source_inputs"),
        (gat(5, 0, 3), "heads"),
        (gat(5, 2, 0), "width"),
    ] {
        let error = refused(&empty).to_string();
        assert_eq!(error, format!("`{setting}` is 0, but must be at least 1"));
    }
    type Change = fn(&mut GraphAttentionConfig);
    let changes: [(Change, &str); 5] = [
        (|config| config.slope = 1.5, "slope"),
        (|config| config.slope = f64::NAN, "slope"),
        (|config| config.input_dropout = 1.0, "input_dropout"),
        (|config| config.value_dropout = -0.1, "value_dropout"),
        (
            |config| config.coefficient_dropout = f64::NAN,
            "coefficient_dropout",
        ),
    ];
    for (change, setting) in changes {
        let mut config = gat(5, 2, 3);
        change(&mut config);
        let error = refused(&config).to_string();
        assert!(error.starts_with(&format!("`{setting}` is")), "{error}");
    }
}

#[test]
fn kernels_out_of_range() {
    let refused_as = |kernel: EdgeKernel, start: &str| {
        let error = refused(&GraphAttentionConfig::kernel(5, 2, 3, kernel)).to_string();
        assert!(error.starts_with(start), "{error}");
    };
    let none = Direct {
        points: 0,
        ..Direct::default()
    };
    refused_as(none.into(), "`points` is 0");
    refused_as(
        EdgeKernel::from(Direct::default()).with_p(0.0),
        "`p` is 0.0",
    );
    let released = Implicit {
        preset: Preset::Released,
        ..Implicit::default()
    };
    refused_as(released.into(), "the released preset along the edges");
    let (floor, source) = (2.0, Direct::default());
    refused_as(
        EdgeKernel::Direct {
            p: 2.0,
            floor,
            source,
        },
        "`floor` is 2.0",
    );
}

/// What a kernel cannot be is refused where it is read.
#[test]
fn kernels_that_cannot_be_read() {
    let written = serde_json::to_string(&EdgeKernel::from(Direct::default())).unwrap();
    let read = |text: &str| serde_json::from_str::<EdgeKernel>(text).map_err(|e| e.to_string());
    assert!(read(&written).is_ok());
    let error = read(&written.replace("paper", "released")).unwrap_err();
    assert!(error.contains("the released preset"), "{error}");
    let error = read(&written.replace("\"p\"", "\"draws\":2,\"p\"")).unwrap_err();
    assert!(error.contains("draws"), "{error}");
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
    assert!(error.to_string().contains("`infer`"), "{error}");
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
