//! Clipping gradients by their norm.

use crate::parameters::{Parameters, try_for_each};
use crate::{Element, Error};
use bochner_ops::GradientNorm;
use dfdx::tensor::{Cpu, Gradients};

/// Scales the gradients of all trained parameters so that their joint norm is at most `max_norm`, as
/// [`bochner_ops::clip_by_norm`] does for slices; returns the norm before.
///
/// # Errors
/// [`Error::NonFiniteGradient`] names the first parameter whose gradient contains NaN or infinity;
/// [`Error::Argument`] unless `max_norm` is positive. Nothing is changed then.
pub fn clip_by_norm<E: Element>(
    model: &(impl Parameters<E> + ?Sized),
    gradients: &mut Gradients<E, Cpu>,
    max_norm: f64,
) -> Result<f64, Error> {
    let mut norm = GradientNorm::new(max_norm)?;
    try_for_each(model, |name, parameter| {
        if !parameter.is_trained() {
            return Ok(());
        }
        let mut wrong = None;
        parameter.gradient_parts(gradients, &mut |start, part| {
            if let (None, Some(i)) = (&wrong, norm.find_largest(part)) {
                wrong = Some((start + i, part[i].as_f64()));
            }
        })?;
        match wrong {
            None => Ok(()),
            Some((index, value)) => Err(Error::NonFiniteGradient {
                parameter: name.to_string(),
                index,
                value,
            }),
        }
    })?;
    for_each_part(model, gradients, |part| norm.add_squares(part))?;
    if let Some(factor) = norm.factor::<E>() {
        for_each_part(model, gradients, |part| {
            part.iter_mut().for_each(|g| *g *= factor)
        })?;
    }
    Ok(norm.value())
}

fn for_each_part<E: Element>(
    model: &(impl Parameters<E> + ?Sized),
    gradients: &mut Gradients<E, Cpu>,
    mut f: impl FnMut(&mut [E]),
) -> Result<(), Error> {
    try_for_each(model, |_, parameter| {
        if parameter.is_trained() {
            parameter.gradient_parts(gradients, &mut |_, part| f(part))?;
        }
        Ok(())
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
    fn a_gradient_that_is_not_finite_is_named_and_nothing_changes() {
        let model = model::<f32>();
        let mut g = gradients(&model, &[&[100.0, 1.0], &[f32::NAN]]);
        let error = clip_by_norm(&model, &mut g, 1.0).unwrap_err();
        assert!(
            matches!(error, Error::NonFiniteGradient { parameter, index: 0, .. } if parameter == "1")
        );
        assert_eq!(g.get(&model[0]).as_vec(), [100.0, 1.0]);
        assert!(clip_by_norm(&model, &mut g, f64::NAN).is_err());
    }
}
