//! Files of processes and posteriors: reading them with typed errors, their version, and the arrays in them.

use crate::{Error, GaussianProcess, Posterior, SparsePosterior};
use bochner_kernels::AnyKernel;
use bochner_numerics::argument;
use ndarray::Array2;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;

/// Reads a [`GaussianProcess`], a [`Posterior`] or a [`SparsePosterior`] from JSON, as `serde_json` writes it.
///
/// `serde_json::from_str` reads the same files, but its errors are text.
///
/// # Errors
/// [`Error::Version`] for a file of another version, and [`Error::UnknownKernel`] for a kernel that this version does
/// not know, before anything else is looked at. [`Error::File`] for text that is no JSON, for a field that is missing
/// or unknown, and for values that building refuses.
///
/// # Example
/// ```
/// use bochner_gp::ndarray::array;
/// use bochner_gp::{Error, GaussianProcess, from_json, rbf_process};
///
/// let (x, y) = (array![[0.0], [1.0], [3.0]], array![0.2, 0.4, -0.3]);
/// let process = rbf_process(x.view(), y.view())?;
/// let text = serde_json::to_string(&process)?;
/// let read: GaussianProcess = from_json(&text)?;
/// assert_eq!(read.parameters(), process.parameters());
///
/// let newer = text.replace(r#""version":1"#, r#""version":2"#);
/// assert_eq!(from_json::<GaussianProcess>(&newer).unwrap_err(), Error::Version { got: 2, known: 1 });
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn from_json<S: FromJson>(text: &str) -> Result<S, Error> {
    let refused = |error: serde_json::Error| Error::File {
        line: error.line(),
        column: error.column(),
        reason: error.to_string(),
    };
    let file: Value = serde_json::from_str(text).map_err(refused)?;
    check_versions_and_kernels(&file)?;
    serde_json::from_str(text).map_err(refused)
}

/// A type that [`from_json`] reads. The trait is sealed.
pub trait FromJson: DeserializeOwned + sealed::Sealed {}

mod sealed {
    pub trait Sealed {}
}

macro_rules! from_json {
    ($($name:ident),*) => {$(
        impl FromJson for $name {}
        impl sealed::Sealed for $name {}
    )*};
}

from_json!(GaussianProcess, Posterior, SparsePosterior);

/// Refuses another version and an unknown kernel anywhere in a file.
fn check_versions_and_kernels(file: &Value) -> Result<(), Error> {
    let Value::Object(fields) = file else {
        return Ok(());
    };
    if let Some(version) = fields.get("version").and_then(Value::as_u64)
        && version != u64::from(VERSION)
    {
        let got = u32::try_from(version).unwrap_or(u32::MAX);
        let known = VERSION;
        return Err(Error::Version { got, known });
    }
    for (name, value) in fields {
        match name.as_str() {
            "kernel" => check_kernel(value)?,
            _ => check_versions_and_kernels(value)?,
        }
    }
    Ok(())
}

fn check_kernel(kernel: &Value) -> Result<(), Error> {
    for (name, settings) in kernel.as_object().into_iter().flatten() {
        if !AnyKernel::<f64>::NAMES.contains(&name.as_str()) {
            return Err(Error::UnknownKernel {
                got: name.clone(),
                known: &AnyKernel::<f64>::NAMES,
            });
        }
        let base = settings.get("base");
        let parts = settings.as_array().into_iter().flatten();
        parts.chain(base).try_for_each(check_kernel)?;
    }
    Ok(())
}

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
