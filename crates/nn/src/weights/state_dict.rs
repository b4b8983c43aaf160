//! Tensors by name.

use super::WeightsError;
use crate::Element;
use crate::format::{self, FormatError};
use crate::parameters::join;
use ndarray::{ArrayD, IxDyn};
use std::collections::BTreeMap;

/// The key of the metadata under which sizes are kept.
const SIZES: &str = "sizes";

/// Tensors by name, as another library's `state_dict()` gives them and a safetensors file holds them.
///
/// ```
/// use bochner_nn::StateDict;
/// use bochner_nn::ndarray::array;
///
/// let mut state = StateDict::default();
/// state.tensors.insert("encoder.weight".into(), array![[1.0_f32, 2.0]].into_dyn());
/// state.tensors.insert("decoder.weight".into(), array![[3.0]].into_dyn());
/// let bytes = state.to_safetensors();
/// let encoder = StateDict::<f32>::from_safetensors(&bytes, "encoder")?;
/// assert_eq!(encoder.tensors.keys().collect::<Vec<_>>(), ["weight"]);
/// # Ok::<(), bochner_nn::Error>(())
/// ```
#[doc(alias = "state_dict")]
#[derive(Clone, Debug, PartialEq)]
pub struct StateDict<E> {
    /// The tensors.
    pub tensors: BTreeMap<String, ArrayD<E>>,
    /// The sizes that the shapes do not show, such as the number of heads. Files of other libraries have none.
    pub sizes: BTreeMap<String, usize>,
}

impl<E> Default for StateDict<E> {
    fn default() -> Self {
        Self {
            tensors: BTreeMap::new(),
            sizes: BTreeMap::new(),
        }
    }
}

impl<E: Element> StateDict<E> {
    /// Reads the bytes of a safetensors file: all tensors if the prefix is empty, otherwise those named `prefix.…`, with
    /// the prefix removed. Other tensors may have any type.
    ///
    /// Sizes are read from the key `sizes` of the metadata, a JSON object, if it is there:
    /// `save_file(layer.state_dict(), path, metadata={"sizes": json.dumps({"num_heads": 8})})` in Python.
    ///
    /// # Errors
    /// [`WeightsError::Truncated`], [`WeightsError::NotSafetensors`], [`WeightsError::OtherType`].
    pub fn from_safetensors(bytes: &[u8], prefix: &str) -> Result<Self, crate::Error> {
        Ok(Self::read(bytes, prefix)?)
    }

    fn read(bytes: &[u8], prefix: &str) -> Result<Self, WeightsError> {
        let (tensors, metadata) = format::open(bytes).map_err(|error| match error {
            FormatError::Truncated { expected } => WeightsError::Truncated {
                expected,
                got: bytes.len() as u64,
            },
            FormatError::Foreign { reason } => WeightsError::NotSafetensors { reason },
        })?;
        let start = join(prefix, "");
        let mut state = Self::default();
        for (name, view) in tensors.iter() {
            let Some(own) = name.strip_prefix(&start) else {
                continue;
            };
            let array = format::array(&view).map_err(|got| WeightsError::OtherType {
                name: name.to_string(),
                expected: E::NAME,
                got,
            })?;
            let array = ArrayD::from_shape_vec(IxDyn(&array.dims), array.values);
            let array = array.expect("as many values as the shape");
            state.tensors.insert(own.to_string(), array);
        }
        if let Some(sizes) = metadata.get(SIZES) {
            let sizes = serde_json::from_str::<BTreeMap<String, usize>>(sizes);
            let sizes = sizes.map_err(|error| WeightsError::NotSafetensors {
                reason: format!("its sizes are no object of numbers ({error})"),
            })?;
            let own = |(name, size): (String, _)| Some((name.strip_prefix(&start)?.into(), size));
            state.sizes = sizes.into_iter().filter_map(own).collect();
        }
        Ok(state)
    }

    /// The bytes of a safetensors file. The same tensors give the same bytes.
    pub fn to_safetensors(&self) -> Vec<u8> {
        let tensors = self.tensors.iter();
        let rows: Vec<_> = tensors
            .map(|(name, array)| (name, array.shape(), array.as_standard_layout()))
            .collect();
        let tensors = rows.iter().map(|(name, dims, array)| {
            let values = array.as_slice().expect("in row-major order");
            (name.to_string(), dims.to_vec(), values)
        });
        let sizes = serde_json::to_string(&self.sizes).expect("plain data");
        let bytes = format::serialize(tensors.collect(), [(SIZES.to_string(), sizes)]);
        bytes.expect("a header of names and shapes")
    }
}
