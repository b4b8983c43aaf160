//! The pickles of the Planetoid graphs, and no others.
//!
//! A pickle is a program for a stack machine, which may import and call anything. This reader knows the
//! 28 opcodes and six names that occur in the Planetoid files and refuses every other with its position;
//! a "call" makes one of four plain values, and nothing is executed.
//!
//! Only bytes that match their pin get here, so the reader does not defend the machine's memory against
//! files that were built to exhaust it. The crates that read pickles make neither NumPy arrays nor SciPy
//! matrices of them.

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

/// What an opcode needs, and what there is instead.
type Defect = (&'static str, String);

/// The value that a pickle describes.
///
/// # Errors
/// [`Error::Pickle`].
pub(crate) fn parse<'a>(file: &str, bytes: &'a [u8]) -> Result<Value<'a>, Error> {
    let mut machine = Machine {
        rest: bytes,
        stack: Vec::new(),
        marks: Vec::new(),
        memo: HashMap::new(),
    };
    loop {
        let offset = bytes.len() - machine.rest.len();
        let step = machine.step().map_err(|(expected, found)| Error::Pickle {
            file: file.to_owned(),
            offset,
            expected,
            found,
        })?;
        if let Some(value) = step {
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
    /// Runs one opcode; the last one gives the value of the pickle.
    fn step(&mut self) -> Result<Option<Value<'a>>, Defect> {
        let value = match self.byte()? {
            0x80 => return self.protocol(),
            b'c' => self.global()?,
            b'q' => {
                let number = self.byte()?;
                return self.store(number.into());
            }
            b'r' => {
                let number = u32::from_le_bytes(self.array()?);
                return self.store(number);
            }
            b'h' => self.fetch()?,
            b'K' => Value::Int(self.byte()?.into()),
            b'M' => Value::Int(u16::from_le_bytes(self.array()?).into()),
            b'J' => Value::Int(i32::from_le_bytes(self.array()?)),
            b'U' => {
                let length = self.byte()?;
                Value::Bytes(self.take(length.into())?)
            }
            b'T' => {
                let length = i32::from_le_bytes(self.array()?);
                // A length below zero is more than any file holds.
                Value::Bytes(self.take(length.try_into().unwrap_or(usize::MAX))?)
            }
            b'(' => {
                self.marks.push(self.stack.len());
                return Ok(None);
            }
            b')' => Value::Tuple(Vec::new()),
            length @ 0x85..=0x87 => {
                let mut items = (0x85..=length)
                    .map(|_| self.pop())
                    .collect::<Result<Vec<_>, _>>()?;
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
            b'.' => return self.stop().map(Some),
            opcode => {
                return Err((
                    "an opcode of the Planetoid files",
                    format!("0x{opcode:02x}"),
                ));
            }
        };
        self.stack.push(value);
        Ok(None)
    }

    fn take(&mut self, count: usize) -> Result<&'a [u8], Defect> {
        let Some((taken, rest)) = self.rest.split_at_checked(count) else {
            let left = self.rest.len();
            let found = format!("only {left} before the end of the file");
            return Err(("more bytes", found));
        };
        self.rest = rest;
        Ok(taken)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], Defect> {
        Ok(self.take(N)?.try_into().expect("N bytes were taken"))
    }

    fn byte(&mut self) -> Result<u8, Defect> {
        self.array().map(|[byte]| byte)
    }

    /// The bytes before the next line feed, which is passed over.
    fn line(&mut self) -> Result<&'a [u8], Defect> {
        let end = self.rest.iter().position(|&byte| byte == b'\n');
        let line = self.take(end.unwrap_or(self.rest.len()))?;
        self.take(1)?;
        Ok(line)
    }

    fn protocol(&mut self) -> Result<Option<Value<'a>>, Defect> {
        match self.byte()? {
            2 => Ok(None),
            other => Err(("a pickle of protocol 2", format!("protocol {other}"))),
        }
    }

    fn global(&mut self) -> Result<Value<'a>, Defect> {
        let name = match (self.line()?, self.line()?) {
            (b"numpy.core.multiarray", b"_reconstruct") => "_reconstruct",
            (b"numpy", b"ndarray") => "ndarray",
            (b"numpy", b"dtype") => "dtype",
            (b"scipy.sparse.csr", b"csr_matrix") => "csr_matrix",
            (b"collections", b"defaultdict") => "defaultdict",
            (b"__builtin__", b"list") => "list",
            (module, name) => {
                let found = format!("`{} {}`", shown(module), shown(name));
                return Err(("a name of the Planetoid files", found));
            }
        };
        Ok(Value::Global(name))
    }

    /// Stores the value on top, if it is one that the files fetch again. A list or a dictionary grows
    /// after it was stored, so that a copy of it would be wrong.
    fn store(&mut self, number: u32) -> Result<Option<Value<'a>>, Defect> {
        let value = self.stack.last().ok_or_else(underflow)?;
        let constant = matches!(
            value,
            Value::Global(_) | Value::Dtype(_) | Value::Int(_) | Value::Bytes(_)
        );
        if let (Ok(number), true) = (u8::try_from(number), constant) {
            self.memo.insert(number, value.clone());
        }
        Ok(None)
    }

    fn fetch(&mut self) -> Result<Value<'a>, Defect> {
        let number = self.byte()?;
        let stored = self.memo.get(&number).cloned();
        stored.ok_or_else(|| {
            (
                "a number with a constant stored under it",
                number.to_string(),
            )
        })
    }

    /// The value on top, unless a mark lies above it.
    fn pop(&mut self) -> Result<Value<'a>, Defect> {
        let floor = self.marks.last().copied().unwrap_or(0);
        let above = if self.stack.len() > floor {
            self.stack.pop()
        } else {
            None
        };
        above.ok_or_else(underflow)
    }

    fn pop_to_mark(&mut self) -> Result<Vec<Value<'a>>, Defect> {
        let mark = self.marks.pop().ok_or_else(underflow)?;
        Ok(self.stack.split_off(mark.min(self.stack.len())))
    }

    fn append(&mut self, items: Vec<Value<'a>>) -> Result<Option<Value<'a>>, Defect> {
        let Some(Value::List(list)) = self.stack.last_mut() else {
            return Err(unfit("a list to append to", self.stack.last()));
        };
        for item in items {
            let Value::Int(number) = item else {
                return Err(unfit("an integer to append", Some(&item)));
            };
            list.push(number);
        }
        Ok(None)
    }

    fn set_items(&mut self) -> Result<Option<Value<'a>>, Defect> {
        let items = self.pop_to_mark()?;
        let Some(Value::Dict(dictionary)) = self.stack.last_mut() else {
            return Err(unfit("a dictionary to fill", self.stack.last()));
        };
        let mut items = items.into_iter();
        while let Some(key) = items.next() {
            dictionary.push((key, items.next().ok_or_else(underflow)?));
        }
        Ok(None)
    }

    /// `REDUCE`: a callable and the tuple of its arguments.
    fn reduce(&mut self) -> Result<Value<'a>, Defect> {
        let (arguments, callable) = (self.pop()?, self.pop()?);
        match (&callable, items(&arguments)) {
            (Value::Global("dtype"), [Value::Bytes(b"i4"), Value::Int(0), Value::Int(1)]) => {
                Ok(Value::Dtype("i4"))
            }
            (Value::Global("dtype"), [Value::Bytes(b"f4"), Value::Int(0), Value::Int(1)]) => {
                Ok(Value::Dtype("f4"))
            }
            (Value::Global("_reconstruct"), [Value::Global("ndarray"), ..]) => {
                Ok(Value::Array(Array::default()))
            }
            (Value::Global("defaultdict"), [Value::Global("list")]) => Ok(Value::Dict(Vec::new())),
            _ => Err(unfit(
                "i4, f4, an array or a dictionary of lists to make",
                Some(&callable),
            )),
        }
    }

    /// `NEWOBJ`: a class and the tuple of its arguments.
    fn new_object(&mut self) -> Result<Value<'a>, Defect> {
        let (arguments, class) = (self.pop()?, self.pop()?);
        if class == Value::Global("csr_matrix") && arguments == Value::Tuple(Vec::new()) {
            return Ok(Value::Csr(Vec::new()));
        }
        Err(unfit("a sparse matrix to make", Some(&class)))
    }

    /// `BUILD`: an object and its state.
    fn build(&mut self) -> Result<Value<'a>, Defect> {
        let (state, target) = (self.pop()?, self.pop()?);
        match (target, state) {
            (Value::Dtype(name), Value::Tuple(state)) => match &state[..] {
                [Value::Int(3), Value::Bytes(b"<"), ..] => Ok(Value::Dtype(name)),
                _ => Err(("little-endian numbers", "another byte order".to_owned())),
            },
            (Value::Array(_), Value::Tuple(state)) => array(&state).map(Value::Array),
            (Value::Csr(_), Value::Dict(parts)) => Ok(Value::Csr(parts)),
            (target, _) => Err(unfit("an object and its state", Some(&target))),
        }
    }

    fn stop(&mut self) -> Result<Value<'a>, Defect> {
        let value = self.pop()?;
        let left = (self.stack.len() + self.marks.len(), self.rest.len());
        if left == (0, 0) {
            return Ok(value);
        }
        Err((
            "one value and the end of the file",
            format!("{} values and {} bytes more", left.0, left.1),
        ))
    }
}

/// An array in row-major order from its state.
fn array<'a>(state: &[Value<'a>]) -> Result<Array<'a>, Defect> {
    let [
        Value::Int(1),
        Value::Tuple(shape),
        Value::Dtype(dtype),
        Value::Bool(false),
        Value::Bytes(raw),
    ] = state
    else {
        return Err((
            "the state of an array in row-major order",
            "something else".to_owned(),
        ));
    };
    let lengths = shape.iter().map(|length| match length {
        Value::Int(length) => usize::try_from(*length).ok(),
        _ => None,
    });
    let shape: Option<Vec<usize>> = lengths.collect();
    let shape = shape.ok_or_else(|| ("the lengths of an array", "something else".to_owned()))?;
    let bytes = shape
        .iter()
        .try_fold(4_usize, |bytes, &length| bytes.checked_mul(length));
    if bytes != Some(raw.len()) {
        return Err((
            "four bytes a number",
            format!("{} bytes for the shape {shape:?}", raw.len()),
        ));
    }
    Ok(Array { shape, dtype, raw })
}

/// The items of a tuple; none of anything else.
fn items<'v, 'a>(value: &'v Value<'a>) -> &'v [Value<'a>] {
    match value {
        Value::Tuple(items) => items,
        _ => &[],
    }
}

/// The beginning of a name, without control characters.
fn shown(name: &[u8]) -> impl std::fmt::Display {
    name[..name.len().min(60)].escape_ascii()
}

fn underflow() -> Defect {
    unfit("more values above the last mark", None)
}

fn unfit(expected: &'static str, found: Option<&Value>) -> Defect {
    (expected, found.map_or("nothing", Value::kind).to_owned())
}

impl Value<'_> {
    /// What the value is, for messages.
    pub(crate) fn kind(&self) -> &'static str {
        match self {
            Self::None => "None",
            Self::Bool(_) => "a truth value",
            Self::Int(_) => "an integer",
            Self::Bytes(_) => "a byte string",
            Self::Global(name) => name,
            Self::Tuple(_) => "a tuple",
            Self::List(_) => "a list",
            Self::Dict(_) => "a dictionary",
            Self::Dtype(_) => "a number type",
            Self::Array(_) => "an array",
            Self::Csr(_) => "a sparse matrix",
        }
    }
}

#[cfg(test)]
pub(crate) mod tests;
