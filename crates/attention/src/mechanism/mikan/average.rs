//! Attention averaged over several draws of the spectral points.

use super::{Mikan, MikanGradients};
use crate::error::Error;
use crate::mechanism::{Cotangents, Forward, Gradients, Pass, Streams};
use bochner_numerics::Real;
use ndarray::{Array, Array4, ArrayView4};

/// The passes that an average is made of.
struct Averaged<T>(Vec<Forward<T>>);

impl Mikan {
    /// The forward pass over each given draw of noise, averaged.
    pub(super) fn average<T: Real>(
        &self,
        inputs: &Streams<T>,
        flat: &[T],
        pass: &Pass,
        noise: Vec<Array4<T>>,
    ) -> Result<Forward<T>, Error> {
        let share = T::of(1.0 / noise.len() as f64);
        let forward = |eps| self.forward_with(inputs, flat, pass, eps);
        let passes = noise.into_iter().map(forward);
        let passes = passes.collect::<Result<Vec<_>, _>>()?;
        let first = passes.first().expect("at least one draw");
        let mut output = Array::zeros(first.output.raw_dim());
        let mut penalty = Array::zeros(first.penalty.raw_dim());
        for each in &passes {
            output.scaled_add(share, &each.output);
            penalty.scaled_add(share, &each.penalty);
        }
        let of = inputs.fingerprint(flat, pass).with_settings(self);
        Ok(Forward::new(of, output, penalty, Averaged(passes)))
    }

    /// The vector-Jacobian product of [`Mikan::average`].
    pub(super) fn average_vjp<T: Real>(
        &self,
        inputs: &Streams<T>,
        flat: &[T],
        pass: &Pass,
        forward: &Forward<T>,
        cotangent: Cotangents<T>,
    ) -> Result<Gradients<T>, Error> {
        let of = inputs.fingerprint(flat, pass).with_settings(self);
        let Averaged(passes) = forward.saved(of, super::CARD.name)?;
        let share = T::of(1.0 / passes.len() as f64);
        let (output, penalty) = (
            cotangent.output.mapv(|c| c * share),
            cotangent.penalty.mapv(|c| c * share),
        );
        let cotangent = Cotangents {
            output: output.view(),
            penalty: penalty.view(),
        };
        let zeros = |x: &ArrayView4<T>| Array::zeros(x.raw_dim());
        let mut sum = Gradients {
            streams: inputs.get::<3>()?.iter().map(zeros).collect(),
            parameters: vec![T::zero(); flat.len()],
            bias: inputs.bias.and_then(|bias| bias.zero_gradients()),
        };
        for forward in passes {
            let MikanGradients { gradients, .. } =
                self.backward_with(inputs, flat, pass, forward, cotangent)?;
            for (sum, more) in sum.streams.iter_mut().zip(&gradients.streams) {
                sum.zip_mut_with(more, add);
            }
            if let Some((sum, more)) = sum.bias.as_mut().zip(gradients.bias.as_ref()) {
                sum.zip_mut_with(more, add);
            }
            let parameters = sum.parameters.iter_mut().zip(&gradients.parameters);
            parameters.for_each(|(sum, more)| add(sum, more));
        }
        Ok(sum)
    }
}

/// A draw's gradient may overflow; of two opposite infinities nothing but NaN would remain.
fn add<T: Real>(sum: &mut T, &more: &T) {
    *sum += if more.is_infinite() {
        more.signum() * T::max_value()
    } else {
        more
    };
}
