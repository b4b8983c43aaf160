//! Arrays in the safetensors format, in memory.

use bochner_numerics::Real;
use safetensors::tensor::{Dtype, SafeTensorError, SafeTensors, TensorView};
use serde::Deserialize;
use std::collections::{BTreeMap, HashMap};

/// The values of one tensor, in row-major order.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Array<E> {
    pub(crate) dims: Vec<usize>,
    pub(crate) values: Vec<E>,
}

/// The reason that bytes were not read.
pub(crate) enum FormatError {
    /// The header declares this number of bytes, and there are others.
    Truncated { expected: u64 },
    /// The bytes are in another format.
    Foreign { reason: String },
}

impl FormatError {
    fn foreign(error: impl ToString) -> Self {
        let reason = error.to_string();
        Self::Foreign { reason }
    }
}

/// The tensors and the metadata.
pub(crate) fn open(
    bytes: &[u8],
) -> Result<(SafeTensors<'_>, HashMap<String, String>), FormatError> {
    let truncated = |expected| FormatError::Truncated { expected };
    let Some(length) = bytes.first_chunk::<8>().map(|b| u64::from_le_bytes(*b)) else {
        return Err(truncated(8));
    };
    // The limit of safetensors: a larger number is text or some other format.
    if length > 100_000_000 {
        return Err(FormatError::foreign("it is no safetensors file"));
    }
    if bytes.len() as u64 - 8 < length {
        return Err(truncated(8 + length));
    }
    let tensors = SafeTensors::deserialize(bytes).map_err(|error| match error {
        SafeTensorError::MetadataIncompleteBuffer => {
            truncated(8 + length + declared(&bytes[8..8 + length as usize]))
        }
        error => FormatError::foreign(error),
    })?;
    let (_, metadata) = SafeTensors::read_metadata(bytes).map_err(FormatError::foreign)?;
    Ok((tensors, metadata.metadata().clone().unwrap_or_default()))
}

/// The bytes of data that a safetensors header announces.
fn declared(header: &[u8]) -> u64 {
    #[derive(Deserialize)]
    struct Entry {
        data_offsets: (u64, u64),
    }
    let entries: BTreeMap<String, serde_json::Value> =
        serde_json::from_slice(header).unwrap_or_default();
    let ends = entries
        .into_values()
        .filter_map(|value| serde_json::from_value::<Entry>(value).ok())
        .map(|entry| entry.data_offsets.1);
    ends.max().unwrap_or(0)
}

/// The bytes of tensors, each with its name, shape and values. Several keys of metadata would be written in random
/// order.
///
/// # Errors
/// The format's, for a header above its limit.
pub(crate) fn serialize<E: Real>(
    tensors: Vec<(String, Vec<usize>, &[E])>,
    metadata: [(String, String); 1],
) -> Result<Vec<u8>, SafeTensorError> {
    let tensors = tensors.into_iter();
    let tensors: Vec<_> = tensors
        .map(|(name, dims, values)| (name, dims, to_bytes(values)))
        .collect();
    let views = tensors.iter().map(|(name, dims, bytes)| {
        let view = TensorView::new(dtype::<E>(), dims.clone(), bytes);
        (name.as_str(), view.expect("as many bytes as the shape"))
    });
    safetensors::serialize(views, Some(HashMap::from(metadata)))
}

fn dtype<E: Real>() -> Dtype {
    match E::NAME {
        "f32" => Dtype::F32,
        _ => Dtype::F64,
    }
}

fn to_bytes<E: Real>(values: &[E]) -> Vec<u8> {
    let values = values.iter().map(|x| x.as_f64());
    match dtype::<E>() {
        // Exact: the number was an `f32`.
        Dtype::F32 => values.flat_map(|x| (x as f32).to_le_bytes()).collect(),
        _ => values.flat_map(f64::to_le_bytes).collect(),
    }
}

/// The values of a tensor.
///
/// # Errors
/// The name of its number type, if that is not `E`.
pub(crate) fn array<E: Real>(view: &TensorView<'_>) -> Result<Array<E>, String> {
    if view.dtype() != dtype::<E>() {
        return Err(view.dtype().to_string().to_lowercase());
    }
    let (singles, _) = view.data().as_chunks::<4>();
    let (doubles, _) = view.data().as_chunks::<8>();
    let values = match view.dtype() {
        Dtype::F32 => singles
            .iter()
            .map(|b| E::of(f64::from(f32::from_le_bytes(*b))))
            .collect(),
        _ => doubles
            .iter()
            .map(|b| E::of(f64::from_le_bytes(*b)))
            .collect(),
    };
    let dims = view.shape().to_vec();
    Ok(Array { dims, values })
}
