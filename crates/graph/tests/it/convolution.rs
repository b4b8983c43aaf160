//! The normalised sum of graph convolutional networks.

use bochner_graph::{Error, Graph, convolve, convolve_vjp};
use ndarray::{Array2, array};

/// Node 3 cites node 0 and is not cited. Node 4 is alone.
fn graph() -> Graph {
    let edges = [(0, 1), (1, 0), (2, 0), (3, 0), (0, 2), (1, 1), (2, 0)];
    Graph::from_edges(5, edges).unwrap()
}

fn features(shape: (usize, usize)) -> Array2<f64> {
    Array2::from_shape_fn(shape, |(i, n)| ((3 * i + n) as f64).sin())
}

/// The matrix of the formula, with an edge that is there twice counted twice.
fn matrix() -> Array2<f64> {
    let mut a = Array2::<f64>::zeros((5, 5));
    for (source, target) in graph().edges() {
        a[[target, source]] += 1.0;
    }
    let degree = a.sum_axis(ndarray::Axis(1));
    let inverse = degree.mapv(|d| if d > 0.0 { d.sqrt().recip() } else { 0.0 });
    Array2::from_shape_fn((5, 5), |(i, j)| inverse[i] * a[[i, j]] * inverse[j])
}

fn near(got: &Array2<f64>, want: &Array2<f64>) -> bool {
    got.iter().zip(want).all(|(x, y)| (x - y).abs() < 1e-14)
}

#[test]
fn it_is_a_product_with_the_normalised_matrix() {
    let x = features((5, 3));
    assert!(near(
        &convolve(&graph(), x.view()).unwrap(),
        &matrix().dot(&x)
    ));
    let back = convolve_vjp(&graph(), x.view()).unwrap();
    assert!(near(&back, &matrix().t().dot(&x)));
}

#[test]
fn what_does_not_fit_is_named() {
    let bipartite = Graph::bipartite(2, 3, [(2, 1)]).unwrap();
    let error = convolve(&bipartite, features((3, 1)).view()).unwrap_err();
    assert!(matches!(error, Error::NotSquare { .. }));
    let error = convolve_vjp(&graph(), features((4, 1)).view()).unwrap_err();
    assert!(
        error.to_string().contains("`cotangent` has shape [4, 1]"),
        "{error}"
    );
    let mut x = features((5, 2));
    x[[3, 1]] = f64::NAN;
    let error = convolve(&graph(), x.view()).unwrap_err();
    assert!(
        error.to_string().contains("`x` is NaN at [3, 1]"),
        "{error}"
    );
    let none: Array2<f64> = array![[], [], [], [], []];
    assert_eq!(convolve(&graph(), none.view()).unwrap().dim(), (5, 0));
}
