//! The "calls" that make arrays, matrices and dictionaries.

use super::defect::PickleDefect;
use super::machine::Machine;
use super::opcode::Opcode;
use super::value::{Array, Dtype, Global, Object, Shape, Stage, Value};

impl<'a> Machine<'a> {
    /// `REDUCE`: a callable and the tuple of its arguments.
    pub(super) fn reduce(&mut self, opcode: Opcode) -> Result<(), PickleDefect> {
        let arguments = self.pop(opcode)?;
        let callable = self.pop(opcode)?;
        let object = match (callable, self.items(arguments)) {
            (
                Value::Global(Global::Dtype),
                Some(&[Value::Bytes(code), Value::Int(0), Value::Int(1)]),
            ) => Object::Dtype(dtype(code)?, Stage::Made),
            (
                Value::Global(Global::Reconstruct),
                Some(&[Value::Global(Global::Ndarray), shape, Value::Bytes(b"b")]),
            ) if self.items(shape) == Some(&[Value::Int(0)]) => Object::Array(None),
            (Value::Global(Global::DefaultDict), Some(&[Value::Global(Global::List)])) => {
                Object::Dict(Vec::new())
            }
            _ => {
                let expected = "a number type, an array or a dictionary of lists to make";
                return Err(self.unfit(opcode, expected, callable));
            }
        };
        self.push_object(object)
    }

    /// `NEWOBJ`: a class and the tuple of its arguments.
    pub(super) fn new_object(&mut self, opcode: Opcode) -> Result<(), PickleDefect> {
        let arguments = self.pop(opcode)?;
        let class = self.pop(opcode)?;
        if class != Value::Global(Global::CsrMatrix) || self.items(arguments) != Some(&[]) {
            return Err(self.unfit(opcode, "a sparse matrix to make", class));
        }
        self.push_object(Object::Csr(None))
    }

    /// `BUILD`: an object and its state, to be given once.
    pub(super) fn build(&mut self, opcode: Opcode) -> Result<(), PickleDefect> {
        let state = self.pop(opcode)?;
        let target = self.top(opcode)?;
        let Some(id) = target.object() else {
            return Err(self.unfit(opcode, "an object", target));
        };
        let built = match self.objects[id.index()] {
            Object::Dtype(dtype, Stage::Made) => {
                self.check_byte_order(opcode, state)?;
                Object::Dtype(dtype, Stage::Built)
            }
            Object::Array(None) => Object::Array(Some(Box::new(self.array(opcode, state)?))),
            Object::Csr(None) if self.is_dictionary(state) => Object::Csr(state.object()),
            _ => return Err(self.unfit(opcode, "an object and its first state", target)),
        };
        self.objects[id.index()] = built;
        Ok(())
    }

    fn check_byte_order(&self, opcode: Opcode, state: Value<'a>) -> Result<(), PickleDefect> {
        let Some(
            &[
                Value::Int(3),
                Value::Bytes(order),
                Value::None,
                Value::None,
                Value::None,
                Value::Int(-1),
                Value::Int(-1),
                Value::Int(0),
            ],
        ) = self.items(state)
        else {
            return Err(self.unfit(opcode, "the state of a plain number type", state));
        };
        if order == b"<" {
            return Ok(());
        }
        Err(wrong_dtype(order))
    }

    fn array(&self, opcode: Opcode, state: Value<'a>) -> Result<Array<'a>, PickleDefect> {
        let contents = match self.items(state) {
            Some(
                &[
                    Value::Int(1),
                    shape,
                    dtype,
                    Value::Bool(false),
                    Value::Bytes(raw),
                ],
            ) => Some((self.shape(shape), self.built_dtype(dtype), raw)),
            _ => None,
        };
        let Some((Some(shape), Some(dtype), raw)) = contents else {
            return Err(self.unfit(opcode, "the state of an array in row-major order", state));
        };
        let (rows, columns) = shape.dimensions();
        let bytes = rows.checked_mul(columns).and_then(|n| n.checked_mul(4));
        if bytes != Some(raw.len()) {
            let found = raw.len();
            return Err(PickleDefect::ArrayLength {
                rows,
                columns,
                found,
            });
        }
        Ok(Array { shape, dtype, raw })
    }

    fn shape(&self, value: Value<'a>) -> Option<Shape> {
        match *self.items(value)? {
            [Value::Int(length)] => Some(Shape::Vector(length.try_into().ok()?)),
            [Value::Int(rows), Value::Int(columns)] => Some(Shape::Matrix(
                rows.try_into().ok()?,
                columns.try_into().ok()?,
            )),
            _ => None,
        }
    }

    fn built_dtype(&self, value: Value<'a>) -> Option<Dtype> {
        match self.object(value)? {
            Object::Dtype(dtype, Stage::Built) => Some(*dtype),
            _ => None,
        }
    }

    fn is_dictionary(&self, value: Value<'a>) -> bool {
        matches!(self.object(value), Some(Object::Dict(_)))
    }

    /// The items of a tuple.
    fn items(&self, value: Value<'a>) -> Option<&[Value<'a>]> {
        match self.object(value)? {
            Object::Tuple(items) => Some(items),
            _ => None,
        }
    }

    fn object(&self, value: Value<'a>) -> Option<&Object<'a>> {
        value.object().map(|id| &self.objects[id.index()])
    }

    fn unfit(&self, opcode: Opcode, expected: &'static str, found: Value<'a>) -> PickleDefect {
        PickleDefect::Operand {
            opcode: opcode as u8,
            expected,
            found: self.object(found).map_or(found.kind(), Object::kind),
        }
    }
}

fn dtype(code: &[u8]) -> Result<Dtype, PickleDefect> {
    Dtype::of(code).ok_or_else(|| wrong_dtype(code))
}

fn wrong_dtype(found: &[u8]) -> PickleDefect {
    const LENGTH: usize = 60;
    PickleDefect::Dtype {
        found: found[..found.len().min(LENGTH)].escape_ascii().to_string(),
    }
}
