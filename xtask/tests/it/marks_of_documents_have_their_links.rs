//! Every mark such as `[T1]` in a page of `docs` is defined there, on a line of its own, without which it links to nothing.

use std::collections::BTreeSet;
use std::path::Path;

/// The marks of a text: a capital letter and a number in brackets. `true` asks for definitions, `false` for uses.
fn marks(text: &str, defined: bool) -> BTreeSet<&str> {
    let mut found = BTreeSet::new();
    for line in text.lines() {
        for (start, _) in line.match_indices('[') {
            let Some((mark, after)) = line[start + 1..].split_once(']') else {
                continue;
            };
            let mut letters = mark.chars();
            let is_mark = letters.next().is_some_and(|c| c.is_ascii_uppercase())
                && mark.len() > 1
                && letters.all(|c| c.is_ascii_digit());
            let target = after.strip_prefix(": ").map(str::trim);
            let is_definition = start == 0 && target.is_some_and(|to| !to.contains(' '));
            if is_mark && is_definition == defined {
                found.insert(mark);
            }
        }
    }
    found
}

#[test]
fn in_every_page() {
    let mut used = 0;
    let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs");
    for entry in std::fs::read_dir(docs).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|extension| extension == "md") {
            let text = std::fs::read_to_string(&path).unwrap();
            assert_eq!(marks(&text, false), marks(&text, true), "{path:?}");
            used += marks(&text, false).len();
        }
    }
    assert!(used > 0);
    let joined = "see [T1] and [T2]\n\n[T1]: #t1 [T2]:\nhttps://example.com\n";
    assert_ne!(marks(joined, false), marks(joined, true));
}
