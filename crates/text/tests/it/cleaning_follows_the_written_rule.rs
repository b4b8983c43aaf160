//! Cleaning in one pass gives what the rule gives, carried out step by step.

use bochner_text::clean_str;
use proptest::prelude::*;

/// The rule as it is written: replacement after replacement, on bytes.
fn step_by_step(text: &[u8]) -> Vec<String> {
    let kept = |&byte: &u8| byte.is_ascii_alphanumeric() || b"(),!?'`".contains(&byte);
    let spaced = text
        .iter()
        .map(|byte| if kept(byte) { *byte } else { b' ' });
    let mut text = String::from_utf8(spaced.collect()).unwrap();
    for ending in ["'s", "'ve", "n't", "'re", "'d", "'ll"] {
        text = text.replace(ending, &format!(" {ending}"));
    }
    for sign in [",", "!", "(", ")", "?"] {
        text = text.replace(sign, &format!(" {sign} "));
    }
    let text = text.to_ascii_lowercase();
    text.split(' ')
        .filter(|token| !token.is_empty())
        .map(str::to_owned)
        .collect()
}

/// Texts in which the endings meet each other, signs, and bytes beyond ASCII.
fn text() -> impl Strategy<Value = Vec<u8>> {
    let part = prop_oneof![
        prop::sample::select(vec![
            "n't", "'s", "'ll", "'ve", "'re", "'d", "n'", "'", "N'T", "a", " "
        ])
        .prop_map(|part| part.as_bytes().to_vec()),
        prop::collection::vec(any::<u8>(), 0..3),
    ];
    prop::collection::vec(part, 0..12).prop_map(|parts| parts.concat())
}

proptest! {
    #[test]
    fn one_pass_equals_the_steps(text in text()) {
        prop_assert_eq!(clean_str(&text), step_by_step(&text));
    }
}
