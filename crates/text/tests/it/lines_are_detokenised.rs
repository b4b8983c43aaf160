//! Lines of tokens as text.

use bochner_text::{Language, detokenise};

#[test]
fn quotes_open_and_close_in_turns() {
    let german = |line| detokenise(line, Language::German);
    assert_eq!(
        german("er sagt „ ja “ und \" nein \" ."),
        "er sagt „ja“ und \"nein\"."
    );
    assert_eq!(german("' a ' ' b '"), "'a' 'b'");
    assert_eq!(german("&quot; a &apos; b &apos; &quot;"), "\"a 'b'\"");
}

#[test]
fn apostrophes_are_english() {
    let line = "the dogs ' toys , it &apos;s , &apos;s ' s";
    assert_eq!(
        detokenise(line, Language::English),
        "the dogs' toys, it's,'s' s"
    );
    assert_eq!(detokenise("gibt 's", Language::German), "gibt 's");
    assert_eq!(detokenise("' tis it", Language::English), "'tis it");
    assert_eq!(detokenise("'tis it", Language::English), "'tis it");
}

#[test]
fn spaces_and_escapes() {
    let english = |line| detokenise(line, Language::English);
    assert_eq!(english(" a\tb  c \n"), "a b c");
    assert_eq!(
        english("&amp;lt; &#91; x &#93; &#124; 5 %"),
        "&lt; [x] | 5%"
    );
    assert_eq!(english("well @-@ known @-@ @-@ a"), "well-known-@-@ a");
    assert_eq!(english("€ 5 ... ?! ( a"), "€5...?! (a");
    assert_eq!(english(""), "");
}
