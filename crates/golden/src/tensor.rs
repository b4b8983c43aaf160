//! Tensors as they are stored, and their conversion to typed arrays.

use super::error::Fault;
use bochner_numerics::Real;
use ndarray::{Array, ArrayD, Dimension, IxDyn};
use safetensors::Dtype;
use safetensors::tensor::TensorView;

/// A tensor of a case.
#[derive(Clone, Debug)]
pub(crate) enum Tensor {
    Float(ArrayD<f64>),
    Mask(ArrayD<bool>),
    Integer(ArrayD<i64>),
}

impl Tensor {
    pub(crate) fn read(name: &str, view: &TensorView) -> Result<Self, Fault> {
        let (shape, data) = (view.shape(), view.data());
        match view.dtype() {
            Dtype::F64 => Ok(Self::Float(array(
                shape,
                words(data).map(f64::from_le_bytes),
            ))),
            Dtype::I64 => Ok(Self::Integer(array(
                shape,
                words(data).map(i64::from_le_bytes),
            ))),
            Dtype::U8 => match data.iter().find(|&&byte| byte > 1) {
                Some(byte) => Err(Fault::Element {
                    tensor: name.to_owned(),
                    expected: "only 0 and 1",
                    got: byte.to_string(),
                }),
                None => Ok(Self::Mask(array(shape, data.iter().map(|&byte| byte == 1)))),
            },
            other => Err(Fault::Dtype {
                tensor: name.to_owned(),
                expected: "F64, U8 (a mask) or I64",
                got: format!("{other:?}"),
            }),
        }
    }

    pub(crate) fn shape(&self) -> &[usize] {
        match self {
            Self::Float(x) => x.shape(),
            Self::Mask(x) => x.shape(),
            Self::Integer(x) => x.shape(),
        }
    }

    pub(crate) fn float(&self, name: &str) -> Result<&ArrayD<f64>, Fault> {
        match self {
            Self::Float(x) => Ok(x),
            other => Err(other.mistyped(name, "F64")),
        }
    }

    pub(crate) fn mask(&self, name: &str) -> Result<&ArrayD<bool>, Fault> {
        match self {
            Self::Mask(x) => Ok(x),
            other => Err(other.mistyped(name, "U8 (a mask)")),
        }
    }

    pub(crate) fn integers(&self, name: &str) -> Result<&ArrayD<i64>, Fault> {
        match self {
            Self::Integer(x) => Ok(x),
            other => Err(other.mistyped(name, "I64")),
        }
    }

    fn mistyped(&self, name: &str, expected: &'static str) -> Fault {
        let got = match self {
            Self::Float(_) => "F64",
            Self::Mask(_) => "U8",
            Self::Integer(_) => "I64",
        };
        Fault::Dtype {
            tensor: name.to_owned(),
            expected,
            got: got.to_owned(),
        }
    }
}

fn words(data: &[u8]) -> impl Iterator<Item = [u8; 8]> {
    let words = data.chunks_exact(8);
    words.map(|word| word.try_into().expect("chunks of eight"))
}

fn array<A>(shape: &[usize], data: impl Iterator<Item = A>) -> ArrayD<A> {
    ArrayD::from_shape_vec(IxDyn(shape), data.collect()).expect("sizes checked by the reader")
}

/// In the precision of the check.
pub(crate) fn cast<T: Real>(x: &ArrayD<f64>) -> ArrayD<T> {
    x.mapv(T::of)
}

/// With the number of axes known.
pub(crate) fn ranked<A, D: Dimension>(name: &str, x: ArrayD<A>) -> Result<Array<A, D>, Fault> {
    let got = x.shape().to_vec();
    x.into_dimensionality().map_err(|_| Fault::Shape {
        tensor: name.to_owned(),
        expected: format!("of {} axes", D::NDIM.unwrap_or_default()),
        got,
    })
}
