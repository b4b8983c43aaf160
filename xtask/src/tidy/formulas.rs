//! Formulas in documentation that Markdown would take apart before they are typeset.

/// The breaches of one file, each with its line.
///
/// Rustdoc reads a formula as Markdown first: a backslash before punctuation goes, underscores and asterisks in pairs
/// are emphasis, and a line that begins with an operator begins a list.
pub(super) fn breaches(text: &str) -> Vec<String> {
    let mut breaches = Vec::new();
    let (mut state, mut is_code) = (State::default(), false);
    for (number, line) in text.lines().enumerate() {
        let line = line.trim_start();
        let doc = line.strip_prefix("///").or(line.strip_prefix("//!"));
        is_code &= doc.is_some();
        let doc = doc.unwrap_or_default().trim();
        if doc.starts_with("```") {
            is_code = !is_code;
        }
        if doc.is_empty() || is_code || doc.starts_with("```") {
            state = State::default();
            continue;
        }
        let found = state.read(doc);
        breaches.extend(found.map(|what| format!(":{}: {what}", number + 1)));
    }
    breaches
}

/// The part of a paragraph that has been read.
#[derive(Default)]
struct State {
    /// The number of dollars that close the formula, 0 outside of one.
    closing: usize,
    is_code: bool,
    /// Whether an underscore, or an asterisk, waits for its partner.
    open: [bool; 2],
}

impl State {
    /// The first breach of a line of a paragraph.
    fn read(&mut self, line: &str) -> Option<String> {
        let mut found = None;
        if self.closing > 0 && ["- ", "+ ", "* "].iter().any(|item| line.starts_with(item)) {
            found = Some(
                "a line of a formula begins a list: end the line before with the operator".into(),
            );
        }
        let chars: Vec<char> = line.chars().collect();
        let mut i = 0;
        while i < chars.len() {
            let (now, next) = (chars[i], chars.get(i + 1).copied().unwrap_or(' '));
            let before = if i > 0 { chars[i - 1] } else { ' ' };
            match now {
                '`' if self.closing == 0 => self.is_code = !self.is_code,
                _ if self.is_code => (),
                '$' => {
                    let dollars = 1 + usize::from(next == '$');
                    self.closing = if self.closing == 0 { dollars } else { 0 };
                    i += dollars - 1;
                }
                _ if self.closing == 0 => (),
                '\\' if next.is_ascii_punctuation() => {
                    if !['\\', '_'].contains(&next) {
                        found.get_or_insert(format!("Markdown takes the backslash of `\\{next}`"));
                    }
                    i += 1;
                }
                '_' | '*' => {
                    let [opens, closes] = emphasis(now, before, next);
                    let open = &mut self.open[usize::from(now == '*')];
                    if closes && *open {
                        let advice = "`\\_` or `\\ast` is typeset";
                        found.get_or_insert(format!(
                            "Markdown takes `{now}` for emphasis: {advice}"
                        ));
                    }
                    *open |= opens;
                }
                _ => (),
            }
            i += 1;
        }
        found
    }
}

/// Whether a mark between two characters can open emphasis, and whether it can close one.
fn emphasis(mark: char, before: char, next: char) -> [bool; 2] {
    let is_word = |c: char| !c.is_whitespace() && !c.is_ascii_punctuation();
    let left = !next.is_whitespace() && (is_word(next) || !is_word(before));
    let right = !before.is_whitespace() && (is_word(before) || !is_word(next));
    match mark {
        '*' => [left, right],
        _ => [
            left && (!right || before.is_ascii_punctuation()),
            right && (!left || next.is_ascii_punctuation()),
        ],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_markdown_takes_apart_is_found() {
        let refused = [
            r"/// $\beta\,\mathrm{KL}$",
            r"//! $\underbrace{a}_{\text{one}} \underbrace{b}_{\text{two}}$",
            r"/// $z^*_l$ and $z^*$",
            "/// $$a\n/// - b$$",
        ];
        for text in refused {
            assert_eq!(breaches(text).len(), 1, "{text}");
        }
        let taken = [
            r"/// $\beta \mathrm{KL}$, $x_i y_{ij}$, $\int f(x) \\, dx$",
            r"//! $\underbrace{a}\_{\text{one}} \underbrace{b}\_{\text{two}}$",
            "/// $|x|_p$\n///\n/// $x_{ij}$",
            "/// ```\n/// let x = \"$\\,$\";\n/// ```",
            r"// $\,$ is no documentation",
        ];
        for text in taken {
            assert!(breaches(text).is_empty(), "{text}");
        }
    }
}
