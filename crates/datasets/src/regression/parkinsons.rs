//! 5,875 voice recordings of 42 people with Parkinson's disease; the target is `total_UPDRS`, the
//! score of their symptoms.
//!
//! The score was interpolated in time for each person, and person and time are inputs, so that
//! random folds leak by design.
//!
//! Cite A. Tsanas, M. A. Little, P. E. McSharry, L. O. Ramig, *Accurate telemonitoring of
//! Parkinson's disease progression by non-invasive speech tests*, 2010 (CC BY 4.0).

use crate::lines::End;
use crate::table::{Cells, Format};
use crate::{Error, Table};

/// The raw file of the set.
pub const FILE: &str = "parkinsons_updrs.data";

const HEADER: &str = "subject#,age,sex,test_time,motor_UPDRS,total_UPDRS,Jitter(%),Jitter(Abs),\
    Jitter:RAP,Jitter:PPQ5,Jitter:DDP,Shimmer,Shimmer(dB),Shimmer:APQ3,Shimmer:APQ5,\
    Shimmer:APQ11,Shimmer:DDA,NHR,HNR,RPDE,DFA,PPE";

const FORMAT: Format = Format {
    header: Some(HEADER),
    cells: Cells::Comma,
    columns: 22,
    rows: 5875,
    end: End::Bare,
};

const TOTAL_UPDRS: usize = 5;

/// Reads the raw file into 20 inputs (subject, age, sex, time and 16 measures of the voice) and,
/// as the last column, the target. `motor_UPDRS`, a part of the target, is left out.
///
/// # Errors
/// [`Error::Malformed`], [`Error::Encoding`].
pub fn parse(file: &str, bytes: &[u8]) -> Result<Table, Error> {
    let columns: Vec<usize> = (0..4).chain(6..22).chain([TOTAL_UPDRS]).collect();
    Ok(FORMAT.read(file, bytes)?.select(&columns))
}
