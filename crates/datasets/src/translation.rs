//! Parallel texts: three German-English corpora from their files, any two files of lines, and a task without files.

mod reverse;

pub use reverse::Reversal;

use crate::provenance::FileProvenance;
use crate::regression::named;
use crate::store::DataStore;
use crate::{Error, manifest};
use bochner_text::{is_blank, lines};
use serde::{Deserialize, Serialize};

/// The corpora of Table 3, German to English, tokenised and lower-cased.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum TranslationSet {
    /// Captions of pictures.
    Multi30k,
    /// 28,378 of the 160,239 training pairs of IWSLT 2014, talks, with its official test set.
    Iwslt14,
    /// All training pairs of IWSLT 2014, with its official test set: the corpus of the published numbers.
    ///
    /// Its files are not handed on with others, and [`Policy::Download`](crate::Policy) fetches them. Validation and test
    /// are pinned by length and SHA-256. The training pairs are pinned by what git calls their files in a published
    /// commit, which settles their bytes, too; how many lines they have is not checked beyond that both have as many.
    #[serde(rename = "iwslt14-full")]
    Iwslt14Full,
}

impl TranslationSet {
    /// All sets.
    pub const ALL: [Self; 3] = [Self::Multi30k, Self::Iwslt14, Self::Iwslt14Full];

    /// The name of its folder.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Multi30k => "multi30k",
            Self::Iwslt14 => "iwslt14",
            Self::Iwslt14Full => "iwslt14-full",
        }
    }

    /// The German and the English file of each part: training, validation, test, further tests.
    const fn parts(self) -> &'static [[&'static str; 2]] {
        match self {
            Self::Multi30k => &[
                [
                    "multi30k/train.lc.norm.tok.de",
                    "multi30k/train.lc.norm.tok.en",
                ],
                ["multi30k/val.lc.norm.tok.de", "multi30k/val.lc.norm.tok.en"],
                [
                    "multi30k/test_2016_flickr.lc.norm.tok.de",
                    "multi30k/test_2016_flickr.lc.norm.tok.en",
                ],
                [
                    "multi30k/test_2017_flickr.lc.norm.tok.de",
                    "multi30k/test_2017_flickr.lc.norm.tok.en",
                ],
            ],
            Self::Iwslt14 => &[
                ["iwslt14/train.de", "iwslt14/train.en"],
                ["iwslt14/dev.de", "iwslt14/dev.en"],
                ["iwslt14/test.de", "iwslt14/test.en"],
            ],
            Self::Iwslt14Full => &[
                ["iwslt14-full/train.de", "iwslt14-full/train.en"],
                ["iwslt14-full/valid.de", "iwslt14-full/valid.en"],
                ["iwslt14-full/test.de", "iwslt14-full/test.en"],
            ],
        }
    }

    /// The names of the tests behind the first.
    const fn others(self) -> &'static [&'static str] {
        match self {
            Self::Multi30k => &["test 2017"],
            Self::Iwslt14 | Self::Iwslt14Full => &[],
        }
    }
}

named!(TranslationSet, "translation set");

/// Lines and their translations.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ParallelText {
    /// The lines to be translated.
    pub source: Vec<String>,
    /// The translation of each.
    pub target: Vec<String>,
    /// The lines of pairs that were left out for a blank side, from 1.
    pub dropped: Vec<usize>,
}

/// The treatment of pairs with a blank side: one of nothing but white space and characters without width.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Blank {
    /// They are an error, which names the line.
    #[default]
    Refuse,
    /// They are left out, and their lines are listed.
    Drop,
}

/// A parallel corpus in its parts.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TranslationData {
    /// The pairs to learn from.
    pub train: ParallelText,
    /// The pairs that choose an epoch.
    pub validation: ParallelText,
    /// The pairs to be judged by.
    pub test: ParallelText,
    /// Further tests, by name.
    pub others: Vec<(&'static str, ParallelText)>,
    /// The files that the corpus was read from; empty if it was not read from pinned files.
    pub provenance: Vec<FileProvenance>,
}

/// Loads a corpus.
///
/// # Errors
/// The errors of [`DataStore::fetch`] and of [`parse`].
pub fn load(set: TranslationSet, store: &DataStore) -> Result<TranslationData, Error> {
    let (mut texts, mut provenance) = (Vec::new(), Vec::new());
    for names in set.parts() {
        let [source, target] = names.map(manifest::entry);
        let (source, target) = (source?, target?);
        let files = [store.fetch(source)?, store.fetch(target)?];
        let places = files.each_ref().map(|file| &*file.place);
        let bytes = files.each_ref().map(|file| &*file.bytes);
        texts.push(parse(places, bytes, Blank::Refuse)?);
        let found = [source, target].into_iter().zip(&files);
        provenance.extend(found.map(|(entry, file)| FileProvenance::of(entry, file)));
    }
    let mut texts = texts.into_iter();
    let mut next = || texts.next().expect("a set has three parts at least");
    Ok(TranslationData {
        train: next(),
        validation: next(),
        test: next(),
        others: set.others().iter().copied().zip(texts).collect(),
        provenance,
    })
}

/// Reads two files of which each line of the second translates that of the first.
///
/// Lines end in `\n` and in nothing else: other characters that some readers take for line breaks stay in their line, so
/// that the two files keep their lines together.
///
/// ```
/// use bochner_datasets::translation::{Blank, parse};
///
/// let files = ["train.de", "train.en"];
/// let text = parse(files, ["ein hund\n\nja .\n".as_bytes(), b"a dog\na cat\nyes .\n"], Blank::Drop)?;
/// assert_eq!((text.len(), &*text.source[1], &*text.target[1]), (2, "ja .", "yes ."));
/// assert_eq!(text.dropped, [2]);
///
/// let wrong = parse(files, [b"ein hund\nja .\n", b"a dog\n"], Blank::Drop).unwrap_err();
/// assert!(wrong.to_string().starts_with("train.de has 2 lines and train.en 1: line 2 of train.de "));
/// # Ok::<(), bochner_datasets::Error>(())
/// ```
///
/// # Errors
/// [`Error::Text`] for a file without text and for bytes that are not UTF-8, with the line;
/// [`Error::UnequalLines`]; [`Error::EmptySide`] for a blank line, unless its pair is dropped.
pub fn parse(files: [&str; 2], bytes: [&[u8]; 2], blank: Blank) -> Result<ParallelText, Error> {
    let [source, target] = [lines(files[0], bytes[0])?, lines(files[1], bytes[1])?];
    ParallelText::of_lines(files, [source, target], blank)
}

impl ParallelText {
    /// A text of two lists of lines; `files` are their names in messages.
    ///
    /// # Errors
    /// [`Error::UnequalLines`]; [`Error::EmptySide`] for a blank line, unless its pair is dropped.
    pub fn of_lines<S: AsRef<str>>(
        files: [&str; 2],
        [source, target]: [Vec<S>; 2],
        blank: Blank,
    ) -> Result<Self, Error> {
        if source.len() != target.len() {
            return Err(Error::UnequalLines {
                files: files.map(str::to_owned),
                lines: [source.len(), target.len()],
            });
        }
        let mut text = Self::default();
        for (at, (source, target)) in source.iter().zip(&target).enumerate() {
            let pair = [source, target].map(AsRef::as_ref);
            match (pair.iter().position(|line| is_blank(line)), blank) {
                (None, _) => {
                    text.source.push(pair[0].to_owned());
                    text.target.push(pair[1].to_owned());
                }
                (Some(_), Blank::Drop) => text.dropped.push(at + 1),
                (Some(side), Blank::Refuse) => {
                    return Err(Error::EmptySide {
                        file: files[side].to_owned(),
                        other: files[1 - side].to_owned(),
                        line: at + 1,
                    });
                }
            }
        }
        Ok(text)
    }

    /// The number of pairs.
    pub fn len(&self) -> usize {
        self.source.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.source.is_empty()
    }

    /// Keeps the first pairs, at most `most` of them.
    #[must_use]
    pub fn first(mut self, most: usize) -> Self {
        self.source.truncate(most);
        self.target.truncate(most);
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(source: &[u8], target: &[u8]) -> String {
        let parsed = parse(["a.de", "a.en"], [source, target], Blank::Refuse);
        parsed.unwrap_err().to_string()
    }

    #[test]
    fn the_lines_without_a_partner_are_named() {
        assert_eq!(
            refused(b"eins\nzwei\ndrei\n", b"one\n"),
            "a.de has 3 lines and a.en 1: lines 2 to 3 of a.de have no partner; a line may be missing anywhere before, so \
             align the files again"
        );
        let one = refused(b"eins\n", b"one\ntwo");
        assert!(one.contains("line 2 of a.en has no partner"), "{one}");
        let blank = refused(b"eins\n", b"one\n\n");
        assert!(blank.contains("line 2 of a.en has no partner"), "{blank}");
    }

    #[test]
    fn an_empty_side_is_named_with_its_file_and_line() {
        assert_eq!(
            refused(b"eins\nzwei\n", b"one\n  \n"),
            "a.en, line 2 is empty, and cannot be the partner of line 2 of a.de; remove both lines, or drop such pairs with \
             `Blank::Drop`"
        );
        for invisible in ["", "\u{200b}", "\u{feff}\u{feff}"] {
            let said = refused(format!("{invisible}\nzwei\n").as_bytes(), b"one\ntwo\n");
            assert!(said.starts_with("a.de, line 1 is empty"), "{said}");
        }
        assert!(refused(b"", b"").starts_with("a.de is empty"));
    }

    #[test]
    fn bytes_that_are_not_utf_8_are_named_with_their_line() {
        let said = refused(b"eins\nzwei\n", b"one\ntw\xf6\n");
        let wanted =
            "a.en, line 2: byte 3 is not UTF-8. The text looks like Latin-1: convert it to UTF-8";
        assert!(said.starts_with(wanted), "{said}");
    }

    #[test]
    fn a_byte_order_mark_is_no_part_of_the_first_word() {
        let text = "\u{feff}eins\nzwei\n".as_bytes();
        let parsed = parse(["a.de", "a.en"], [text, b"one\ntwo\n"], Blank::Refuse).unwrap();
        assert_eq!(parsed.source, ["eins", "zwei"]);
    }

    #[test]
    fn lines_end_in_a_newline_alone() {
        let text = "eins\u{85}zwei\u{2028}\r\ndrei";
        let parsed = parse(
            ["a.de", "a.en"],
            [text.as_bytes(), b"one two\nthree\n"],
            Blank::Refuse,
        )
        .unwrap();
        assert_eq!(parsed.source, ["eins\u{85}zwei\u{2028}\r", "drei"]);
        assert_eq!(
            (parsed.clone().first(1).len(), parsed.first(9).len()),
            (1, 2)
        );
    }

    #[test]
    fn names_of_sets_are_read_back() {
        for set in TranslationSet::ALL {
            assert_eq!(set.name().parse::<TranslationSet>().unwrap(), set);
            assert_eq!(set.parts().len(), 3 + set.others().len());
            for file in set.parts().iter().flatten() {
                assert_eq!(manifest::entry(file).unwrap().set, set.name());
            }
        }
    }
}
