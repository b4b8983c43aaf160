//! Bounds on numbers that several rows give together.

use super::row::{least, most};
use super::{Report, Row};
use crate::attention::{IKA_NS, LENGTHS, LINEAR_TIME};
use crate::decoding;
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
fn constant(pass: &str, each: &[f64]) -> Check {
    let value = most(each) / least(each);
    Check {
        what: format!("linear-time form, {pass}: longest by shortest time a token"),
        value,
        bound: "at most 1.15".to_owned(),
        met: value <= 1.15,
    }
}

impl Report {
    /// Works out the [checks](Check) of the rows that are there.
    pub(crate) fn check(&mut self) {
        let tokens: Vec<f64> = (self.rows_of(decoding::LINEAR_TIME, "token"))
            .map(|row| row.ms)
            .collect();
        if tokens.len() == decoding::LENGTHS.len() {
            self.checks.push(constant("decoding", &tokens));
        }
        for pass in ["fwd", "fwd_bwd"] {
            let linear: Vec<&Row> = self.rows_of(LINEAR_TIME, pass).collect();
            let each: Vec<f64> = linear
                .iter()
                .map(|row| row.ms / row.shape[2] as f64)
                .collect();
            let mut found = Vec::new();
            if linear.len() == LENGTHS.len() {
                found.push(constant(pass, &each));
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

    fn rows_of(&self, work: &str, pass: &str) -> impl Iterator<Item = &Row> {
        let wanted = move |row: &&Row| row.work == work && row.pass == pass;
        self.rows.iter().filter(wanted)
    }
}
