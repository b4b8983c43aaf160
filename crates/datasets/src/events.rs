//! Sequences of events with their times: the badges of users of StackOverflow, and streams that are drawn.

mod echoes;
mod sessions;

pub use echoes::Echoes;
pub use sessions::{Session, Sessions};

use crate::folds::deal;
use crate::provenance::FileProvenance;
use crate::store::DataStore;
use crate::{Error, Split, lines, manifest};
use bochner_numerics::argument;
use bochner_text::lines::utf8;

/// The events of one user, in the order of the times.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct EventSequence {
    /// The kind of each event.
    pub kinds: Vec<usize>,
    /// The time of each event, which is not before that of the event before it.
    pub times: Vec<f64>,
}

/// Event sequences, split by users.
#[derive(Clone, Debug, PartialEq)]
pub struct EventData {
    /// The names of the kinds.
    pub names: Vec<String>,
    /// The sequences.
    pub sequences: Vec<EventSequence>,
    /// Ten splits, as row numbers of `sequences`, by the fold rule over the kinds of the last events.
    pub splits: Vec<Split>,
    /// The files that the sequences were read from; empty if they were not read from pinned files.
    pub provenance: Vec<FileProvenance>,
}

/// The parts that the badges are published in. They are random samples of the same users and overlap.
const PARTS: usize = 5;

/// Loads the badges of StackOverflow: 4,468 users with 41 to 736 badges of 22 kinds, times in seconds since 1970.
///
/// The five published parts overlap. A sequence that recurs is taken once, where it occurs first.
///
/// # Errors
/// The errors of [`DataStore::load`], [`parse`] and [`EventData::new`].
///
/// # Reference
/// Xu, Ruan, Kumar, Korpeoglu, Achan, *Self-attention with functional time representation learning*, 2019; the data are
/// those of Du et al., *Recurrent marked temporal point processes*, 2016.
pub fn load(store: &DataStore) -> Result<EventData, Error> {
    let (names, found) = store.load(manifest::entry("stackoverflow/badges.csv")?, parse_names)?;
    let mut provenance = vec![found];
    let mut sequences: Vec<EventSequence> = Vec::new();
    let mut seen = std::collections::HashSet::new();
    for part in 1..=PARTS {
        let mut sides = Vec::new();
        for side in ["event", "time"] {
            let entry = manifest::entry(&format!("stackoverflow/{side}-{part}-test.txt"))?;
            let stored = store.fetch(entry)?;
            provenance.push(FileProvenance::of(entry, &stored));
            sides.push(stored);
        }
        let [kinds, times] = [&sides[0], &sides[1]].map(|side| (&*side.place, &*side.bytes));
        let part = parse(kinds, times, names.len())?;
        let key = |own: &EventSequence| {
            let times: Vec<u64> = own.times.iter().map(|time| time.to_bits()).collect();
            (own.kinds.clone(), times)
        };
        sequences.extend(part.into_iter().filter(|own| seen.insert(key(own))));
    }
    Ok(EventData {
        provenance,
        ..EventData::new(names, sequences)?
    })
}

/// Reads the kinds and the times of events, one sequence a line with spaces between: kinds are numbers from 1, which become
/// numbers from 0. Each of the two files is its place and its bytes.
///
/// ```
/// use bochner_datasets::events::parse;
///
/// let read = parse(("event.txt", b"4 1 4 \n2 2\n"), ("time.txt", b"10.5 11 30\n7 7.25\n"), 4)?;
/// assert_eq!((&read[0].kinds[..], &read[1].times[..]), (&[3, 0, 3][..], &[7.0, 7.25][..]));
/// # Ok::<(), bochner_datasets::Error>(())
/// ```
///
/// # Errors
/// [`Error::Malformed`] with the line for a kind that is not among `kinds`, a time that is not finite or before the one
/// before it, fewer than two events, and another number of times than of events; [`Error::UnequalLines`] for another number
/// of lines.
pub fn parse(
    (kinds_file, kinds_text): (&str, &[u8]),
    (times_file, times_text): (&str, &[u8]),
    kinds: usize,
) -> Result<Vec<EventSequence>, Error> {
    let expected = format!("at least two numbers from 1 to {kinds} with spaces between");
    let all_kinds = lines::parse(kinds_file, kinds_text, 0, &expected, |line| {
        let cells = line.split_ascii_whitespace();
        let kind = |cell: &str| cell.parse().ok().filter(|kind| (1..=kinds).contains(kind));
        let read: Option<Vec<usize>> = cells.map(|cell| Some(kind(cell)? - 1)).collect();
        read.filter(|read| read.len() > 1)
    })?;
    let expected = "finite times in their order with spaces between";
    let all_times = lines::parse(times_file, times_text, 0, expected, |line| {
        lines::numbers(line).filter(|times| times.is_sorted())
    })?;
    let counts = [all_kinds.len(), all_times.len()];
    if counts[0] != counts[1] {
        return Err(Error::UnequalLines {
            files: [kinds_file, times_file].map(str::to_owned),
            lines: counts,
        });
    }
    let pairs = all_kinds.into_iter().zip(all_times).enumerate();
    let sequence = |(at, (kinds, times)): (usize, (Vec<usize>, Vec<f64>))| {
        if kinds.len() == times.len() {
            return Ok(EventSequence { kinds, times });
        }
        Err(Error::Malformed {
            file: times_file.to_owned(),
            line: at + 1,
            expected: format!("{} times, one for each event of {kinds_file}", kinds.len()),
            found: times.len().to_string(),
        })
    };
    pairs.map(sequence).collect()
}

/// Reads the names of kinds: a line of titles, then on each line a number from 1, a comma and a name.
///
/// # Errors
/// [`Error::Malformed`] with the line for anything else, and unless the numbers are those from 1 on, each once.
pub fn parse_names(file: &str, bytes: &[u8]) -> Result<Vec<String>, Error> {
    let expected = "a number from 1, a comma and a name";
    let row = |line: &str| {
        let (number, name) = line.split_once(',')?;
        let number: usize = number.trim().parse().ok()?;
        Some((number, name.trim().to_owned()))
    };
    let rows = lines::parse(file, bytes, 1, expected, row)?;
    let titles = utf8(file, bytes)?.lines().next();
    if let Some(titles) = titles.filter(|titles| row(titles).is_some()) {
        return Err(Error::Malformed {
            file: file.to_owned(),
            line: 1,
            expected: "a line of titles".to_owned(),
            found: lines::excerpt(titles),
        });
    }
    let mut names = vec![None; rows.len()];
    for (at, (number, name)) in rows.into_iter().enumerate() {
        let count = names.len();
        let place = number.checked_sub(1).and_then(|place| names.get_mut(place));
        let free = place.filter(|place| place.is_none());
        let Some(place) = free else {
            return Err(Error::Malformed {
                file: file.to_owned(),
                line: at + 2,
                expected: format!("the numbers from 1 to {count}, each once"),
                found: number.to_string(),
            });
        };
        *place = Some(name);
    }
    Ok(names.into_iter().flatten().collect())
}

impl EventData {
    /// Sequences of events whose kinds have these names, with their splits.
    ///
    /// # Errors
    /// [`Error::Argument`] for a sequence with fewer than two events, another number of times than of kinds, a kind without
    /// a name, and a time that is not finite or before the one before it; [`Error::TooFewRows`] if a part of a split is
    /// empty.
    pub fn new(names: Vec<String>, sequences: Vec<EventSequence>) -> Result<Self, Error> {
        for EventSequence { kinds, times } in &sequences {
            let count = kinds.len();
            argument::in_range(
                count > 1,
                "events of a sequence",
                count as f64,
                "at least 2",
            )?;
            argument::shape("times", &[count], &[times.len()])?;
            for &kind in kinds {
                argument::index("kinds", kind, names.len())?;
            }
            argument::finite("times", &[count], times)?;
            for pair in times.windows(2) {
                let allowed = "not before the time of the event before";
                argument::in_range(pair[0] <= pair[1], "times", pair[1], allowed)?;
            }
        }
        let last = sequences.iter().map(|own| own.kinds[own.kinds.len() - 1]);
        let splits = Split::cross_validation(&deal(&last.collect::<Vec<_>>()));
        for (number, split) in splits.iter().enumerate() {
            let parts = [("train", &split.train), ("validation", &split.validation)];
            let parts = parts.into_iter().chain([("test", &split.test)]);
            if let Some((part, _)) = parts.into_iter().find(|(_, rows)| rows.is_empty()) {
                return Err(Error::TooFewRows {
                    part: format!("the {part} part of split {number} of event sequences"),
                    wanted: 1,
                    available: 0,
                });
            }
        }
        Ok(Self {
            names,
            sequences,
            splits,
            provenance: Vec::new(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(kinds: &[u8], times: &[u8]) -> String {
        parse(("e", kinds), ("t", times), 3)
            .unwrap_err()
            .to_string()
    }

    #[test]
    fn wrong_lines_are_named() {
        for (kinds, times, wanted) in [
            (
                &b"1 2\n1 4\n"[..],
                &b"1 2\n1 2\n"[..],
                "e, line 2: expected at least two numbers from 1 to 3",
            ),
            (b"1 2\n0 1\n", b"1 2\n1 2\n", "e, line 2"),
            (b"1 2\n1\n", b"1 2\n1\n", "e, line 2"),
            (b"1 x\n", b"1 2\n", "e, line 1"),
            (
                b"1 2\n1 2\n",
                b"1 2\n2 1\n",
                "t, line 2: expected finite times in their order",
            ),
            (b"1 2\n", b"1 inf\n", "t, line 1"),
            (
                b"1 2\n1 2 3\n",
                b"1 2\n1 2\n",
                "t, line 2: expected 3 times, one for each event of e, found 2",
            ),
            (b"1 2\n1 2\n", b"1 2\n", "e has 2 lines and t 1"),
        ] {
            let said = said(kinds, times);
            assert!(said.starts_with(wanted), "{said}");
        }
        assert_eq!(parse(("e", b""), ("t", b""), 3).unwrap(), []);
    }

    #[test]
    fn names_are_in_the_order_of_their_numbers() {
        let read = parse_names("f", b"id, badge\n2, Guru\n1, Nice Question\n").unwrap();
        assert_eq!(read, ["Nice Question", "Guru"]);
        for wrong in [
            &b"id\n1, a\n1, b\n"[..],
            b"id\n1, a\n3, b\n",
            b"id\n1, a\n0, b\n",
        ] {
            let said = parse_names("f", wrong).unwrap_err().to_string();
            let wanted = "f, line 3: expected the numbers from 1 to 2, each once";
            assert!(said.starts_with(wanted), "{said}");
        }
        let said = parse_names("f", b"1, a\n2, b\n").unwrap_err().to_string();
        assert!(
            said.starts_with("f, line 1: expected a line of titles"),
            "{said}"
        );
        let said = parse_names("f", b"id\n1 a\n").unwrap_err().to_string();
        assert!(said.contains("line 2"), "{said}");
    }

    #[test]
    fn sequences_that_are_none_are_refused() {
        let of = |kinds: &[usize], times: &[f64]| {
            let (kinds, times) = (kinds.to_vec(), times.to_vec());
            let own = vec![EventSequence { kinds, times }; 40];
            EventData::new(vec!["a".into(), "b".into()], own)
        };
        assert_eq!(of(&[0, 1], &[1.0, 1.0]).unwrap().splits.len(), 10);
        for (kinds, times) in [
            (&[0][..], &[1.0][..]),
            (&[0, 1], &[1.0]),
            (&[0, 2], &[1.0, 2.0]),
            (&[0, 1], &[2.0, 1.0]),
            (&[0, 1], &[1.0, f64::NAN]),
        ] {
            let refused = of(kinds, times);
            assert!(matches!(refused, Err(Error::Argument(_))), "{refused:?}");
        }
        let few = EventData::new(vec!["a".into()], Vec::new());
        assert!(matches!(few, Err(Error::TooFewRows { .. })));
    }
}
