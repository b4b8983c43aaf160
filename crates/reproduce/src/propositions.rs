//! The five propositions of the paper, measured on random cases.
//!
//! Each file holds one proposition in the form in which it is true, and computes both of its sides
//! with the crates' own functions: what is checked is what the models run on. Where the printed
//! form is false, its counterexample is measured as well.

mod case;
mod proposition_1_decomposition;
mod proposition_2_graph_attention;
mod proposition_3_random_features;
mod proposition_4_uniform_bound;
mod proposition_5_vanishing_p;
mod rate;
mod report;

pub(crate) use report::run;
pub use report::write;

use crate::report::Chart;
use crate::{Error, Scale};
use serde::Serialize;
use std::fmt;

/// The suite's name on the command line.
pub const SUITE: &str = "propositions";

/// The seed of everything random in the suite.
pub const SEED: u64 = 2021;

/// How much is tried.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Effort {
    /// Random cases of each proposition; their dimensions run through 1 to 64.
    pub cases: usize,
    /// Draws of each case where a probability is measured.
    pub draws: usize,
    /// Draws of the counterexample to Proposition 4.
    pub counterexample: usize,
}

impl Effort {
    /// What a scale tries.
    pub const fn of(scale: Scale) -> Self {
        let (cases, draws, counterexample) = match scale {
            Scale::Smoke => (256, 1, 2_000),
            Scale::Desk => (1024, 4, 100_000),
            Scale::Paper => (4096, 16, 1_000_000),
        };
        Self {
            cases,
            draws,
            counterexample,
        }
    }
}

/// What was found about one proposition.
#[derive(Clone, Debug, PartialEq)]
pub struct Finding {
    /// Its number in the paper.
    pub number: usize,
    /// What it is about.
    pub title: &'static str,
    /// What was tested, in words.
    pub statement: &'static str,
    /// Random cases.
    pub cases: usize,
    /// What was measured.
    pub measures: Vec<Measure>,
    /// What the reader must know besides.
    pub remarks: Vec<String>,
    /// Pictures.
    pub charts: Vec<Chart>,
}

/// One number, and what it may be.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Measure {
    /// What it is.
    pub what: String,
    /// The number.
    pub value: f64,
    /// Its standard error, where it has one.
    pub error: Option<f64>,
    /// Where it must lie.
    pub allowed: Allowed,
}

/// Where a number must lie for a proposition to pass.
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

    fn with_error(self, error: f64) -> Self {
        Self {
            error: Some(error),
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

/// A proposition's measurement.
type Measurement = fn(&Effort) -> Result<Finding, Error>;

/// The propositions in the paper's order.
const PROPOSITIONS: [Measurement; 5] = [
    proposition_1_decomposition::measure,
    proposition_2_graph_attention::measure,
    proposition_3_random_features::measure,
    proposition_4_uniform_bound::measure,
    proposition_5_vanishing_p::measure,
];

/// Measures the propositions one after the other, as long as `go_on` says so.
///
/// # Errors
/// What the crates refuse, which would be a defect of the suite.
pub fn measure(effort: &Effort, go_on: impl Fn() -> bool) -> Result<Vec<Finding>, Error> {
    let due = PROPOSITIONS.into_iter().take_while(|_| go_on());
    due.map(|measure| measure(effort)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_propositions_hold_on_random_cases() {
        let findings = measure(&Effort::of(Scale::Smoke), || true).unwrap();
        assert_eq!(findings.len(), 5);
        for finding in findings {
            for measure in &finding.measures {
                assert!(measure.passed(), "{}: {measure:?}", finding.number);
            }
            assert!(finding.cases >= 256);
        }
    }

    #[test]
    fn what_lies_outside_fails() {
        let passed = |value, allowed| Measure::new("", value, allowed).passed();
        assert!(passed(1.0, Allowed::AtMost(1.0)) && !passed(1.1, Allowed::AtMost(1.0)));
        assert!(!passed(f64::NAN, Allowed::AtMost(1.0)) && !passed(f64::NAN, Allowed::Anything));
        assert!(
            passed(-0.5, Allowed::Within(-0.6, -0.4)) && !passed(0.5, Allowed::Within(-0.6, -0.4))
        );
        assert!(!passed(0.0, Allowed::AtLeast(0.1)));
    }
}
