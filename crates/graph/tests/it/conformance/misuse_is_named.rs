//! Arguments that do not fit are named, with what was expected.

use crate::conformance::case::{Attributes, Case, KINDS, Kind};
use bochner_graph::{Error, Graph, Merge, attend, attend_vjp};
use bochner_numerics::ArgumentError;
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

fn misshapen(error: Error) -> String {
    match error {
        Error::Argument(ArgumentError::Shape { name, .. }) => name.into(),
        other => panic!("{other}"),
    }
}

fn not_finite(error: Error) -> (String, Vec<usize>) {
    match error {
        Error::Argument(ArgumentError::NotFinite { name, index, .. }) => (name.into(), index),
        other => panic!("{other}"),
    }
}

fn attributes(case: &mut Case<f64>) -> &mut Attributes<f64> {
    case.attributes.as_mut().unwrap()
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
    let of_edges = |change: fn(&mut Attributes<f64>)| {
        misshapen(changed(Kind::Classic, |case| change(attributes(case))))
    };
    let name = of_edges(|own| own.values = Array2::zeros((9, 3)));
    assert_eq!(name, "edges.attributes");
    let name = of_edges(|own| own.weight = Array2::zeros((3, 5)));
    assert_eq!(name, "edges.weight");
    assert_eq!(
        of_edges(|own| own.b = Some(Array2::zeros((1, 2)))),
        "edges.b"
    );
    let wide = changed(Kind::Dynamic, |case| {
        attributes(case).weight = Array2::zeros((3, 4))
    });
    assert_eq!(misshapen(wide), "edges.weight");
}

#[test]
fn vectors_of_the_edges_where_they_are_needed_and_nowhere_else() {
    let missing = changed(Kind::Classic, |case| attributes(case).b = None);
    assert!(
        matches!(&missing, Error::Missing { name, .. } if name == "edges.b"),
        "{missing}"
    );
    let b = Some(Array2::zeros((2, 3)));
    let given = changed(Kind::Dynamic, |case| attributes(case).b = b);
    assert!(
        matches!(&given, Error::Superfluous { name, .. } if name == "edges.b"),
        "{given}"
    );
}

/// Attributes are within the limit, and so is their weight, but not their product.
#[test]
fn transformed_attributes_that_are_too_large() {
    let error = changed(Kind::Dynamic, |case| {
        attributes(case).values.fill(1e50);
        attributes(case).weight.fill(-1e50);
    });
    let what = "transformed attributes of the edges";
    assert!(
        matches!(error, Error::TooLarge { what: name, .. } if name == what),
        "{error}"
    );
}

#[test]
fn a_cotangent_that_does_not_fit() {
    let case = Case::<f64>::small(Kind::Classic);
    let average = Case {
        merge: Merge::Average,
        ..case.clone()
    };
    let refused = |case: &Case<f64>, cotangent: Array2<f64>| {
        attend_vjp(&case.attend(), cotangent.view()).unwrap_err()
    };
    for (case, wrong) in [(&case, (6, 3)), (&case, (5, 6)), (&average, (6, 6))] {
        assert_eq!(misshapen(refused(case, Array2::zeros(wrong))), "cotangent");
    }
    let mut cotangent = case.cotangent();
    cotangent[[2, 1]] = f64::NAN;
    assert_eq!(
        not_finite(refused(&case, cotangent)),
        ("cotangent".to_owned(), vec![2, 1])
    );
}

#[test]
fn what_is_no_number_in_sources_that_begin_with_the_targets() {
    let graph = Graph::bipartite(2, 3, [(2, 0), (0, 1)]).unwrap();
    let case = Case::<f64>::small(Kind::Classic);
    let mut nodes = case.sources.slice(s![..3, ..]).to_owned();
    nodes[[2, 0]] = f64::NAN;
    let targets = nodes.slice(s![..2, ..]);
    let error = attend(&graph, targets, nodes.view(), &case.settings()).unwrap_err();
    assert_eq!(not_finite(error), ("sources".to_owned(), vec![2, 0]));
}

#[test]
fn what_is_not_finite() {
    let named = |kind, change: fn(&mut Case<f64>)| not_finite(changed(kind, change)).0;
    for kind in KINDS {
        let name = named(kind, |case| case.targets[[0, 1]] = f64::NAN);
        assert_eq!(name, "targets");
        let name = named(kind, |case| case.sources[[5, 5]] = f64::INFINITY);
        assert_eq!(name, "sources");
        assert_eq!(named(kind, |case| case.a[[1, 0]] = f64::NAN), "a");
    }
    assert_eq!(named(KERNEL, |case| case.w1[[0, 0, 0]] = f64::NAN), "w1");
    assert_eq!(named(KERNEL, |case| case.w2[[0, 0, 0]] = f64::NAN), "w2");
    let name = named(Kind::Dynamic, |case| {
        attributes(case).values[[0, 0]] = f64::NAN
    });
    assert_eq!(name, "edges.attributes");
}

/// Finite numbers that scores cannot be computed from are not called NaN: the error says the limit.
#[test]
fn what_is_too_large() {
    type Change = fn(&mut Case<f64>);
    let changes: [(Change, &str, &[usize]); 8] = [
        (|case| case.targets[[3, 0]] = -1e200, "targets", &[3, 0]),
        (|case| case.sources[[4, 1]] = -1e200, "sources", &[4, 1]),
        (|case| case.a[[1, 2]] = -1e200, "a", &[1, 2]),
        (|case| case.w1[[1, 3, 5]] = -1e200, "w1", &[1, 3, 5]),
        (|case| case.w2[[0, 1, 2]] = -1e200, "w2", &[0, 1, 2]),
        (
            |case| attributes(case).values[[9, 2]] = -1e200,
            "edges.attributes",
            &[9, 2],
        ),
        (
            |case| attributes(case).weight[[2, 3]] = -1e200,
            "edges.weight",
            &[2, 3],
        ),
        (
            |case| attributes(case).b.as_mut().unwrap()[[1, 1]] = -1e200,
            "edges.b",
            &[1, 1],
        ),
    ];
    for (change, name, at) in changes {
        let error = changed(KERNEL, change);
        assert!(error.to_string().ends_with("scale it down"), "{error}");
        let Error::TooLarge {
            what,
            index,
            got,
            limit,
        } = error
        else {
            panic!("{error}")
        };
        assert_eq!((what, &index[..], got), (name, at, -1e200));
        assert!((1e77..1.2e77).contains(&limit));
    }
    let mut single = Case::<f32>::small(Kind::Classic);
    single.targets[[3, 0]] = -1e20;
    let (targets, sources) = (single.targets.view(), single.sources.view());
    let refused = attend(&single.graph, targets, sources, &single.settings());
    let error = refused.unwrap_err().to_string();
    assert!(error.contains("must stay within 4.2"), "{error}");
    assert!(error.ends_with("or compute in double precision"), "{error}");
}

#[test]
fn settings_out_of_range() {
    let named = |kind, change: &dyn Fn(&mut Case<f64>)| match changed(kind, change) {
        Error::Argument(ArgumentError::OutOfRange { name, .. }) => name,
        other => panic!("{other}"),
    };
    let odd = named(Kind::Classic, &|case| case.a = Array2::zeros((2, 7)));
    assert_eq!(odd, "columns of a");
    for slope in [-0.1, 1.1, f64::NAN] {
        assert_eq!(named(Kind::Classic, &|case| case.slope = slope), "slope");
    }
    for p in [0.0, -1.0, f64::INFINITY, f64::NAN] {
        assert_eq!(named(Kind::Stationary { p, floor: 0.0 }, &|_| ()), "p");
        assert_eq!(named(Kind::Gaussian { p: Some(p) }, &|_| ()), "p");
    }
    for floor in [-1e-9, 1.1, 1e300, f64::INFINITY, f64::NAN] {
        assert_eq!(named(Kind::Stationary { p: 2.0, floor }, &|_| ()), "floor");
    }
}

#[test]
fn axes_of_length_zero() {
    let empty = |error| match error {
        Error::Argument(ArgumentError::Empty { name, .. }) => name,
        other => panic!("{other}"),
    };
    let error = changed(Kind::Classic, |case| case.a = Array2::zeros((0, 6)));
    assert_eq!(empty(error), "a");
    let error = changed(Kind::Dynamic, |case| case.a = Array2::zeros((2, 0)));
    assert_eq!(empty(error), "a");
    let error = changed(KERNEL, |case| case.w1 = Array3::zeros((2, 0, 6)));
    assert_eq!(empty(error), "spectral points");
}
