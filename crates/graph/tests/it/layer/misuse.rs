//! Arguments that do not fit are named in the error.

use crate::layer::setting::{bipartite, graph, kinds, layer, normal, tensor};
use bochner_graph::{
    AttributedGraph, Bias, Error, Features, Graph, GraphAttention, GraphAttentionConfig,
    GraphConvolution, GraphConvolutionConfig, GraphInput, LayerError, Nodes,
};
use bochner_nn::Leaf;
use bochner_numerics::{ArgumentError, Seed};
use bochner_ops::Mode;
use bochner_spectral::Direct;
use dfdx::tensor::{Cpu, NoneTape};
use ndarray::{Array, Array1, Array2, Dimension};

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

/// The error of each way to use a layer, which must be the same.
fn refused(layer: &GraphAttention<f64>, attributes: bool) -> Error {
    let (graph, x) = (graph(), normal((6, 5), "x"));
    let values = normal((10, 2), "attributes");
    let given = AttributedGraph {
        graph: &graph,
        attributes: attributes.then_some(values.view()),
    };
    let mode = Mode::Evaluation;
    let errors = [
        layer.infer(given, x.view()).map(|_| ()),
        layer.weights(given, x.view()).map(|_| ()),
        layer.inspect(given, x.view()).map(|_| ()),
        layer.apply(given, tensor(&x), mode).map(|_| ()),
        layer
            .apply_features(given, x.view(), NoneTape, mode)
            .map(|_| ()),
    ];
    let errors = errors.map(|result| match result.unwrap_err() {
        LayerError::Graph(error) => error,
        other => panic!("{other}"),
    });
    assert!(errors.iter().all(|error| *error == errors[0]), "{errors:?}");
    let [first, ..] = errors;
    first
}

fn leaf<D: Dimension>(x: Array<f64, D>) -> Leaf<f64, D> {
    Leaf::new(&Cpu::default(), x).unwrap()
}

/// Public fields that do not fit the configuration, for every way to use a layer.
#[test]
fn fields_that_do_not_fit() {
    type Change = fn(&mut GraphAttention<f64>);
    let misshapen: [(Change, &str); 5] = [
        (|layer| layer.bias = Some(leaf(Array1::zeros(4))), "bias"),
        (|layer| layer.bias = Some(leaf(Array1::zeros(1))), "bias"),
        (|layer| layer.a = leaf(Array2::zeros((2, 4))), "a"),
        (|layer| layer.weight = leaf(Array2::zeros((5, 5))), "weight"),
        (
            |layer| layer.edge_a = Some(leaf(Array2::zeros((2, 2)))),
            "edge_a",
        ),
    ];
    let attributed = GraphAttentionConfig {
        edge_inputs: 2,
        ..kinds()[0].clone()
    };
    let changed = |config: &GraphAttentionConfig, change: Change| {
        let mut layer = layer(config);
        change(&mut layer);
        refused(&layer, config.edge_inputs > 0)
    };
    for (change, field) in misshapen {
        let error = changed(&attributed, change);
        let Error::Argument(ArgumentError::Shape { name, .. }) = &error else {
            panic!("{error}")
        };
        assert_eq!(name, field);
    }
    let missing: [(Change, &str); 3] = [
        (|layer| layer.edge_a = None, "edge_a"),
        (|layer| layer.edge_weight = None, "edge_weight"),
        (|layer| layer.bias = None, "bias"),
    ];
    for (change, field) in missing {
        let error = changed(&attributed, change);
        assert!(
            matches!(&error, Error::Missing { name, .. } if name == field),
            "{error}"
        );
    }
    let plain = GraphAttentionConfig {
        bias: Bias::None,
        ..kinds()[0].clone()
    };
    let error = changed(&plain, |layer| layer.bias = Some(leaf(Array1::zeros(6))));
    assert!(
        matches!(&error, Error::Superfluous { name, .. } if name == "bias"),
        "{error}"
    );
}

#[test]
fn fields_of_a_convolution_that_do_not_fit() {
    let config = GraphConvolutionConfig {
        inputs: 5,
        outputs: 3,
        input_dropout: 0.0,
        bias: Bias::Learned,
    };
    let (graph, x) = (graph(), normal((6, 5), "x"));
    for (bias, named) in [
        (Some(leaf(Array1::zeros(1))), "`bias` has length 1"),
        (None, "`bias` is missing"),
    ] {
        let layer = GraphConvolution::try_new(&Cpu::default(), &config, Seed::new(0));
        let mut layer = layer.unwrap();
        layer.bias = bias;
        let inferred = layer.infer(&graph, x.view()).map(|_| ());
        let applied = layer
            .apply(&graph, tensor(&x), Mode::Evaluation)
            .map(|_| ());
        for error in [inferred, applied].map(Result::unwrap_err) {
            assert!(error.to_string().starts_with(named), "{error}");
        }
    }
}

/// Attributes as a tensor are checked as those of an `AttributedGraph` are.
#[test]
fn attributes_on_a_tape_that_do_not_fit() {
    let graph = graph();
    let apply = |edge_inputs, shape| {
        let layer = layer(&GraphAttentionConfig {
            edge_inputs,
            ..kinds()[0].clone()
        });
        let input = GraphInput::Attributed {
            graph: &graph,
            attributes: tensor(&normal(shape, "attributes")),
        };
        let x = tensor(&normal((6, 5), "x"));
        layer.apply(input, x, Mode::Evaluation).map(|_| ())
    };
    let error = apply(2, (9, 2)).unwrap_err().to_string();
    let named = "`attributes of the edges` has shape [9, 2]";
    assert!(error.starts_with(named), "{error}");
    let error = apply(0, (10, 2)).unwrap_err().to_string();
    assert!(error.starts_with("`edge_inputs` is 0"), "{error}");
    apply(2, (10, 2)).unwrap();
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
