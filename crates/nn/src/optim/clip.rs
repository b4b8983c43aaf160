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
