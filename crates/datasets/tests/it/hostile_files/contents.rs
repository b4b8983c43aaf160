//! Well-formed pickles that are no features, labels or graphs.

use crate::hostile_files::writer::{
    Features, Writer, graph, graph_defect, labels, pickle_defect, start_of_graph, valid_files,
    valid_graph,
};
use bochner_datasets::nodes::{parse_features, parse_graph, parse_labels, parse_test_index};
use bochner_datasets::{Error, GraphDefect, PickleDefect};

#[test]
fn valid_files_are_read() {
    let [features, labels, graph] = valid_files();
    let features = parse_features("f", &features).unwrap();
    assert_eq!((features.rows(), features.columns()), (3, 5));
    assert_eq!(features.row(0), (&[1, 4][..], &[1.0, 0.5][..]));
    assert_eq!(features.row(1).0, [0; 0]);
    assert_eq!(features.row(2), (&[0][..], &[2.0][..]));
    assert_eq!(parse_labels("f", &labels).unwrap(), (vec![1, 2], 3));
    let edges = parse_graph("f", &graph).unwrap();
    assert_eq!(edges.entries(), [[0, 2], [0, 2], [2, 0], [2, 2]]);
    assert_eq!(parse_test_index("f", b"3\n0\n12\n").unwrap(), [3, 0, 12]);
}

#[test]
fn a_list_in_itself_is_no_list_of_nodes() {
    let cycle = start_of_graph().raw(b"K\0]q\x05h\x05au").stop();
    let defect = graph_defect(parse_graph("f", &cycle));
    assert!(matches!(
        defect,
        GraphDefect::Kind {
            found: "a list",
            ..
        }
    ));
    let deep = Writer::new()
        .raw(&[b']'; 100_000])
        .raw(&[b'a'; 99_999])
        .stop();
    let defect = graph_defect(parse_graph("f", &deep));
    assert!(matches!(
        defect,
        GraphDefect::Kind {
            found: "a list",
            ..
        }
    ));
}

#[test]
fn numbers_of_other_types_are_refused() {
    for (code, order) in [
        ("i8", "<"),
        ("f8", "<"),
        ("O8", "|"),
        ("i4", ">"),
        ("f4", "|"),
    ] {
        let file = Writer::new().dtype(code, order).stop();
        let (_, defect) = pickle_defect(parse_labels("f", &file));
        let found = if matches!(code, "i4" | "f4") {
            order
        } else {
            code
        };
        assert_eq!(
            defect,
            PickleDefect::Dtype {
                found: found.into()
            }
        );
    }
    let floats = Writer::new().floats(&[1.0]).stop();
    let defect = graph_defect(parse_labels("f", &floats));
    assert!(matches!(
        defect,
        GraphDefect::Dtype {
            expected: "i4",
            found: "f4",
            ..
        }
    ));
    let data = Features::start().string(b"_shape").shape(&[0, 0]);
    let data = data.string(b"data").ints(&[]).raw(b"ub").stop();
    let defect = graph_defect(parse_features("f", &data));
    assert!(matches!(
        defect,
        GraphDefect::Dtype {
            what: "data",
            expected: "f4",
            ..
        }
    ));
}

#[test]
fn features_that_break_a_rule_are_refused() {
    use GraphDefect as D;
    assert!(matches!(
        Features::defect(|f| f.shape[0] = 4),
        D::Size {
            expected: 4,
            found: 3,
            ..
        }
    ));
    assert!(matches!(
        Features::defect(|f| f.shape[1] = 4),
        D::OutOfRange {
            index: 4,
            end: 4,
            ..
        }
    ));
    assert!(matches!(
        Features::defect(|f| f.shape[1] = -1),
        D::OutOfRange { index: -1, .. }
    ));
    assert!(matches!(
        Features::defect(|f| f.shape.push(1)),
        D::Kind {
            what: "`_shape`",
            ..
        }
    ));
    assert!(matches!(
        Features::defect(|f| f.indices[2] = -1),
        D::OutOfRange { index: -1, .. }
    ));
    assert!(matches!(
        Features::defect(|f| f.indices[0] = 4),
        D::Unsorted { row: 0 }
    ));
    assert!(matches!(
        Features::defect(|f| f.indptr[1] = 9),
        D::RowPointer { row: 0 }
    ));
    assert!(matches!(
        Features::defect(|f| f.indptr[2] = 1),
        D::RowPointer { row: 1 }
    ));
    assert!(matches!(
        Features::defect(|f| f.indptr[0] = 1),
        D::Size { found: 1, .. }
    ));
    assert!(matches!(
        Features::defect(|f| f.indptr[3] = 2),
        D::Size { found: 2, .. }
    ));
    assert!(matches!(
        Features::defect(|f| f.data.truncate(2)),
        D::Size { found: 2, .. }
    ));
    let infinite = Features::defect(|f| f.data[1] = f32::INFINITY);
    assert_eq!(infinite, D::NotFinite { row: 0, column: 4 });
    assert!(matches!(
        graph_defect(parse_features("f", &valid_graph())),
        D::Kind { .. }
    ));

    let without = Features::start().raw(b"ub").stop();
    let defect = graph_defect(parse_features("f", &without));
    assert_eq!(
        defect,
        D::Key {
            key: "_shape",
            count: 0
        }
    );
    let twice = Features::start()
        .string(b"format")
        .string(b"csr")
        .raw(b"ub")
        .stop();
    let defect = graph_defect(parse_features("f", &twice));
    assert_eq!(
        defect,
        D::Key {
            key: "format",
            count: 2
        }
    );
}

#[test]
fn labels_that_are_not_one_hot_are_refused() {
    for row in [[0, 0, 0], [1, 0, 1], [0, 2, 0], [-1, 0, 0], [1, -1, 1]] {
        let file = labels(&[2, 3], &[[1, 0, 0], row].concat());
        let defect = graph_defect(parse_labels("f", &file));
        assert_eq!(defect, GraphDefect::NotOneHot { row: 1 });
    }
    let flat = Writer::new().ints(&[1, 0]).stop();
    let defect = graph_defect(parse_labels("f", &flat));
    assert!(matches!(
        defect,
        GraphDefect::Size {
            expected: 2,
            found: 1,
            ..
        }
    ));
    for numbers in [&[1, 0, 0, 1][..], &[1, 0, 0, 1, 0, 0, 0]] {
        let (_, defect) = pickle_defect(parse_labels("f", &labels(&[2, 3], numbers)));
        let (rows, columns, found) = (2, 3, 4 * numbers.len());
        assert_eq!(
            defect,
            PickleDefect::ArrayLength {
                rows,
                columns,
                found
            }
        );
    }
}

#[test]
fn graphs_that_break_a_rule_are_refused() {
    let defect = |lists: &[(i32, &[i32])]| graph_defect(parse_graph("f", &graph(lists)));
    for outside in [2, -1, i32::MAX, i32::MIN] {
        let wanted = |defect| matches!(defect, GraphDefect::OutOfRange { index, end: 2, .. } if index == i64::from(outside));
        assert!(wanted(defect(&[(0, &[outside]), (1, &[])])));
        assert!(wanted(defect(&[(0, &[]), (outside, &[])])));
    }
    assert_eq!(
        defect(&[(0, &[]), (0, &[])]),
        GraphDefect::Repeated { node: 0 }
    );
}

#[test]
fn a_test_index_names_each_node_once() {
    for (text, wanted) in [
        ("3\n3\n", 2),
        ("3\n+4\n", 2),
        ("3\n\n", 2),
        ("-1\n", 1),
        ("3", 1),
    ] {
        let error = parse_test_index("f", text.as_bytes()).unwrap_err();
        assert!(
            matches!(error, Error::Malformed { line, .. } if line == wanted),
            "{text:?}"
        );
    }
}
