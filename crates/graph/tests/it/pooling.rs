//! One row for each graph of a batch.

use bochner_graph::{Batch, Error, Graph, Pooling, pool, pool_vjp};
use bochner_numerics::check::{assert_gradient, random};
use ndarray::{Array2, Axis, array};

const ALL: [Pooling; 3] = [Pooling::Mean, Pooling::Sum, Pooling::Max];

/// Graphs of 3, 0, 1 and 90 nodes.
fn batch() -> Batch {
    let graphs = [3, 0, 1, 90].map(|nodes| Graph::from_edges(nodes, []).unwrap());
    Batch::new(&graphs).unwrap()
}

#[test]
fn each_graph_has_the_row_of_its_own_nodes() {
    let x: Array2<f64> = random((94, 2), "x");
    for (pooling, of_part) in [
        (
            Pooling::Mean,
            Box::new(|x: &[f64]| x.iter().sum::<f64>() / x.len() as f64)
                as Box<dyn Fn(&[f64]) -> f64>,
        ),
        (Pooling::Sum, Box::new(|x: &[f64]| x.iter().sum())),
        (
            Pooling::Max,
            Box::new(|x: &[f64]| x.iter().copied().fold(f64::MIN, f64::max)),
        ),
    ] {
        let y = pool(x.view(), &batch(), pooling).unwrap();
        assert_eq!(y.row(1), array![0.0, 0.0]);
        for (graph, nodes) in [(0, 0..3), (2, 3..4), (3, 4..94)] {
            for column in 0..2 {
                let part: Vec<f64> = nodes.clone().map(|i| x[[i, column]]).collect();
                let (got, want) = (y[[graph, column]], of_part(&part));
                assert!(
                    (got - want).abs() < 1e-13 * (1.0 + want.abs()),
                    "{pooling:?}"
                );
            }
        }
    }
}

#[test]
fn gradients_agree_with_finite_differences() {
    let (x, g): (Array2<f64>, Array2<f64>) = (random((94, 2), "x"), random((4, 2), "g"));
    for pooling in ALL {
        let got = pool_vjp(x.view(), &batch(), pooling, g.view()).unwrap();
        assert_gradient(&got, &x, |x| {
            (pool(x, &batch(), pooling).unwrap() * &g).sum()
        });
    }
}

#[test]
fn the_first_of_equal_numbers_has_the_gradient() {
    let graph = Graph::from_edges(3, []).unwrap();
    let batch = Batch::new([&graph]).unwrap();
    let x = array![[1.0], [2.0], [2.0]];
    let got = pool_vjp(x.view(), &batch, Pooling::Max, array![[5.0]].view()).unwrap();
    assert_eq!(got, array![[0.0], [5.0], [0.0]]);
}

/// Sums of blocks that overflow with different signs.
#[test]
fn finite_numbers_give_finite_rows() {
    let graph = Graph::from_edges(128, []).unwrap();
    let batch = Batch::new([&graph]).unwrap();
    let x = Array2::from_shape_fn((128, 1), |(i, _)| if i < 64 { f32::MAX } else { -f32::MAX });
    for pooling in ALL {
        let y = pool(x.view(), &batch, pooling).unwrap();
        assert!(y.iter().all(|y| y.is_finite()), "{pooling:?}: {y}");
    }
    let mean = pool(x.mapv(f32::abs).view(), &batch, Pooling::Mean).unwrap();
    assert!((mean[[0, 0]] / f32::MAX - 1.0).abs() < 1e-6, "{mean}");
}

#[test]
fn misfits_are_refused() {
    let x: Array2<f64> = random((94, 2), "x");
    let few = x.select(Axis(0), &[0, 1]);
    let mut wrong = x.clone();
    wrong[[5, 1]] = f64::NAN;
    for pooling in ALL {
        for x in [&few, &wrong] {
            let refused = pool(x.view(), &batch(), pooling);
            assert!(matches!(refused, Err(Error::Argument(_))));
        }
        let refused = pool_vjp(x.view(), &batch(), pooling, x.view());
        assert!(matches!(refused, Err(Error::Argument(_))));
    }
}
