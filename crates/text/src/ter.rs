//! The translation edit rate (TER) of a corpus and of sentences, as sacrebleu computes it.

use crate::Error;
use crate::bleu::{Case, SACREBLEU, check_streams, is_space};
use bochner_numerics::argument;
use serde::{Deserialize, Serialize};

/// The settings of TER; the defaults are sacrebleu's.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct TerConfig {
    /// The treatment of case; lines are put in lower case by default.
    pub case: Case,
}

impl Default for TerConfig {
    fn default() -> Self {
        Self { case: Case::Lower }
    }
}

impl TerConfig {
    /// The signature that sacrebleu prints beside a score: which settings it was computed with.
    ///
    /// ```
    /// let signature = bochner_text::TerConfig::default().signature(1);
    /// assert_eq!(signature, "nrefs:1|case:lc|tok:tercom|norm:no|punct:yes|asian:no|version:2.6.0");
    /// ```
    pub fn signature(&self, references: usize) -> String {
        let case = self.case.signature();
        format!(
            "nrefs:{references}|case:{case}|tok:tercom|norm:no|punct:yes|asian:no|version:{SACREBLEU}"
        )
    }
}

/// A TER with its parts.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TerScore {
    /// The rate in percent, at least 0; above 100 if there are more edits than words.
    pub score: f64,
    /// The number of edits: insertions, deletions, substitutions and shifts.
    pub edits: u64,
    /// The number of words in the references; of several, their mean for each line.
    pub reference_length: f64,
}

impl TerScore {
    fn new(edits: u64, reference_length: f64) -> Self {
        let rate = match reference_length > 0.0 {
            true => edits as f64 / reference_length,
            false if edits > 0 => 1.0,
            false => 0.0,
        };
        Self {
            score: 100.0 * rate,
            edits,
            reference_length,
        }
    }
}

/// TER of a corpus: hypotheses against one or more streams of references, line by line. Lower is better.
///
/// $$\mathrm{TER} = 100 \\, \frac{\text{edits}}{\text{words of the references}}$$
///
/// *where* an edit inserts, deletes or replaces a word, or shifts a run of words that the reference has elsewhere. Shifts
/// are chosen greedily, by the edits that they save. Of several references, the one with the fewest edits counts.
///
/// ```
/// use bochner_text::{TerConfig, corpus_ter};
///
/// let hypotheses = ["on the mat sat the cat", "everyone was surprised ."];
/// let references = [vec!["the cat sat on the mat", "No one was surprised ."]];
/// let ter = corpus_ter(&hypotheses, &references, &TerConfig::default())?;
/// assert_eq!((ter.edits, ter.reference_length), (4, 11.0));
/// # Ok::<(), bochner_text::Error>(())
/// ```
///
/// # Errors
/// [`Error::Argument`] without hypotheses or references, and for streams of another length than the hypotheses'.
///
/// # Numerics
/// The limits are sacrebleu's: at most 10 words are shifted, by at most 50 places, at most 1000 shifts of a line are tried,
/// and the edit distance is that within 25 places of the diagonal.
///
/// # Reference
/// M. Snover et al., *A study of translation edit rate with targeted human annotation*, 2006.
pub fn corpus_ter<H: AsRef<str>, R: AsRef<str>>(
    hypotheses: &[H],
    references: &[Vec<R>],
    config: &TerConfig,
) -> Result<TerScore, Error> {
    check_streams(hypotheses.len(), references)?;
    let (mut edits, mut length) = (0, 0.0);
    for (at, hypothesis) in hypotheses.iter().enumerate() {
        let references = references.iter().map(|stream| stream[at].as_ref());
        let line = of_line(hypothesis.as_ref(), references, config);
        edits += line.edits;
        length += line.reference_length;
    }
    Ok(TerScore::new(edits, length))
}

/// TER of one sentence, against the reference with the fewest edits.
///
/// # Errors
/// [`Error::Argument`] without references.
pub fn sentence_ter<R: AsRef<str>>(
    hypothesis: &str,
    references: &[R],
    config: &TerConfig,
) -> Result<TerScore, Error> {
    argument::not_empty("references", &[references.len()])?;
    let references = references.iter().map(AsRef::as_ref);
    Ok(of_line(hypothesis, references, config))
}

fn of_line<'a>(
    hypothesis: &str,
    references: impl Iterator<Item = &'a str>,
    config: &TerConfig,
) -> TerScore {
    let hypothesis = config.case.apply(hypothesis);
    let hypothesis = words(&hypothesis);
    let (mut fewest, mut lengths, mut count) = (u64::MAX, 0, 0);
    for reference in references {
        let reference = config.case.apply(reference);
        let reference = words(&reference);
        fewest = fewest.min(edits(hypothesis.clone(), &reference));
        lengths += reference.len();
        count += 1;
    }
    TerScore::new(fewest, lengths as f64 / f64::from(count))
}

fn words(line: &str) -> Vec<&str> {
    line.split(is_space)
        .filter(|word| !word.is_empty())
        .collect()
}

/// The most words that are shifted together.
const LONGEST_SHIFT: usize = 10;
/// The most places between a run of words and its equal in the reference.
const FARTHEST_SHIFT: usize = 50;
/// The number of shifts of a line after which no more are tried.
const MOST_SHIFTS: usize = 1000;
/// The distance from the diagonal within which edit distances are computed.
const BEAM: usize = 25;

/// The number of edits that make the reference of the hypothesis.
fn edits(mut hypothesis: Vec<&str>, reference: &[&str]) -> u64 {
    if reference.is_empty() {
        return hypothesis.len() as u64;
    }
    let (mut shifts, mut tried) = (0, 0);
    let mut distances = Distances::new(&hypothesis, reference);
    while let Some(shift) = best_shift(&hypothesis, reference, &distances, &mut tried) {
        // The shift that reaches the limit is not taken.
        if tried >= MOST_SHIFTS || shift.saved <= 0 {
            break;
        }
        shifts += 1;
        hypothesis = shifted(&hypothesis, &shift);
        distances = Distances::new(&hypothesis, reference);
    }
    shifts + distances.last() as u64
}

/// A run of the hypothesis' words and the place to which it is shifted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Shift {
    /// The number of edits saved by it, without its own.
    saved: i64,
    length: usize,
    /// The first run, and then the first place, counts among equally good shifts.
    start: std::cmp::Reverse<usize>,
    place: std::cmp::Reverse<usize>,
}

/// The best of the shifts that could mend an error, if there are any.
fn best_shift(
    hypothesis: &[&str],
    reference: &[&str],
    distances: &Distances,
    tried: &mut usize,
) -> Option<Shift> {
    let alignment = distances.alignment();
    let mut best: Option<Shift> = None;
    for (start, at, length) in runs(hypothesis, reference) {
        let is_right = |wrong: &[bool]| !wrong.contains(&true);
        let aligned = alignment.places[at];
        if is_right(&alignment.wrong_hypothesis[start..start + length])
            || is_right(&alignment.wrong_reference[at..at + length])
            // The words stand there already.
            || (start < aligned && aligned <= start + length)
        {
            continue;
        }
        let mut before = None;
        for word in at..=at + length {
            // The place behind the word that the reference's word before is aligned with.
            let place = word.checked_sub(1).map_or(0, |word| alignment.places[word]);
            if before.replace(place) == Some(place) {
                continue;
            }
            let mut shift = Shift {
                saved: 0,
                length,
                start: std::cmp::Reverse(start),
                place: std::cmp::Reverse(place),
            };
            let words = shifted(hypothesis, &shift);
            shift.saved = distances.last() as i64 - distances.of(&words, reference) as i64;
            *tried += 1;
            best = best.max(Some(shift));
        }
        if *tried >= MOST_SHIFTS {
            break;
        }
    }
    best
}

/// The runs of equal words: their places in the hypothesis and in the reference, and their length.
fn runs<'a>(
    hypothesis: &'a [&str],
    reference: &'a [&str],
) -> impl Iterator<Item = (usize, usize, usize)> + 'a {
    let pairs = (0..hypothesis.len()).flat_map(|i| (0..reference.len()).map(move |j| (i, j)));
    let near = pairs.filter(|(i, j)| i.abs_diff(*j) <= FARTHEST_SHIFT);
    near.flat_map(|(i, j)| {
        let pairs = hypothesis[i..].iter().zip(&reference[j..]);
        let equal = pairs.take_while(|(a, b)| a == b).take(LONGEST_SHIFT);
        (1..=equal.count()).map(move |length| (i, j, length))
    })
}

fn shifted<'a>(words: &[&'a str], shift: &Shift) -> Vec<&'a str> {
    let (start, length, place) = (shift.start.0, shift.length, shift.place.0);
    let end = start + length;
    // A place within the run counts from its end.
    let place = if (start..=end).contains(&place) {
        (length + place).min(words.len())
    } else {
        place
    };
    let run = &words[start..end];
    if place < start {
        [&words[..place], run, &words[place..start], &words[end..]].concat()
    } else {
        [&words[..start], &words[end..place], run, &words[place..]].concat()
    }
}

/// The last edit on the way to a cell.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Edit {
    Keep,
    Replace,
    /// Deletes a word of the hypothesis.
    Delete,
    /// Inserts a word of the reference.
    Insert,
}

/// The least number of edits that make a beginning of the reference of one of the hypothesis, and the last of them.
type Cell = (usize, Edit);

/// A cell that is too far from the diagonal.
const OUTSIDE: Cell = (usize::MAX / 2, Edit::Insert);

/// The edit distances between the beginnings of a hypothesis and of a reference.
struct Distances<'a> {
    hypothesis: Vec<&'a str>,
    /// A row for each beginning of the hypothesis, a cell for each of the reference.
    rows: Vec<Vec<Cell>>,
}

impl<'a> Distances<'a> {
    fn new(hypothesis: &[&'a str], reference: &[&str]) -> Self {
        let first = (0..=reference.len()).map(|j| (j, Edit::Insert)).collect();
        let mut rows: Vec<Vec<Cell>> = vec![first];
        for i in 1..=hypothesis.len() {
            rows.push(next_row(&rows[i - 1], hypothesis, i, reference));
        }
        Self {
            hypothesis: hypothesis.to_vec(),
            rows,
        }
    }

    /// The distance of the whole lines.
    fn last(&self) -> usize {
        distance(self.rows.last().expect("a row before the first word"))
    }

    /// The distance of another order of the hypothesis' words, whose equal beginning needs no rows.
    fn of(&self, words: &[&str], reference: &[&str]) -> usize {
        let pairs = self.hypothesis.iter().zip(words);
        let equal = pairs.take_while(|(a, b)| a == b).count();
        let mut row = self.rows[equal].clone();
        for i in equal + 1..=words.len() {
            row = next_row(&row, words, i, reference);
        }
        distance(&row)
    }

    fn alignment(&self) -> Alignment {
        let mut way = Vec::new();
        let (mut i, mut j) = (self.rows.len() - 1, self.rows[0].len() - 1);
        while i > 0 || j > 0 {
            let edit = self.rows[i][j].1;
            way.push(edit);
            i -= usize::from(edit != Edit::Insert);
            j -= usize::from(edit != Edit::Delete);
        }
        let mut alignment = Alignment::default();
        for edit in way.into_iter().rev() {
            let is_wrong = edit != Edit::Keep;
            if edit != Edit::Insert {
                alignment.wrong_hypothesis.push(is_wrong);
            }
            if edit != Edit::Delete {
                alignment.wrong_reference.push(is_wrong);
                alignment.places.push(alignment.wrong_hypothesis.len());
            }
        }
        alignment
    }
}

/// The words that a way of edits pairs.
#[derive(Default)]
struct Alignment {
    /// For each word of the reference, the number of the hypothesis' words up to the one that it is paired with.
    places: Vec<usize>,
    wrong_hypothesis: Vec<bool>,
    wrong_reference: Vec<bool>,
}

fn distance(row: &[Cell]) -> usize {
    row[row.len() - 1].0
}

/// The row of the first `i` words, from that of one word less.
fn next_row(before: &[Cell], words: &[&str], i: usize, reference: &[&str]) -> Vec<Cell> {
    let ratio = reference.len() as f64 / words.len() as f64;
    // Next to a much shorter line, rows would not overlap within the usual distance.
    let half = 0.5 * ratio;
    let beam = match (BEAM as f64) < half {
        true => (half + BEAM as f64).ceil() as usize,
        false => BEAM,
    };
    let diagonal = (i as f64 * ratio) as usize;
    let end = match i == words.len() {
        true => reference.len() + 1,
        false => (reference.len() + 1).min(diagonal + beam),
    };
    let mut row = vec![OUTSIDE; reference.len() + 1];
    for j in diagonal.saturating_sub(beam)..end {
        let delete = (before[j].0 + 1, Edit::Delete);
        row[j] = match j.checked_sub(1) {
            None => delete,
            Some(left) => {
                let pair = match words[i - 1] == reference[left] {
                    true => (before[left].0, Edit::Keep),
                    false => (before[left].0 + 1, Edit::Replace),
                };
                let insert = (row[left].0 + 1, Edit::Insert);
                // Of equal numbers the first counts.
                let edits = [OUTSIDE, pair, delete, insert].into_iter();
                edits.min_by_key(|edit| edit.0).expect("four edits")
            }
        };
    }
    row
}
