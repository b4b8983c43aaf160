//! Initial values.

use bochner_nn::{Element, Leaf};
use bochner_numerics::Seed;
use dfdx::tensor::Cpu;
use ndarray::{Array2, Ix2};
use rand::Rng;

/// A matrix of draws from the uniform distribution on $\pm \sqrt{6 / (n + m)}$ for a map from $n$ to
/// $m$ numbers, in double precision and rounded (Glorot and Bengio 2010).
pub(super) fn matrix<E: Element>(
    device: &Cpu,
    shape: (usize, usize),
    [inputs, outputs]: [usize; 2],
    seed: Seed,
) -> Result<Leaf<E, Ix2>, bochner_nn::Error> {
    let bound = (6.0 / (inputs + outputs) as f64).sqrt();
    let mut stream = seed.stream("initial values");
    let draw = || E::of((2.0 * stream.r#gen::<f64>() - 1.0) * bound);
    Leaf::new(device, Array2::from_shape_simple_fn(shape, draw))
}
