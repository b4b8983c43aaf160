//! The cleaning of sentences for classification.

/// The endings that are split off the word before them.
const ENDINGS: [&[u8]; 6] = [b"'s", b"'ve", b"n't", b"'re", b"'d", b"'ll"];

/// The tokens of a sentence, by the rule of Kim's classifier.
///
/// Every byte but ASCII letters, digits and ``( ) , ! ? ' ` `` is a space. A token begins at each of
/// `'s`, `'ve`, `n't`, `'re`, `'d` and `'ll` in lower case, and each of `, ! ( ) ?` is a token of its own.
/// The tokens are in lower case.
///
/// The rule works on bytes, so that the encoding does not matter: each byte of a character beyond ASCII
/// is a space in Latin-1 and in UTF-8. A sentence can have no token.
///
/// ```
/// use bochner_text::clean_str;
///
/// let tokens = clean_str("It isn't (really) a film by Am\u{e9}lie, is it?");
/// assert_eq!(tokens.join(" "), "it is n't ( really ) a film by am lie , is it ?");
/// assert!(clean_str(b"\x85 - .").is_empty());
/// ```
///
/// # Reference
/// Y. Kim, *Convolutional neural networks for sentence classification*, 2014, and its data preparation.
pub fn clean_str(text: impl AsRef<[u8]>) -> Vec<String> {
    let text = text.as_ref();
    let mut tokens = Vec::new();
    let mut token = String::new();
    let end = |token: &mut String, tokens: &mut Vec<String>| {
        if !token.is_empty() {
            tokens.push(std::mem::take(token));
        }
    };
    for (at, byte) in text.iter().enumerate() {
        if ENDINGS.iter().any(|ending| text[at..].starts_with(ending)) {
            end(&mut token, &mut tokens);
        }
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'\'' | b'`' => {
                token.push(byte.to_ascii_lowercase().into());
            }
            b',' | b'!' | b'(' | b')' | b'?' => {
                end(&mut token, &mut tokens);
                tokens.push(char::from(*byte).into());
            }
            _ => end(&mut token, &mut tokens),
        }
    }
    end(&mut token, &mut tokens);
    tokens
}
