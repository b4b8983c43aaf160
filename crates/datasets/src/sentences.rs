//! The five sentence corpora, each as labelled rows of raw bytes with their splits.

use crate::folds::{FOLDS, deal, unite_repeats};
use crate::provenance::FileProvenance;
use crate::regression::{Protocol, by_name, named};
use crate::store::DataStore;
use crate::{Error, Split, manifest};
use bochner_numerics::argument;
use bochner_text::lines::{strip_byte_order_mark, utf8};
use serde::{Deserialize, Serialize};
use std::borrow::Cow;

/// The sentence corpora of Table 2.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum SentenceSet {
    /// Sentences of film reviews, negative or positive.
    Mr,
    /// Sentences of customers' reviews, negative or positive.
    Cr,
    /// Sentences of reviews and of plots, subjective or objective.
    Subj,
    /// Questions, of six kinds.
    Trec,
    /// Whole sentences of the Stanford sentiment treebank, negative or positive.
    Sst2,
}

impl SentenceSet {
    /// All sets, in the order of the table's columns.
    pub const ALL: [Self; 5] = [Self::Mr, Self::Cr, Self::Subj, Self::Trec, Self::Sst2];

    /// The name of its folder.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Mr => "mr",
            Self::Cr => "cr",
            Self::Subj => "subj",
            Self::Trec => "trec",
            Self::Sst2 => "sst2",
        }
    }

    /// The number of classes; labels are below it.
    pub const fn classes(self) -> usize {
        match self {
            Self::Trec => 6,
            _ => 2,
        }
    }

    /// The names of its files, in the order in which their rows are numbered: training, validation, test
    /// where the source has such parts.
    pub const fn files(self) -> &'static [&'static str] {
        match self {
            Self::Mr => &["mr/rt-polarity.all"],
            Self::Cr => &["cr/custrev.all"],
            Self::Subj => &["subj/subj.all"],
            Self::Trec => &["trec/TREC.train.all", "trec/TREC.test.all"],
            Self::Sst2 => &[
                "sst2/stsa.binary.train",
                "sst2/stsa.binary.dev",
                "sst2/stsa.binary.test",
            ],
        }
    }
}

named!(SentenceSet, "set of sentences");

/// A labelled sentence.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sentence {
    /// The class.
    pub label: usize,
    /// The text as it stands in the file, in whatever encoding.
    pub text: Vec<u8>,
}

/// A sentence corpus, split.
#[derive(Clone, Debug, PartialEq)]
pub struct SentenceData {
    /// The name of the set.
    pub set: SentenceSet,
    /// The rows of all files.
    pub sentences: Vec<Sentence>,
    /// The splits, as row numbers of `sentences`.
    pub splits: Vec<Split>,
    /// The files that the set was read from; empty if it was not read from pinned files.
    pub provenance: Vec<FileProvenance>,
}

/// Loads a sentence corpus with its splits.
///
/// | protocol | sets | splits |
/// |---|---|---|
/// | P10 | all | ten, by the fold rule over all rows: fold $f$ for test, fold $f + 1$ for validation |
/// | R90 | all | ten, by the same folds: fold $f$ for test, all others for training |
/// | Fixed | TREC | ten, with the test file for test and fold $f$ of the training file for validation |
/// | Fixed | SST-2 | one, by the three files |
///
/// The fold rule is [`folds`] with [`Repeats::Exact`], by which the folds were published: texts that differ in case or
/// punctuation alone may stand in different folds.
///
/// # Errors
/// The errors of [`DataStore::load`] and of [`SentenceData::of_files`].
pub fn load(
    set: SentenceSet,
    protocol: Protocol,
    store: &DataStore,
) -> Result<SentenceData, Error> {
    let mut files = Vec::new();
    let mut provenance = Vec::new();
    for name in set.files() {
        let parse = |file: &str, bytes: &[u8]| parse(file, bytes, set.classes());
        let (sentences, found) = store.load(manifest::entry(name)?, parse)?;
        files.push(sentences);
        provenance.push(found);
    }
    Ok(SentenceData {
        provenance,
        ..SentenceData::of_files(set, protocol, files)?
    })
}

/// Reads a file: on each line a digit, which is the label, a space, and the text.
///
/// Lines end in `\n` and in nothing else: the files are not all UTF-8, and a byte 0x85 in them is no line
/// break. A byte order mark before the first line is left out. A text can be empty.
///
/// ```
/// use bochner_datasets::sentences::parse;
///
/// let sentences = parse("mr", b"0 simplistic , silly and tedious . \n1 caf\xe9 \x85\n", 2)?;
/// assert_eq!((sentences[1].label, &sentences[1].text[..]), (1, &b"caf\xe9 \x85"[..]));
/// # Ok::<(), bochner_datasets::Error>(())
/// ```
///
/// # Errors
/// [`Error::Malformed`] with the line: for another first byte than the digit of a label below `classes`,
/// another second byte than a space, and for a file without lines; [`Error::Text`] for UTF-16.
pub fn parse(file: &str, bytes: &[u8], classes: usize) -> Result<Vec<Sentence>, Error> {
    let malformed = |line: usize, found: String| Error::Malformed {
        file: file.to_owned(),
        line,
        expected: format!("a label below {classes}, a space and a sentence"),
        found,
    };
    let bytes = strip_byte_order_mark(bytes);
    if bytes.is_empty() {
        return Err(malformed(1, "an empty file".to_owned()));
    }
    if bytes.contains(&0) {
        utf8(file, bytes)?;
    }
    let lines = bytes.strip_suffix(b"\n").unwrap_or(bytes);
    let lines = lines.split(|&byte| byte == b'\n').enumerate();
    let sentence = |(at, line): (usize, &[u8])| {
        let wrong = || {
            malformed(
                at + 1,
                crate::lines::excerpt(&String::from_utf8_lossy(line)),
            )
        };
        let [digit @ b'0'..=b'9', b' ', text @ ..] = line else {
            return Err(wrong());
        };
        let label = usize::from(digit - b'0');
        if label >= classes {
            return Err(wrong());
        }
        Ok(Sentence {
            label,
            text: text.to_vec(),
        })
    };
    lines.map(sentence).collect()
}

impl SentenceData {
    /// A corpus of sentences that were read or generated elsewhere: one list for each of the set's
    /// [`files`](SentenceSet::files).
    ///
    /// ```
    /// use bochner_datasets::sentences::{Sentence, SentenceData};
    /// use bochner_datasets::{Protocol, SentenceSet};
    ///
    /// let sentence = |i: usize| Sentence { label: i % 2, text: format!("text {i}").into() };
    /// let rows = (0..50).map(sentence).collect();
    /// let data = SentenceData::of_files(SentenceSet::Mr, Protocol::P10, vec![rows])?;
    /// assert_eq!((data.splits.len(), data.splits[0].test.len()), (10, 5));
    /// # Ok::<(), bochner_datasets::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Argument`] for another number of files; [`Error::Malformed`] for a label that the set does not have;
    /// [`Error::UnknownName`] for [`Protocol::Fixed`] with a set whose source has one file;
    /// [`Error::TooFewRows`] if a part of a split is empty.
    pub fn of_files(
        set: SentenceSet,
        protocol: Protocol,
        files: Vec<Vec<Sentence>>,
    ) -> Result<Self, Error> {
        argument::shape("files", &[set.files().len()], &[files.len()])?;
        for (file, rows) in set.files().iter().zip(&files) {
            if let Some(at) = rows.iter().position(|row| row.label >= set.classes()) {
                return Err(Error::Malformed {
                    file: (*file).to_owned(),
                    line: at + 1,
                    expected: format!("a label below {}", set.classes()),
                    found: format!("the label {}", rows[at].label),
                });
            }
        }
        let sizes: Vec<usize> = files.iter().map(Vec::len).collect();
        let sentences: Vec<Sentence> = files.into_iter().flatten().collect();
        let splits = match (protocol, set) {
            (Protocol::P10, _) => Split::cross_validation(&folds(&sentences, Repeats::Exact)),
            (Protocol::R90, _) => Split::held_out(&masks(&folds(&sentences, Repeats::Exact))),
            (Protocol::Fixed, SentenceSet::Trec) => {
                fixed_test(&folds(&sentences[..sizes[0]], Repeats::Exact), sizes[1])
            }
            (Protocol::Fixed, SentenceSet::Sst2) => vec![by_files(&sizes)],
            (Protocol::Fixed, _) => {
                let known = [Protocol::P10, Protocol::R90];
                let what = format!("protocol of {set}");
                by_name(what, &known, Protocol::name, protocol.name())?;
                unreachable!("a protocol that is not in the list has an unknown name")
            }
        };
        check(set.name(), protocol, &splits)?;
        Ok(Self {
            set,
            sentences,
            splits,
            provenance: Vec::new(),
        })
    }
}

/// The texts that count as the same, and stay in one fold.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Repeats {
    /// Texts with the same letters and digits, whatever their case, punctuation and spaces: what cleaning makes the same is
    /// the same. Texts of ASCII punctuation alone are all the same.
    #[default]
    Cleaned,
    /// Texts that are equal byte for byte.
    Exact,
}

/// The folds of rows: [`deal`] by label, then [`unite_repeats`], so that no test part holds a text of the training part.
///
/// ```
/// use bochner_datasets::sentences::{Repeats, Sentence, folds};
///
/// let text = |i: usize| ["A fine film!", "a fine film ."].get(i).map_or(format!("text {i}"), |text| (*text).into());
/// let rows: Vec<_> = (0..20).map(|i| Sentence { label: i % 2, text: text(i).into() }).collect();
/// let cleaned = folds(&rows, Repeats::Cleaned);
/// assert_eq!(cleaned[0], cleaned[1]);
/// assert_ne!(cleaned, folds(&rows, Repeats::Exact));
/// ```
pub fn folds(sentences: &[Sentence], repeats: Repeats) -> Vec<usize> {
    let labels: Vec<usize> = sentences.iter().map(|row| row.label).collect();
    let texts = sentences.iter().map(|row| match repeats {
        Repeats::Exact => Cow::Borrowed(&*row.text),
        Repeats::Cleaned => Cow::Owned(letters(&row.text).into_bytes()),
    });
    let mut folds = deal(&labels);
    unite_repeats(&mut folds, &texts.collect::<Vec<_>>());
    folds
}

/// The letters and digits of a text in lower case; of a text without any, the characters beyond ASCII, such as emoji.
fn letters(text: &[u8]) -> String {
    let lower = String::from_utf8_lossy(text).to_lowercase();
    let letters: String = lower.chars().filter(|c| c.is_alphanumeric()).collect();
    match letters.is_empty() {
        true => lower.chars().filter(|c| !c.is_ascii()).collect(),
        false => letters,
    }
}

fn masks(folds: &[usize]) -> Vec<[bool; FOLDS]> {
    let mask = |&fold: &usize| std::array::from_fn(|split| split == fold);
    folds.iter().map(mask).collect()
}

/// Ten splits with the same test rows, which follow the rows that are in folds.
fn fixed_test(folds: &[usize], test: usize) -> Vec<Split> {
    let rows =
        |keep: &dyn Fn(usize) -> bool| (0..folds.len()).filter(|&row| keep(folds[row])).collect();
    let split = |validation| Split {
        train: rows(&|fold| fold != validation),
        validation: rows(&|fold| fold == validation),
        test: (folds.len()..folds.len() + test).collect(),
    };
    (0..FOLDS).map(split).collect()
}

/// The split by files of training, validation and test rows.
fn by_files(sizes: &[usize]) -> Split {
    let starts = [0, sizes[0], sizes[0] + sizes[1]];
    let rows = |part: usize| (starts[part]..starts[part] + sizes[part]).collect();
    Split {
        train: rows(0),
        validation: rows(1),
        test: rows(2),
    }
}

/// Refuses splits with an empty part.
pub(crate) fn check(set: &str, protocol: Protocol, splits: &[Split]) -> Result<(), Error> {
    for (number, split) in splits.iter().enumerate() {
        let mut parts = vec![("training", &split.train), ("test", &split.test)];
        if protocol != Protocol::R90 {
            parts.push(("validation", &split.validation));
        }
        if let Some((part, _)) = parts.into_iter().find(|(_, rows)| rows.is_empty()) {
            return Err(Error::TooFewRows {
                part: format!("the {part} part of split {number} of {set}"),
                wanted: 1,
                available: 0,
            });
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(n: usize, classes: usize) -> Vec<Sentence> {
        let sentence = |i: usize| Sentence {
            label: i % classes,
            text: format!("sentence {}", i % (n - 3)).into_bytes(),
        };
        (0..n).map(sentence).collect()
    }

    #[test]
    fn texts_that_recur_are_in_one_part() {
        let data = SentenceData::of_files(SentenceSet::Cr, Protocol::P10, vec![rows(60, 2)]);
        let data = data.unwrap();
        for split in &data.splits {
            let of = |rows: &[usize]| -> Vec<_> {
                rows.iter().map(|&row| &data.sentences[row].text).collect()
            };
            let (train, test) = (of(&split.train), of(&split.test));
            assert!(test.iter().all(|text| !train.contains(text)));
            let all = split.train.len() + split.validation.len() + split.test.len();
            assert_eq!(all, 60);
        }
    }

    #[test]
    fn protocols_take_the_rows_that_they_name() {
        let trec = || vec![rows(60, 6), rows(12, 6)];
        let of = |set, protocol, files| SentenceData::of_files(set, protocol, files).unwrap();
        let fixed = of(SentenceSet::Trec, Protocol::Fixed, trec());
        assert_eq!(fixed.splits.len(), 10);
        for (at, split) in fixed.splits.iter().enumerate() {
            assert_eq!(split.test, (60..72).collect::<Vec<_>>());
            assert_eq!(split.train.len() + split.validation.len(), 60);
            // A fold of the training file, as if it were alone.
            assert!(
                split
                    .validation
                    .iter()
                    .all(|&row| folds(&rows(60, 6), Repeats::Exact)[row] == at)
            );
        }
        let all = of(SentenceSet::Trec, Protocol::R90, trec());
        assert!(all.splits.iter().all(|split| split.validation.is_empty()));
        let tested: usize = all.splits.iter().map(|split| split.test.len()).sum();
        assert_eq!(tested, 72);
        let sst2 = vec![rows(20, 2), rows(10, 2), rows(5, 2)];
        let given = of(SentenceSet::Sst2, Protocol::Fixed, sst2).splits;
        assert_eq!(given.len(), 1);
        assert_eq!(given[0].validation, (20..30).collect::<Vec<_>>());
        assert_eq!(given[0].test, (30..35).collect::<Vec<_>>());
    }

    #[test]
    fn wrong_lines_are_named() {
        let wrong = |bytes: &[u8]| parse("f", bytes, 2).unwrap_err().to_string();
        assert!(wrong(b"0 a\n2 b\n").starts_with("f, line 2: expected a label below 2"));
        assert!(wrong(b"0 a\n\n1 b\n").starts_with("f, line 2"));
        assert!(wrong(b"0\ta\n").starts_with("f, line 1"));
        assert!(wrong(b"x a\n").contains("\"x a\""));
        assert!(wrong(b"").contains("an empty file"));
        assert!(wrong(b"0\0 \0a\0").contains("UTF-16: convert it to UTF-8"));
        assert_eq!(parse("f", b"\xef\xbb\xbf0 a\n", 2).unwrap()[0].text, b"a");
        // A byte 0x85 or a missing newline at the end breaks no line.
        assert_eq!(parse("f", b"0 a\x85b\n1 ", 2).unwrap().len(), 2);
    }

    #[test]
    fn sets_that_do_not_fit_are_refused() {
        let of = |set, protocol, files| SentenceData::of_files(set, protocol, files).unwrap_err();
        let fixed = of(SentenceSet::Mr, Protocol::Fixed, vec![rows(60, 2)]);
        assert_eq!(
            fixed.to_string(),
            "no protocol of mr is called `Fixed`: there are P10, R90"
        );
        let file = of(SentenceSet::Trec, Protocol::P10, vec![rows(60, 6)]);
        assert!(matches!(file, Error::Argument(_)));
        let files = vec![rows(60, 6), rows(12, 7)];
        let label = of(SentenceSet::Trec, Protocol::P10, files).to_string();
        let wanted =
            "trec/TREC.test.all, line 7: expected a label below 6, found the label 6; replace";
        assert!(label.starts_with(wanted), "{label}");
        let few = of(SentenceSet::Mr, Protocol::P10, vec![rows(8, 2)]);
        assert!(matches!(few, Error::TooFewRows { .. }));
    }
}
