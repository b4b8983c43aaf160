//! Checks at the door.

use crate::Error;
use ndarray::{ArrayView1, ArrayView2};

/// Inputs and targets that fit together and are finite.
pub(crate) fn expect_data(x: &ArrayView2<f64>, y: &ArrayView1<f64>) -> Result<(), Error> {
    expect_length("y", x.nrows(), y.len())?;
    expect_finite_matrix("x", x)?;
    let wrong = y.iter().enumerate().find(|(_, v)| !v.is_finite());
    wrong.map_or(Ok(()), |(i, &got)| not_finite("y", vec![i], got))
}

pub(crate) fn expect_finite_matrix(what: &'static str, x: &ArrayView2<f64>) -> Result<(), Error> {
    let wrong = x.indexed_iter().find(|(_, v)| !v.is_finite());
    wrong.map_or(Ok(()), |((i, n), &got)| not_finite(what, vec![i, n], got))
}

fn not_finite(what: &'static str, index: Vec<usize>, got: f64) -> Result<(), Error> {
    Err(Error::NotFinite { what, index, got })
}

pub(crate) fn expect_length(what: &'static str, expected: usize, got: usize) -> Result<(), Error> {
    if got == expected {
        return Ok(());
    }
    Err(Error::ShapeMismatch {
        what,
        expected: vec![expected],
        got: vec![got],
    })
}

pub(crate) fn expect_width(
    what: &'static str,
    expected: usize,
    x: &ArrayView2<f64>,
) -> Result<(), Error> {
    if x.ncols() == expected {
        return Ok(());
    }
    Err(Error::ShapeMismatch {
        what,
        expected: vec![x.nrows(), expected],
        got: x.shape().to_vec(),
    })
}

pub(crate) fn expect_some(what: &'static str, count: usize) -> Result<(), Error> {
    if count == 0 {
        return Err(Error::Empty { what });
    }
    Ok(())
}

pub(crate) fn expect_finite(what: &'static str, got: f64) -> Result<(), Error> {
    expect(got.is_finite(), what, "finite", got)
}

pub(crate) fn expect_positive(what: &'static str, got: f64) -> Result<(), Error> {
    let holds = got.is_finite() && got > 0.0;
    expect(holds, what, "finite and positive", got)
}

pub(crate) fn expect_not_negative(what: &'static str, got: f64) -> Result<(), Error> {
    let holds = got.is_finite() && got >= 0.0;
    expect(holds, what, "finite and not negative", got)
}

pub(crate) fn expect(
    holds: bool,
    what: &'static str,
    required: &'static str,
    got: f64,
) -> Result<(), Error> {
    if holds {
        return Ok(());
    }
    Err(Error::OutOfRange {
        what,
        required,
        got,
    })
}
