//! Arguments that do not fit are named, with what was expected.

use crate::conformance::case::{Case, KINDS, Kind};
use bochner_graph::{Error, Graph, Settings, attend, attend_vjp};
use ndarray::{Array2, Array3, s};

fn refusal(case: &Case<f64>) -> Error {
    let (targets, sources) = (case.targets.view(), case.sources.view());
    attend(&case.graph, targets, sources, &case.settings()).unwrap_err()
}

fn changed(kind: Kind, change: impl FnOnce(&mut Case<f64>)) -> Error {
    let mut case = Case::small(kind).with_attributes();
    change(&mut case);
    refusal(&case)
}

fn misshapen(error: Error) -> &'static str {
    match error {
        Error::ShapeMismatch { what, .. } => what,
        other => panic!("{other}"),
    }
}

const KERNEL: Kind = Kind::Nonstationary {
    p: 2.0,
    floor: 1e-5,
};

#[test]
fn shapes_that_do_not_fit() {
    for kind in KINDS {
        let what = changed(kind, |case| case.targets = Array2::zeros((5, 6)));
        assert_eq!(misshapen(what), "targets");
        let what = changed(kind, |case| case.sources = Array2::zeros((6, 5)));
        assert_eq!(misshapen(what), "sources");
    }
    let what = changed(KERNEL, |case| case.w1 = Array3::zeros((2, 4, 5)));
    assert_eq!(misshapen(what), "w1");
    let what = changed(KERNEL, |case| case.w2 = Array3::zeros((2, 3, 6)));
    assert_eq!(misshapen(what), "w2");
    let attributes = |change: fn(&mut crate::conformance::case::Attributes<f64>)| {
        misshapen(changed(Kind::Classic, |case| {
            change(case.attributes.as_mut().unwrap())
        }))
    };
    assert_eq!(
        attributes(|own| own.values = Array2::zeros((9, 3))),
        "attributes"
    );
    assert_eq!(
        attributes(|own| own.weight = Array2::zeros((3, 5))),
        "weight of the edges"
    );
    assert_eq!(attributes(|own| own.b = Array2::zeros((1, 2))), "b");
}

#[test]
fn a_cotangent_or_a_graph_that_does_not_fit() {
    let case = Case::<f64>::small(Kind::Classic);
    let (targets, sources) = (case.targets.view(), case.sources.view());
    let (settings, attended) = (case.settings(), case.attend());
    let pulled_by = |settings: &Settings<f64>, graph: &Graph, cotangent: Array2<f64>| {
        let cotangent = cotangent.view();
        attend_vjp(graph, targets, sources, settings, &attended, cotangent)
    };
    let pulled = |graph: &Graph, cotangent| pulled_by(&settings, graph, cotangent);
    let error = pulled(&case.graph, Array2::zeros((6, 3))).unwrap_err();
    assert_eq!(misshapen(error), "cotangent");
    let mut edges = case.graph.edges();
    assert!(edges[0] != edges[1]);
    edges.swap(0, 1);
    let other = Graph::from_edges(6, edges).unwrap();
    let error = pulled(&other, case.cotangent()).unwrap_err();
    assert_eq!(error, Error::AnotherGraph);
    let mut of_three = case.clone();
    of_three.a = Array2::zeros((3, 4));
    let error = pulled_by(&of_three.settings(), &case.graph, case.cotangent());
    let error = misshapen(error.unwrap_err());
    assert_eq!(error, "heads and width of what was attended");
    let equal = Graph::from_edges(6, case.graph.edges()).unwrap();
    let [own, equal] = [&case.graph, &equal].map(|graph| pulled(graph, case.cotangent()).unwrap());
    assert_eq!(own, equal);
    let error = pulled(&case.graph, Array2::from_elem((6, 6), f64::NAN)).unwrap_err();
    assert!(matches!(
        error,
        Error::NotANumber {
            what: "cotangent",
            at: 0,
            ..
        }
    ));
}

#[test]
fn what_is_no_number_in_sources_that_begin_with_the_targets() {
    let graph = Graph::bipartite(2, 3, [(2, 0), (0, 1)]).unwrap();
    let case = Case::<f64>::small(Kind::Classic);
    let mut nodes = case.sources.slice(s![..3, ..]).to_owned();
    nodes[[2, 0]] = f64::NAN;
    let targets = nodes.slice(s![..2, ..]);
    let error = attend(&graph, targets, nodes.view(), &case.settings()).unwrap_err();
    assert!(matches!(
        error,
        Error::NotANumber {
            what: "sources",
            ..
        }
    ));
}

#[test]
fn what_is_no_number() {
    let named = |kind, change: fn(&mut Case<f64>)| match changed(kind, change) {
        Error::NotANumber { what, .. } => what,
        other => panic!("{other}"),
    };
    for kind in KINDS {
        assert_eq!(
            named(kind, |case| case.targets[[0, 1]] = f64::NAN),
            "targets"
        );
        assert_eq!(
            named(kind, |case| case.sources[[5, 5]] = f64::INFINITY),
            "sources"
        );
        assert_eq!(named(kind, |case| case.a[[1, 0]] = f64::NAN), "a");
        assert_eq!(named(kind, |case| case.sources[[0, 0]] = 1e200), "sources");
    }
    assert_eq!(named(KERNEL, |case| case.w1[[0, 0, 0]] = f64::NAN), "w1");
    assert_eq!(named(KERNEL, |case| case.w2[[0, 0, 0]] = f64::NAN), "w2");
    let spoil = |case: &mut Case<f64>| case.attributes.as_mut().unwrap().values[[0, 0]] = f64::NAN;
    assert_eq!(named(Kind::Dynamic, spoil), "attributes");
}

#[test]
fn settings_out_of_range() {
    let named = |kind, change: &dyn Fn(&mut Case<f64>)| match changed(kind, change) {
        Error::OutOfRange { name, .. } => name,
        other => panic!("{other}"),
    };
    let odd = named(Kind::Classic, &|case| case.a = Array2::zeros((2, 7)));
    assert_eq!(odd, "the number of columns of a");
    for slope in [-0.1, 1.1, f64::NAN] {
        assert_eq!(named(Kind::Classic, &|case| case.slope = slope), "slope");
    }
    for p in [0.0, -1.0, f64::INFINITY, f64::NAN] {
        assert_eq!(named(Kind::Stationary { p, floor: 0.0 }, &|_| ()), "p");
    }
    for floor in [-1e-9, f64::NAN] {
        assert_eq!(named(Kind::Stationary { p: 2.0, floor }, &|_| ()), "floor");
    }
}

#[test]
fn axes_of_length_zero() {
    let empty = |error| match error {
        Error::Empty { what, axis } => (what, axis),
        other => panic!("{other}"),
    };
    let error = changed(Kind::Classic, |case| case.a = Array2::zeros((0, 6)));
    assert_eq!(empty(error), ("a", "head"));
    let error = changed(Kind::Dynamic, |case| case.a = Array2::zeros((2, 0)));
    assert_eq!(empty(error), ("a", "width"));
    let error = changed(KERNEL, |case| case.w1 = Array3::zeros((2, 0, 6)));
    assert_eq!(empty(error), ("w1", "R"));
}
