//! Bounds on numbers that several rows give together.

use super::row::{least, most};
use super::{Report, Row};
use crate::attention::{IKA_NS, LENGTHS, LINEAR_TIME};
use crate::{decoding, mechanisms};
use serde::{Deserialize, Serialize};

/// A bound on a number that several rows give.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Check {
    /// A description of the number.
    pub what: String,
    /// The number.
    pub value: f64,
    /// The bound, in words.
    pub bound: String,
    /// Whether the number keeps the bound.
    pub met: bool,
}

/// That the time a token does not depend on the number of tokens.
fn constant(work: &str, each: &[f64]) -> Check {
    let value = most(each) / least(each);
    Check {
        what: format!("{work}: longest by shortest time a token"),
        value,
        bound: "at most 1.15".to_owned(),
        met: value <= 1.15,
    }
}

impl Report {
    /// Works out the [checks](Check) of the rows that are there.
    pub(crate) fn check(&mut self) {
        for work in decoding::CONSTANT {
            let tokens: Vec<f64> = self
                .rows_of(work, decoding::MANY)
                .map(|row| row.ms)
                .collect();
            if tokens.len() == decoding::LONG.len() {
                self.checks.push(constant(work, &tokens));
            }
        }
        self.checks.extend(self.growth_of_cat());
        self.checks.extend(self.gain_of_a_window());
        for pass in ["fwd", "fwd_bwd"] {
            let linear: Vec<&Row> = self.rows_of(LINEAR_TIME, pass).collect();
            let each: Vec<f64> = linear
                .iter()
                .map(|row| row.ms / row.shape[2] as f64)
                .collect();
            let mut found = Vec::new();
            if linear.len() == LENGTHS.len() {
                found.push(constant(&format!("linear-time form, {pass}"), &each));
            }
            for row in linear {
                let bound = 1.1 * (row.bytes / f64::from(1 << 20) + 64.0);
                found.extend(row.peak_mb.map(|value| Check {
                    what: format!("linear-time form, {pass}, T = {}: peak MiB", row.shape[2]),
                    value,
                    bound: format!("at most {bound:.0}"),
                    met: value <= bound,
                }));
            }
            let alone = self.rows_of(IKA_NS, pass).find(|row| row.threads == 1);
            let together = alone.and_then(|alone| {
                let same = |row: &&Row| row.threads == 2 && row.shape == alone.shape;
                self.rows_of(IKA_NS, pass).find(same)
            });
            found.extend(alone.zip(together).map(|(alone, together)| Check {
                what: format!("quadratic form, {pass}: time on one thread by that on two"),
                value: alone.ms / together.ms,
                bound: "at least 1.8".to_owned(),
                met: alone.ms / together.ms >= 1.8,
            }));
            self.checks.extend(found);
        }
    }

    /// The power of the length with which the time of CAT grows.
    fn growth_of_cat(&self) -> Option<Check> {
        let rows: Vec<&Row> = self.rows_of(mechanisms::CAT, "fwd").collect();
        let (short, long) = (rows.first()?, rows.last()?);
        let of_all = rows.len() == mechanisms::CAT_LENGTHS.len();
        let lengths = long.shape[2] as f64 / short.shape[2] as f64;
        of_all.then(|| {
            let value = (long.ms / short.ms).ln() / lengths.ln();
            Check {
                what: "CAT, fwd: power of the length with which the time grows".to_owned(),
                value,
                bound: "at most 1.2".to_owned(),
                met: value <= 1.2,
            }
        })
    }

    /// How many times longer softmax attention takes over the whole sequence than under a window.
    fn gain_of_a_window(&self) -> Option<Check> {
        let [b, h, t, d, dv, keys] = mechanisms::LONG_WINDOW;
        let windowed = self.rows_of(mechanisms::WINDOW, "fwd").next()?;
        let whole = |row: &&Row| row.shape[..5] == [b, h, t, d, dv];
        let whole = self.rows_of("softmax", "fwd").find(whole)?;
        let value = whole.ms / windowed.ms;
        Some(Check {
            what: format!("softmax, fwd, T = {t}: whole sequence by a window of {keys} keys"),
            value,
            bound: "at least 8".to_owned(),
            met: value >= 8.0,
        })
    }

    fn rows_of(&self, work: &str, pass: &str) -> impl Iterator<Item = &Row> {
        let wanted = move |row: &&Row| row.work == work && row.pass == pass;
        self.rows.iter().filter(wanted)
    }
}
