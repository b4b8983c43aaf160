//! Suites that train nothing: statements that are measured in one go and judged by data.
//!
//! A suite is a [`Study`]: names, what the reader must know, and one function for each statement, which returns a
//! [`Finding`]. A finding holds numbers, and beside each the range in which it must lie, written down before anything
//! is run ([`Allowed`]). Rows, report and verdict are shared.

pub(crate) mod case;
pub(crate) mod rate;
mod report;

use crate::Error;
use bochner_report::Scale;
use bochner_report::document::Chart;
use bochner_report::statistics::{mean, sample_deviation};
use serde::Serialize;
use std::fmt;

/// The seed of everything random in these suites.
pub const SEED: u64 = 2021;

/// A suite that is measured in one go.
#[derive(Clone, Copy, Debug)]
pub struct Study {
    /// The name on the command line.
    pub name: &'static str,
    /// The title of the report.
    pub title: &'static str,
    /// The name of a part in rows and tables, in small letters.
    pub part: &'static str,
    /// The text before the first table.
    pub opening: fn(Scale) -> String,
    /// Its parts, in the order in which they are measured.
    pub parts: &'static [Part],
}

/// Measures one part of a study.
pub type Part = fn(Scale) -> Result<Finding, Error>;

impl Study {
    /// Measures the parts one after the other, as long as `go_on` says so.
    ///
    /// # Errors
    /// What the crates refuse, which would be a defect of the suite.
    pub fn measure(&self, scale: Scale, go_on: impl Fn() -> bool) -> Result<Vec<Finding>, Error> {
        let due = self.parts.iter().take_while(|_| go_on());
        due.map(|part| part(scale)).collect()
    }
}

/// The numbers of one part of a study.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Finding {
    /// Its number, from 1.
    pub number: usize,
    /// The title.
    pub title: &'static str,
    /// The tested statement, in words.
    pub statement: &'static str,
    /// Random cases, or other things that were tried.
    pub cases: usize,
    /// The measured numbers.
    pub measures: Vec<Measure>,
    /// Remarks for the reader.
    pub remarks: Vec<String>,
    /// Pictures.
    pub charts: Vec<Chart>,
}

/// One number, and what it may be.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Measure {
    /// Its name.
    pub what: String,
    /// The number.
    pub value: f64,
    /// Its standard error, where it has one.
    pub error: Option<f64>,
    /// The range in which it must lie.
    pub allowed: Allowed,
}

/// The range in which a number must lie for its part to pass.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Allowed {
    /// Not above.
    AtMost(f64),
    /// Not below.
    AtLeast(f64),
    /// Between the two.
    Within(f64, f64),
    /// Anywhere: the number is shown, not judged.
    Anything,
}

impl Measure {
    /// A number without a standard error.
    pub fn new(what: impl Into<String>, value: f64, allowed: Allowed) -> Self {
        Self {
            what: what.into(),
            value,
            error: None,
            allowed,
        }
    }

    /// A number that is shown, not judged.
    pub fn shown(what: impl Into<String>, value: f64) -> Self {
        Self::new(what, value, Allowed::Anything)
    }

    /// The mean of a number over the cases, with its standard error.
    ///
    /// # Errors
    /// [`Error::Argument`] with fewer than two cases.
    pub fn mean(what: impl Into<String>, values: &[f64]) -> Result<Self, Error> {
        let error = sample_deviation(values)? / (values.len() as f64).sqrt();
        Ok(Self::shown(what, mean(values)?).with_error(error))
    }

    /// The largest of a number over the cases; NaN if one of them is.
    pub fn largest(what: impl Into<String>, values: impl IntoIterator<Item = f64>) -> Self {
        Self::shown(what, case::largest(values))
    }

    /// The share of the cases in which something holds.
    pub fn share(what: impl Into<String>, holds: impl IntoIterator<Item = bool>) -> Self {
        let holds: Vec<bool> = holds.into_iter().collect();
        let count = holds.iter().filter(|holds| **holds).count();
        Self::shown(what, count as f64 / holds.len() as f64)
    }

    /// The number, which must not lie above this.
    #[must_use]
    pub fn at_most(self, bound: f64) -> Self {
        let allowed = Allowed::AtMost(bound);
        Self { allowed, ..self }
    }

    /// The number, which must not lie below this.
    #[must_use]
    pub fn at_least(self, bound: f64) -> Self {
        let allowed = Allowed::AtLeast(bound);
        Self { allowed, ..self }
    }

    /// The number, which must lie between these.
    #[must_use]
    pub fn within(self, low: f64, high: f64) -> Self {
        let allowed = Allowed::Within(low, high);
        Self { allowed, ..self }
    }

    /// The number, which must be this.
    #[must_use]
    pub fn exactly(self, value: f64) -> Self {
        self.within(value, value)
    }

    /// The number with its standard error.
    #[must_use]
    pub fn with_error(self, error: f64) -> Self {
        Self {
            error: Some(error),
            ..self
        }
    }

    /// The number in units of its standard error; NaN where it has none.
    #[must_use]
    pub fn in_standard_errors(self) -> Self {
        Self {
            value: self.value / self.error.unwrap_or(f64::NAN),
            error: None,
            ..self
        }
    }

    /// Whether the number lies where it must; NaN never does.
    pub fn passed(&self) -> bool {
        match self.allowed {
            Allowed::AtMost(bound) => self.value <= bound,
            Allowed::AtLeast(bound) => self.value >= bound,
            Allowed::Within(low, high) => (low..=high).contains(&self.value),
            Allowed::Anything => self.value.is_finite(),
        }
    }
}

impl Finding {
    /// Whether every number lies where it must.
    pub fn passed(&self) -> bool {
        self.measures.iter().all(Measure::passed)
    }
}

impl fmt::Display for Allowed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::AtMost(bound) => write!(f, "at most {}", short(*bound)),
            Self::AtLeast(bound) => write!(f, "at least {}", short(*bound)),
            Self::Within(low, high) if low == high => write!(f, "{low}"),
            Self::Within(low, high) => write!(f, "{} to {}", short(*low), short(*high)),
            Self::Anything => f.write_str("not judged"),
        }
    }
}

/// Three digits that matter.
pub(crate) fn short(value: f64) -> String {
    match value.abs() {
        0.0 => "0".to_owned(),
        size if !(1e-3..1e5).contains(&size) => format!("{value:.2e}"),
        size if size >= 100.0 => format!("{value:.0}"),
        _ => format!("{value:.4}"),
    }
}
