//! Wording of comments: openings and fixed words that slow a reader down.

/// A doc comment opens with a noun phrase or with a verb in the third person, and so with none of these.
const OPENINGS: [&str; 14] = [
    "What", "Which", "Who", "Whose", "How", "Where", "Of", "As", "Those", "None", "Nothing",
    "Itself", "Both", "The same",
];

/// Words that no comment holds.
const WORDS: [&str; 10] = [
    "nobody",
    "anew",
    "but for",
    "of itself",
    "gone back through",
    "as many as there are",
    "for as many",
    "each of which",
    "of which nothing",
    "unless it is said",
];

/// The breaches of one file, each with the line that its comment begins at.
pub(super) fn breaches(text: &str) -> Vec<String> {
    let mut breaches = Vec::new();
    let lines: Vec<&str> = text.lines().map(str::trim).collect();
    let mut first = 0;
    for block in lines.chunk_by(|a, b| marker(a) == marker(b)) {
        let behind = &lines[first + block.len()..];
        if let Some(marker) = marker(block[0]) {
            let words = block
                .iter()
                .flat_map(|line| line[marker.len()..].split_whitespace());
            let comment = words.collect::<Vec<_>>().join(" ");
            let opening = opening(&comment)
                .filter(|_| marker != "//")
                .filter(|opening| *opening != "Whether" || !is_boolean(behind))
                .map(|opening| format!("a doc comment opens with `{opening}`"));
            let held = WORDS.iter().filter(|words| holds(&comment, words));
            let held = held.map(|words| format!("a comment holds `{words}`"));
            let found = opening.into_iter().chain(held);
            breaches.extend(found.map(|what| format!(":{}: {what}", first + 1)));
        }
        first += block.len();
    }
    breaches
}

/// The marker of a line of a comment.
fn marker(line: &str) -> Option<&'static str> {
    ["///", "//!", "//"]
        .into_iter()
        .find(|marker| line.starts_with(marker))
}

/// The opening of a doc comment if it is one of those held.
fn opening(comment: &str) -> Option<&'static str> {
    let mut held = OPENINGS.into_iter().chain(["Whether"]);
    held.find(|opening| {
        let behind = comment.strip_prefix(opening);
        behind.is_some_and(|behind| !behind.starts_with(char::is_alphanumeric))
    })
}

/// Whether a comment holds whole words.
fn holds(comment: &str, words: &str) -> bool {
    let comment = comment.to_lowercase();
    comment.match_indices(words).any(|(at, _)| {
        let (before, behind) = (&comment[..at], &comment[at + words.len()..]);
        !before.ends_with(char::is_alphanumeric) && !behind.starts_with(char::is_alphanumeric)
    })
}

/// Whether the item that follows a doc comment returns a boolean or is one; so may be an array of booleans.
fn is_boolean(behind: &[&str]) -> bool {
    let mut item = String::new();
    for line in behind.iter().filter(|line| !line.starts_with("#[")) {
        item += line;
        if line.ends_with(['{', '}', ';']) || line.ends_with(',') && !item.contains("fn ") {
            break;
        }
    }
    let kind = match item.contains("fn ") {
        true => item.rsplit_once("->").map_or("", |(_, kind)| kind),
        false => &item,
    };
    kind.split(|c: char| !c.is_alphanumeric())
        .any(|word| word == "bool")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn openings_and_fixed_words_are_found() {
        let refused = [
            "//! What a call gives.",
            "/// The same, in f32.\nfn single() {}",
            "/// Whether a width is even.\nwidth: usize,",
            "/// Whether there is a mask.\nfn mask(\n    wanted: bool,\n) -> usize {",
            "// Each value, but\n// for the first.",
            "fn f() {}\n// Nobody reads it.",
        ];
        for text in refused {
            assert_eq!(breaches(text).len(), 1, "{text}");
        }
        assert_eq!(breaches(refused[5]), [":2: a comment holds `nobody`"]);
        let taken = [
            "// What a plain comment may open with.",
            "/// The value.\n///\n/// What follows is a second paragraph.",
            "/// Whether a row has padding.\n#[serde(default)]\npub padded: [bool; 2],",
            "/// Whether a mask is given.\nfn masks(\n    wanted: usize,\n) -> bool {",
            "/// Offset of a row; a panewise read.",
            "/// `None` for all.",
        ];
        for text in taken {
            assert!(breaches(text).is_empty(), "{text}");
        }
    }
}
