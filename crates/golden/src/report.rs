//! The outcome of the cases of a directory.

use super::error::Fault;
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
    /// `f64` or `f32`, or `text`; `None` where no precision was run.
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
    /// The file is malformed, or our code could not produce what it asks for. [`Fault::NotServed`] and
    /// [`Fault::NoCorpus`] are no failures.
    Faulty(Fault),
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

    /// The verdict on a case of which this is the worst.
    pub(crate) fn verdict(self) -> Verdict {
        match self.error <= self.bound {
            true => Verdict::Passed(self),
            false => Verdict::Exceeded(self),
        }
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
        self.rows.len() - self.passed() - self.not_served() - self.without_data()
    }

    /// The number of cases of a kind that no function computes.
    pub fn not_served(&self) -> usize {
        self.count(|verdict| matches!(verdict, Verdict::Faulty(Fault::NotServed { .. })))
    }

    /// The number of cases about a corpus that is not there.
    pub fn without_data(&self) -> usize {
        self.count(|verdict| matches!(verdict, Verdict::Faulty(Fault::NoCorpus { .. })))
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
            Verdict::Faulty(fault @ Fault::NotServed { .. }) => {
                writeln!(f, "not served: {fault}")
            }
            Verdict::Faulty(fault @ Fault::NoCorpus { .. }) => writeln!(f, "not run: {fault}"),
            Verdict::Faulty(fault) => writeln!(f, "FAILED   {fault}"),
        }
    }
}

impl fmt::Display for Worst {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (ratio, error, bound) = (self.ratio(), self.error, self.bound);
        write!(
            f,
            "{ratio:11.2e}  {error:9.2e}  {bound:9.2e}  {}",
            self.tensor
        )
    }
}
