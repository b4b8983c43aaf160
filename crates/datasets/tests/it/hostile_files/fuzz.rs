//! Bytes, programs and spoilt files drawn at random.

use crate::hostile_files::writer::{Writer, outcomes, valid_files};
use proptest::prelude::*;

proptest! {
    #[test]
    fn arbitrary_bytes_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
        prop_assert!(outcomes(&bytes)[..3].iter().all(Result::is_err));
    }

    /// Programs of the accepted opcodes get much further than arbitrary bytes.
    #[test]
    fn arbitrary_programs_never_panic(
        program in prop::collection::vec((0_usize..30, any::<u8>()), 0..200)
    ) {
        let opcodes = b"qhK()\x85\x86\x87t}]aeuN\x88\x89R\x81b";
        let mut writer = Writer::new();
        for (choice, argument) in program {
            writer = match choice {
                0 => writer.global("collections", "defaultdict"),
                1 => writer.global("__builtin__", "list"),
                2 => writer.global("numpy", "dtype"),
                3 => writer.global("scipy.sparse.csr", "csr_matrix"),
                4 => writer.ints(&[argument.into()]),
                5 => writer.string(b"i4"),
                6 => writer.dtype("f4", "<"),
                7 => writer.raw(b"c__builtin__\nlist\n\x85R"),
                _ => {
                    let opcode = opcodes[(choice - 8) % opcodes.len()];
                    let writer = writer.raw(&[opcode]);
                    if b"qhK".contains(&opcode) { writer.raw(&[argument % 8]) } else { writer }
                }
            };
            let _ = outcomes(&writer.clone().stop());
        }
    }

    #[test]
    fn spoilt_files_never_panic(
        file in 0_usize..3,
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..4),
    ) {
        let mut bytes = valid_files()[file].clone();
        for (at, byte) in changes {
            let at = at.index(bytes.len());
            bytes[at] = byte;
        }
        let _ = outcomes(&bytes);
    }
}
