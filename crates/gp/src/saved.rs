//! The version of the files that this crate writes, and the arrays in them.

use crate::Error;
use bochner_numerics::argument;
use ndarray::Array2;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// The version that is written, and the only one that is read.
const VERSION: u32 = 1;

/// Written as the number of the version; reading refuses another one before it looks at what follows.
pub(crate) struct Version;

impl Serialize for Version {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        VERSION.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Version {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        match u32::deserialize(deserializer)? {
            VERSION => Ok(Self),
            got => Err(serde::de::Error::custom(Error::Version {
                got,
                known: VERSION,
            })),
        }
    }
}

/// The rows of a matrix, as they are written.
pub(crate) fn rows(x: &Array2<f64>) -> Vec<Vec<f64>> {
    x.rows().into_iter().map(|row| row.to_vec()).collect()
}

/// The matrix of rows that were read.
pub(crate) fn matrix(name: &'static str, rows: &[Vec<f64>]) -> Result<Array2<f64>, Error> {
    let width = rows.first().map_or(0, Vec::len);
    for (i, row) in rows.iter().enumerate() {
        argument::shape(format!("row {i} of {name}"), &[width], &[row.len()])?;
    }
    Ok(Array2::from_shape_fn((rows.len(), width), |(i, n)| {
        rows[i][n]
    }))
}
