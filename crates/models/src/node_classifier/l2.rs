//! The squared norm in an objective.

use bochner_nn::{Element, Error, Parameters};
use dfdx::tensor::{Cpu, Gradients};

/// $\tfrac\lambda2 \lVert\theta\rVert^2$ of a model's trained parameters; adds $\lambda\theta$ to their
/// gradients.
///
/// Summed in double precision, parameter by parameter.
pub(super) fn add_l2<E: Element>(
    model: &(impl Parameters<E> + ?Sized),
    gradients: &mut Gradients<E, Cpu>,
    factor: f64,
) -> Result<f64, Error> {
    let (mut squares, mut result) = (0.0, Ok(()));
    let mut values = Vec::new();
    model.for_each("", &mut |_, parameter| {
        if !parameter.is_trained() || result.is_err() {
            return;
        }
        parameter.read_into(&mut values);
        squares += values.iter().map(|x| x.as_f64().powi(2)).sum::<f64>();
        result = parameter.gradient(gradients).map(|gradient| {
            for (g, &x) in gradient.iter_mut().zip(&values) {
                *g += E::of(factor) * x;
            }
        });
    });
    result.map(|()| 0.5 * factor * squares)
}

#[cfg(test)]
mod tests {
    use super::*;
    use bochner_nn::alloc_gradients;
    use dfdx::tensor::{Tensor, TensorFromVec};

    #[test]
    fn the_gradient_is_that_of_half_the_squared_norm() {
        let values = vec![1.0_f64, -2.0, 3.0];
        let x: Tensor<(usize,), f64, Cpu> = Cpu::default().tensor_from_vec(values, (3,));
        let mut gradients = alloc_gradients(&x).unwrap();
        let half = add_l2(&x, &mut gradients, 0.1).unwrap();
        assert!((half - 0.05 * 14.0).abs() < 1e-12);
        let again = add_l2(&x, &mut gradients, 0.1).unwrap();
        assert_eq!(half, again);
        let want = [0.2, -0.4, 0.6];
        let got = gradients.get(&x).as_vec();
        assert!(
            got.iter().zip(want).all(|(g, w)| (g - w).abs() < 1e-12),
            "{got:?}"
        );
    }
}
