//! The forward pass of a mechanism, without a layer around it.

use super::counts::HEADS;
use crate::Error;
use bochner_attention::mechanism::{SharedMechanism, Streams};
use bochner_attention::{Mask, Pass, Variant};
use bochner_numerics::{Seed, standard_normal};
use ndarray::Array4;

/// The seed of inputs and parameters.
const SEED: Seed = Seed::new(2021);

/// A mechanism with its parameters, and queries, keys and values of one sequence.
pub(super) struct Forward {
    mechanism: SharedMechanism,
    parameters: Vec<f32>,
    qkv: [Array4<f32>; 3],
}

impl Forward {
    /// Random inputs and initial values; the width is that over all heads.
    pub(super) fn random(variant: &Variant, tokens: usize, width: usize) -> Result<Self, Error> {
        let mut stream = SEED.stream("inputs");
        let shape = (1, HEADS, tokens, width / HEADS);
        let qkv =
            [(); 3].map(|()| Array4::from_shape_simple_fn(shape, || standard_normal(&mut stream)));
        let mask = Mask::none();
        let size = streams(&qkv, &mask).size();
        let mechanism = variant.at_step(0, size);
        let mut stream = SEED.stream("initial values");
        let parameters = mechanism.get::<f32>().initial(size, &mut stream)?;
        Ok(Self {
            mechanism,
            parameters,
            qkv,
        })
    }

    pub(super) fn run(&self) -> Result<(), Error> {
        let (mask, pass) = (Mask::none(), Pass::Evaluation { seed: SEED });
        let inputs = streams(&self.qkv, &mask);
        let mechanism = self.mechanism.get::<f32>();
        mechanism.forward(&inputs, &self.parameters, &pass)?;
        Ok(())
    }
}

fn streams<'a>(qkv: &'a [Array4<f32>; 3], mask: &'a Mask) -> Streams<'a, f32> {
    Streams::new(qkv.each_ref().map(|x| x.view()), mask)
}
