//! Attention averaged over several draws of the spectral points.

use super::{Mikan, MikanGradients};
use crate::error::Error;
use crate::mechanism::{Cotangents, Forward, Gradients, Inputs, Mechanism, Pass};
use bochner_numerics::Real;
use ndarray::Array4;

/// The passes that an average is made of.
struct Averaged<T>(Vec<Forward<T>>);

impl Mikan {
    /// The forward pass over each given draw of noise, averaged.
    pub(super) fn average<T: Real>(
        &self,
        inputs: &Inputs<T>,
        flat: &[T],
        pass: &Pass,
        noise: Vec<Array4<T>>,
    ) -> Result<Forward<T>, Error> {
        let share = T::of(1.0 / noise.len() as f64);
        let forward = |eps| self.forward_with(inputs, flat, pass, eps);
        let passes = noise.into_iter().map(forward);
        let passes = passes.collect::<Result<Vec<_>, _>>()?;
        let (first, rest) = passes.split_first().expect("at least one draw");
        let (mut output, mut penalty) = (&first.output * share, &first.penalty * share);
        for more in rest {
            output.scaled_add(share, &more.output);
            penalty.scaled_add(share, &more.penalty);
        }
        Ok(Forward::new(output, penalty, Averaged(passes)))
    }

    /// The vector-Jacobian product of [`Mikan::average`].
    pub(super) fn average_vjp<T: Real>(
        &self,
        inputs: &Inputs<T>,
        flat: &[T],
        pass: &Pass,
        forward: &Forward<T>,
        cotangent: Cotangents<T>,
    ) -> Result<Gradients<T>, Error> {
        let Averaged(passes) = forward.saved(<Self as crate::Described>::NAME)?;
        let share = T::of(1.0 / passes.len() as f64);
        let (output, penalty) = (
            &cotangent.output * share,
            &cotangent.penalty * share,
        );
        let cotangent = Cotangents {
            output: output.view(),
            penalty: penalty.view(),
        };
        let mut sum: Option<Gradients<T>> = None;
        for forward in passes {
            let MikanGradients { gradients, .. } =
                self.backward_with(inputs, flat, pass, forward, cotangent)?;
            match &mut sum {
                None => sum = Some(gradients),
                Some(sum) => add(sum, &gradients),
            }
        }
        Ok(sum.expect("at least one draw"))
    }
}

fn add<T: Real>(sum: &mut Gradients<T>, more: &Gradients<T>) {
    sum.q += &more.q;
    sum.k += &more.k;
    sum.v += &more.v;
    let parameters = sum.parameters.iter_mut().zip(&more.parameters);
    parameters.for_each(|(sum, &more)| *sum += more);
}
