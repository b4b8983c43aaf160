//! The rate at which an error falls with the number of spectral points.

use super::Measure;
use crate::Error;
use bochner_report::document::{Axis, Chart, Marks, Series};
use bochner_report::statistics::{line, mean, sample_deviation};

/// The numbers of spectral points, R.
pub(crate) const POINTS: [usize; 9] = [16, 32, 64, 128, 256, 512, 1024, 2048, 4096];

/// Independent groups of cases: their slopes' spread is the standard error.
const GROUPS: usize = 16;

/// Mean errors by number of points, and the slope of their logarithms.
pub(crate) struct Rate {
    errors: [f64; POINTS.len()],
    slope: f64,
    /// The standard error of the slope.
    error: f64,
}

impl Rate {
    /// From the errors of each case; the groups are taken by turns.
    pub(crate) fn of(cases: &[[f64; POINTS.len()]]) -> Result<Self, Error> {
        let slopes = (0..GROUPS).map(|group| {
            let own: Vec<_> = cases.iter().skip(group).step_by(GROUPS).copied().collect();
            slope(&averaged(&own))
        });
        let slopes = slopes.collect::<Result<Vec<f64>, Error>>()?;
        Ok(Self {
            errors: averaged(cases),
            slope: mean(&slopes)?,
            error: sample_deviation(&slopes)? / (GROUPS as f64).sqrt(),
        })
    }

    /// The slope with its standard error.
    pub(crate) fn measure(&self, what: impl Into<String>) -> Measure {
        Measure::shown(what, self.slope).with_error(self.error)
    }

    /// The errors over the number of points.
    pub(crate) fn series(&self, name: &str) -> Series {
        series(name, Marks::Dots, self.errors)
    }

    /// A line of slope -1/2 through the first error.
    pub(crate) fn root_law(&self) -> Series {
        let first = self.errors[0] * (POINTS[0] as f64).sqrt();
        let law = POINTS.map(|points| first / (points as f64).sqrt());
        series("slope -1/2", Marks::Line, law)
    }
}

/// The root mean square over the cases, for each number of points.
fn averaged(cases: &[[f64; POINTS.len()]]) -> [f64; POINTS.len()] {
    std::array::from_fn(|i| {
        let squares: f64 = cases.iter().map(|errors| errors[i].powi(2)).sum();
        (squares / cases.len() as f64).sqrt()
    })
}

fn slope(errors: &[f64; POINTS.len()]) -> Result<f64, Error> {
    let points = POINTS.iter().zip(errors);
    let logs: Vec<_> = points.map(|(&r, e)| ((r as f64).ln(), e.ln())).collect();
    Ok(line(&logs)?.slope)
}

fn series(name: &str, marks: Marks, errors: [f64; POINTS.len()]) -> Series {
    let places = POINTS.map(|points| points as f64);
    Series {
        name: name.to_owned(),
        marks,
        points: places.into_iter().zip(errors).collect(),
    }
}

/// Errors over the number of points, both by equal factors.
pub(crate) fn chart(title: &str, series: Vec<Series>) -> Chart {
    Chart {
        title: title.to_owned(),
        x: Axis::Log("spectral points R".to_owned()),
        y: Axis::Log("error".to_owned()),
        series,
    }
}
