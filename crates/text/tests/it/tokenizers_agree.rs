//! Hugging Face's `tokenizers` reads our `tokenizer.json` and we read its own: both split alike. What it
//! said is in `golden/tokenizers.json`.

use bochner_text::{Error, Marks, Split, SubwordConfig, Subwords, TokenCounts, lines};
use serde_json::{Value, json};

fn golden() -> Value {
    serde_json::from_str(include_str!("golden/tokenizers.json")).unwrap()
}

fn test_lines() -> Vec<&'static str> {
    lines("lines.txt", include_bytes!("golden/lines.txt")).unwrap()
}

fn learned() -> Subwords {
    let train = lines("train.txt", include_bytes!("golden/train.txt")).unwrap();
    let config = SubwordConfig {
        merges: 120,
        ..Default::default()
    };
    Subwords::learn(&TokenCounts::of_words(train), &config)
        .unwrap()
        .subwords
}

#[test]
fn our_file_gives_our_numbers_there() {
    let golden = golden();
    let subwords = learned();
    let written: Value = serde_json::from_str(&subwords.to_tokenizer_json().unwrap()).unwrap();
    assert_eq!(written, golden["ours"], "run golden/tokenizers.py again");
    let vocabulary = subwords.vocabulary(Marks::StartAndEnd).unwrap();
    let numbers = golden["numbers_with_ours"].as_array().unwrap();
    assert_eq!(numbers.len(), test_lines().len());
    for (line, numbers) in test_lines().into_iter().zip(numbers) {
        assert_eq!(
            json!(vocabulary.encode(subwords.encode(line))),
            *numbers,
            "{line}"
        );
    }
}

#[test]
fn their_file_gives_their_pieces_here() {
    let golden = golden();
    let subwords = Subwords::from_tokenizer_json(golden["trained"].to_string().as_bytes()).unwrap();
    assert_eq!(subwords.split(), Split::WhiteSpace);
    let pieces = golden["pieces_with_theirs"].as_array().unwrap();
    let known = test_lines()
        .into_iter()
        .zip(pieces)
        .filter(|(_, pieces)| !pieces.is_null());
    let known: Vec<_> = known.collect();
    assert!(known.len() >= 5);
    for (line, pieces) in known {
        assert_eq!(json!(subwords.encode(line)), *pieces, "{line}");
    }
    // Older files write a merge as one text.
    let mut older = golden["trained"].clone();
    for merge in older["model"]["merges"].as_array_mut().unwrap() {
        *merge = json!(format!(
            "{} {}",
            merge[0].as_str().unwrap(),
            merge[1].as_str().unwrap()
        ));
    }
    let older = Subwords::from_tokenizer_json(older.to_string().as_bytes()).unwrap();
    assert_eq!(older, subwords);
}

#[test]
fn what_would_split_otherwise_is_refused_by_name() {
    let with = |pointer: &str, value: Value| {
        let mut file = golden()["ours"].clone();
        *file.pointer_mut(pointer).expect(pointer) = value;
        Subwords::from_tokenizer_json(file.to_string().as_bytes()).unwrap_err()
    };
    let changes = [
        ("/normalizer", json!({"type": "Lowercase"})),
        ("/post_processor", json!({"type": "TemplateProcessing"})),
        ("/truncation", json!({"max_length": 5})),
        ("/pre_tokenizer", json!({"type": "ByteLevel"})),
        ("/pre_tokenizer/behavior", json!("Isolated")),
        ("/pre_tokenizer", Value::Null),
        (
            "/added_tokens",
            json!([{"content": "boat", "special": false}]),
        ),
        ("/model/type", json!("WordPiece")),
        ("/model/dropout", json!(0.1)),
        ("/model/end_of_word_suffix", Value::Null),
        ("/model/continuing_subword_prefix", json!("##")),
        ("/model/byte_fallback", json!(true)),
        ("/model/ignore_merges", json!(true)),
        ("/model/merges/3", json!(["a"])),
        ("/model/merges/3", json!("ab")),
        ("/model/vocab", json!(["a"])),
    ];
    for (pointer, value) in changes {
        let error = with(pointer, value);
        let Error::TokenizerJson { place, .. } = &error else {
            panic!("{pointer}: {error}");
        };
        let named = place.replace(['[', '.'], "/").replace(']', "");
        assert!(
            pointer.trim_start_matches('/').starts_with(&named),
            "{pointer}: {error}"
        );
    }
    let unheard = with("/model/merges/0", json!(["x", "y"]));
    assert!(matches!(unheard, Error::Merge { merge: 0, .. }));
    let broken = Subwords::from_tokenizer_json(b"{").unwrap_err();
    assert!(broken.to_string().contains("must be JSON"), "{broken}");
}

#[test]
fn the_name_of_a_special_token_is_no_symbol() {
    let alphabet = ["<", "s", ">", "b</w>"].map(str::to_owned).to_vec();
    let merges = [("<", "s"), ("<s", ">")]
        .map(|(a, b)| (a.to_owned(), b.to_owned()))
        .to_vec();
    let subwords = Subwords::from_merges(Split::Spaces, alphabet, merges).unwrap();
    let refused = subwords.to_tokenizer_json().unwrap_err();
    assert!(matches!(refused, Error::ReservedSymbol { symbol } if symbol == "<s>"));
}
