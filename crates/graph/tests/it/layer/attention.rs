//! Results of graph attention layers.

use crate::layer::setting::{
    SEED, TRAINING, attributed, graph, kinds, layer, normal, tensor, with_everything,
};
use bochner_graph::{
    AttentionKind, EdgeKernel, Features, Graph, GraphAttention, GraphAttentionConfig, InitialMap,
    Score, Settings, SparseFeatures, attend, dropped_out,
};
use bochner_nn::{Parameter, Parameters, activate};
use bochner_numerics::{DropoutMask, Seed};
use bochner_ops::{Activation, Mode};
use bochner_spectral::{Copula, Direct, Stationarity};
use dfdx::prelude::*;
use ndarray::{Array1, Array2, ArrayView2, Axis as Along, s};

fn near(got: &Array2<f64>, want: &Array2<f64>) -> bool {
    got.dim() == want.dim() && got.iter().zip(want).all(|(x, y)| (x - y).abs() < 1e-12)
}

fn array(x: &Tensor<(usize, usize), f64, Cpu>) -> Array2<f64> {
    Array2::from_shape_vec(*x.shape(), x.as_vec()).unwrap()
}

/// The first layer of GAT, put together from this crate's functions.
#[test]
fn it_is_attention_between_transformed_features() {
    let layer = layer(&GraphAttentionConfig::gat(5, 2, 3));
    // A small one, and one of more nodes than are worked on at a time.
    let loops = (0..1500).map(|node| (node, node));
    for graph in [graph(), Graph::from_edges(1500, loops).unwrap()] {
        let x = normal((graph.targets(), 5), "x");
        let h = x.dot(&layer.weight.view());
        let settings = Settings::new(Score::Classic { a: layer.a.view() });
        let attended = attend(&graph, h.view(), h.view(), &settings).unwrap();
        let bias = layer.bias.as_ref().unwrap().view();
        assert!(near(
            &layer.infer(&graph, x.view()).unwrap(),
            &(&attended.output + &bias)
        ));
        let weights = layer.weights(&graph, x.view()).unwrap();
        assert!(near(&weights.weights, &attended.weights().weights));
        assert_eq!(weights.edges, graph.edges());
        // The gradient along the bias is the sum of the cotangent's rows.
        let recorded = layer.apply(&graph, tensor(&x).leaky_trace(), Mode::Evaluation);
        let cotangent = normal((graph.targets(), 6), "cotangent");
        let loss = (recorded.unwrap().output * tensor(&cotangent)).sum();
        let mut gradients = loss.backward();
        let bias = layer.bias.as_ref().unwrap().gradient(&mut gradients);
        let got = Array1::from(bias.unwrap().to_vec());
        assert!(
            (got - cotangent.sum_axis(Along(0)))
                .iter()
                .all(|x| x.abs() < 1e-12)
        );
    }
}

#[test]
fn evaluation_is_the_same_with_and_without_a_tape() {
    let (graph, x) = (graph(), normal((6, 5), "x"));
    for config in kinds() {
        let config = with_everything(config);
        let layer = layer(&config);
        let attributes = normal((graph.edge_count(), 2), "attributes");
        let graph = attributed(&graph, attributes.view());
        let traced = tensor(&x).leaky_trace();
        let taped = layer.apply(graph, traced, Mode::Evaluation).unwrap();
        let sparse = SparseFeatures::from_dense(x.view()).unwrap();
        let (taped, _) = taped.output.split_tape();
        for free in [layer.infer(graph, x.view()), layer.infer(graph, &sparse)] {
            assert!(near(&free.unwrap(), &array(&taped)));
        }
    }
}

/// In training each rate drops what it names, by the mask of its own seed.
#[test]
fn rates_drop_what_they_name() {
    let config = GraphAttentionConfig {
        input_dropout: 0.3,
        value_dropout: 0.4,
        coefficient_dropout: 0.5,
        ..GraphAttentionConfig::gat(5, 2, 3)
    };
    let (layer, graph, x) = (layer(&config), graph(), normal((6, 5), "x"));
    let mask = |rate, purpose| DropoutMask::new(rate, SEED.child(purpose)).unwrap();
    let h = dropped_out(x.view(), &mask(0.3, "input dropout")).dot(&layer.weight.view());
    let settings = Settings {
        dropout: Some(mask(0.5, "coefficient dropout")),
        value_dropout: Some(mask(0.4, "value dropout")),
        ..Settings::new(Score::Classic { a: layer.a.view() })
    };
    let attended = attend(&graph, h.view(), h.view(), &settings).unwrap();
    let want = &attended.output + &layer.bias.as_ref().unwrap().view();
    let sparse = SparseFeatures::from_dense(x.view()).unwrap();
    for features in [Features::Dense(x.view()), Features::Sparse(&sparse)] {
        let got = layer.apply_features(&graph, features, NoneTape, TRAINING);
        assert!(near(&array(&got.unwrap().output), &want));
    }
    let traced = layer.apply(&graph, tensor(&x), TRAINING).unwrap();
    assert!(near(&array(&traced.output), &want));
}

#[test]
fn seeds_decide_what_is_dropped_and_drawn() {
    let (graph, x) = (graph(), normal((6, 5), "x"));
    for config in kinds() {
        let config = GraphAttentionConfig {
            input_dropout: 0.5,
            ..config
        };
        let layer = layer(&config);
        let of = |mode| {
            let one = layer
                .apply_features(&graph, x.view(), NoneTape, mode)
                .unwrap();
            one.output.as_vec()
        };
        assert_eq!(of(TRAINING), of(TRAINING));
        assert_ne!(of(TRAINING), of(Mode::Training(Seed::new(1))));
        assert_eq!(of(Mode::Evaluation), of(Mode::Evaluation));
    }
}

/// Only points that are inferred have a divergence from their prior.
#[test]
fn the_penalty_is_that_of_the_points() {
    let (graph, x) = (graph(), normal((6, 5), "x"));
    let penalties = kinds().into_iter().map(|config| {
        let one = layer(&config).apply_features(&graph, x.view(), NoneTape, TRAINING);
        one.unwrap().penalty.array()
    });
    let penalties: Vec<f64> = penalties.collect();
    assert_eq!(penalties[..6], [0.0; 6]);
    assert!(penalties[6..].iter().all(|&penalty| penalty > 0.0));
}

/// Only points that are drawn jointly have a correlation of the heads.
#[test]
fn a_layer_can_be_looked_into() {
    let (graph, x) = (graph(), normal((6, 5), "x"));
    for (kind, config) in kinds().into_iter().enumerate() {
        let layer = layer(&config);
        let seen = layer.inspect(&graph, x.view()).unwrap();
        assert_eq!(seen.weights, layer.weights(&graph, x.view()).unwrap());
        let points = seen.points.as_ref().map(|points| points.dim());
        assert_eq!(points, (kind >= 4).then_some((2, 3, 6)), "kind {kind}");
        let joint = matches!(&config.kind, AttentionKind::Kernel(EdgeKernel::Implicit { source, .. }) if source.copula != Copula::Independent);
        assert_eq!(seen.correlation.is_some(), joint, "kind {kind}");
        for of_one in seen.correlation.iter().flat_map(|c| c.outer_iter()) {
            assert_eq!(of_one.dim(), (2, 2));
            assert!((of_one[[0, 0]] - 1.0).abs() < 1e-12);
            assert!(of_one[[0, 1]] == of_one[[1, 0]] && of_one[[0, 1]].abs() < 1.0);
        }
    }
}

/// The parameters of a density do not depend on how many points are drawn of it.
#[test]
fn more_points_than_in_training_can_be_drawn_of_a_density() {
    let (graph, x) = (graph(), normal((6, 5), "x"));
    for (kind, config) in kinds().into_iter().enumerate() {
        let layer = layer(&config);
        let is_density = matches!(
            &config.kind,
            AttentionKind::Kernel(EdgeKernel::Implicit { .. })
        );
        let seen = |points| {
            let layer = layer.with_points(points)?;
            layer.inspect(&graph, x.view())
        };
        assert_eq!(seen(9).is_ok(), is_density, "kind {kind}");
        if is_density {
            assert_eq!(seen(9).unwrap().points.unwrap().dim(), (2, 9, 6));
            let as_trained = layer.inspect(&graph, x.view()).unwrap();
            assert_eq!(seen(3).unwrap(), as_trained);
            assert!(seen(0).is_err());
        }
    }
}

/// Layers of one seed start alike, whatever their score and precision.
#[test]
fn initial_values_are_those_of_glorot() {
    let wide = GraphAttentionConfig::gat(300, 4, 20);
    let device = Cpu::default();
    let layer: GraphAttention<f64> = GraphAttention::try_new(&device, &wide, Seed::new(1)).unwrap();
    let together = GraphAttentionConfig {
        initial_map: InitialMap::AllHeads,
        ..wide.clone()
    };
    let together: GraphAttention<f64> =
        GraphAttention::try_new(&device, &together, Seed::new(1)).unwrap();
    for (layer, of_weight, of_a) in [(&layer, 300 + 20, 20 + 1), (&together, 300 + 80, 20 + 4)] {
        for (values, fans, close) in [(&layer.weight, of_weight, 0.99), (&layer.a, of_a, 0.9)] {
            let bound = (6.0 / f64::from(fans)).sqrt();
            let largest = values.view().fold(0.0, |m: f64, x| m.max(x.abs()));
            assert!(largest <= bound && largest > close * bound);
        }
        let (weight, square) = (layer.weight.view(), 6.0 / f64::from(of_weight));
        let variance = weight.iter().map(|x| x * x).sum::<f64>() / weight.len() as f64;
        assert!((variance / (square / 3.0) - 1.0).abs() < 0.05);
    }
    let weight = layer.weight.view();
    assert_eq!(
        layer.bias.as_ref().unwrap().view(),
        Array1::<f64>::zeros(80)
    );
    let kernel = crate::layer::setting::direct(Stationarity::Nonstationary);
    let kernel = GraphAttentionConfig::kernel(300, 4, 20, kernel);
    let kernel: GraphAttention<f32> =
        GraphAttention::try_new(&device, &kernel, Seed::new(1)).unwrap();
    assert_eq!(kernel.weight.view(), weight.mapv(|x| x as f32));
}

/// The points of a kernel that is to start near softmax attention's start near that of GAT.
#[test]
fn direct_points_start_with_a_variance_of_one_half() {
    let kernel = Direct {
        points: 200,
        ..Default::default()
    };
    let config = GraphAttentionConfig::kernel(5, 4, 8, kernel);
    let layer: GraphAttention<f64> =
        GraphAttention::try_new(&Cpu::default(), &config, Seed::new(1)).unwrap();
    let points = layer.kernel.unwrap();
    let w1 = points.view();
    let w1 = w1.slice(s![..w1.len() / 2]);
    let variance = w1.iter().map(|w| w * w).sum::<f64>() / w1.len() as f64;
    assert!((variance - 0.5).abs() < 0.03, "{variance}");
}

#[test]
fn parameters_are_visited_by_name() {
    let names = |config: &GraphAttentionConfig| {
        let mut names = Vec::new();
        layer(config).for_each("gat", &mut |name, p| {
            names.push((name.to_owned(), p.dims()))
        });
        names
    };
    let own = |name: &str, dims: &[usize]| (format!("gat.{name}"), dims.to_vec());
    let gat = &kinds()[0];
    let few = [own("weight", &[5, 6]), own("a", &[2, 6]), own("bias", &[6])];
    assert_eq!(names(gat), few);
    let all = [
        own("weight", &[5, 6]),
        own("source_weight", &[4, 6]),
        own("a", &[2, 6]),
        own("edge_weight", &[2, 6]),
        own("edge_a", &[2, 3]),
        own("bias", &[3]),
        own("residual", &[5, 3]),
        own("kernel", &[2 * 2 * 3 * 6]),
    ];
    let config = GraphAttentionConfig {
        source_inputs: Some(4),
        ..with_everything(kinds()[5].clone())
    };
    assert_eq!(names(&config), all);
}

#[test]
fn an_activation_is_applied_last() {
    let x = normal((6, 5), "x");
    for config in kinds() {
        let plain = GraphAttentionConfig {
            activation: Activation::Identity,
            ..with_everything(config)
        };
        let fused = GraphAttentionConfig {
            activation: Activation::Elu,
            ..plain.clone()
        };
        let (plain, fused) = (layer(&plain), layer(&fused));
        let (graph, attributes) = (graph(), normal((10, 2), "attributes"));
        let graph = attributed(&graph, attributes.view());
        for mode in [TRAINING, Mode::Evaluation] {
            let before = plain.apply(graph, tensor(&x), mode).unwrap().output;
            let want = activate(before, Activation::Elu).unwrap();
            let got = fused.apply(graph, tensor(&x), mode).unwrap().output;
            assert_eq!(got.as_vec(), want.as_vec());
        }
    }
}

#[test]
fn features_may_be_given_in_any_order_of_memory() {
    let (graph, x) = (graph(), normal((6, 5), "x"));
    let transposed = x.t().as_standard_layout().into_owned();
    let layer = layer(&kinds()[0]);
    let view: ArrayView2<f64> = transposed.t();
    let got = layer.infer(&graph, Features::Dense(view)).unwrap();
    assert!(near(&got, &layer.infer(&graph, x.view()).unwrap()));
}
