//! Detokenisation: lines of tokens made into text that one would write.

use serde::{Deserialize, Serialize};

/// The language of a text, where a rule depends on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Language {
    /// Apostrophes follow a word without a space: `it 's` is `it's`, and `dogs '` is `dogs'` outside of quotes.
    English,
    /// German has none of the rules for apostrophes.
    German,
}

/// The escapes that Moses' tokeniser writes for characters with a meaning in Moses. The ampersand is the last, since it
/// begins all others.
const ESCAPES: [(&str, &str); 11] = [
    ("&bar;", "|"),
    ("&#124;", "|"),
    ("&lt;", "<"),
    ("&gt;", ">"),
    ("&bra;", "["),
    ("&ket;", "]"),
    ("&quot;", "\""),
    ("&apos;", "'"),
    ("&#91;", "["),
    ("&#93;", "]"),
    ("&amp;", "&"),
];

/// The text whose tokens a line holds, by the rule of Moses' detokeniser.
///
/// Escapes such as `&apos;` become characters, and `@-@` between two words a hyphen without spaces. No space is left
/// before closing punctuation, behind opening punctuation and symbols of currency, and inside quotes, which open and close
/// in turns. Capitals that were lost do not come back, nor does anything else that two texts with the same tokens differ
/// in. Moses leaves out spaces between Chinese, Japanese and Korean characters, too: that is not done here.
///
/// ```
/// use bochner_text::{Language, detokenise};
///
/// let line = "&quot; it &apos;s $ 5 ( or so ) , &quot; says a well @-@ known man .";
/// let text = "\"it's $5 (or so),\" says a well-known man.";
/// assert_eq!(detokenise(line, Language::English), text);
/// ```
///
/// # Reference
/// P. Koehn et al., *Moses: open source toolkit for statistical machine translation*, 2007, and its `detokenizer.perl`.
pub fn detokenise(line: &str, language: Language) -> String {
    let words: Vec<&str> = line.split_whitespace().collect();
    let mut line = format!(" {} ", words.join(" ")).replace(" @-@ ", "-");
    for (escape, character) in ESCAPES {
        line = line.replace(escape, character);
    }
    let english = language == Language::English;
    let mut text = String::with_capacity(line.len());
    // Whether the next token follows without a space whatever it is, and the quotes that are open, each kind by itself.
    let (mut joins_next, mut open) = (true, Vec::new());
    let mut before = "";
    for token in line.split_whitespace() {
        let all = |set: fn(char) -> bool| token.chars().all(set);
        let is_quote = all(|c| "'\"„“`".contains(c));
        let kind = if all(|c| "„“".contains(c)) {
            "\""
        } else {
            token
        };
        let opened = open.iter().position(|&quote| quote == kind);
        let after_apostrophe = token.strip_prefix('\'');
        let belongs = match after_apostrophe.filter(|_| english && !before.is_empty()) {
            Some("") => opened.is_none() && before.ends_with('s'),
            Some(rest) => rest.starts_with(char::is_alphabetic),
            None => false,
        };
        // To what is before it, and to what comes after it.
        let [joins, joins_after] = if belongs || all(closes) {
            [true, false]
        } else if all(opens) {
            [false, true]
        } else if !is_quote {
            [false, false]
        } else if let Some(at) = opened {
            open.swap_remove(at);
            [true, false]
        } else {
            open.push(kind);
            [false, true]
        };
        if !joins && !joins_next {
            text.push(' ');
        }
        text.push_str(token);
        (joins_next, before) = (joins_after, token);
    }
    text
}

/// Opening brackets and marks, and symbols of currency.
fn opens(c: char) -> bool {
    matches!(c, '(' | '[' | '{' | '¿' | '¡' | '$' | '¢'..='¥' | '\u{20a0}'..='\u{20c0}')
}

/// Punctuation that follows a word, and closing brackets.
fn closes(c: char) -> bool {
    ",.?!:;\\%}])".contains(c)
}
