//! The example `language_model` learns from a text and writes in its letters.

#[path = "../../examples/language_model.rs"]
#[expect(dead_code, reason = "its main reads arguments")]
mod language_model;

#[test]
fn it_writes_in_the_letters_of_its_text() {
    let written = language_model::write(&"abc".repeat(300), 2, 30).unwrap();
    assert_eq!(written.len(), 30);
    assert!(written.chars().all(|c| "abc".contains(c)), "{written}");
}
