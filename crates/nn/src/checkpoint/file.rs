//! The bytes of a checkpoint.

use super::{AdamState, Checkpoint, CheckpointError, Integrity, Moments, Progress, VERSION};
use crate::Element;
use crate::format::{self, Array, FormatError};
use bochner_numerics::fingerprint;
use safetensors::tensor::SafeTensors;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::Write;
use std::ops::Range;
use std::path::{Path, PathBuf};

/// The one key of `__metadata__`: several would be written in random order.
const KEY: &str = "bochner";
const FIRST: &str = "optimizer.m.";
const SECOND: &str = "optimizer.v.";
/// The hexadecimal digits of a checksum.
const DIGITS: usize = 16;

/// Unknown keys are refused: a damaged key of the checksum would be one.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Header {
    version: u32,
    /// The checksum in [`DIGITS`] hexadecimal digits; none in files of older versions. It stands before what
    /// callers write, so that it is found by the first occurrence of its key.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    checksum: Option<String>,
    description: String,
    /// The parameters in the model's order, which safetensors does not keep.
    parameters: Vec<String>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    sizes: BTreeMap<String, usize>,
    /// The steps of the optimiser, if it was saved.
    adam_steps: Option<u64>,
    progress: Progress,
}

/// The part of the header that every version has.
#[derive(Deserialize)]
struct Versioned {
    version: u64,
}

pub(super) fn encode<E: Element>(
    path: &Path,
    checkpoint: &Checkpoint<E>,
) -> Result<Vec<u8>, CheckpointError> {
    let header = Header {
        version: VERSION,
        checksum: Some("0".repeat(DIGITS)),
        description: checkpoint.description.clone(),
        parameters: names(checkpoint)?,
        sizes: checkpoint.sizes.clone(),
        adam_steps: checkpoint.adam.as_ref().map(|adam| adam.steps),
        progress: checkpoint.progress.clone(),
    };
    let header = serde_json::to_string(&header).expect("plain data");

    let mut tensors = Vec::new();
    for (name, array) in &checkpoint.parameters {
        tensors.push((name.clone(), array.dims.clone(), &array.values[..]));
    }
    for (name, moments) in checkpoint.adam.iter().flat_map(|adam| &adam.moments) {
        // The moments of a parameter that is gone have no shape left but their length.
        let known = checkpoint.parameters.iter().find(|(n, _)| n == name);
        let dims = known.map_or_else(|| vec![moments.first.len()], |(_, a)| a.dims.clone());
        for (prefix, values) in [(FIRST, &moments.first), (SECOND, &moments.second)] {
            tensors.push((format!("{prefix}{name}"), dims.clone(), &values[..]));
        }
    }
    // The format refuses only a header above its limit, which takes a very large `extra`.
    let bytes = format::serialize(tensors, [(KEY.to_string(), header)]);
    let mut bytes = bytes.map_err(|error| CheckpointError::Io {
        doing: "write",
        path: path.to_path_buf(),
        source: std::io::Error::other(error),
    })?;
    let place = place_of_checksum(&bytes).expect("written above");
    let checksum = format!("{:016x}", checksum(&bytes, &place));
    bytes[place].copy_from_slice(checksum.as_bytes());
    Ok(bytes)
}

/// Returns the position of the digits of the checksum.
fn place_of_checksum(bytes: &[u8]) -> Option<Range<usize>> {
    // The header is JSON within JSON.
    let key = br#"\"checksum\":\""#;
    let start = bytes.windows(key.len()).position(|window| window == key)? + key.len();
    (start + DIGITS <= bytes.len()).then_some(start..start + DIGITS)
}

/// The hash of a file with zeros in place of its checksum.
fn checksum(bytes: &[u8], place: &Range<usize>) -> u64 {
    let hashed = |(i, &byte)| if place.contains(&i) { b'0' } else { byte };
    fingerprint(bytes.iter().enumerate().map(hashed))
}

/// Compares the checksum with the bytes, where there is one.
fn verify(path: &Path, bytes: &[u8], written: Option<&str>) -> Result<Integrity, CheckpointError> {
    let Some(written) = written else {
        return Ok(Integrity::Unverified);
    };
    let foreign = || CheckpointError::NotACheckpoint {
        path: path.to_path_buf(),
        reason: format!("its checksum {written:?} is not one"),
    };
    let expected = u64::from_str_radix(written, 16).map_err(|_| foreign())?;
    // Capital digits would hide that a bit has changed.
    if written.bytes().any(|digit| digit.is_ascii_uppercase()) {
        return Err(foreign());
    }
    let got = checksum(bytes, &place_of_checksum(bytes).ok_or_else(foreign)?);
    if got != expected {
        return Err(CheckpointError::Damaged {
            path: path.to_path_buf(),
            expected,
            got,
        });
    }
    Ok(Integrity::Verified)
}

/// The parameters' names, if they can be told apart.
fn names<E>(checkpoint: &Checkpoint<E>) -> Result<Vec<String>, CheckpointError> {
    let unusable = |name: &String, reason| CheckpointError::UnusableName {
        name: name.clone(),
        reason,
    };
    let mut seen = std::collections::BTreeSet::new();
    for (name, _) in &checkpoint.parameters {
        if name.starts_with("optimizer.") || name == "__metadata__" {
            return Err(unusable(name, "the name is reserved"));
        }
        if !seen.insert(name) {
            return Err(unusable(name, "two parameters have this name"));
        }
    }
    Ok(checkpoint.parameters.iter().map(|p| p.0.clone()).collect())
}

pub(super) fn decode<E: Element>(
    path: &Path,
    bytes: &[u8],
) -> Result<Checkpoint<E>, CheckpointError> {
    let foreign = |reason: String| CheckpointError::NotACheckpoint {
        path: path.to_path_buf(),
        reason,
    };
    let (tensors, header) = open(path, bytes)?;
    let version: Versioned =
        serde_json::from_str(&header).map_err(|error| foreign(error.to_string()))?;
    if version.version != u64::from(VERSION) {
        return Err(CheckpointError::OtherVersion {
            path: path.to_path_buf(),
            expected: VERSION,
            got: version.version,
        });
    }
    let header: Header =
        serde_json::from_str(&header).map_err(|error| foreign(error.to_string()))?;
    let integrity = verify(path, bytes, header.checksum.as_deref())?;

    let mut arrays = BTreeMap::new();
    for (name, view) in tensors.tensors() {
        let array = format::array::<E>(&view).map_err(|got| CheckpointError::OtherType {
            name: name.clone(),
            expected: E::NAME,
            got,
        })?;
        arrays.insert(name, array);
    }
    let adam = match header.adam_steps {
        Some(steps) => Some(AdamState {
            steps,
            moments: moments(&mut arrays).map_err(foreign)?,
        }),
        None => None,
    };
    let mut parameters = Vec::new();
    for name in header.parameters {
        let array = arrays
            .remove(&name)
            .ok_or_else(|| foreign(format!("the tensor {name} is announced but missing")))?;
        parameters.push((name, array));
    }
    if let Some(name) = arrays.keys().next() {
        return Err(foreign(format!("the tensor {name} is not announced")));
    }
    Ok(Checkpoint {
        description: header.description,
        parameters,
        sizes: header.sizes,
        adam,
        progress: header.progress,
        integrity,
    })
}

/// The tensors and the header's JSON.
fn open<'b>(path: &Path, bytes: &'b [u8]) -> Result<(SafeTensors<'b>, String), CheckpointError> {
    let foreign = |reason: String| CheckpointError::NotACheckpoint {
        path: path.to_path_buf(),
        reason,
    };
    let (tensors, metadata) = format::open(bytes).map_err(|error| match error {
        FormatError::Truncated { expected } => CheckpointError::Truncated {
            path: path.to_path_buf(),
            expected,
            got: bytes.len() as u64,
        },
        FormatError::Foreign { reason } => foreign(reason),
    })?;
    let missing = || foreign(format!("its metadata has no key {KEY:?}"));
    Ok((tensors, metadata.get(KEY).cloned().ok_or_else(missing)?))
}

/// Takes the moments out of the arrays.
fn moments<E: Element>(
    arrays: &mut BTreeMap<String, Array<E>>,
) -> Result<BTreeMap<String, Moments<E>>, String> {
    let firsts: Vec<String> = arrays
        .keys()
        .filter_map(|name| name.strip_prefix(FIRST).map(str::to_string))
        .collect();
    let mut moments = BTreeMap::new();
    for name in firsts {
        let first = arrays.remove(&format!("{FIRST}{name}")).expect("a key");
        let second = arrays.remove(&format!("{SECOND}{name}"));
        let second = second.ok_or_else(|| format!("the tensor {SECOND}{name} is missing"))?;
        let pair = Moments {
            first: first.values,
            second: second.values,
        };
        moments.insert(name, pair);
    }
    Ok(moments)
}

pub(super) fn write_atomically(path: &Path, bytes: &[u8]) -> Result<(), CheckpointError> {
    let temporary = beside(path);
    let result = write_and_move(&temporary, path, bytes);
    if result.is_err() {
        // The first error is reported; if removing fails too, only a stray file is left behind.
        let _ = fs::remove_file(&temporary);
    }
    result.map_err(|source| CheckpointError::Io {
        doing: "write",
        path: path.to_path_buf(),
        source,
    })
}

fn write_and_move(temporary: &Path, path: &Path, bytes: &[u8]) -> std::io::Result<()> {
    let mut file = File::create(temporary)?;
    file.write_all(bytes)?;
    file.sync_all()?;
    drop(file);
    fs::rename(temporary, path)?;
    // The rename itself has to survive a power failure too, where directories can be opened.
    if let Some(directory) = temporary.parent().filter(|_| cfg!(unix)) {
        let here = Path::new(".");
        let empty = directory.as_os_str().is_empty();
        File::open(if empty { here } else { directory })?.sync_all()?;
    }
    Ok(())
}

/// A name in the same directory, since only there a rename is atomic.
fn beside(path: &Path) -> PathBuf {
    let mut name = path.file_name().unwrap_or_default().to_os_string();
    name.push(format!(".{}.partial", std::process::id()));
    path.with_file_name(name)
}
