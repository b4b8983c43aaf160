//! A vocabulary gives each of its words one number, and refuses to be taken for another.

use bochner_text::{Error, Marks, TokenCounts, Vocabulary, VocabularyConfig};
use proptest::prelude::*;

fn tokens() -> impl Strategy<Value = Vec<String>> {
    prop::collection::vec("[a-e]{1,2}", 1..60)
}

fn marks() -> impl Strategy<Value = Marks> {
    prop::sample::select(vec![Marks::None, Marks::StartAndEnd])
}

proptest! {
    #[test]
    fn known_words_come_back_and_rare_ones_are_unknown(
        tokens in tokens(), marks in marks(), min_count in 1_u64..4
    ) {
        let counts: TokenCounts = tokens.iter().collect();
        let config = VocabularyConfig { min_count, max_words: None, marks };
        prop_assume!(counts.by_frequency()[0].1 >= min_count);
        let vocabulary = Vocabulary::from_counts(&counts, &config).unwrap();
        let numbers = vocabulary.encode(&tokens);
        for (token, &number) in tokens.iter().zip(&numbers) {
            let known = (counts.get(token) >= min_count).then_some(token.as_str());
            prop_assert_eq!(vocabulary.word(number), known);
            prop_assert_eq!(number == Vocabulary::UNKNOWN, known.is_none());
            prop_assert!(number < vocabulary.len());
        }
        let words = vocabulary.decode(&numbers).unwrap();
        let shown = |token: &String| if counts.get(token) < min_count { "<unk>".into() } else { token.clone() };
        prop_assert_eq!(words, tokens.iter().map(shown).collect::<Vec<_>>());
        // Frequent words have low numbers.
        let frequencies: Vec<u64> = vocabulary.words().iter().map(|word| counts.get(word)).collect();
        prop_assert!(frequencies.is_sorted_by(|a, b| a >= b));
    }

    #[test]
    fn what_is_written_is_read_again(tokens in tokens(), marks in marks()) {
        let counts: TokenCounts = tokens.iter().collect();
        let config = VocabularyConfig { marks, ..Default::default() };
        let vocabulary = Vocabulary::from_counts(&counts, &config).unwrap();
        let text = serde_json::to_string(&vocabulary).unwrap();
        prop_assert_eq!(serde_json::from_str::<Vocabulary>(&text).unwrap(), vocabulary);
    }
}

fn words(words: &[&str], marks: Marks) -> Result<Vocabulary, Error> {
    Vocabulary::from_words(words.iter().map(|&word| word.to_owned()), marks)
}

#[test]
fn another_vocabulary_is_refused() {
    let vocabulary = words(&["ab", "c"], Marks::None).unwrap();
    let fingerprint = vocabulary.fingerprint();
    let others = [
        words(&["c", "ab"], Marks::None),
        words(&["a", "bc"], Marks::None),
        words(&["ab", "c", "d"], Marks::None),
        words(&["ab", "c"], Marks::StartAndEnd),
    ];
    for other in others.map(Result::unwrap) {
        let refused = other.expect(fingerprint).unwrap_err();
        assert!(
            matches!(refused, Error::AnotherVocabulary { expected, .. } if expected == fingerprint)
        );
        let message = refused.to_string();
        assert!(
            message.ends_with("another run; load the vocabulary that was saved with the model"),
            "{message}"
        );
    }
    assert!(vocabulary.expect(fingerprint).is_ok());
}

#[test]
fn a_damaged_list_is_refused() {
    let text = serde_json::to_string(&words(&["ab", "c"], Marks::None).unwrap()).unwrap();
    let read = |text: &str| {
        serde_json::from_str::<Vocabulary>(text)
            .unwrap_err()
            .to_string()
    };
    assert!(read(&text.replace("\"ab\",", "")).contains("another run"));
    assert!(read(&text.replace("ab", "c")).contains("stands at 0 and at 1"));
    assert!(read(&text.replace("{", "{\"extra\": 1, ")).contains("extra"));
}

#[test]
fn nothing_known_is_an_error_and_nothing_at_all_is_not() {
    let vocabulary = words(&["ab", "c"], Marks::None).unwrap();
    let unknown = vocabulary
        .encode_all("dev", &[vec!["x"], vec![], vec!["y", "z"]])
        .unwrap_err();
    let expected = Error::UnknownOnly {
        part: "dev".into(),
        sentences: 3,
        tokens: 3,
        words: 2,
    };
    assert_eq!(unknown, expected);
    assert_eq!(
        unknown.to_string(),
        "dev: none of the 3 tokens in 3 sentences is among the vocabulary's 2 words: clean and split the text in the way of \
         the one that the vocabulary was made of, or load the vocabulary that belongs to it"
    );
    let empty: [Vec<&str>; 2] = [vec![], vec![]];
    assert!(vocabulary.encode_all("dev", &empty).is_ok());
    assert!(vocabulary.encode_all("dev", &[vec!["x", "c"]]).is_ok());
    assert!(matches!(vocabulary.decode(&[4]), Err(Error::Argument(_))));
    let none = Vocabulary::from_counts(&TokenCounts::new(), &VocabularyConfig::default());
    assert!(matches!(none, Err(Error::NoWords { distinct: 0, .. })));
}

#[test]
fn the_most_frequent_words_are_kept() {
    let counts: TokenCounts = "b b a a c".split(' ').collect();
    let config = VocabularyConfig {
        max_words: Some(2),
        ..Default::default()
    };
    let vocabulary = Vocabulary::from_counts(&counts, &config).unwrap();
    assert_eq!(vocabulary.words(), ["a", "b"]);
    assert_eq!((vocabulary.start(), vocabulary.end()), (None, None));
}
