//! The order of the edges and what else is in a batch change nothing.

use crate::conformance::case::{Case, KINDS, SMALL, named, random_graph};
use bochner_graph::{Batch, Graph};
use bochner_numerics::check::largest;
use ndarray::{Array2, Axis, concatenate, s};

fn close(got: &Array2<f64>, want: &Array2<f64>) {
    let off = largest(&(got - want)) / largest(want).max(1e-3);
    assert!(off < 1e-10, "{off:e}");
}

#[test]
fn edges_may_be_listed_in_any_order() {
    for kind in KINDS {
        let case = Case::<f64>::new(random_graph(40, 40, 300), kind, SMALL).with_attributes();
        let edges = case.graph.edges();
        let order: Vec<usize> = (0..edges.len())
            .map(|e| (e * 7 + 3) % edges.len())
            .collect();
        let listed = order.iter().map(|&edge| edges[edge]);
        let mut attributes = case.attributes.clone().unwrap();
        attributes.values = attributes.values.select(Axis(0), &order);
        let moved = Case {
            graph: Graph::from_edges(40, listed).unwrap(),
            attributes: Some(attributes),
            ..case.clone()
        };
        // Repeated edges with attributes of their own are added up in the order listed.
        close(&moved.attend().output, &case.attend().output);
        let (own, theirs) = (moved.weights(), case.weights());
        close(&own, &theirs.select(Axis(0), &order));

        let plain = Case {
            attributes: None,
            ..case
        };
        let moved = Case {
            attributes: None,
            ..moved
        };
        assert_eq!(moved.attend().output, plain.attend().output);
        assert_eq!(named(&moved.gradients()), named(&plain.gradients()));
    }
}

#[test]
fn a_batch_is_its_graphs() {
    let stack =
        |x: &Array2<f64>, y: &Array2<f64>| concatenate(Axis(0), &[x.view(), y.view()]).unwrap();
    for kind in KINDS {
        let first = Case::<f64>::small(kind);
        let second = Case::<f64>::new(random_graph(4, 5, 9), kind, SMALL);
        let batch = Batch::new([&first.graph, &second.graph]).unwrap();
        let both = Case {
            graph: batch.graph().clone(),
            targets: stack(&first.targets, &second.targets),
            sources: stack(&first.sources, &second.sources),
            ..first.clone()
        };
        let (output, weights) = (both.attend().output, both.weights());
        for (b, case) in [first, second].iter().enumerate() {
            assert_eq!(output.slice(s![batch.targets(b), ..]), case.attend().output);
            assert_eq!(weights.slice(s![batch.edges(b), ..]), case.weights());
        }
    }
}
