//! Every gradient against central differences, in double precision.

use crate::conformance::case::{Case, KINDS, SMALL, named, random_graph};
use bochner_graph::{Batch, Merge};
use bochner_numerics::{finite_difference, relative_error};
use ndarray::{Array2, Axis, concatenate};

/// The cotangent's product with the output.
fn value(case: &Case<f64>) -> f64 {
    (case.attend().output * case.cotangent()).sum()
}

/// The array of a case that a gradient belongs to.
fn array<'a>(case: &'a mut Case<f64>, name: &str) -> &'a mut [f64] {
    let array = match name {
        "targets" => case.targets.as_slice_mut(),
        "sources" => case.sources.as_slice_mut(),
        "a" => case.a.as_slice_mut(),
        "w1" => case.w1.as_slice_mut(),
        "w2" => case.w2.as_slice_mut(),
        "attributes" => case.attributes.as_mut().unwrap().values.as_slice_mut(),
        "weight of the edges" => case.attributes.as_mut().unwrap().weight.as_slice_mut(),
        "b" => {
            let b = &mut case.attributes.as_mut().unwrap().b;
            b.as_mut().unwrap().as_slice_mut()
        }
        other => panic!("a gradient along {other}"),
    };
    array.unwrap()
}

fn agrees(case: &Case<f64>) {
    for (name, got) in named(&case.gradients()) {
        let mut moved = case.clone();
        let at = array(&mut moved, name).to_vec();
        let want = finite_difference(&at, |x| {
            array(&mut moved, name).copy_from_slice(x);
            value(&moved)
        });
        // If sources do not compete, or if all edges of a target have the same c, the gradient along the targets is
        // zero up to rounding.
        let largest = want.iter().fold(0.0, |m: f64, x| m.max(x.abs()));
        let error = relative_error(&got, &want) * largest.max(1e-30) / largest.max(1e-4);
        assert!(error < 1e-6, "along {name} of {:?}: {error:e}", case.kind);
    }
}

#[test]
fn with_attributes_dropout_and_averaged_heads() {
    for kind in KINDS {
        let case = Case::small(kind).with_attributes();
        let case = case.with_dropout(0.3).with_value_dropout(0.4);
        agrees(&Case {
            merge: Merge::Average,
            slope: 0.5,
            ..case
        });
    }
}

#[test]
fn of_bipartite_graphs() {
    for kind in KINDS {
        agrees(&Case::new(random_graph(5, 7, 18), kind, SMALL).with_attributes());
    }
}

/// Copies of one graph side by side, more nodes than a piece of work takes: each copy's gradients are those of
/// one, and those along what all share add up.
#[test]
fn of_copies_side_by_side() {
    const COPIES: usize = 120;
    for kind in KINDS {
        let one = Case::<f64>::small(kind);
        let graph = Batch::new(std::iter::repeat_n(&one.graph, COPIES)).unwrap();
        let tiled = |x: &Array2<f64>| {
            let copies = vec![x.view(); COPIES];
            concatenate(Axis(0), &copies).unwrap()
        };
        let all = Case {
            graph: graph.graph().clone(),
            targets: tiled(&one.targets),
            sources: tiled(&one.sources),
            ..one.clone()
        };
        let got = all.gradients_from(&tiled(&one.cotangent()));
        let want = one.gradients();
        assert_eq!(got.targets, tiled(&want.targets), "{kind:?}");
        assert_eq!(got.sources, tiled(&want.sources), "{kind:?}");
        for ((name, got), (_, want)) in named(&got).into_iter().zip(named(&want)).skip(2) {
            let want: Vec<f64> = want.into_iter().map(|g| g * COPIES as f64).collect();
            let error = relative_error(&got, &want);
            assert!(error < 1e-12, "along {name} of {kind:?}: {error:e}");
        }
    }
}
