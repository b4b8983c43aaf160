//! The pickles of the Planetoid graphs, and no others.
//!
//! A pickle is a program for a stack machine, which may import and call anything. This reader knows the
//! 28 opcodes and six names that occur in the Planetoid files and refuses every other with its position;
//! a "call" makes one of four plain values, and nothing is executed.
//!
//! Only bytes that match their pin get here. So the reader neither explains what is wrong with a file nor
//! defends the machine's memory against files that were built to exhaust it. The crates that read pickles make
//! neither NumPy arrays nor SciPy matrices of them.

use crate::Error;
use std::collections::HashMap;

/// A value that a pickle describes.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Value<'a> {
    None,
    Bool(bool),
    Int(i32),
    Bytes(&'a [u8]),
    Global(&'static str),
    Tuple(Vec<Self>),
    /// A list; the files have integers only in lists.
    List(Vec<i32>),
    Dict(Vec<(Self, Self)>),
    /// The type of an array's little-endian numbers of four bytes, `i4` or `f4`.
    Dtype(&'static str),
    Array(Array<'a>),
    /// A sparse matrix, by the dictionary of its parts.
    Csr(Vec<(Self, Self)>),
}

/// Numbers in row-major order, as many as the shape says.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Array<'a> {
    pub(crate) shape: Vec<usize>,
    pub(crate) dtype: &'static str,
    pub(crate) raw: &'a [u8],
}

/// The value that a pickle describes.
///
/// # Errors
/// [`Error::Pickle`] with the position of the first opcode that is refused.
pub(crate) fn parse<'a>(file: &str, bytes: &'a [u8]) -> Result<Value<'a>, Error> {
    let mut machine = Machine {
        rest: bytes,
        stack: Vec::new(),
        marks: Vec::new(),
        memo: HashMap::new(),
    };
    loop {
        let offset = bytes.len() - machine.rest.len();
        let file = || file.to_owned();
        let step = machine.step();
        if let Some(value) = step.ok_or_else(|| Error::Pickle {
            file: file(),
            offset,
        })? {
            return Ok(value);
        }
    }
}

struct Machine<'a> {
    rest: &'a [u8],
    stack: Vec<Value<'a>>,
    /// The heights of the stack at its marks.
    marks: Vec<usize>,
    /// Values to be fetched again by a number of one byte: `LONG_BINPUT` stores under larger numbers
    /// too, but no accepted opcode fetches from there.
    memo: HashMap<u8, Value<'a>>,
}

impl<'a> Machine<'a> {
    /// Runs one opcode, the last of which gives the value of the pickle; `None` if the opcode is refused.
    fn step(&mut self) -> Option<Option<Value<'a>>> {
        let value = match self.byte()? {
            0x80 => return (self.byte()? == 2).then_some(None),
            b'c' => Value::Global(global(self.line()?, self.line()?)?),
            b'q' => {
                let number = self.byte()?;
                return self.store(number.into());
            }
            b'r' => {
                let number = u32::from_le_bytes(self.array()?);
                return self.store(number);
            }
            b'h' => {
                let number = self.byte()?;
                self.memo.get(&number)?.clone()
            }
            b'K' => Value::Int(self.byte()?.into()),
            b'M' => Value::Int(u16::from_le_bytes(self.array()?).into()),
            b'J' => Value::Int(i32::from_le_bytes(self.array()?)),
            b'U' => {
                let length = self.byte()?;
                Value::Bytes(self.take(length.into())?)
            }
            b'T' => {
                let length = i32::from_le_bytes(self.array()?);
                Value::Bytes(self.take(length.try_into().ok()?)?)
            }
            b'(' => {
                self.marks.push(self.stack.len());
                return Some(None);
            }
            b')' => Value::Tuple(Vec::new()),
            length @ 0x85..=0x87 => {
                let items = (0x85..=length).map(|_| self.pop());
                let mut items = items.collect::<Option<Vec<_>>>()?;
                items.reverse();
                Value::Tuple(items)
            }
            b't' => Value::Tuple(self.pop_to_mark()?),
            b'}' => Value::Dict(Vec::new()),
            b']' => Value::List(Vec::new()),
            b'a' => {
                let item = self.pop()?;
                return self.append(vec![item]);
            }
            b'e' => {
                let items = self.pop_to_mark()?;
                return self.append(items);
            }
            b'u' => return self.set_items(),
            b'N' => Value::None,
            0x88 => Value::Bool(true),
            0x89 => Value::Bool(false),
            b'R' => self.reduce()?,
            0x81 => self.new_object()?,
            b'b' => self.build()?,
            b'.' => {
                let value = self.pop()?;
                let left = self.stack.len() + self.marks.len() + self.rest.len();
                return (left == 0).then_some(Some(value));
            }
            _ => return None,
        };
        self.stack.push(value);
        Some(None)
    }

    fn take(&mut self, count: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.rest.split_at_checked(count)?;
        self.rest = rest;
        Some(taken)
    }

    fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        self.take(N)?.try_into().ok()
    }

    fn byte(&mut self) -> Option<u8> {
        self.array().map(|[byte]| byte)
    }

    /// The bytes before the next line feed, which is passed over.
    fn line(&mut self) -> Option<&'a [u8]> {
        let end = self.rest.iter().position(|&byte| byte == b'\n')?;
        let line = self.take(end)?;
        self.take(1)?;
        Some(line)
    }

    /// Stores the value on top, if it is one that the files fetch again. A list or a dictionary grows
    /// after it was stored, so that a copy of it would be wrong.
    fn store(&mut self, number: u32) -> Option<Option<Value<'a>>> {
        let value = self.stack.last()?;
        let constant = matches!(
            value,
            Value::Global(_) | Value::Dtype(_) | Value::Int(_) | Value::Bytes(_)
        );
        if let (Ok(number), true) = (u8::try_from(number), constant) {
            self.memo.insert(number, value.clone());
        }
        Some(None)
    }

    /// The value on top, unless a mark lies above it.
    fn pop(&mut self) -> Option<Value<'a>> {
        let floor = self.marks.last().copied().unwrap_or(0);
        (self.stack.len() > floor).then(|| self.stack.pop())?
    }

    fn pop_to_mark(&mut self) -> Option<Vec<Value<'a>>> {
        let mark = self.marks.pop()?;
        Some(self.stack.split_off(mark.min(self.stack.len())))
    }

    fn append(&mut self, items: Vec<Value<'a>>) -> Option<Option<Value<'a>>> {
        let Some(Value::List(list)) = self.stack.last_mut() else {
            return None;
        };
        for item in items {
            let Value::Int(number) = item else {
                return None;
            };
            list.push(number);
        }
        Some(None)
    }

    fn set_items(&mut self) -> Option<Option<Value<'a>>> {
        let mut items = self.pop_to_mark()?.into_iter();
        let Some(Value::Dict(dictionary)) = self.stack.last_mut() else {
            return None;
        };
        while let Some(key) = items.next() {
            dictionary.push((key, items.next()?));
        }
        Some(None)
    }

    /// `REDUCE`: a callable and the tuple of its arguments.
    fn reduce(&mut self) -> Option<Value<'a>> {
        let (Value::Tuple(arguments), callable) = (self.pop()?, self.pop()?) else {
            return None;
        };
        match (&callable, &arguments[..]) {
            (Value::Global("dtype"), [Value::Bytes(name), Value::Int(0), Value::Int(1)]) => {
                let known = ["i4", "f4"].into_iter();
                known
                    .filter(|known| known.as_bytes() == *name)
                    .map(Value::Dtype)
                    .next()
            }
            (Value::Global("_reconstruct"), [Value::Global("ndarray"), ..]) => {
                Some(Value::Array(Array::default()))
            }
            (Value::Global("defaultdict"), [Value::Global("list")]) => {
                Some(Value::Dict(Vec::new()))
            }
            _ => None,
        }
    }

    /// `NEWOBJ`: a class and the tuple of its arguments.
    fn new_object(&mut self) -> Option<Value<'a>> {
        let (arguments, class) = (self.pop()?, self.pop()?);
        let fits = class == Value::Global("csr_matrix") && arguments == Value::Tuple(Vec::new());
        fits.then(|| Value::Csr(Vec::new()))
    }

    /// `BUILD`: an object and its state.
    fn build(&mut self) -> Option<Value<'a>> {
        let (state, target) = (self.pop()?, self.pop()?);
        match (target, state) {
            (Value::Dtype(name), Value::Tuple(state)) => {
                let little_endian = [Value::Int(3), Value::Bytes(b"<")];
                state
                    .starts_with(&little_endian)
                    .then_some(Value::Dtype(name))
            }
            (Value::Array(_), Value::Tuple(state)) => array(&state).map(Value::Array),
            (Value::Csr(_), Value::Dict(parts)) => Some(Value::Csr(parts)),
            _ => None,
        }
    }
}

fn global(module: &[u8], name: &[u8]) -> Option<&'static str> {
    Some(match (module, name) {
        (b"numpy.core.multiarray", b"_reconstruct") => "_reconstruct",
        (b"numpy", b"ndarray") => "ndarray",
        (b"numpy", b"dtype") => "dtype",
        (b"scipy.sparse.csr", b"csr_matrix") => "csr_matrix",
        (b"collections", b"defaultdict") => "defaultdict",
        (b"__builtin__", b"list") => "list",
        _ => return None,
    })
}

/// An array in row-major order from its state.
fn array<'a>(state: &[Value<'a>]) -> Option<Array<'a>> {
    let [
        Value::Int(1),
        Value::Tuple(shape),
        Value::Dtype(dtype),
        Value::Bool(false),
        Value::Bytes(raw),
    ] = state
    else {
        return None;
    };
    let lengths = shape.iter().map(|length| match length {
        Value::Int(length) => usize::try_from(*length).ok(),
        _ => None,
    });
    let shape = lengths.collect::<Option<Vec<usize>>>()?;
    let mut lengths = shape.iter();
    let bytes = lengths.try_fold(4_usize, |bytes, &length| bytes.checked_mul(length));
    (bytes == Some(raw.len())).then_some(Array { shape, dtype, raw })
}

#[cfg(test)]
pub(crate) mod tests;
