//! Why a pickle is refused.

/// Why a pickle is refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PickleDefect {
    /// An opcode that the files of the Planetoid graphs do not use.
    #[error("opcode 0x{opcode:02x} is not accepted here")]
    ForbiddenOpcode {
        /// The opcode.
        opcode: u8,
    },
    /// A name that might stand for anything.
    #[error("the global `{name}` is not one of the six accepted")]
    ForbiddenGlobal {
        /// Module and name, or their beginnings.
        name: String,
    },
    /// The pickle does not start as one of protocol 2.
    #[error("a pickle of protocol 2 starts with the bytes 0x80 0x02")]
    Protocol,
    /// The file ends too early.
    #[error("{needed} more bytes are needed, {left} are left")]
    Truncated {
        /// Bytes needed.
        needed: usize,
        /// Bytes left.
        left: usize,
    },
    /// A byte string has a length below zero.
    #[error("{length} is no length")]
    NegativeLength {
        /// The length stated.
        length: i32,
    },
    /// An opcode takes more values, or another mark, than there are.
    #[error("opcode 0x{opcode:02x} takes more from the stack than lies there")]
    Underflow {
        /// The opcode.
        opcode: u8,
    },
    /// An opcode refers to a value that was not stored.
    #[error("nothing was stored under number {index}")]
    NotStored {
        /// The number.
        index: u8,
    },
    /// An opcode was given something else than the files of the Planetoid graphs give it.
    #[error("opcode 0x{opcode:02x} is only accepted with {expected}, found {found}")]
    Operand {
        /// The opcode.
        opcode: u8,
        /// What is accepted.
        expected: &'static str,
        /// What was given.
        found: &'static str,
    },
    /// Numbers are stored otherwise than as little-endian `i4` or `f4`.
    #[error("numbers are stored as `{found}`; only `i4` and `f4` in little-endian order are read")]
    Dtype {
        /// The type code, or the sign of the byte order.
        found: String,
    },
    /// An array has not as many bytes as its shape asks for.
    #[error("an array of {rows} x {columns} numbers of four bytes has {found} bytes")]
    ArrayLength {
        /// Its first dimension.
        rows: usize,
        /// Its second dimension, 1 if there is none.
        columns: usize,
        /// The length of its bytes.
        found: usize,
    },
    /// The pickle has more values than any graph of this kind.
    #[error("there are more than {limit} values")]
    TooMany {
        /// How many are accepted.
        limit: usize,
    },
    /// The pickle ends with more than its result on the stack.
    #[error("{count} values or marks are left below the result")]
    LeftOver {
        /// How many.
        count: usize,
    },
    /// Bytes follow the end of the pickle.
    #[error("{count} bytes follow the end of the pickle")]
    TrailingBytes {
        /// How many.
        count: usize,
    },
}
