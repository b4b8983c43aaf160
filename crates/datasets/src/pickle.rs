//! The pickles of the Planetoid graphs, and no others.
//!
//! A pickle is a program for a stack machine that may import and call anything. Of it this reader
//! knows the 28 opcodes that write integers, byte strings, tuples, lists, dictionaries, arrays of
//! `i4` and `f4`, `csr_matrix` and `defaultdict`, all of protocol 2. Every other opcode, every
//! other global name and every other use of these is an error with its position. Nothing is ever
//! executed: a "call" makes one of four plain objects here.
//!
//! Objects lie in one list and refer to each other by number, so that neither depth nor cycles
//! need recursion. Each opcode makes one value at most, the number of values is limited, and byte
//! strings are borrowed from the file; whatever lengths a file states, what it costs is bounded.

mod construct;
mod cursor;
mod defect;
mod machine;
mod opcode;
mod value;

pub use defect::PickleDefect;
pub(crate) use value::{Array, Dtype, Object, ObjectId, Shape, Value};

use crate::Error;

/// The object that a pickle describes.
#[derive(Debug)]
pub(crate) struct Pickle<'a> {
    root: Value<'a>,
    objects: Vec<Object<'a>>,
}

impl<'a> Pickle<'a> {
    /// Reads the whole file.
    ///
    /// # Errors
    /// [`Error::Pickle`].
    pub(crate) fn parse(file: &str, bytes: &'a [u8]) -> Result<Self, Error> {
        let (root, objects) = machine::run(bytes).map_err(|(offset, defect)| Error::Pickle {
            file: file.to_owned(),
            offset,
            defect,
        })?;
        Ok(Self { root, objects })
    }

    pub(crate) fn root(&self) -> Value<'a> {
        self.root
    }

    /// The object that a value refers to.
    pub(crate) fn object(&self, value: Value<'a>) -> Option<&Object<'a>> {
        value.object().map(|id| &self.objects[id.index()])
    }

    /// What a value is, for messages.
    pub(crate) fn kind(&self, value: Value<'a>) -> &'static str {
        self.object(value).map_or(value.kind(), Object::kind)
    }
}
