//! Opcodes, names and calls that the files do not have.

use crate::hostile_files::writer::{
    Writer, graph_defect, outcomes, pickle_defect, start_of_graph, valid_files,
};
use bochner_datasets::nodes::{parse_features, parse_graph, parse_labels};
use bochner_datasets::{Error, GraphDefect, PickleDefect};

#[test]
fn every_other_opcode_is_refused_with_its_position() {
    let accepted = b"\x80cqrhKMJUT()\x85\x86\x87t}]aeuN\x88\x89R\x81b.";
    for opcode in (0..=255).filter(|opcode| !accepted.contains(opcode)) {
        let bytes = Writer::new().raw(b"K\x01").raw(&[opcode]).stop();
        let refused = (4, PickleDefect::ForbiddenOpcode { opcode });
        assert_eq!(pickle_defect(parse_graph("f", &bytes)), refused);
    }
}

#[test]
fn every_other_global_is_refused_by_name() {
    for (module, name) in [
        ("os", "system"),
        ("__builtin__", "eval"),
        ("posix", "system"),
        ("numpy", "load"),
        ("numpy.core.multiarray", "scalar"),
        ("collections", "defaultdict "),
        ("", ""),
    ] {
        let bytes = Writer::new()
            .global(module, name)
            .string(b"ls")
            .raw(b"\x85R")
            .stop();
        let (offset, defect) = pickle_defect(parse_graph("f", &bytes));
        let name = format!("{module} {name}");
        assert_eq!(
            (offset, defect),
            (2, PickleDefect::ForbiddenGlobal { name })
        );
    }
    let long = Writer::new().global(&"x".repeat(5000), "\u{1b}[2J").stop();
    let message = parse_graph("f", &long).unwrap_err().to_string();
    assert!(
        message.len() < 300 && !message.contains('\u{1b}'),
        "{message}"
    );
}

#[test]
fn accepted_names_can_only_be_called_as_the_files_do() {
    let call = |writer: Writer| pickle_defect(parse_graph("f", &writer.raw(b"R").stop())).1;
    let list = || Writer::new().global("__builtin__", "list");
    let dict = || Writer::new().global("collections", "defaultdict");
    for writer in [
        list().raw(b")"),
        dict().raw(b")"),
        dict().raw(b"N\x85"),
        dict().int(3),
        Writer::new()
            .global("numpy", "ndarray")
            .shape(&[1 << 30])
            .raw(b"\x85"),
        Writer::new()
            .global("scipy.sparse.csr", "csr_matrix")
            .raw(b")"),
        Writer::new().int(1).raw(b")"),
    ] {
        let defect = call(writer);
        assert!(
            matches!(defect, PickleDefect::Operand { opcode: 0x52, .. }),
            "{defect}"
        );
    }
    let made = dict().raw(b")\x81").stop();
    let (_, defect) = pickle_defect(parse_graph("f", &made));
    assert!(matches!(defect, PickleDefect::Operand { opcode: 0x81, .. }));
    let twice = Writer::new().ints(&[1]).raw(b"Nb").stop();
    let (_, defect) = pickle_defect(parse_labels("f", &twice));
    assert!(matches!(defect, PickleDefect::Operand { opcode: 0x62, .. }));
}

#[test]
fn every_truncation_is_an_error() {
    for file in valid_files() {
        for length in 0..file.len() {
            for outcome in &outcomes(&file[..length])[..3] {
                assert!(matches!(outcome, Err(Error::Pickle { .. })));
            }
        }
    }
}

#[test]
fn what_follows_or_is_left_over_is_counted() {
    for file in valid_files() {
        let longer = [&file[..], b"\0\0"].concat();
        let defect = pickle_defect(parse_features("f", &longer));
        assert_eq!(
            defect,
            (file.len() - 1, PickleDefect::TrailingBytes { count: 2 })
        );
        let below = Writer::new().raw(b"K\x01(K\x02").raw(&file[2..]).0;
        let (_, defect) = pickle_defect(parse_features("f", &below));
        assert_eq!(defect, PickleDefect::LeftOver { count: 3 }, "a mark counts");
        let below = Writer::new().raw(b"K\x01").raw(&file[2..]).0;
        let (_, defect) = pickle_defect(parse_features("f", &below));
        assert_eq!(defect, PickleDefect::LeftOver { count: 1 });
    }
    let (_, defect) = pickle_defect(parse_graph("f", b"\x80\x03N."));
    assert_eq!(defect, PickleDefect::Protocol);
    let (offset, defect) = pickle_defect(parse_graph("f", b"\x80\x02\x80\x02N."));
    assert_eq!(
        (offset, defect),
        (2, PickleDefect::ForbiddenOpcode { opcode: 0x80 })
    );
}

#[test]
fn operations_without_their_operands_are_refused() {
    for program in [
        &b"h\0."[..],
        b"q\0.",
        b"K\x01a.",
        b"K\x01e.",
        b"(K\x01u.",
        b"(a.",
        b"\x87.",
        b"b.",
        b".",
    ] {
        let bytes = Writer::new().raw(program).0;
        let (offset, defect) = pickle_defect(parse_graph("f", &bytes));
        let operand = matches!(
            defect,
            PickleDefect::Underflow { .. }
                | PickleDefect::NotStored { index: 0 }
                | PickleDefect::Operand { .. }
        );
        assert!(operand && offset < bytes.len(), "{program:?}: {defect}");
    }
    // What lies below a mark is out of reach.
    let below = Writer::new().raw(b"K\x01(\x85").stop();
    let (_, defect) = pickle_defect(parse_graph("f", &below));
    assert_eq!(defect, PickleDefect::Underflow { opcode: 0x85 });
    let odd = Writer::new().raw(b"}(K\x01u").stop();
    let (_, defect) = pickle_defect(parse_graph("f", &odd));
    assert!(matches!(defect, PickleDefect::Operand { opcode: 0x75, .. }));
}

#[test]
fn what_was_stored_under_one_byte_is_fetched() {
    let kind = |writer: Writer| graph_defect(parse_graph("f", &writer.stop()));
    for put in [&b"q\x05"[..], b"r\x05\0\0\0"] {
        let writer = Writer::new().raw(b"K\x01").raw(put).raw(b"h\x05\x86");
        let found = "a tuple";
        assert!(matches!(kind(writer), GraphDefect::Kind { found: f, .. } if f == found));
    }
    // Stored where nothing can be fetched from: accepted, and not confused with number 5.
    let far = Writer::new().raw(b"K\x01r\x05\x01\0\0h\x05\x86").stop();
    let (offset, defect) = pickle_defect(parse_graph("f", &far));
    assert_eq!((offset, defect), (9, PickleDefect::NotStored { index: 5 }));
}

#[test]
fn nodes_that_share_a_list_are_refused() {
    let shared = start_of_graph().raw(b"K\0]q\x05K\x01h\x05u").stop();
    let defect = graph_defect(parse_graph("f", &shared));
    assert_eq!(defect, GraphDefect::SharedList { node: 1 });
}
