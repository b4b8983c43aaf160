//! Initial values.

use crate::{Element, Error};
use bochner_numerics::Real;
use dfdx::shapes::Shape;
use dfdx::tensor::{Cpu, Tensor, TensorFromVec};
use rand::Rng;
use rand::distributions::Distribution;

/// The uniform distribution on an interval around zero.
///
/// Drawn in double precision and rounded, so that `f32` and `f64` see the same numbers.
#[derive(Clone, Copy, Debug)]
pub(crate) struct UniformWithin(f64);

impl UniformWithin {
    /// The interval $\pm 1/\sqrt n$ for a layer of `n` inputs.
    pub(crate) fn fan_in(n: usize) -> Self {
        Self(1.0 / (n as f64).sqrt())
    }
}

impl<T: Real> Distribution<T> for UniformWithin {
    fn sample<R: Rng + ?Sized>(&self, rng: &mut R) -> T {
        T::of((2.0 * rng.r#gen::<f64>() - 1.0) * self.0)
    }
}

/// A tensor of independent draws.
pub(crate) fn tensor<S: Shape, E: Element>(
    device: &Cpu,
    shape: S,
    distribution: &impl Distribution<E>,
    rng: &mut impl Rng,
) -> Result<Tensor<S, E, Cpu>, Error> {
    let n = shape.num_elements();
    if n == 0 {
        let what = "a layer".into();
        return Err(Error::Empty { what });
    }
    let values: Vec<E> = distribution.sample_iter(rng).take(n).collect();
    Ok(device.try_tensor_from_vec(values, shape)?)
}
