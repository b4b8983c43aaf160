//! Tests of the pickle reader.

use super::*;
use proptest::prelude::*;

/// The start of a pickle of protocol 2, the given opcodes, and the end.
pub(crate) fn pickle(opcodes: &[&[u8]]) -> Vec<u8> {
    [b"\x80\x02", opcodes.concat().as_slice(), b"."].concat()
}

/// The opcodes of an array of one or two dimensions of at most 255, with at most 255 bytes.
pub(crate) fn array(dtype: &str, shape: &[u8], numbers: &[[u8; 4]]) -> Vec<u8> {
    let raw = numbers.as_flattened();
    let shape: Vec<u8> = shape.iter().flat_map(|&length| [b'K', length]).collect();
    let tuple = [0x84 + shape.len() as u8 / 2];
    [
        b"cnumpy.core.multiarray\n_reconstruct\ncnumpy\nndarray\nK\0\x85U\x01b\x87R(K\x01",
        &shape[..],
        &tuple,
        b"cnumpy\ndtype\nU\x02",
        dtype.as_bytes(),
        b"K\0K\x01\x87R(K\x03U\x01<NNNJ\xff\xff\xff\xffJ\xff\xff\xff\xffK\0tb\x89U",
        &[raw.len() as u8],
        raw,
        b"tb",
    ]
    .concat()
}

#[test]
fn numbers_strings_and_constants_are_read() {
    let bytes = pickle(&[b"(K\xffM\x01\x02J\xfe\xff\xff\xffU\x01aT\x02\0\0\0bcN\x88\x89)t"]);
    let wanted = vec![
        Value::Int(255),
        Value::Int(513),
        Value::Int(-2),
        Value::Bytes(b"a"),
        Value::Bytes(b"bc"),
        Value::None,
        Value::Bool(true),
        Value::Bool(false),
        Value::Tuple(vec![]),
    ];
    assert_eq!(parse("f", &bytes).unwrap(), Value::Tuple(wanted));
}

#[test]
fn constants_are_fetched_again_and_containers_are_not() {
    for put in [&b"q\x05"[..], b"r\x05\0\0\0"] {
        let bytes = pickle(&[b"K\x01", put, b"h\x05\x86"]);
        let value = parse("f", &bytes).unwrap();
        assert_eq!(value, Value::Tuple(vec![Value::Int(1); 2]));
    }
    for far_or_growing in [&b"K\x01r\x05\x01\0\0h\x05\x86"[..], b"]q\x05h\x05\x86"] {
        assert!(parse("f", &pickle(&[far_or_growing])).is_err());
    }
}

#[test]
fn everything_else_is_refused_with_its_position() {
    for (opcodes, position) in [
        (&b"K\x01\x8a"[..], 4),
        (b"cos\nsystem\n", 2),
        (b"\x80\x03", 2),
        (b"T\xff\xff\xff\xff", 2),
        (b"K\x01(\x85", 5),
        (b"}(K\x01u", 6),
        (b"]Na", 4),
        (b"K\x01K\x02a", 6),
        (b"K\x01K\x02", 6),
        (b"K\x01(", 5),
        (b"c__builtin__\nlist\n)R", 21),
        (b"cnumpy\ndtype\nU\x02i8K\0K\x01\x87R", 24),
        (b"cnumpy\ndtype\nU\x02i4K\0K\x01\x87R(K\x03U\x01>tb", 32),
        (b"cnumpy\nndarray\n)\x81", 18),
        (b"K\x01)b", 5),
    ] {
        let error = parse("f", &pickle(&[opcodes])).unwrap_err();
        let refused = matches!(error, Error::Pickle { offset, .. } if offset == position);
        assert!(refused, "{error}, not {position}");
    }
    assert!(parse("f", &pickle(&[&array("f4", &[2, 1], &[[0; 4]])])).is_err());
}

proptest! {
    #[test]
    fn no_program_makes_the_reader_panic(
        program in prop::collection::vec((0_usize..24, any::<u8>()), 0..100),
    ) {
        let names = b"cnumpy\ndtype\nccollections\ndefaultdict\nc__builtin__\nlist\n";
        let mut bytes = b"\x80\x02".to_vec();
        for (choice, argument) in program {
            match choice {
                0 => bytes.extend(names),
                1 => bytes.extend(array("i4", &[1], &[[argument; 4]])),
                2 => bytes.push(argument),
                _ => bytes.extend([b"qhK()\x85\x86\x87t}]aeuN\x88\x89R\x81b."[choice - 3], argument % 8]),
            }
        }
        let _ = parse("f", &bytes);
    }
}
