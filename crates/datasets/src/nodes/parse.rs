//! The four kinds of Planetoid files.

use super::csr::{in_range, size};
use super::{CsrMatrix, EdgeList, GraphDefect};
use crate::Error;
use crate::lines::{Lines, excerpt};
use crate::pickle::{Array, Dtype, Object, ObjectId, Pickle, Shape, Value};
use std::collections::HashSet;

/// Reads `x`, `tx` or `allx`: the features of some nodes, one row per node.
///
/// # Errors
/// [`Error::Pickle`], [`Error::Graph`].
pub fn parse_features(file: &str, bytes: &[u8]) -> Result<CsrMatrix, Error> {
    let pickle = Pickle::parse(file, bytes)?;
    features(&pickle).map_err(in_file(file))
}

/// Reads `y`, `ty` or `ally`: the class of some nodes, one row per node, and how many classes
/// there are.
///
/// # Errors
/// [`Error::Pickle`], [`Error::Graph`].
pub fn parse_labels(file: &str, bytes: &[u8]) -> Result<(Vec<usize>, usize), Error> {
    let pickle = Pickle::parse(file, bytes)?;
    labels(&pickle).map_err(in_file(file))
}

/// Reads `graph`: for each node the list of its neighbours.
///
/// # Errors
/// [`Error::Pickle`], [`Error::Graph`].
pub fn parse_graph(file: &str, bytes: &[u8]) -> Result<EdgeList, Error> {
    let pickle = Pickle::parse(file, bytes)?;
    graph(&pickle).map_err(in_file(file))
}

/// Reads `test.index`: the node of each row of `tx` and `ty`, one number per line.
///
/// # Errors
/// [`Error::Malformed`], [`Error::Encoding`].
pub fn parse_test_index(file: &str, bytes: &[u8]) -> Result<Vec<usize>, Error> {
    let mut lines = Lines::new(file, bytes);
    let (mut nodes, mut seen) = (Vec::new(), HashSet::new());
    while let Some(line) = lines.next()? {
        let digits = line.bytes().all(|byte| byte.is_ascii_digit());
        let node = line.parse().ok().filter(|_| digits);
        let fresh = node.filter(|&node| seen.insert(node));
        let expected = "the number of a node not named before";
        nodes.push(fresh.ok_or_else(|| lines.malformed(expected, excerpt(line)))?);
    }
    lines.finish(crate::lines::End::LineFeed)?;
    Ok(nodes)
}

pub(super) fn in_file(file: &str) -> impl Fn(GraphDefect) -> Error {
    move |defect| Error::Graph {
        file: file.to_owned(),
        defect,
    }
}

fn features(pickle: &Pickle) -> Result<CsrMatrix, GraphDefect> {
    let state = match pickle.object(pickle.root()) {
        Some(Object::Csr(Some(state))) => *state,
        _ => return Err(kind(pickle, "the file", "a sparse matrix", pickle.root())),
    };
    let entry = |key| entry(pickle, state, key);
    let format = entry("format")?;
    if format != Value::Bytes(b"csr") {
        return Err(kind(pickle, "`format`", "the word csr", format));
    }
    let shape = shape(pickle, entry("_shape")?)?;
    let positions = |key| -> Result<Vec<usize>, GraphDefect> {
        let numbers = vector(pickle, key, Dtype::Int, entry(key)?)?;
        let positions = numbers.map(|bytes| position(key, i32::from_le_bytes(bytes)));
        positions.collect()
    };
    let values = vector(pickle, "data", Dtype::Float, entry("data")?)?;
    CsrMatrix::new(
        shape,
        positions("indptr")?,
        positions("indices")?,
        values.map(f32::from_le_bytes).collect(),
    )
}

/// The value of a key that must be there once. Other keys do not matter.
fn entry<'a>(
    pickle: &Pickle<'a>,
    dictionary: ObjectId,
    key: &'static str,
) -> Result<Value<'a>, GraphDefect> {
    let pairs = match pickle.object(Value::Object(dictionary)) {
        Some(Object::Dict(pairs)) => pairs.as_slice(),
        _ => &[],
    };
    let wanted = Value::Bytes(key.as_bytes());
    let mut found = pairs.iter().filter(|(key, _)| *key == wanted);
    match (found.next(), found.count()) {
        (Some((_, value)), 0) => Ok(*value),
        (None, _) => Err(GraphDefect::Key { key, count: 0 }),
        (_, more) => Err(GraphDefect::Key {
            key,
            count: more + 1,
        }),
    }
}

fn shape(pickle: &Pickle, value: Value) -> Result<(usize, usize), GraphDefect> {
    let items = match value.object().and_then(|_| pickle.object(value)) {
        Some(Object::Tuple(items)) => items.as_slice(),
        _ => &[],
    };
    match *items {
        [Value::Int(rows), Value::Int(columns)] => {
            Ok((position("_shape", rows)?, position("_shape", columns)?))
        }
        _ => Err(kind(pickle, "`_shape`", "two integers", value)),
    }
}

fn position(what: &'static str, number: i32) -> Result<usize, GraphDefect> {
    in_range(what, number.into(), 0, i32::MAX as usize)
}

fn array<'p, 'a>(
    pickle: &'p Pickle<'a>,
    what: &'static str,
    dtype: Dtype,
    value: Value<'a>,
) -> Result<&'p Array<'a>, GraphDefect> {
    let Some(Object::Array(Some(array))) = pickle.object(value) else {
        return Err(kind(pickle, what, "an array", value));
    };
    if array.dtype == dtype {
        return Ok(array);
    }
    Err(GraphDefect::Dtype {
        what,
        expected: dtype.code(),
        found: array.dtype.code(),
    })
}

fn vector<'p>(
    pickle: &'p Pickle<'p>,
    what: &'static str,
    dtype: Dtype,
    value: Value<'p>,
) -> Result<impl Iterator<Item = [u8; 4]> + 'p, GraphDefect> {
    let array = array(pickle, what, dtype, value)?;
    match array.shape {
        Shape::Vector(_) => Ok(array.raw.as_chunks().0.iter().copied()),
        Shape::Matrix(..) => Err(GraphDefect::Size {
            what: "dimensions of an array of a sparse matrix",
            expected: 1,
            found: 2,
        }),
    }
}

fn labels(pickle: &Pickle) -> Result<(Vec<usize>, usize), GraphDefect> {
    let array = array(pickle, "the file", Dtype::Int, pickle.root())?;
    let Shape::Matrix(rows, classes) = array.shape else {
        return Err(GraphDefect::Size {
            what: "dimensions of the labels",
            expected: 2,
            found: 1,
        });
    };
    // Without this, a file of a few bytes could name as many rows as it likes.
    if array.raw.is_empty() {
        size("rows of labels without classes", 0, rows)?;
        return Ok((Vec::new(), classes));
    }
    let rows = array.raw.chunks_exact(4 * classes).enumerate();
    let labels = rows.map(|(row, bytes)| class(bytes).ok_or(GraphDefect::NotOneHot { row }));
    Ok((labels.collect::<Result<_, _>>()?, classes))
}

/// The place of the one 1 among zeros.
fn class(row: &[u8]) -> Option<usize> {
    let numbers = row.as_chunks().0.iter().copied().map(i32::from_le_bytes);
    let mut others = numbers.enumerate().filter(|&(_, number)| number != 0);
    match (others.next(), others.next()) {
        (Some((class, 1)), None) => Some(class),
        _ => None,
    }
}

fn graph(pickle: &Pickle) -> Result<EdgeList, GraphDefect> {
    let root = pickle.root();
    let Some(Object::Dict(pairs)) = pickle.object(root) else {
        return Err(kind(pickle, "the file", "a dictionary of lists", root));
    };
    let nodes = pairs.len();
    let (mut seen, mut used) = (vec![false; nodes], HashSet::new());
    let mut entries = Vec::new();
    for &(key, value) in pairs {
        let node = node(pickle, key, nodes)?;
        if std::mem::replace(&mut seen[node], true) {
            return Err(GraphDefect::Repeated { node });
        }
        let Some(Object::List(list)) = pickle.object(value) else {
            return Err(kind(pickle, "the neighbours of a node", "a list", value));
        };
        // Shared lists would let a small file state any number of edges.
        if !used.insert(value.object()) {
            return Err(GraphDefect::SharedList { node });
        }
        for &neighbour in list {
            entries.push([node, self::node(pickle, neighbour, nodes)?]);
        }
    }
    EdgeList::new(nodes, entries)
}

fn node(pickle: &Pickle, value: Value, nodes: usize) -> Result<usize, GraphDefect> {
    match value {
        Value::Int(number) => in_range("node", number.into(), 0, nodes),
        _ => Err(kind(pickle, "a node", "an integer", value)),
    }
}

fn kind(pickle: &Pickle, what: &'static str, expected: &'static str, found: Value) -> GraphDefect {
    GraphDefect::Kind {
        what,
        expected,
        found: pickle.kind(found),
    }
}
