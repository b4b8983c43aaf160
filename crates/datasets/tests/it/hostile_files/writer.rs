//! Writes graph files, good and bad.

use bochner_datasets::nodes::{parse_features, parse_graph, parse_labels, parse_test_index};
use bochner_datasets::{Error, GraphDefect, PickleDefect};

/// Writes protocol 2 pickles from the opcodes of the graph files, without using the memo.
#[derive(Clone)]
pub(crate) struct Writer(pub(crate) Vec<u8>);

impl Writer {
    pub(crate) fn new() -> Self {
        Self(vec![0x80, 2])
    }

    pub(crate) fn raw(mut self, bytes: &[u8]) -> Self {
        self.0.extend(bytes);
        self
    }

    pub(crate) fn global(self, module: &str, name: &str) -> Self {
        self.raw(format!("c{module}\n{name}\n").as_bytes())
    }

    pub(crate) fn int(self, value: i32) -> Self {
        match value {
            0..=0xff => self.raw(&[0x4b, value as u8]),
            0x100..=0xffff => self.raw(&[0x4d]).raw(&(value as u16).to_le_bytes()),
            _ => self.raw(&[0x4a]).raw(&value.to_le_bytes()),
        }
    }

    pub(crate) fn string(self, bytes: &[u8]) -> Self {
        match u8::try_from(bytes.len()) {
            Ok(length) => self.raw(&[0x55, length]),
            Err(_) => self.raw(&[0x54]).raw(&(bytes.len() as i32).to_le_bytes()),
        }
        .raw(bytes)
    }

    pub(crate) fn shape(self, shape: &[i32]) -> Self {
        let tuple = [0x29, 0x85, 0x86, 0x87][shape.len()];
        shape
            .iter()
            .fold(self, |writer, &n| writer.int(n))
            .raw(&[tuple])
    }

    pub(crate) fn dtype(self, code: &str, order: &str) -> Self {
        self.global("numpy", "dtype")
            .string(code.as_bytes())
            .raw(b"K\0K\x01\x87R(K\x03")
            .string(order.as_bytes())
            .raw(b"NNN")
            .int(-1)
            .int(-1)
            .raw(b"K\0tb")
    }

    pub(crate) fn array(self, code: &str, shape: &[i32], bytes: &[u8]) -> Self {
        self.global("numpy.core.multiarray", "_reconstruct")
            .global("numpy", "ndarray")
            .raw(b"K\0\x85U\x01b\x87R(K\x01")
            .shape(shape)
            .dtype(code, "<")
            .raw(&[0x89])
            .string(bytes)
            .raw(b"tb")
    }

    pub(crate) fn ints(self, numbers: &[i32]) -> Self {
        let bytes: Vec<u8> = numbers.iter().flat_map(|n| n.to_le_bytes()).collect();
        self.array("i4", &[numbers.len() as i32], &bytes)
    }

    pub(crate) fn floats(self, numbers: &[f32]) -> Self {
        let bytes: Vec<u8> = numbers.iter().flat_map(|n| n.to_le_bytes()).collect();
        self.array("f4", &[numbers.len() as i32], &bytes)
    }

    pub(crate) fn stop(self) -> Vec<u8> {
        self.raw(b".").0
    }
}

/// The parts of a features file.
#[derive(Clone)]
pub(crate) struct Features {
    pub(crate) shape: Vec<i32>,
    pub(crate) indptr: Vec<i32>,
    pub(crate) indices: Vec<i32>,
    pub(crate) data: Vec<f32>,
}

impl Features {
    pub(crate) fn valid() -> Self {
        Self {
            shape: vec![3, 5],
            indptr: vec![0, 2, 2, 3],
            indices: vec![1, 4, 0],
            data: vec![1.0, 0.5, 2.0],
        }
    }

    pub(crate) fn start() -> Writer {
        let class = Writer::new().global("scipy.sparse.csr", "csr_matrix");
        class.raw(b")\x81}(").string(b"format").string(b"csr")
    }

    pub(crate) fn write(&self) -> Vec<u8> {
        Self::start()
            .string(b"_shape")
            .shape(&self.shape)
            .string(b"indptr")
            .ints(&self.indptr)
            .string(b"_cs_matrix__has_sorted_indices")
            .raw(&[0x88])
            .string(b"indices")
            .ints(&self.indices)
            .string(b"maxprint")
            .int(50)
            .string(b"data")
            .floats(&self.data)
            .raw(b"ub")
            .stop()
    }

    pub(crate) fn defect(spoil: impl FnOnce(&mut Self)) -> GraphDefect {
        let mut features = Self::valid();
        spoil(&mut features);
        graph_defect(parse_features("f", &features.write()))
    }
}

pub(crate) fn labels(shape: &[i32], numbers: &[i32]) -> Vec<u8> {
    let bytes: Vec<u8> = numbers.iter().flat_map(|n| n.to_le_bytes()).collect();
    Writer::new().array("i4", shape, &bytes).stop()
}

pub(crate) fn start_of_graph() -> Writer {
    let callable = Writer::new().global("collections", "defaultdict");
    callable.global("__builtin__", "list").raw(b"\x85R(")
}

pub(crate) fn graph(lists: &[(i32, &[i32])]) -> Vec<u8> {
    let mut writer = start_of_graph();
    for &(node, neighbours) in lists {
        writer = writer.int(node).raw(b"](");
        writer = neighbours
            .iter()
            .fold(writer, |writer, &n| writer.int(n))
            .raw(b"e");
    }
    writer.raw(b"u").stop()
}

pub(crate) fn valid_graph() -> Vec<u8> {
    graph(&[(2, &[0, 2]), (0, &[2, 2]), (1, &[])])
}

pub(crate) fn graph_defect<T: std::fmt::Debug>(outcome: Result<T, Error>) -> GraphDefect {
    match outcome.unwrap_err() {
        Error::Graph { file, defect } if file == "f" => defect,
        other => panic!("{other}"),
    }
}

pub(crate) fn pickle_defect<T: std::fmt::Debug>(
    outcome: Result<T, Error>,
) -> (usize, PickleDefect) {
    match outcome.unwrap_err() {
        Error::Pickle {
            file,
            offset,
            defect,
        } if file == "f" => (offset, defect),
        other => panic!("{other}"),
    }
}

/// What each reader makes of the bytes.
pub(crate) fn outcomes(bytes: &[u8]) -> [Result<(), Error>; 4] {
    [
        parse_features("f", bytes).map(drop),
        parse_labels("f", bytes).map(drop),
        parse_graph("f", bytes).map(drop),
        parse_test_index("f", bytes).map(drop),
    ]
}

pub(crate) fn valid_files() -> [Vec<u8>; 3] {
    let one_hot = labels(&[2, 3], &[0, 1, 0, 0, 0, 1]);
    [Features::valid().write(), one_hot, valid_graph()]
}
