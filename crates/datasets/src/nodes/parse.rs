//! The four kinds of Planetoid files.

use super::{CsrMatrix, EdgeList, GraphDefect};
use crate::Error;
use crate::lines;
use crate::pickle::{self, Array, Value};
use bochner_numerics::argument;

/// Reads `x`, `tx` or `allx`: the features of some nodes, one row per node.
///
/// # Errors
/// [`Error::Pickle`], [`Error::Graph`].
pub(super) fn parse_features(file: &str, bytes: &[u8]) -> Result<CsrMatrix, Error> {
    features(&pickle::parse(file, bytes)?).map_err(in_file(file))
}

/// Reads `y`, `ty` or `ally`: the class of some nodes, one row per node.
///
/// # Errors
/// [`Error::Pickle`], [`Error::Graph`].
pub(super) fn parse_labels(file: &str, bytes: &[u8]) -> Result<Vec<usize>, Error> {
    labels(&pickle::parse(file, bytes)?).map_err(in_file(file))
}

/// Reads `graph`: for each node the list of its neighbours.
///
/// # Errors
/// [`Error::Pickle`], [`Error::Graph`].
pub(super) fn parse_graph(file: &str, bytes: &[u8]) -> Result<EdgeList, Error> {
    graph(&pickle::parse(file, bytes)?).map_err(in_file(file))
}

/// Reads `test.index`: the node of each row of `tx` and `ty`, one number per line.
///
/// # Errors
/// [`Error::Malformed`].
pub(super) fn parse_test_index(file: &str, bytes: &[u8]) -> Result<Vec<usize>, Error> {
    lines::parse(file, bytes, 0, "the number of a node", |line| {
        line.parse().ok()
    })
}

pub(super) fn in_file(file: &str) -> impl Fn(GraphDefect) -> Error {
    move |defect| Error::Graph {
        file: file.to_owned(),
        defect,
    }
}

fn features(root: &Value) -> Result<CsrMatrix, GraphDefect> {
    let Value::Csr(parts) = root else {
        return Err(unfit("a sparse matrix"));
    };
    let part = |name: &str| {
        let mut named = parts
            .iter()
            .filter(|(key, _)| *key == Value::Bytes(name.as_bytes()));
        named.next().map_or(&Value::None, |(_, part)| part)
    };
    let shape = match part("_shape") {
        Value::Tuple(shape) => &shape[..],
        _ => &[],
    };
    let &[Value::Int(rows), Value::Int(columns)] = shape else {
        return Err(unfit("the number of rows and of columns"));
    };
    CsrMatrix::new(
        (index(rows)?, index(columns)?),
        indices(part("indptr"))?,
        indices(part("indices"))?,
        numbers(part("data"), "f4")?
            .map(f32::from_le_bytes)
            .collect(),
    )
}

fn labels(root: &Value) -> Result<Vec<usize>, GraphDefect> {
    let classes = match root {
        Value::Array(Array { shape, .. }) if shape.len() == 2 => shape[1],
        _ => return Err(unfit("a matrix of labels")),
    };
    argument::at_least_one("the number of classes", classes)?;
    let numbers: Vec<[u8; 4]> = numbers(root, "i4")?.collect();
    let rows = numbers.chunks(classes).enumerate();
    rows.map(|(row, numbers)| class(numbers).ok_or(GraphDefect::NotOneHot { row }))
        .collect()
}

/// The place of the one 1 among zeros.
fn class(row: &[[u8; 4]]) -> Option<usize> {
    let numbers = row.iter().copied().map(i32::from_le_bytes);
    let mut others = numbers.enumerate().filter(|&(_, number)| number != 0);
    match (others.next(), others.next()) {
        (Some((class, 1)), None) => Some(class),
        _ => None,
    }
}

fn graph(root: &Value) -> Result<EdgeList, GraphDefect> {
    let Value::Dict(lists) = root else {
        return Err(unfit("a dictionary of lists"));
    };
    let mut entries = Vec::new();
    for pair in lists {
        let (Value::Int(node), Value::List(neighbours)) = pair else {
            return Err(unfit("nodes with the lists of their neighbours"));
        };
        for &neighbour in neighbours {
            entries.push([index(*node)?, index(neighbour)?]);
        }
    }
    EdgeList::new(lists.len(), entries)
}

fn indices(value: &Value) -> Result<Vec<usize>, GraphDefect> {
    numbers(value, "i4")?
        .map(|bytes| index(i32::from_le_bytes(bytes)))
        .collect()
}

fn index(number: i32) -> Result<usize, GraphDefect> {
    argument::non_negative("an index", f64::from(number))?;
    Ok(number as usize)
}

/// The numbers of an array in row-major order, as bytes.
fn numbers(value: &Value, dtype: &str) -> Result<impl Iterator<Item = [u8; 4]>, GraphDefect> {
    match value {
        Value::Array(array) if array.dtype == dtype => Ok(array.raw.as_chunks().0.iter().copied()),
        _ => Err(unfit("an array of i4, or of f4 for values")),
    }
}

fn unfit(expected: &'static str) -> GraphDefect {
    GraphDefect::Content { expected }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pickle::tests::{array, pickle};

    fn numbers(numbers: &[i32]) -> Vec<[u8; 4]> {
        numbers.iter().map(|number| number.to_le_bytes()).collect()
    }

    /// Three rows and five columns: 1 and .5 in columns 1 and 4, nothing, 2 in the given column.
    fn features(column: i32) -> Vec<u8> {
        pickle(&[
            b"cscipy.sparse.csr\ncsr_matrix\n)\x81}(U\x06formatU\x03csrU\x06_shapeK\x03K\x05\x86U\x06indptr",
            &array("i4", &[4], &numbers(&[0, 2, 2, 3])),
            b"U\x07indices",
            &array("i4", &[3], &numbers(&[1, 4, column])),
            b"U\x04data",
            &array("f4", &[3], &[1.0, 0.5, 2.0].map(f32::to_le_bytes)),
            b"ub",
        ])
    }

    #[test]
    fn features_are_read_row_by_row() {
        let matrix = parse_features("f", &features(0)).unwrap();
        assert_eq!((matrix.rows(), matrix.columns()), (3, 5));
        assert_eq!(matrix.row(0), (&[1, 4][..], &[1.0, 0.5][..]));
        assert_eq!(matrix.row(1).0, [0; 0]);
        assert_eq!(matrix.row(2), (&[0][..], &[2.0][..]));
        for (column, defect) in [
            (5, "f: `indices` holds the index 5"),
            (-1, "f: `an index` is -1"),
        ] {
            let error = parse_features("f", &features(column))
                .unwrap_err()
                .to_string();
            assert!(error.starts_with(defect), "{error}");
        }
    }

    #[test]
    fn labels_are_one_hot() {
        let labels =
            |rows: &[i32]| parse_labels("f", &pickle(&[&array("i4", &[2, 3], &numbers(rows))]));
        assert_eq!(labels(&[0, 1, 0, 0, 0, 1]).unwrap(), [1, 2]);
        for row in [[0, 0, 0], [1, 0, 1], [0, 2, 0], [-1, 0, 0], [1, -1, 1]] {
            let error = labels(&[&[1, 0, 0], &row[..]].concat())
                .unwrap_err()
                .to_string();
            assert_eq!(
                error,
                "f: row 1 of the labels is not a single 1 among zeros"
            );
        }
    }

    #[test]
    fn edges_are_read_node_by_node() {
        let graph = |nodes: &[u8]| {
            let start = b"ccollections\ndefaultdict\nc__builtin__\nlist\n\x85R(";
            parse_graph("f", &pickle(&[start, nodes, b"u"]))
        };
        let edges = graph(b"K\x02](K\0K\x02eK\0](K\x02K\x02eK\x01]").unwrap();
        assert_eq!(edges.nodes(), 3);
        assert_eq!(edges.entries(), [[0, 2], [0, 2], [2, 0], [2, 2]]);
        assert!(graph(b"K\0]K\x01aK\x01]K\x02a").is_err(), "node 2 of two");
        let error = graph(b"NN").unwrap_err().to_string();
        assert!(error.ends_with("of their neighbours"), "{error}");
    }

    #[test]
    fn files_of_another_kind_are_refused() {
        let vector = pickle(&[&array("f4", &[1], &[[0; 4]])]);
        for error in [
            parse_features("f", &vector).unwrap_err(),
            parse_labels("f", &vector).unwrap_err(),
            parse_graph("f", &vector).unwrap_err(),
        ] {
            assert!(error.to_string().contains("does not hold"), "{error}");
        }
        assert_eq!(parse_test_index("f", b"3\n0\n12\n").unwrap(), [3, 0, 12]);
        assert!(parse_test_index("f", b"3\n-1\n").is_err());
    }
}
