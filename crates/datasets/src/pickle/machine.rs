//! The stack machine.

use super::cursor::Cursor;
use super::defect::PickleDefect;
use super::opcode::Opcode;
use super::value::{Global, Object, ObjectId, Value};

/// More values than this are refused; the largest of the graphs has about 130,000.
pub(super) const LIMIT: usize = 1 << 21;

/// Numbers under which a value can be fetched again: those that fit into one byte. `LONG_BINPUT`
/// stores under larger ones too, but none of the opcodes accepted fetches from there.
const STORED: usize = 256;

/// The result of a pickle, and its objects.
pub(super) type Outcome<'a> = (Value<'a>, Vec<Object<'a>>);

/// Runs the pickle; an error comes with the position of the opcode.
pub(super) fn run(bytes: &[u8]) -> Result<Outcome<'_>, (usize, PickleDefect)> {
    let mut cursor = Cursor::new(bytes);
    header(&mut cursor).map_err(|defect| (0, defect))?;
    let mut machine = Machine::new();
    loop {
        let offset = cursor.offset();
        let place = |defect| (offset, defect);
        let byte = cursor.byte().map_err(place)?;
        match Opcode::of(byte) {
            Some(Opcode::Stop) => return machine.finish(&cursor).map_err(place),
            Some(opcode) => machine.step(opcode, &mut cursor).map_err(place)?,
            None => return Err(place(PickleDefect::ForbiddenOpcode { opcode: byte })),
        }
    }
}

fn header(cursor: &mut Cursor) -> Result<(), PickleDefect> {
    match cursor.array()? {
        [0x80, 2] => Ok(()),
        _ => Err(PickleDefect::Protocol),
    }
}

pub(super) struct Machine<'a> {
    stack: Vec<Value<'a>>,
    /// Heights of the stack at the marks.
    marks: Vec<usize>,
    stored: [Option<Value<'a>>; STORED],
    pub(super) objects: Vec<Object<'a>>,
    /// Values and marks pushed so far.
    pushed: usize,
}

impl<'a> Machine<'a> {
    fn new() -> Self {
        Self {
            stack: Vec::new(),
            marks: Vec::new(),
            stored: [None; STORED],
            objects: Vec::new(),
            pushed: 0,
        }
    }

    fn step(&mut self, opcode: Opcode, cursor: &mut Cursor<'a>) -> Result<(), PickleDefect> {
        match opcode {
            Opcode::Proto | Opcode::Stop => Err(PickleDefect::ForbiddenOpcode {
                opcode: opcode as u8,
            }),
            Opcode::Global => self.push(Value::Global(global(cursor)?)),
            Opcode::BinPut => self.store(opcode, u32::from(cursor.byte()?)),
            Opcode::LongBinPut => self.store(opcode, u32::from_le_bytes(cursor.array()?)),
            Opcode::BinGet => self.fetch(cursor.byte()?),
            Opcode::BinInt1 => self.push(Value::Int(cursor.byte()?.into())),
            Opcode::BinInt2 => self.push(Value::Int(u16::from_le_bytes(cursor.array()?).into())),
            Opcode::BinInt => self.push(Value::Int(i32::from_le_bytes(cursor.array()?))),
            Opcode::ShortBinString => {
                let length = cursor.byte()?;
                self.push(Value::Bytes(cursor.take(length.into())?))
            }
            Opcode::BinString => self.push(Value::Bytes(long_string(cursor)?)),
            Opcode::Mark => self.mark(),
            Opcode::EmptyTuple => self.tuple(opcode, 0),
            Opcode::Tuple1 => self.tuple(opcode, 1),
            Opcode::Tuple2 => self.tuple(opcode, 2),
            Opcode::Tuple3 => self.tuple(opcode, 3),
            Opcode::Tuple => {
                let items = self.pop_to_mark(opcode)?;
                self.push_object(Object::Tuple(items))
            }
            Opcode::EmptyDict => self.push_object(Object::Dict(Vec::new())),
            Opcode::EmptyList => self.push_object(Object::List(Vec::new())),
            Opcode::Append => {
                let item = self.pop(opcode)?;
                self.append(opcode, &[item])
            }
            Opcode::Appends => {
                let items = self.pop_to_mark(opcode)?;
                self.append(opcode, &items)
            }
            Opcode::SetItems => self.set_items(opcode),
            Opcode::None => self.push(Value::None),
            Opcode::NewTrue => self.push(Value::Bool(true)),
            Opcode::NewFalse => self.push(Value::Bool(false)),
            Opcode::Reduce => self.reduce(opcode),
            Opcode::NewObj => self.new_object(opcode),
            Opcode::Build => self.build(opcode),
        }
    }

    fn finish(mut self, cursor: &Cursor) -> Result<Outcome<'a>, PickleDefect> {
        let root = self.pop(Opcode::Stop)?;
        let count = self.stack.len() + self.marks.len();
        if count > 0 {
            return Err(PickleDefect::LeftOver { count });
        }
        match cursor.rest().len() {
            0 => Ok((root, self.objects)),
            count => Err(PickleDefect::TrailingBytes { count }),
        }
    }

    fn count(&mut self) -> Result<(), PickleDefect> {
        if self.pushed == LIMIT {
            return Err(PickleDefect::TooMany { limit: LIMIT });
        }
        self.pushed += 1;
        Ok(())
    }

    fn push(&mut self, value: Value<'a>) -> Result<(), PickleDefect> {
        self.count()?;
        self.stack.push(value);
        Ok(())
    }

    pub(super) fn push_object(&mut self, object: Object<'a>) -> Result<(), PickleDefect> {
        self.push(Value::Object(ObjectId::new(self.objects.len())))?;
        self.objects.push(object);
        Ok(())
    }

    fn mark(&mut self) -> Result<(), PickleDefect> {
        self.count()?;
        self.marks.push(self.stack.len());
        Ok(())
    }

    /// The value on top, unless a mark lies above it.
    pub(super) fn top(&self, opcode: Opcode) -> Result<Value<'a>, PickleDefect> {
        let floor = self.marks.last().copied().unwrap_or(0);
        let above = self.stack[floor..].last();
        above.copied().ok_or(underflow(opcode))
    }

    pub(super) fn pop(&mut self, opcode: Opcode) -> Result<Value<'a>, PickleDefect> {
        let value = self.top(opcode)?;
        self.stack.pop();
        Ok(value)
    }

    fn pop_to_mark(&mut self, opcode: Opcode) -> Result<Vec<Value<'a>>, PickleDefect> {
        let mark = self.marks.pop().ok_or(underflow(opcode))?;
        Ok(self.stack.split_off(mark))
    }

    fn tuple(&mut self, opcode: Opcode, length: usize) -> Result<(), PickleDefect> {
        let mut items: Vec<_> = (0..length)
            .map(|_| self.pop(opcode))
            .collect::<Result<_, _>>()?;
        items.reverse();
        self.push_object(Object::Tuple(items))
    }

    fn store(&mut self, opcode: Opcode, index: u32) -> Result<(), PickleDefect> {
        let value = self.top(opcode)?;
        if let Some(place) = self.stored.get_mut(index as usize) {
            *place = Some(value);
        }
        Ok(())
    }

    fn fetch(&mut self, index: u8) -> Result<(), PickleDefect> {
        let stored = self.stored[usize::from(index)];
        self.push(stored.ok_or(PickleDefect::NotStored { index })?)
    }

    /// The object on top.
    fn target(&mut self, opcode: Opcode) -> Result<Option<&mut Object<'a>>, PickleDefect> {
        let id = self.top(opcode)?.object();
        Ok(id.map(|id| &mut self.objects[id.index()]))
    }

    fn append(&mut self, opcode: Opcode, items: &[Value<'a>]) -> Result<(), PickleDefect> {
        match self.target(opcode)? {
            Some(Object::List(list)) => {
                list.extend_from_slice(items);
                Ok(())
            }
            other => Err(operand(opcode, "a list", other.as_deref())),
        }
    }

    fn set_items(&mut self, opcode: Opcode) -> Result<(), PickleDefect> {
        let items = self.pop_to_mark(opcode)?;
        let (pairs, rest) = items.as_chunks::<2>();
        match self.target(opcode)? {
            Some(Object::Dict(dictionary)) if rest.is_empty() => {
                dictionary.extend(pairs.iter().map(|&[key, value]| (key, value)));
                Ok(())
            }
            other => Err(operand(
                opcode,
                "a dictionary and pairs for it",
                other.as_deref(),
            )),
        }
    }
}

fn global(cursor: &mut Cursor) -> Result<Global, PickleDefect> {
    let (module, name) = (cursor.line()?, cursor.line()?);
    Global::of(module, name).ok_or_else(|| PickleDefect::ForbiddenGlobal {
        name: format!("{} {}", shown(module), shown(name)),
    })
}

/// The beginning of a name, without control characters.
fn shown(name: &[u8]) -> String {
    const LENGTH: usize = 60;
    name[..name.len().min(LENGTH)].escape_ascii().to_string()
}

fn long_string<'a>(cursor: &mut Cursor<'a>) -> Result<&'a [u8], PickleDefect> {
    let length = i32::from_le_bytes(cursor.array()?);
    let count = usize::try_from(length).map_err(|_| PickleDefect::NegativeLength { length })?;
    cursor.take(count)
}

fn underflow(opcode: Opcode) -> PickleDefect {
    PickleDefect::Underflow {
        opcode: opcode as u8,
    }
}

fn operand(opcode: Opcode, expected: &'static str, found: Option<&Object>) -> PickleDefect {
    PickleDefect::Operand {
        opcode: opcode as u8,
        expected,
        found: found.map_or("a plain value", Object::kind),
    }
}
