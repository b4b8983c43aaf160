//! What lies on the stack, and the objects it refers to.

/// A value on the stack, in a tuple, in a list or in a dictionary.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Value<'a> {
    None,
    Bool(bool),
    Int(i32),
    Bytes(&'a [u8]),
    Global(Global),
    Object(ObjectId),
}

/// The place of an object in the list of all.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct ObjectId(usize);

/// What other values can share.
#[derive(Debug)]
pub(crate) enum Object<'a> {
    Tuple(Vec<Value<'a>>),
    List(Vec<Value<'a>>),
    Dict(Vec<(Value<'a>, Value<'a>)>),
    /// A number type, and whether its byte order has been given.
    Dtype(Dtype, Stage),
    /// An array; `None` until its contents have been given.
    Array(Option<Box<Array<'a>>>),
    /// A matrix; its contents are a dictionary, once given.
    Csr(Option<ObjectId>),
}

/// Whether `BUILD` has completed an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stage {
    Made,
    Built,
}

/// The names that may be imported.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Global {
    Reconstruct,
    Ndarray,
    Dtype,
    CsrMatrix,
    DefaultDict,
    List,
}

/// A type of numbers of four bytes, little-endian.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Dtype {
    Int,
    Float,
}

/// Numbers in row-major order. There are as many as the shape says.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Array<'a> {
    pub(crate) shape: Shape,
    pub(crate) dtype: Dtype,
    pub(crate) raw: &'a [u8],
}

/// The shape of an array.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Shape {
    Vector(usize),
    Matrix(usize, usize),
}

impl<'a> Value<'a> {
    pub(crate) fn object(self) -> Option<ObjectId> {
        match self {
            Self::Object(id) => Some(id),
            _ => None,
        }
    }

    pub(crate) fn kind(self) -> &'static str {
        match self {
            Self::None => "None",
            Self::Bool(_) => "a truth value",
            Self::Int(_) => "an integer",
            Self::Bytes(_) => "a byte string",
            Self::Global(_) => "a global",
            Self::Object(_) => "an object",
        }
    }
}

impl ObjectId {
    pub(crate) fn new(index: usize) -> Self {
        Self(index)
    }

    pub(crate) fn index(self) -> usize {
        self.0
    }
}

impl Object<'_> {
    pub(crate) fn kind(&self) -> &'static str {
        match self {
            Self::Tuple(_) => "a tuple",
            Self::List(_) => "a list",
            Self::Dict(_) => "a dictionary",
            Self::Dtype(..) => "a number type",
            Self::Array(_) => "an array",
            Self::Csr(_) => "a sparse matrix",
        }
    }
}

impl Global {
    pub(crate) fn of(module: &[u8], name: &[u8]) -> Option<Self> {
        match (module, name) {
            (b"numpy.core.multiarray", b"_reconstruct") => Some(Self::Reconstruct),
            (b"numpy", b"ndarray") => Some(Self::Ndarray),
            (b"numpy", b"dtype") => Some(Self::Dtype),
            (b"scipy.sparse.csr", b"csr_matrix") => Some(Self::CsrMatrix),
            (b"collections", b"defaultdict") => Some(Self::DefaultDict),
            (b"__builtin__", b"list") => Some(Self::List),
            _ => None,
        }
    }
}

impl Dtype {
    pub(crate) fn of(code: &[u8]) -> Option<Self> {
        match code {
            b"i4" => Some(Self::Int),
            b"f4" => Some(Self::Float),
            _ => None,
        }
    }

    pub(crate) const fn code(self) -> &'static str {
        match self {
            Self::Int => "i4",
            Self::Float => "f4",
        }
    }
}

impl Shape {
    /// The two dimensions; a vector is one column.
    pub(crate) const fn dimensions(self) -> (usize, usize) {
        match self {
            Self::Vector(length) => (length, 1),
            Self::Matrix(rows, columns) => (rows, columns),
        }
    }
}
