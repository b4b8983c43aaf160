//! Initial values.

use crate::{Element, Error};
use bochner_numerics::{Real, argument, uniform_within};
use dfdx::shapes::Shape;
use dfdx::tensor::{Cpu, CpuError, Tensor, TensorFromVec};
use rand::distributions::Distribution;
use rand::{Rng, RngCore};

/// The uniform distribution on an interval around zero.
///
/// Drawn in double precision and rounded, so that `f32` and `f64` see the same numbers.
#[derive(Clone, Copy, Debug)]
pub struct UniformWithin(f64);

impl UniformWithin {
    /// The interval $\pm 1/\sqrt n$ for a layer of `n` inputs.
    pub fn fan_in(n: usize) -> Self {
        Self(1.0 / (n as f64).sqrt())
    }
}

impl<T: Real> Distribution<T> for UniformWithin {
    fn sample<R: Rng + ?Sized>(&self, rng: &mut R) -> T {
        uniform_within(self.0, rng)
    }
}

/// A tensor of independent draws.
pub(crate) fn tensor<S: Shape, E: Element>(
    device: &Cpu,
    shape: S,
    distribution: &impl Distribution<E>,
    rng: &mut (impl RngCore + ?Sized),
) -> Result<Tensor<S, E, Cpu>, Error> {
    let dims: Vec<usize> = shape.concrete().into();
    let values = draws(count::<E>(&dims)?, || distribution.sample(rng))?;
    Ok(device.try_tensor_from_vec(values, shape)?)
}

/// The number of elements of a layer's parameter, if it has any and they can be addressed.
pub(super) fn count<E>(dims: &[usize]) -> Result<usize, Error> {
    argument::not_empty("a parameter of the layer", dims)?;
    let most = isize::MAX as usize / size_of::<E>();
    let n = dims.iter().try_fold(1_usize, |n, &dim| n.checked_mul(dim));
    let n = n.filter(|&n| n <= most);
    let elements: f64 = dims.iter().map(|&dim| dim as f64).product();
    let name = "number of elements of a parameter of the layer";
    argument::in_range(
        n.is_some(),
        name,
        elements,
        "so small that they can be addressed",
    )?;
    Ok(n.unwrap_or(0))
}

/// `n` initial values, if there is memory for them.
pub(super) fn draws<E>(n: usize, mut draw: impl FnMut() -> E) -> Result<Vec<E>, Error> {
    let mut values = Vec::new();
    values
        .try_reserve_exact(n)
        .map_err(|_| CpuError::OutOfMemory)?;
    values.extend((0..n).map(|_| draw()));
    Ok(values)
}
