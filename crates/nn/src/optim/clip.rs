//! Clipping gradients by their norm.

use crate::parameters::{Parameters, try_for_each};
use crate::{Element, Error};
use bochner_numerics::parallel;
use dfdx::tensor::{Cpu, Gradients};

/// Scales the gradients of all trained parameters so that their joint norm is at most `max_norm`;
/// returns the norm before.
///
/// $$ g \leftarrow g \cdot \min\left(1, \frac{c}{\lVert g \rVert_2 + 10^{-6}}\right) $$
///
/// * $g$: the gradients of all trained parameters, as one vector
/// * $c$: `max_norm`, positive; infinity only measures
///
/// # Errors
/// [`Error::NonFiniteGradient`] names the first parameter whose gradient contains NaN or infinity;
/// [`Error::OutOfRange`] unless `max_norm` is positive. Nothing is changed then.
///
/// # Numerics
/// The norm is summed in double precision, scaled by the largest element: it neither overflows nor
/// underflows.
pub fn clip_by_norm<E: Element>(
    gradients: &mut Gradients<E, Cpu>,
    model: &(impl Parameters<E> + ?Sized),
    max_norm: f64,
) -> Result<f64, Error> {
    if max_norm.is_nan() || max_norm <= 0.0 {
        return Err(Error::OutOfRange {
            what: "max_norm",
            got: max_norm,
            requirement: "positive",
        });
    }
    let mut largest = 0.0_f64;
    for_each_gradient(model, gradients, |name, gradient| {
        largest = largest.max(finite_maximum(name, gradient)?);
        Ok(())
    })?;
    if largest == 0.0 {
        return Ok(0.0);
    }
    let mut squares = 0.0;
    for_each_gradient(model, gradients, |_, gradient| {
        let scaled = gradient.iter().map(|g| (g.as_f64() / largest).powi(2));
        squares += scaled.sum::<f64>();
        Ok(())
    })?;
    let norm = largest * squares.sqrt();
    let factor = max_norm / (norm + 1e-6);
    if factor < 1.0 {
        for_each_gradient(model, gradients, |_, gradient| {
            gradient.iter_mut().for_each(|g| *g *= E::of(factor));
            Ok(())
        })?;
    }
    Ok(norm)
}

fn for_each_gradient<E: Element>(
    model: &(impl Parameters<E> + ?Sized),
    gradients: &mut Gradients<E, Cpu>,
    mut f: impl FnMut(&str, &mut [E]) -> Result<(), Error>,
) -> Result<(), Error> {
    try_for_each(model, |name, parameter| {
        if parameter.is_trained() {
            f(name, parameter.gradient(gradients)?)?;
        }
        Ok(())
    })
}

/// The largest absolute value, if all are finite.
fn finite_maximum<E: Element>(name: &str, gradient: &[E]) -> Result<f64, Error> {
    let largest = parallel::max_norm(gradient);
    if largest.is_finite() {
        return Ok(largest.as_f64());
    }
    let index = gradient.iter().position(|g| !g.is_finite());
    let index = index.expect("their norm is not finite");
    Err(Error::NonFiniteGradient {
        parameter: name.to_string(),
        index,
        value: gradient[index].as_f64(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use dfdx::prelude::*;

    fn gradients<E: Element>(
        model: &[Tensor<(usize,), E, Cpu>],
        values: &[&[E]],
    ) -> Gradients<E, Cpu> {
        let mut gradients = Gradients::leaky();
        for (tensor, values) in model.iter().zip(values) {
            let gradient = gradients.get_or_alloc_mut(tensor).unwrap();
            gradient.copy_from_slice(values);
        }
        gradients
    }

    fn model<E: Element>() -> Vec<Tensor<(usize,), E, Cpu>> {
        let device = Cpu::default();
        vec![device.zeros_like(&(2,)), device.zeros_like(&(1,))]
    }

    #[test]
    fn the_norm_is_joint_and_cut_to_the_maximum() {
        let model = model::<f64>();
        let mut g = gradients(&model, &[&[2.0, -3.0], &[6.0]]);
        assert_eq!(clip_by_norm(&mut g, &model, 7.1).unwrap(), 7.0);
        assert_eq!(g.get(&model[0]).as_vec(), [2.0, -3.0]);
        assert_eq!(clip_by_norm(&mut g, &model, 3.5).unwrap(), 7.0);
        let clipped = [g.get(&model[0]).as_vec(), g.get(&model[1]).as_vec()].concat();
        let want = [1.0, -1.5, 3.0].map(|x| x * 7.0 / 7.000001);
        assert!(bochner_numerics::relative_error(&clipped, &want) < 1e-15);
    }

    #[test]
    fn huge_and_tiny_gradients_have_a_norm() {
        for scale in [1e-300, 1e300] {
            let model = model::<f64>();
            let mut g = gradients(&model, &[&[3.0 * scale, 4.0 * scale]]);
            let norm = clip_by_norm(&mut g, &model, f64::INFINITY).unwrap();
            assert!((norm / scale - 5.0).abs() < 1e-12);
        }
    }

    #[test]
    fn a_gradient_that_is_not_finite_is_named_and_nothing_changes() {
        let model = model::<f32>();
        let mut g = gradients(&model, &[&[100.0, 1.0], &[f32::NAN]]);
        let error = clip_by_norm(&mut g, &model, 1.0).unwrap_err();
        assert!(
            matches!(error, Error::NonFiniteGradient { parameter, index: 0, .. } if parameter == "1")
        );
        assert_eq!(g.get(&model[0]).as_vec(), [100.0, 1.0]);
        assert!(clip_by_norm(&mut g, &model, f64::NAN).is_err());
    }
}
