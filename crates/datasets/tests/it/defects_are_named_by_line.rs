//! Whatever is wrong with a raw file, the error names the file and the line.

use bochner_datasets::regression::{concrete, housing, parkinsons};
use bochner_datasets::splits::{parse_folds, parse_masks};
use bochner_datasets::{Error, Table};
use proptest::prelude::*;

type Parse = fn(&str, &[u8]) -> Result<Table, Error>;

/// A raw format: its parser, its header, a row of it, how many rows, and what ends it.
struct Raw {
    parse: Parse,
    header: &'static [&'static str],
    row: String,
    rows: usize,
    end: &'static str,
}

const CONCRETE_HEADER: &str = "Cement (component 1)(kg in a m^3 mixture),Blast Furnace Slag (component 2)(kg in a m^3 mixture),Fly Ash (component 3)(kg in a m^3 mixture),Water  (component 4)(kg in a m^3 mixture),Superplasticizer (component 5)(kg in a m^3 mixture),Coarse Aggregate  (component 6)(kg in a m^3 mixture),Fine Aggregate (component 7)(kg in a m^3 mixture),Age (day),\"Concrete compressive strength(MPa, megapascals) \"";

const PARKINSONS_HEADER: &str = "subject#,age,sex,test_time,motor_UPDRS,total_UPDRS,Jitter(%),Jitter(Abs),Jitter:RAP,Jitter:PPQ5,Jitter:DDP,Shimmer,Shimmer(dB),Shimmer:APQ3,Shimmer:APQ5,Shimmer:APQ11,Shimmer:DDA,NHR,HNR,RPDE,DFA,PPE";

fn formats() -> [Raw; 3] {
    [
        Raw {
            parse: housing::parse,
            header: &[],
            row: "  1.5".repeat(14),
            rows: 506,
            end: "",
        },
        Raw {
            parse: concrete::parse,
            header: &[CONCRETE_HEADER],
            row: ["540.0 "; 9].join(","),
            rows: 1030,
            end: "\n",
        },
        Raw {
            parse: parkinsons::parse,
            header: &[PARKINSONS_HEADER],
            row: (0..22)
                .map(|j| format!("{j}e-001"))
                .collect::<Vec<_>>()
                .join(","),
            rows: 5875,
            end: "",
        },
    ]
}

impl Raw {
    fn lines(&self) -> Vec<Vec<u8>> {
        let rows = vec![self.row.as_str(); self.rows];
        let lines = self.header.iter().copied().chain(rows);
        lines.map(|line| line.as_bytes().to_vec()).collect()
    }

    fn read(&self, lines: &[Vec<u8>]) -> Result<Table, Error> {
        let mut bytes = lines.join(&b'\n');
        bytes.extend(self.end.bytes());
        (self.parse)("raw.file", &bytes)
    }
}

fn place(error: &Error) -> (&str, usize) {
    match error {
        Error::Malformed { file, line, .. } | Error::Encoding { file, line, .. } => (file, *line),
        other => panic!("{other}"),
    }
}

#[test]
fn well_formed_files_are_read() {
    for raw in formats() {
        assert_eq!(raw.read(&raw.lines()).unwrap().rows(), raw.rows);
    }
}

#[test]
fn the_parkinsons_target_comes_last_and_the_motor_score_not_at_all() {
    let raw = &formats()[2];
    let table = raw.read(&raw.lines()).unwrap();
    let tenths: Vec<f64> = table.row(5874).iter().map(|v| (v * 10.0).round()).collect();
    let wanted: Vec<f64> = (0..22)
        .filter(|&j| j != 4 && j != 5)
        .chain([5])
        .map(f64::from)
        .collect();
    assert_eq!(tenths, wanted);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn a_spoilt_line_is_named(at in any::<prop::sample::Index>(), how in 0usize..7) {
        for raw in formats() {
            let mut lines = raw.lines();
            let line = at.index(lines.len());
            match how {
                0 => lines[line].extend(b",7"),
                1 => lines[line].truncate(3),
                2 => lines[line].push(b'\r'),
                3 => lines[line][1] = 0xf0,
                4 => lines[line] = Vec::new(),
                5 => lines[line].splice(..0, "\u{feff}".bytes()).for_each(drop),
                _ => lines[line].splice(..0, *b"nan").for_each(drop),
            }
            let error = raw.read(&lines).unwrap_err();
            prop_assert_eq!(place(&error), ("raw.file", line + 1));
            let start = format!("raw.file, line {}: ", line + 1);
            prop_assert!(error.to_string().starts_with(&start));
        }
    }

    #[test]
    fn missing_and_surplus_rows_are_named(kept in any::<prop::sample::Index>()) {
        for raw in formats() {
            let mut lines = raw.lines();
            let all = lines.len();
            lines.push(raw.row.clone().into_bytes());
            prop_assert_eq!(place(&raw.read(&lines).unwrap_err()).1, all + 1);
            let kept = kept.index(all);
            let error = raw.read(&lines[..kept]).unwrap_err();
            // Without any line, the line feed that ends the file is an empty first line.
            prop_assert_eq!(place(&error).1, kept + 1);
        }
    }

    #[test]
    fn no_bytes_make_a_reader_panic(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
        for raw in formats() {
            prop_assert!((raw.parse)("raw.file", &bytes).is_err());
        }
        prop_assert!(parse_folds("raw.file", &bytes, 300).is_err());
        prop_assert!(parse_masks("raw.file", &bytes, 300).is_err());
    }
}
