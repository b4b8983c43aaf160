//! Initial values.

use bochner_nn::Element;
use bochner_numerics::Seed;
use dfdx::tensor::{Cpu, Tensor, TensorFromVec};
use rand::Rng;

/// A matrix of draws from the uniform distribution on $\pm \sqrt{6 / (n + m)}$ for a map from $n$ to
/// $m$ numbers, in double precision and rounded (Glorot and Bengio 2010).
pub(super) fn matrix<E: Element>(
    device: &Cpu,
    shape: (usize, usize),
    [inputs, outputs]: [usize; 2],
    seed: Seed,
) -> Result<Tensor<(usize, usize), E, Cpu>, bochner_nn::Error> {
    let bound = (6.0 / (inputs + outputs) as f64).sqrt();
    let mut stream = seed.stream("initial values");
    let mut draw = || E::of((2.0 * stream.r#gen::<f64>() - 1.0) * bound);
    let values = (0..shape.0 * shape.1).map(|_| draw()).collect();
    Ok(device.try_tensor_from_vec(values, shape)?)
}
