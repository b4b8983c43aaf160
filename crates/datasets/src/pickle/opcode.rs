//! The opcodes that occur.

macro_rules! opcodes {
    ($($name:ident = $byte:literal),* $(,)?) => {
        /// An opcode of the pickle format, by its name there.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[repr(u8)]
        pub(super) enum Opcode {
            $($name = $byte),*
        }

        impl Opcode {
            /// All of them.
            #[cfg(test)]
            pub(super) const ALL: &[Self] = &[$(Self::$name),*];

            pub(super) const fn of(byte: u8) -> Option<Self> {
                match byte {
                    $($byte => Some(Self::$name),)*
                    _ => None,
                }
            }
        }
    };
}

opcodes! {
    Proto = 0x80,
    Global = 0x63,
    BinPut = 0x71,
    LongBinPut = 0x72,
    BinGet = 0x68,
    BinInt1 = 0x4b,
    BinInt2 = 0x4d,
    BinInt = 0x4a,
    ShortBinString = 0x55,
    BinString = 0x54,
    Mark = 0x28,
    EmptyTuple = 0x29,
    Tuple1 = 0x85,
    Tuple2 = 0x86,
    Tuple3 = 0x87,
    Tuple = 0x74,
    EmptyDict = 0x7d,
    EmptyList = 0x5d,
    Append = 0x61,
    Appends = 0x65,
    SetItems = 0x75,
    None = 0x4e,
    NewTrue = 0x88,
    NewFalse = 0x89,
    Reduce = 0x52,
    NewObj = 0x81,
    Build = 0x62,
    Stop = 0x2e,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_are_28() {
        assert_eq!(Opcode::ALL.len(), 28);
        for &opcode in Opcode::ALL {
            assert_eq!(Opcode::of(opcode as u8), Some(opcode));
        }
        let known = (0..=255).filter(|&byte| Opcode::of(byte).is_some());
        assert_eq!(known.count(), 28);
    }
}
