//! Renumbering nodes renumbers the output; the order of the edges and what else is in a batch change
//! nothing.

use crate::conformance::case::{Case, KINDS, SMALL, named, random_graph};
use bochner_graph::{Batch, Graph};
use bochner_numerics::check::largest;
use ndarray::{Array2, Axis, concatenate, s};

/// Row `i` becomes row `numbers[i]`.
fn renumbered(x: &Array2<f64>, numbers: &[usize]) -> Array2<f64> {
    let mut moved = x.clone();
    for (row, &to) in x.rows().into_iter().zip(numbers) {
        moved.row_mut(to).assign(&row);
    }
    moved
}

fn close(got: &Array2<f64>, want: &Array2<f64>) {
    let off = largest(&(got - want)) / largest(want).max(1e-3);
    assert!(off < 1e-10, "{off:e}");
}

#[test]
fn nodes_may_be_renumbered() {
    let (targets, sources) = ([3, 0, 4, 1, 2], [6, 2, 0, 5, 1, 3, 4]);
    for kind in KINDS {
        let case = Case::<f64>::new(random_graph(5, 7, 20), kind, SMALL);
        let case = case.with_attributes().with_dropout(0.3);
        let edges = case.graph.edges().into_iter();
        let edges = edges.map(|(source, target)| (sources[source], targets[target]));
        let moved = Case {
            graph: Graph::bipartite(5, 7, edges).unwrap(),
            targets: renumbered(&case.targets, &targets),
            sources: renumbered(&case.sources, &sources),
            ..case.clone()
        };
        let output = renumbered(&case.attend().output, &targets);
        close(&moved.attend().output, &output);
        close(&moved.weights(), &case.weights());
        let want = case.gradients();
        let got = moved.gradients_from(&renumbered(&case.cotangent(), &targets));
        close(&got.targets, &renumbered(&want.targets, &targets));
        close(&got.sources, &renumbered(&want.sources, &sources));
        close(&got.a, &want.a);
    }
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
