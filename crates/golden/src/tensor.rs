//! Tensors as they are stored, and their conversion to typed arrays.

use super::error::Fault;
use bochner_numerics::Real;
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
            other => {
                return Err(Fault::Dtype {
                    tensor: name.to_owned(),
                    expected: "F64, U8 (a mask) or I64",
                    got: format!("{other:?}"),
                });
            }
        };
        if let Some(byte) = x.iter().find(|&&byte| dtype == Dtype::U8 && byte > 1.0) {
            return Err(Fault::Element {
                tensor: name.to_owned(),
                expected: "only 0 and 1",
                got: byte.to_string(),
            });
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

    pub(crate) fn float(&self, name: &str) -> Result<&ArrayD<f64>, Fault> {
        self.stored_as(Dtype::F64, name, "F64")
    }

    pub(crate) fn mask(&self, name: &str) -> Result<ArrayD<bool>, Fault> {
        let x = self.stored_as(Dtype::U8, name, "U8 (a mask)")?;
        Ok(x.mapv(|x| x == 1.0))
    }

    pub(crate) fn integers(&self, name: &str) -> Result<ArrayD<i64>, Fault> {
        let x = self.stored_as(Dtype::I64, name, "I64")?;
        Ok(x.mapv(|x| x as i64))
    }

    fn stored_as(
        &self,
        dtype: Dtype,
        name: &str,
        expected: &'static str,
    ) -> Result<&ArrayD<f64>, Fault> {
        if self.dtype == dtype {
            return Ok(&self.x);
        }
        Err(Fault::Dtype {
            tensor: name.to_owned(),
            expected,
            got: format!("{:?}", self.dtype),
        })
    }
}

/// The array in the precision of the check.
pub(crate) fn cast<T: Real>(x: &ArrayD<f64>) -> ArrayD<T> {
    x.mapv(T::of)
}

/// The array with its number of axes known.
pub(crate) fn ranked<A, D: Dimension>(name: &str, x: ArrayD<A>) -> Result<Array<A, D>, Fault> {
    let got = x.shape().to_vec();
    let expected = || format!("of {} axes", D::NDIM.unwrap_or_default());
    let ranked = x.into_dimensionality();
    ranked.map_err(|_| Fault::shape(name, expected(), &got))
}
