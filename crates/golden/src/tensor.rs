//! Tensors as they are stored, and their conversion to typed arrays.

use super::error::Fault;
use ndarray::{Array, ArrayD, Dimension, IxDyn};
use safetensors::Dtype;
use safetensors::tensor::TensorView;

/// A tensor of a case. Masks and integers are numbers here, which holds them exactly.
#[derive(Clone, Debug)]
pub(crate) struct Tensor {
    dtype: Dtype,
    x: ArrayD<f64>,
}

impl Tensor {
    pub(crate) fn read(name: &str, view: &TensorView) -> Result<Self, Fault> {
        let (data, dtype) = (view.data(), view.dtype());
        let words = data
            .chunks_exact(8)
            .map(|word| word.try_into().expect("chunks of eight"));
        let x: Vec<f64> = match dtype {
            Dtype::F64 => words.map(f64::from_le_bytes).collect(),
            Dtype::I64 => words.map(|word| i64::from_le_bytes(word) as f64).collect(),
            Dtype::U8 => data.iter().map(|&byte| byte.into()).collect(),
            _ => return Err(Self::wrong_dtype(name, "F64, U8 (a mask) or I64", dtype)),
        };
        if dtype == Dtype::U8 {
            check_elements(name, &x, "only 0 and 1", |x| x <= 1.0)?;
        }
        let x = ArrayD::from_shape_vec(IxDyn(view.shape()), x);
        Ok(Self {
            dtype,
            x: x.expect("sizes checked by the reader"),
        })
    }

    pub(crate) fn shape(&self) -> &[usize] {
        self.x.shape()
    }

    /// Whether its elements are integers, which must be equal.
    pub(crate) fn is_integer(&self) -> bool {
        self.dtype == Dtype::I64
    }

    pub(crate) fn values(&self) -> &ArrayD<f64> {
        &self.x
    }

    /// The elements of a tensor that is stored in this type.
    pub(crate) fn stored_as(&self, dtype: Dtype, name: &str) -> Result<&ArrayD<f64>, Fault> {
        match self.dtype == dtype {
            true => Ok(&self.x),
            false => Err(Self::wrong_dtype(name, &format!("{dtype:?}"), self.dtype)),
        }
    }

    fn wrong_dtype(name: &str, expected: &str, got: Dtype) -> Fault {
        Fault::wrong(
            name,
            format!("stored as {expected}"),
            format!("stored as {got:?}"),
        )
    }
}

/// Checks all elements of a tensor.
pub(crate) fn check_elements<'a>(
    name: &str,
    x: impl IntoIterator<Item = &'a f64>,
    allowed: &str,
    is_allowed: fn(f64) -> bool,
) -> Result<(), Fault> {
    match x.into_iter().find(|x| !is_allowed(**x)) {
        None => Ok(()),
        Some(x) => Err(Fault::wrong(
            name,
            format!("one of {allowed}"),
            format!("an array with {x}"),
        )),
    }
}

/// The array with its number of axes known.
pub(crate) fn ranked<A, D: Dimension>(name: &str, x: ArrayD<A>) -> Result<Array<A, D>, Fault> {
    let got = x.shape().to_vec();
    let axes = || format!("one with {} axes", D::NDIM.unwrap_or_default());
    let ranked = x.into_dimensionality();
    ranked.map_err(|_| Fault::shape(name, &axes(), &got))
}
