//! Labelled sentences of one's own, from two columns of a file or from fastText's lines.

use crate::lines::excerpt;
use crate::records::{Delimiter, Record, records};
use crate::regression::Protocol;
use crate::sentences::{Repeats, Sentence, check, folds};
use crate::table::places;
use crate::translation::Blank;
use crate::{Error, Split};
use bochner_text::{clean_str, is_blank, lines, lines::utf8};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

/// The mark of a label in fastText's files.
const MARK: &str = "__label__";

/// The form of a file of labelled sentences.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct LabelledConfig {
    /// The places of text and label; by default columns `text` and `label` between tabs.
    pub format: LabelledFormat,
    /// The classes in the order of their numbers, such as those of the training file when a test file is read; by default
    /// those that the file has, in their order as numbers or as words.
    pub classes: Vec<String>,
    /// The treatment of rows whose text is blank; they are refused by default.
    pub blank: Blank,
}

/// The places of text and label in a file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub enum LabelledFormat {
    /// Two columns that the first line names.
    Named {
        /// The character between cells.
        delimiter: Delimiter,
        /// The name of the column of texts.
        text: String,
        /// The name of the column of labels.
        label: String,
    },
    /// Two columns of a file without a line of names.
    Numbered {
        /// The character between cells.
        delimiter: Delimiter,
        /// The place of the column of texts, from 0.
        text: usize,
        /// The place of the column of labels, from 0.
        label: usize,
    },
    /// On each line a label behind `__label__`, a space and the text, as fastText reads it.
    #[doc(alias = "__label__")]
    FastText,
}

impl Default for LabelledFormat {
    fn default() -> Self {
        Self::Named {
            delimiter: Delimiter::Tab,
            text: "text".to_owned(),
            label: "label".to_owned(),
        }
    }
}

/// Sentences with labels, and the names of their classes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LabelledText {
    /// The sentences; a label is the place of its class.
    pub sentences: Vec<Sentence>,
    /// The names of the classes.
    pub classes: Vec<String>,
    /// The lines of rows that were left out for a blank text, from 1.
    pub dropped: Vec<usize>,
}

/// A row of a file.
struct Row {
    line: usize,
    label: String,
    text: String,
}

/// Reads labelled sentences. The name `file` is only for messages.
///
/// ```
/// use bochner_datasets::labelled::{LabelledConfig, LabelledFormat, parse};
///
/// let read = parse("own.tsv", b"label\ttext\ngood\ta fine film\nbad\thow dull\n", &LabelledConfig::default())?;
/// assert_eq!(read.classes, ["bad", "good"]);
/// assert_eq!((read.sentences[0].label, &*read.sentences[0].text), (1, &b"a fine film"[..]));
///
/// // The classes of the training file keep their numbers in the test file.
/// let config = LabelledConfig { format: LabelledFormat::FastText, classes: read.classes, ..Default::default() };
/// assert_eq!(parse("test.txt", b"__label__good a rare film\n", &config)?.sentences[0].label, 1);
/// # Ok::<(), bochner_datasets::Error>(())
/// ```
///
/// # Errors
/// [`Error::Text`] for a file that is empty or not UTF-8; [`Error::UnknownColumn`]; [`Error::Malformed`] with the line for
/// another number of cells than the first line has, a blank line in a file of columns, a blank label, a blank text unless
/// such rows are dropped, a label that is not among given classes, several labels on a line of fastText, and for a file
/// without rows.
pub fn parse(file: &str, bytes: &[u8], config: &LabelledConfig) -> Result<LabelledText, Error> {
    let text = utf8(file, bytes)?;
    if is_blank(text) {
        let file = file.to_owned();
        return Err(bochner_text::Error::EmptyText { file }.into());
    }
    let rows = match &config.format {
        LabelledFormat::FastText => of_fast_text(file, bytes)?,
        LabelledFormat::Numbered {
            delimiter,
            text: of_text,
            label,
        } => of_columns(
            file,
            &records(file, text, 0, *delimiter)?,
            [*of_text, *label],
        )?,
        LabelledFormat::Named {
            delimiter,
            text: of_text,
            label,
        } => {
            let records = records(file, text, 0, *delimiter)?;
            let (names, rows) = match records.split_first() {
                Some((names, rows)) => (&names.cells[..], rows),
                None => (&[][..], &[][..]),
            };
            let columns = places(file, names, &[of_text.clone(), label.clone()])?;
            of_columns(file, rows, [columns[0], columns[1]])?
        }
    };
    let malformed = |line: usize, expected: &str, found: String| Error::Malformed {
        file: file.to_owned(),
        line,
        expected: expected.to_owned(),
        found,
    };
    let (mut kept, mut dropped) = (Vec::new(), Vec::new());
    for row in rows {
        match (is_blank(&row.label), is_blank(&row.text), config.blank) {
            (_, true, Blank::Drop) => dropped.push(row.line),
            (_, true, Blank::Refuse) => {
                let expected = "a text (or `Blank::Drop`)";
                return Err(malformed(row.line, expected, "none".to_owned()));
            }
            (true, false, _) => return Err(malformed(row.line, "a label", "none".to_owned())),
            (false, false, _) => kept.push(row),
        }
    }
    if kept.is_empty() {
        let found = format!("none, and {} with a blank text", dropped.len());
        return Err(malformed(1, "rows with a label and a text", found));
    }
    let classes = match &config.classes[..] {
        [] => classes(&kept),
        given => given.to_vec(),
    };
    let sentence = |row: Row| {
        let label = classes.iter().position(|class| *class == row.label);
        let expected = || format!("one of the classes {}", excerpt(&classes.join(", ")));
        let label = label.ok_or_else(|| malformed(row.line, &expected(), excerpt(&row.label)))?;
        let text = row.text.into_bytes();
        Ok(Sentence { label, text })
    };
    Ok(LabelledText {
        sentences: kept
            .into_iter()
            .map(sentence)
            .collect::<Result<_, Error>>()?,
        classes,
        dropped,
    })
}

impl LabelledText {
    /// The words of some rows, split and cleaned by [`clean_str`], and their labels.
    ///
    /// # Panics
    /// If there is no such row.
    pub fn words(&self, rows: &[usize]) -> (Vec<Vec<String>>, Vec<usize>) {
        let rows = rows.iter().map(|&row| &self.sentences[row]);
        rows.map(|row| (clean_str(&row.text), row.label)).unzip()
    }

    /// The ten splits of a cross-validation by [`folds`], with [`Repeats::Cleaned`]: no test part holds a text that differs
    /// from one of the training part in case, punctuation and spaces alone.
    ///
    /// # Errors
    /// [`Error::TooFewRows`] if a part of a split is empty.
    pub fn splits(&self) -> Result<Vec<Split>, Error> {
        let splits = Split::cross_validation(&folds(&self.sentences, Repeats::Cleaned));
        check("the labelled sentences", Protocol::P10, &splits)?;
        Ok(splits)
    }
}

/// The rows of records, from the columns of text and label.
fn of_columns(file: &str, records: &[Record], columns: [usize; 2]) -> Result<Vec<Row>, Error> {
    let row = |record: &Record| {
        let cells = columns.map(|column| record.cells.get(column).cloned());
        let [Some(text), Some(label)] = cells else {
            return Err(Error::Malformed {
                file: file.to_owned(),
                line: record.line,
                expected: format!("at least {} cells", 1 + columns[0].max(columns[1])),
                found: format!("{} cells", record.cells.len()),
            });
        };
        let line = record.line;
        Ok(Row { line, label, text })
    };
    records.iter().map(row).collect()
}

/// The rows of fastText's lines.
fn of_fast_text(file: &str, bytes: &[u8]) -> Result<Vec<Row>, Error> {
    let row = |(at, line): (usize, &str)| {
        let line = line.trim();
        let cut = line.find(char::is_whitespace).unwrap_or(line.len());
        let (label, text) = line.split_at(cut);
        let text = text.trim_start();
        match label.strip_prefix(MARK) {
            Some(label) if !text.starts_with(MARK) => Ok(Row {
                line: at + 1,
                label: label.to_owned(),
                text: text.to_owned(),
            }),
            _ => Err(Error::Malformed {
                file: file.to_owned(),
                line: at + 1,
                expected: format!("one label behind `{MARK}`, a space and a text"),
                found: excerpt(line),
            }),
        }
    };
    lines(file, bytes)?
        .into_iter()
        .enumerate()
        .map(row)
        .collect()
}

/// The classes of rows in the order of their numbers, or of their code points unless all are numbers.
fn classes(rows: &[Row]) -> Vec<String> {
    let distinct: BTreeSet<&String> = rows.iter().map(|row| &row.label).collect();
    let mut classes: Vec<String> = distinct.into_iter().cloned().collect();
    let number = |class: &String| class.parse::<i64>().ok();
    if classes.iter().all(|class| number(class).is_some()) {
        classes.sort_by_key(number);
    }
    classes
}

#[cfg(test)]
mod tests {
    use super::*;

    fn numbered(delimiter: Delimiter) -> LabelledConfig {
        LabelledConfig {
            format: LabelledFormat::Numbered {
                delimiter,
                text: 1,
                label: 0,
            },
            ..LabelledConfig::default()
        }
    }

    fn fast_text() -> LabelledConfig {
        LabelledConfig {
            format: LabelledFormat::FastText,
            ..LabelledConfig::default()
        }
    }

    fn texts(read: &LabelledText) -> Vec<(&str, &str)> {
        let mut texts = Vec::new();
        for Sentence { label, text } in &read.sentences {
            texts.push((&*read.classes[*label], std::str::from_utf8(text).unwrap()));
        }
        texts
    }

    #[test]
    fn all_formats_hold_the_same_rows() {
        let expected = [("b", "a \"fine, rare\" film"), ("a", "how dull")];
        let named = LabelledConfig::default();
        for (text, config) in [
            (
                "id\ttext\tlabel\n1\ta \"fine, rare\" film\tb\n2\thow dull\ta\n",
                &named,
            ),
            (
                "\u{feff}b\ta \"fine, rare\" film\r\na\thow dull\r\n",
                &numbered(Delimiter::Tab),
            ),
            (
                "b,\"a \"\"fine, rare\"\" film\"\na,how dull",
                &numbered(Delimiter::Comma),
            ),
            (
                "__label__b a \"fine, rare\" film\n__label__a how dull\n",
                &fast_text(),
            ),
        ] {
            let read = parse("f", text.as_bytes(), config).unwrap();
            assert_eq!(texts(&read), expected, "{text}");
            assert_eq!(read.classes, ["a", "b"]);
        }
        let numbers = b"10\tx\n9\ty\n-1\tz\n";
        let read = parse("f", numbers, &numbered(Delimiter::Tab)).unwrap();
        assert_eq!(read.classes, ["-1", "9", "10"]);
    }

    #[test]
    fn blank_texts_are_refused_or_counted() {
        let text = "b\tx\na\t \u{200b}\nb\ty\n".as_bytes();
        let config = numbered(Delimiter::Tab);
        let said = parse("f", text, &config).unwrap_err().to_string();
        assert!(
            said.starts_with("f, line 2: expected a text (or `Blank::Drop`), found none"),
            "{said}"
        );
        let blank = Blank::Drop;
        let read = parse("f", text, &LabelledConfig { blank, ..config }).unwrap();
        assert_eq!((read.sentences.len(), &read.dropped[..]), (2, &[2][..]));
        let fast = LabelledConfig {
            blank,
            ..fast_text()
        };
        let read = parse("f", b"__label__a\n__label__a x\n", &fast).unwrap();
        assert_eq!((read.sentences.len(), &read.dropped[..]), (1, &[1][..]));
        let said = parse("f", b"__label__a\n", &fast).unwrap_err().to_string();
        assert!(
            said.contains("found none, and 1 with a blank text"),
            "{said}"
        );
    }

    #[test]
    fn what_cannot_be_read_is_named() {
        let classes = LabelledConfig {
            classes: vec!["a".to_owned()],
            ..numbered(Delimiter::Tab)
        };
        let named = LabelledConfig::default();
        for (text, config, wanted) in [
            (
                "a\tx\nb\ty\n",
                &classes,
                "f, line 2: expected one of the classes \"a\", found \"b\"",
            ),
            (
                "a\tx\n\ty\n",
                &classes,
                "f, line 2: expected a label, found none",
            ),
            (
                "a\tx\n\na\ty\n",
                &classes,
                "f, line 2: expected a row, found a blank line",
            ),
            (
                "a\tx\na\ty\tz\n",
                &classes,
                "f, line 2: expected 2 cells, found 3 cells",
            ),
            (
                "a x\n",
                &classes,
                "f, line 1: expected at least 2 cells, found 1 cells",
            ),
            (
                "a\tx\n",
                &named,
                "f has no column called `text`: its first line names \"a, x\"",
            ),
            (
                "text\tlabel\n",
                &named,
                "f, line 1: expected rows with a label and a text",
            ),
            (
                "\u{feff}\n",
                &named,
                "f is empty: check that it was written",
            ),
            (
                "a x\n",
                &fast_text(),
                "f, line 1: expected one label behind `__label__`",
            ),
            (
                "__label__a __label__b x\n",
                &fast_text(),
                "f, line 1: expected one label behind",
            ),
        ] {
            let said = parse("f", text.as_bytes(), config).unwrap_err().to_string();
            assert!(said.starts_with(wanted), "{said}");
        }
        let said = parse("f", b"text\tlabel\ncaf\xe9\ta\n", &named)
            .unwrap_err()
            .to_string();
        assert!(said.contains("Latin-1: convert it to UTF-8"), "{said}");
    }

    #[test]
    fn no_test_part_holds_a_text_of_the_training_part_in_another_spelling() {
        let spell = |i: usize| match i % 2 {
            0 => format!("{}\tIs {} fine?\n", i % 3, i / 2),
            _ => format!("{}\tis {} fine ?\n", i % 3, i / 2),
        };
        let text: String = (0..200).map(spell).collect();
        let read = parse("f", text.as_bytes(), &numbered(Delimiter::Tab)).unwrap();
        let splits = read.splits().unwrap();
        assert_eq!(
            splits.iter().map(|split| split.test.len()).sum::<usize>(),
            200
        );
        let cleaned = |rows: &[usize]| -> BTreeSet<_> { read.words(rows).0.into_iter().collect() };
        for split in &splits {
            assert!(cleaned(&split.test).is_disjoint(&cleaned(&split.train)));
        }
        let few = parse("f", b"a\tx\nb\ty\n", &numbered(Delimiter::Tab)).unwrap();
        assert!(matches!(few.splits(), Err(Error::TooFewRows { .. })));
    }
}
