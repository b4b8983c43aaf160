//! Merges learnt by updates are those of the rule carried out plainly, and what they split comes together
//! again.

use bochner_text::{
    Error, Learned, Marks, Split, SubwordConfig, Subwords, TokenCounts, Vocabulary,
};
use proptest::prelude::*;
use std::collections::BTreeMap;

/// Few letters, so that pairs overlap, tie and come back.
fn line() -> impl Strategy<Value = String> {
    "[ab\u{e9}\u{10400} ]{0,60}"
}

/// Lines full of the marks of pieces and of words.
fn marked() -> impl Strategy<Value = String> {
    let part = prop::sample::select(vec![
        "@@", "@", "</w>", ">", "a", "\u{e9}", "b@@", " ", "@@ ",
    ]);
    prop::collection::vec(part, 1..30).prop_map(|parts| parts.concat())
}

fn learn(line: &str, merges: usize) -> Result<Learned, Error> {
    let config = SubwordConfig {
        merges,
        ..Default::default()
    };
    Subwords::learn(&TokenCounts::of_words([line]), &config)
}

/// Merges with frequencies and ties, computed plainly: every pair is counted again before every merge.
fn plainly(line: &str, merges: usize) -> Vec<((String, String), u64, usize)> {
    let mut words: Vec<Vec<String>> = line
        .split(' ')
        .filter(|word| !word.is_empty())
        .map(|word| {
            let mut symbols: Vec<String> = word.chars().map(String::from).collect();
            symbols.last_mut().unwrap().push_str("</w>");
            symbols
        })
        .collect();
    let mut found = Vec::new();
    for _ in 0..merges {
        let mut counts: BTreeMap<(String, String), u64> = BTreeMap::new();
        for pair in words.iter().flat_map(|word| word.windows(2)) {
            *counts
                .entry((pair[0].clone(), pair[1].clone()))
                .or_default() += 1;
        }
        let Some((pair, count)) = counts.iter().max_by_key(|(pair, count)| (**count, *pair)) else {
            break;
        };
        if *count < 2 {
            break;
        }
        let ties = counts.values().filter(|other| *other == count).count();
        found.push((pair.clone(), *count, ties));
        for word in &mut words {
            let mut joined: Vec<String> = Vec::new();
            let mut rest = &word[..];
            while let [first, others @ ..] = rest {
                let joins = *first == pair.0 && others.first() == Some(&pair.1);
                joined.push(if joins {
                    format!("{}{}", pair.0, pair.1)
                } else {
                    first.clone()
                });
                rest = if joins { &others[1..] } else { others };
            }
            *word = joined;
        }
    }
    found
}

proptest! {
    #[test]
    fn updates_equal_recounts(line in line(), merges in 1_usize..40) {
        prop_assume!(line.contains(|c| c != ' '));
        let Learned { subwords, history } = learn(&line, merges).unwrap();
        let found = subwords.merges().iter().zip(&history);
        let found: Vec<_> = found.map(|(pair, merge)| (pair.clone(), merge.frequency, merge.ties)).collect();
        prop_assert_eq!(found, plainly(&line, merges));
    }

    #[test]
    fn pieces_make_the_line_again(train in marked(), line in marked(), merges in 1_usize..40) {
        prop_assume!(train.contains(|c| c != ' '));
        let subwords = learn(&train, merges).unwrap().subwords;
        for line in [&train, &line] {
            let pieces = subwords.encode(line);
            let words: Vec<_> = line.split(' ').filter(|word| !word.is_empty()).collect();
            prop_assert_eq!(Subwords::decode(&pieces), words.join(" "));
            prop_assert_eq!(&subwords.encode_all([line.as_str()]), &[pieces]);
        }
    }

    #[test]
    fn every_piece_of_the_training_text_has_a_number(train in marked(), merges in 1_usize..40) {
        prop_assume!(train.contains(|c| c != ' '));
        let subwords = learn(&train, merges).unwrap().subwords;
        let vocabulary = subwords.vocabulary(Marks::StartAndEnd).unwrap();
        let numbers = vocabulary.encode(subwords.encode(&train));
        prop_assert!(!numbers.contains(&Vocabulary::UNKNOWN));
    }

    #[test]
    fn what_is_written_is_read_again(train in line(), merges in 1_usize..40) {
        prop_assume!(train.contains(|c| c != ' '));
        let subwords = learn(&train, merges).unwrap().subwords;
        let text = serde_json::to_string(&subwords).unwrap();
        prop_assert_eq!(&serde_json::from_str::<Subwords>(&text).unwrap(), &subwords);
        let text = subwords.to_tokenizer_json().unwrap();
        prop_assert_eq!(&Subwords::from_tokenizer_json(text.as_bytes()).unwrap(), &subwords);
    }
}

#[test]
fn a_translation_that_was_cut_ends_without_a_mark() {
    assert_eq!(Subwords::decode(&["lo@@", "w", "lo@@"]), "low lo");
    assert_eq!(Subwords::decode::<&str>(&[]), "");
}

#[test]
fn a_long_word_is_split_like_a_short_one() {
    // Only one pair occurs twice.
    let subwords = learn("abc abd", 10).unwrap().subwords;
    let long = "ab".repeat(500) + "c";
    assert_eq!(subwords.encode(&long).len(), 500 + 1);
}

#[test]
fn text_without_words_is_an_error() {
    for text in ["", "   "] {
        assert!(matches!(learn(text, 5), Err(Error::NoWords { .. })));
    }
    assert!(matches!(learn("a a", 0), Err(Error::Argument(_))));
}

#[test]
fn merges_of_unheard_symbols_are_named() {
    let pair = |left: &str, right: &str| (left.to_owned(), right.to_owned());
    let alphabet = || ["a", "b</w>"].map(str::to_owned).to_vec();
    let read = |merges| Subwords::from_merges(Split::Spaces, alphabet(), merges);
    assert!(read(vec![pair("a", "b</w>"), pair("a", "ab</w>")]).is_ok());
    let error = read(vec![pair("a", "ab</w>"), pair("a", "b</w>")]).unwrap_err();
    assert!(matches!(error, Error::Merge { merge: 0, missing, .. } if missing == "ab</w>"));
    let error = Subwords::from_merges(Split::Spaces, vec!["ab".into()], vec![]).unwrap_err();
    assert!(matches!(error, Error::Alphabet { symbol } if symbol == "ab"));
}

/// Subword-nmt strips carriage returns and spaces from both ends of a line.
#[test]
fn a_carriage_return_ends_no_word() {
    let learnt =
        |text: [&str; 2]| Subwords::learn(&TokenCounts::of_words(text), &SubwordConfig::default());
    let (with, without) = (learnt(["low\r", "low \r"]), learnt(["low", "low"]));
    assert_eq!(with, without);
    let subwords = without.unwrap().subwords;
    assert_eq!(subwords.encode("low low\r"), subwords.encode("low low"));
}

#[test]
fn the_mark_of_pieces_that_go_on_is_text_where_it_ends_a_word() {
    let subwords = learn("a@@ a@@ @@ @@", 9).unwrap().subwords;
    assert_eq!(subwords.encode("@@"), ["@@"]);
    assert_eq!(subwords.encode("a@@"), ["a@@", "@@"]);
    assert_eq!(Subwords::decode(&["a", "@@"]), "a @@");
}

#[test]
fn symbols_that_look_like_others_are_refused() {
    let of = |left: &str, right: &str| {
        let merge = (left.to_owned(), right.to_owned());
        let alphabet = vec!["@".to_owned(), "@</w>".to_owned()];
        let longer = ("@".to_owned(), "@".to_owned());
        Subwords::from_merges(Split::Spaces, alphabet, vec![longer, merge])
    };
    assert!(of("@", "@</w>").is_ok());
    let refused = of("@@", "@</w>").unwrap_err();
    assert!(matches!(refused, Error::MarkedWord { merge: 1, symbol } if symbol == "@@@</w>"));
}
