//! Subwords as the file `tokenizer.json` of Hugging Face's `tokenizers`.

use super::{END, Split, Subwords, is_character};
use crate::Error;
use crate::lines::strip_byte_order_mark;
use serde_json::{Map, Value, json};
use std::collections::HashSet;

/// The names of the special numbers of a vocabulary with marks, in their order.
const SPECIALS: [&str; 4] = ["<pad>", "<unk>", "<s>", "</s>"];

/// Entries that must be absent, null or empty, because they would change how a text is split.
const PLAIN: [&str; 4] = ["normalizer", "post_processor", "truncation", "padding"];
const PLAIN_MODEL: [&str; 5] = [
    "dropout",
    "continuing_subword_prefix",
    "fuse_unk",
    "byte_fallback",
    "ignore_merges",
];

impl Subwords {
    /// The text of a `tokenizer.json` that splits as these subwords do.
    ///
    /// Its numbers are those of [`Subwords::vocabulary`] with [`Marks::StartAndEnd`](crate::Marks); the
    /// special numbers are called `<pad>`, `<unk>`, `<s>` and `</s>`. A character that the training text
    /// did not have becomes `<unk>` there, with the same number as here.
    ///
    /// # Errors
    /// [`Error::ReservedSymbol`] if a merge makes one of these names.
    pub fn to_tokenizer_json(&self) -> Result<String, Error> {
        if let Some(symbol) = self.symbols.iter().find(|symbol| SPECIALS.contains(symbol)) {
            return Err(Error::ReservedSymbol {
                symbol: symbol.to_owned(),
            });
        }
        let names = SPECIALS.into_iter().chain(self.symbols.iter()).enumerate();
        let vocab: Map<String, Value> = names
            .map(|(number, name)| (name.to_owned(), number.into()))
            .collect();
        // There a pair that is listed twice would have the later rank.
        let mut seen = HashSet::new();
        let merges: Vec<_> = self
            .merges
            .iter()
            .filter(|merge| seen.insert(*merge))
            .collect();
        let pre_tokenizer = match self.split {
            Split::Spaces => json!({
                "type": "Split", "pattern": {"String": " "}, "behavior": "Removed", "invert": false
            }),
            Split::WhiteSpace => json!({"type": "WhitespaceSplit"}),
        };
        let tokenizer = json!({
            "version": "1.0",
            "truncation": null,
            "padding": null,
            "added_tokens": [],
            "normalizer": null,
            "pre_tokenizer": pre_tokenizer,
            "post_processor": null,
            "decoder": {"type": "BPEDecoder", "suffix": END},
            "model": {
                "type": "BPE",
                "dropout": null,
                "unk_token": SPECIALS[1],
                "continuing_subword_prefix": null,
                "end_of_word_suffix": END,
                "fuse_unk": false,
                "byte_fallback": false,
                "ignore_merges": false,
                "vocab": vocab,
                "merges": merges,
            },
        });
        Ok(format!("{tokenizer:#}\n"))
    }

    /// The subwords of a `tokenizer.json`.
    ///
    /// The file must hold a BPE with the suffix `</w>` that splits at white space (`WhitespaceSplit`) or
    /// at spaces, and nothing else that changes a text. Its special tokens are numbers here and never
    /// text, and its own numbers are not kept: [`Subwords::vocabulary`] gives new ones. Where the
    /// file's tokenizer drops or replaces a character that it does not know, the character stays here.
    ///
    /// # Errors
    /// [`Error::TokenizerJson`], which names the entry that is not understood; those of
    /// [`Subwords::from_merges`].
    pub fn from_tokenizer_json(bytes: &[u8]) -> Result<Self, Error> {
        let file: Value =
            serde_json::from_slice(strip_byte_order_mark(bytes)).map_err(|error| {
                Error::TokenizerJson {
                    place: "the file".to_owned(),
                    expected: "JSON",
                    got: format!("not readable ({error})"),
                }
            })?;
        for name in PLAIN {
            expect_plain("", name, &file[name])?;
        }
        check_added(&file["added_tokens"])?;
        let split = split(&file["pre_tokenizer"])?;
        let model = &file["model"];
        for name in PLAIN_MODEL {
            expect_plain("model.", name, &model[name])?;
        }
        let kind = &model["type"];
        // Old files do not name the only type there was.
        if !kind.is_null() && kind != "BPE" {
            return Err(unexpected("model.type", "`BPE`", kind));
        }
        let suffix = &model["end_of_word_suffix"];
        if suffix != END {
            return Err(unexpected("model.end_of_word_suffix", "`</w>`", suffix));
        }
        let merges = merges(&model["merges"])?;
        Self::from_merges(
            split,
            alphabet(&model["vocab"], &model["unk_token"])?,
            merges,
        )
    }
}

fn unexpected(place: &str, expected: &'static str, got: &Value) -> Error {
    const LONGEST: usize = 100;
    let mut got = format!("`{got}`");
    if let Some((at, _)) = got.char_indices().nth(LONGEST) {
        got.truncate(at);
        got.push('…');
    }
    Error::TokenizerJson {
        place: place.to_owned(),
        expected,
        got,
    }
}

fn expect_plain(parent: &str, name: &str, value: &Value) -> Result<(), Error> {
    match value {
        Value::Null | Value::Bool(false) => Ok(()),
        Value::String(text) if text.is_empty() => Ok(()),
        // A dropout of zero drops nothing.
        Value::Number(number) if number.as_f64() == Some(0.0) => Ok(()),
        other => Err(unexpected(
            &format!("{parent}{name}"),
            "absent or null",
            other,
        )),
    }
}

/// Tokens that are no special ones would be cut out of ordinary text.
fn check_added(added: &Value) -> Result<(), Error> {
    let place = "added_tokens";
    let tokens = match added {
        Value::Null => return Ok(()),
        Value::Array(tokens) => tokens,
        other => return Err(unexpected(place, "a list", other)),
    };
    match tokens.iter().find(|token| token["special"] != true) {
        None => Ok(()),
        Some(token) => Err(unexpected(place, "special tokens only", token)),
    }
}

fn split(pre_tokenizer: &Value) -> Result<Split, Error> {
    let is = |name: &str, value: &Value| pre_tokenizer[name] == *value;
    if is("type", &json!("WhitespaceSplit")) {
        return Ok(Split::WhiteSpace);
    }
    let at_spaces = is("type", &json!("Split"))
        && is("pattern", &json!({"String": " "}))
        && is("behavior", &json!("Removed"))
        && is("invert", &json!(false));
    if at_spaces {
        return Ok(Split::Spaces);
    }
    let expected = "`WhitespaceSplit`, or a `Split` that removes the string ` `";
    Err(unexpected("pre_tokenizer", expected, pre_tokenizer))
}

/// The merges, each as a list of two symbols or, in older files, as both with a space between.
fn merges(merges: &Value) -> Result<Vec<(String, String)>, Error> {
    let expected = "a list of pairs of symbols";
    let Value::Array(list) = merges else {
        return Err(unexpected("model.merges", expected, merges));
    };
    let pair = |(at, merge): (usize, &Value)| {
        let symbols = match merge {
            Value::String(text) => text.split_once(' '),
            Value::Array(pair) if pair.len() == 2 => pair[0].as_str().zip(pair[1].as_str()),
            _ => None,
        };
        let symbols = symbols.filter(|(left, right)| !left.is_empty() && !right.is_empty());
        let pair = symbols.map(|(left, right)| (left.to_owned(), right.to_owned()));
        pair.ok_or_else(|| unexpected(&format!("model.merges[{at}]"), expected, merge))
    };
    list.iter().enumerate().map(pair).collect()
}

/// The symbols of one character. All others are made by merges, or are special, or are never reached.
fn alphabet(vocab: &Value, unknown: &Value) -> Result<Vec<String>, Error> {
    let Value::Object(vocab) = vocab else {
        return Err(unexpected(
            "model.vocab",
            "a map from symbols to numbers",
            vocab,
        ));
    };
    let symbols = vocab
        .keys()
        .filter(|symbol| is_character(symbol) && *unknown != ***symbol);
    Ok(symbols.cloned().collect())
}
