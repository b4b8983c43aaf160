//! Scores, weights and outputs against the formulas as they read.

use crate::conformance::case::{Case, KINDS, Kind, Size, named, random_graph};
use crate::conformance::reference;
use bochner_graph::{Graph, Merge, scores};
use bochner_numerics::Tolerance;
use bochner_numerics::check::largest;
use ndarray::Array2;

fn close(got: &Array2<f64>, want: &Array2<f64>, what: &str, kind: Kind) {
    assert_eq!(got.dim(), want.dim());
    let bound = Tolerance::outputs::<f64>().bound(want.iter().copied());
    let off = largest(&(got - want));
    assert!(off <= bound, "{what} of {kind:?}: off by {off:e}");
}

fn agrees(case: &Case<f64>) {
    let (targets, sources) = (case.targets.view(), case.sources.view());
    let scored = scores(&case.graph, targets, sources, &case.settings()).unwrap();
    close(&scored, &reference::scores(case), "scores", case.kind);
    close(
        &case.weights(),
        &reference::weights(case),
        "weights",
        case.kind,
    );
    close(
        &case.attend().output,
        &reference::output(case),
        "output",
        case.kind,
    );
}

#[test]
fn for_every_score() {
    for kind in KINDS {
        let case = Case::small(kind);
        agrees(&case);
        agrees(&case.clone().with_attributes());
        agrees(&case.clone().with_dropout(0.4));
        let average = Merge::Average;
        agrees(&Case {
            merge: average,
            ..case.clone().with_dropout(0.4)
        });
        for slope in [0.0, 1.0] {
            agrees(&Case {
                slope,
                ..case.clone().with_attributes()
            });
        }
    }
}

#[test]
fn across_pieces_of_work_and_for_all_widths() {
    let sizes = [(1, 1, 1), (3, 8, 5), (8, 8, 3), (2, 17, 9), (19, 2, 4)];
    for (heads, width, points) in sizes {
        let size = Size {
            heads,
            width,
            points,
        };
        for kind in [
            Kind::Classic,
            Kind::Dynamic,
            Kind::Nonstationary {
                p: 2.0,
                floor: 1e-5,
            },
        ] {
            let case = Case::new(random_graph(700, 600, 1500), kind, size);
            agrees(&case.with_attributes().with_dropout(0.2));
        }
    }
}

#[test]
fn a_graph_may_have_no_edges_or_no_nodes() {
    for nodes in [0, 4] {
        for kind in KINDS {
            let graph = Graph::from_edges(nodes, []).unwrap();
            let case =
                Case::<f32>::new(graph, kind, crate::conformance::case::SMALL).with_attributes();
            let attended = case.attend();
            assert_eq!(attended.output, Array2::<f32>::zeros((nodes, 6)));
            assert_eq!(case.weights().dim(), (0, 2));
            let gradients = crate::conformance::case::named(&case.gradients());
            assert!(gradients.iter().all(|(_, g)| g.iter().all(|&x| x == 0.0)));
        }
    }
}

/// The kernel form with exact Gaussian similarities and the magnitudes of p = 2 is GAT, to rounding, and
/// so are its gradients; without magnitudes, or with those of another norm, it is something else.
#[test]
fn with_gaussian_similarities_and_magnitudes_it_is_gat() {
    let graph = || random_graph(40, 30, 200);
    let size = Size {
        heads: 3,
        width: 5,
        points: 1,
    };
    let of = |kind| Case::<f64>::new(graph(), kind, size).with_attributes();
    let classic = of(Kind::Classic);
    let off = |p| {
        let other = of(Kind::Gaussian { p }).weights();
        largest(&(other - classic.weights()))
    };
    assert!(off(Some(2.0)) < 1e-13, "{}", off(Some(2.0)));
    assert!(off(Some(1.9)) > 1e-3 && off(None) > 1e-2);
    let same = of(Kind::Gaussian { p: Some(2.0) });
    for ((name, got), (_, want)) in named(&same.gradients())
        .iter()
        .zip(named(&classic.gradients()))
    {
        let error = bochner_numerics::relative_error(got, &want);
        assert!(error < 1e-11, "along {name}: {error:e}");
    }
}
