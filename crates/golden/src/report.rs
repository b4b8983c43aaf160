//! The outcome of the cases of a directory.

use super::error::Error;
use std::fmt;

/// The outcome of a whole directory: one row for each case and precision.
#[derive(Debug)]
pub struct GoldenReport {
    rows: Vec<Row>,
}

/// One case in one precision.
#[derive(Debug)]
pub struct Row {
    /// The file's name without extension.
    pub name: String,
    /// The kind of case; empty if the file could not be read that far.
    pub case: String,
    /// `f64` or `f32`, or `text`; `None` where the file was not run at all.
    pub dtype: Option<&'static str>,
    /// Its outcome.
    pub verdict: Verdict,
}

/// The outcome of a case.
#[derive(Debug)]
pub enum Verdict {
    /// Every tensor lies within its bound.
    Passed(Worst),
    /// At least one tensor lies outside its bound, or holds a NaN.
    Exceeded(Worst),
    /// The file is malformed, or our code could not produce what it asks for.
    Faulty(Error),
    /// No function computes cases of this kind.
    NotServed,
    /// The case is about a corpus that is not there.
    NoData {
        /// The message, which names the file.
        message: String,
    },
}

/// The tensor that comes closest to its bound, or exceeds it most.
#[derive(Clone, Debug, PartialEq)]
pub struct Worst {
    /// Its name in the file.
    pub tensor: String,
    /// Its largest absolute error; NaN if our result holds one.
    pub error: f64,
    /// The largest error allowed.
    pub bound: f64,
}

impl Worst {
    /// The error in units of the bound; infinite for NaN.
    pub fn ratio(&self) -> f64 {
        match self.error {
            error if error.is_nan() => f64::INFINITY,
            // The bound is zero, too, where values must be equal.
            0.0 => 0.0,
            error => error / self.bound,
        }
    }

    pub(crate) fn within(&self) -> bool {
        self.error <= self.bound
    }
}

impl GoldenReport {
    pub(crate) fn new(rows: Vec<Row>) -> Self {
        Self { rows }
    }

    /// The rows, in the order of the files' names.
    pub fn rows(&self) -> &[Row] {
        &self.rows
    }

    /// The number of rows that passed.
    pub fn passed(&self) -> usize {
        self.count(|verdict| matches!(verdict, Verdict::Passed(_)))
    }

    /// The number of rows that failed: outside a bound, malformed, or refused by our code.
    pub fn failed(&self) -> usize {
        self.count(|verdict| matches!(verdict, Verdict::Exceeded(_) | Verdict::Faulty(_)))
    }

    /// The number of cases of a kind that no function computes.
    pub fn not_served(&self) -> usize {
        self.count(|verdict| matches!(verdict, Verdict::NotServed))
    }

    /// The number of cases about a corpus that is not there.
    pub fn without_data(&self) -> usize {
        self.count(|verdict| matches!(verdict, Verdict::NoData { .. }))
    }

    fn count(&self, which: impl Fn(&Verdict) -> bool) -> usize {
        self.rows.iter().filter(|row| which(&row.verdict)).count()
    }
}

impl fmt::Display for GoldenReport {
    /// The table of rows and a closing line.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let width = self.rows.iter().map(|row| row.name.len()).max();
        let width = width.unwrap_or(0).max("case".len());
        writeln!(
            f,
            "{:width$}  type  verdict  error/bound      error      bound  worst tensor",
            "case"
        )?;
        for row in &self.rows {
            row.write(f, width)?;
        }
        let [passed, failed, not_served] = [self.passed(), self.failed(), self.not_served()];
        write!(
            f,
            "golden: {passed} passed, {failed} failed, {not_served} not served"
        )?;
        match self.without_data() {
            0 => Ok(()),
            missing => write!(f, ", {missing} without their corpus"),
        }
    }
}

impl Row {
    fn write(&self, f: &mut fmt::Formatter<'_>, width: usize) -> fmt::Result {
        let dtype = self.dtype.unwrap_or("-");
        write!(f, "{:width$}  {dtype:4}  ", self.name)?;
        match &self.verdict {
            Verdict::Passed(worst) => writeln!(f, "passed   {worst}"),
            Verdict::Exceeded(worst) => writeln!(f, "FAILED   {worst}"),
            Verdict::Faulty(error) => writeln!(f, "FAILED   {error}"),
            Verdict::NotServed => writeln!(f, "not served: no function computes `{}`", self.case),
            Verdict::NoData { message } => writeln!(f, "not run: {message}"),
        }
    }
}

impl fmt::Display for Worst {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            tensor,
            error,
            bound,
        } = self;
        write!(
            f,
            "{:11.2e}  {error:9.2e}  {bound:9.2e}  {tensor}",
            self.ratio()
        )
    }
}
