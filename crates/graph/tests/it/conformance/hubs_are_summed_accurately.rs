//! Sums over very many neighbours are as accurate in single precision as those over a few.

use crate::conformance::case::{Case, Kind, Size, named};
use bochner_graph::{Graph, Score, Settings, attend, attend_vjp, convolve};
use bochner_numerics::relative_error;
use ndarray::Array2;

const SIZE: Size = Size {
    heads: 1,
    width: 3,
    points: 2,
};

/// Node 0 attends to all nodes, and all nodes attend to it and to node 1.
fn hub(nodes: usize) -> Graph {
    let edges = (0..nodes).flat_map(|node| [(node, 0), (0, node), (1, node)]);
    Graph::from_edges(nodes, edges).unwrap()
}

fn wide(x: &[f32]) -> Vec<f64> {
    x.iter().map(|&x| f64::from(x)).collect()
}

/// Numbers in double precision are the oracle. They are positive, so that sums grow.
#[test]
fn outputs_and_gradients_are_those_of_double_precision() {
    let gaussian = Kind::Gaussian { p: None };
    for kind in [Kind::Classic, Kind::Dynamic, gaussian] {
        let single = Case::<f32>::new(hub(50_000), kind, SIZE).with_attributes();
        let positive = |x: &Array2<f32>| x.mapv(|x| 0.1 + x.abs().min(1.0));
        let single = Case {
            targets: positive(&single.targets),
            sources: positive(&single.sources),
            ..single
        };
        let double = Case::<f64>::new(single.graph.clone(), kind, SIZE).with_attributes();
        let widened = |x: &Array2<f32>| x.mapv(f64::from);
        let attributes = single.attributes.as_ref().unwrap();
        let mut double = Case {
            targets: widened(&single.targets),
            sources: widened(&single.sources),
            a: widened(&single.a),
            ..double
        };
        let wide_attributes = double.attributes.as_mut().unwrap();
        wide_attributes.values = widened(&attributes.values);
        wide_attributes.weight = widened(&attributes.weight);
        wide_attributes.b = attributes.b.as_ref().map(widened);

        let (got, want) = (single.attend().output, double.attend().output);
        let got_hub = wide(got.row(0).as_slice().unwrap());
        let error = relative_error(&got_hub, want.row(0).as_slice().unwrap());
        assert!(error < 2e-6, "{kind:?}: {error:e}");
        let cotangent = positive(&single.cotangent());
        let got = single.gradients_from(&cotangent);
        let want = double.gradients_from(&widened(&cotangent));
        for ((name, got), (_, want)) in named(&got).iter().zip(named(&want)) {
            let error = relative_error(&wide(got), &want);
            assert!(error < 1e-5, "along {name} of {kind:?}: {error:e}");
        }
    }
}

/// Means of the values 0.1 to 0.7, and the gradient of a source that many targets receive.
#[test]
fn means_and_their_gradients_are_right_to_the_last_digits() {
    for nodes in [65, 300_000] {
        let values = Array2::from_shape_fn((nodes, 1), |(i, _)| 0.1 * (i % 7 + 1) as f32);
        let exact: f64 = values.iter().map(|&x| f64::from(x)).sum();
        let (one, a) = (Array2::ones((1, 1)), Array2::zeros((1, 2)));
        let settings = Settings::new(Score::Classic { a: a.view() });
        let close = |got: f32, want: f64, what: &str| {
            let error = (f64::from(got) / want - 1.0).abs();
            assert!(error < 1e-6, "{what} of {nodes}: {error:e}");
        };

        let to_one = Graph::bipartite(1, nodes, (0..nodes).map(|j| (j, 0))).unwrap();
        let mean = attend(&to_one, one.view(), values.view(), &settings).unwrap();
        close(mean.output[[0, 0]], exact / nodes as f64, "mean");

        let from_one = Graph::bipartite(nodes, 1, (0..nodes).map(|i| (0, i))).unwrap();
        let received = attend(&from_one, values.view(), one.view(), &settings).unwrap();
        let gradients = attend_vjp(&received, values.view()).unwrap();
        close(gradients.sources[[0, 0]], exact, "gradient");
    }
}

/// Graph convolution: the hub's row is a weighted sum over all nodes.
#[test]
fn a_convolution_sums_as_accurately() {
    let nodes = 300_000;
    let edges = (1..nodes).flat_map(|node| [(node, 0), (0, node)]);
    let graph = Graph::from_edges(nodes, edges).unwrap();
    let values = Array2::from_shape_fn((nodes, 1), |(i, _)| 0.1 * (i % 7 + 1) as f32);
    let sum: f64 = values.iter().skip(1).map(|&x| f64::from(x)).sum();
    let want = sum / ((nodes - 1) as f64).sqrt();
    let error = f64::from(convolve(&graph, values.view()).unwrap()[[0, 0]]) / want - 1.0;
    assert!(error.abs() < 1e-6, "{error:e}");
}
