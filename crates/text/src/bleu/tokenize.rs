//! The tokens that BLEU counts.

use super::{BleuConfig, Tokenisation};

/// The tokens of a line, by the settings.
pub(super) fn tokens(line: &str, config: &BleuConfig) -> Vec<String> {
    let line = config.case.apply(line);
    match config.tokenisation {
        Tokenisation::Wmt13a => tokenize_13a(&line),
        Tokenisation::None => words(&line),
    }
}

/// A line in lower case, by the full mapping of Unicode.
///
/// ```
/// assert_eq!(bochner_text::bleu::lowercase("ΣΊΣΥΦΟΣ"), "σίσυφος");
/// ```
pub fn lowercase(line: &str) -> String {
    line.to_lowercase()
}

/// The tokens of a line by the rule `13a`, that of WMT's script `mteval-v13a`.
///
/// The mark `<skipped>` is deleted, four entities become characters, and spaces are put round ASCII
/// punctuation, round full stops and commas unless a digit stands on that side, and round a hyphen behind a
/// digit. Only ASCII punctuation is split off.
///
/// ```
/// use bochner_text::tokenize_13a;
///
/// let tokens = tokenize_13a("He paid $3.50, i.e. &quot;3-4 times&quot; more...");
/// let expected = "He paid $ 3.50 , i . e . \" 3 - 4 times \" more . . .";
/// assert_eq!(tokens.join(" "), expected);
/// ```
pub fn tokenize_13a(line: &str) -> Vec<String> {
    let line = line.trim_end_matches(is_space).replace("<skipped>", "");
    let line = line.replace("-\n", "").replace('\n', " ");
    // One after another: what the third makes of `&amp;lt;` is an entity of the fourth.
    let line = line.replace("&quot;", "\"").replace("&amp;", "&");
    let line = line.replace("&lt;", "<").replace("&gt;", ">");
    let line = separate(&format!(" {line} "));
    let stop = |c: char| c == '.' || c == ',';
    let digit = |c: char| c.is_ascii_digit();
    let line = spread(&line, |a, b| !digit(a) && stop(b), |a, b| [a, ' ', b, ' ']);
    let line = spread(&line, |a, b| stop(a) && !digit(b), |a, b| [' ', a, ' ', b]);
    let line = spread(&line, |a, b| digit(a) && b == '-', |a, b| [a, ' ', b, ' ']);
    words(&line)
}

/// Puts spaces round ASCII punctuation, except `'`, `,`, `-` and `.`.
fn separate(line: &str) -> String {
    let mut out = String::with_capacity(2 * line.len());
    for c in line.chars() {
        if matches!(c, '{'..='~' | '['..='`' | ' '..='&' | '('..='+' | ':'..='@' | '/') {
            out.extend([' ', c, ' ']);
        } else {
            out.push(c);
        }
    }
    out
}

/// Replaces neighbouring characters, from left to right and without overlap.
fn spread(
    line: &str,
    matches: impl Fn(char, char) -> bool,
    replacement: impl Fn(char, char) -> [char; 4],
) -> String {
    let mut out = String::with_capacity(line.len() + line.len() / 2);
    let mut chars = line.chars().peekable();
    while let Some(a) = chars.next() {
        match chars.next_if(|&b| matches(a, b)) {
            Some(b) => out.extend(replacement(a, b)),
            None => out.push(a),
        }
    }
    out
}

/// The pieces between white space.
fn words(line: &str) -> Vec<String> {
    let words = line.split(is_space).filter(|word| !word.is_empty());
    words.map(str::to_owned).collect()
}

/// White space as Python has it: besides Unicode's, four separators of ASCII.
pub(crate) fn is_space(c: char) -> bool {
    c.is_whitespace() || ('\u{1c}'..='\u{1f}').contains(&c)
}
