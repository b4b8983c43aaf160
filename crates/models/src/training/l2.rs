//! The squared norm in an objective.

use bochner_nn::{Element, Error, Parameters};
use bochner_numerics::parallel;
use dfdx::tensor::{Cpu, Gradients};

/// $\tfrac\lambda2 \lVert\theta\rVert^2$ of a model's trained parameters; adds $\lambda\theta$ to their
/// gradients.
///
/// The squares are summed in double precision, parameter by parameter and piece by piece, so that the sum
/// does not depend on the number of threads.
pub(super) fn add_l2<E: Element>(
    model: &(impl Parameters<E> + ?Sized),
    gradients: &mut Gradients<E, Cpu>,
    factor: f64,
) -> Result<f64, Error> {
    /// Elements one thread takes at a time.
    const PIECE: usize = 1 << 14;
    let (mut squares, mut result) = (0.0, Ok(()));
    let mut values = Vec::new();
    model.for_each("", &mut |_, parameter| {
        if !parameter.is_trained() || result.is_err() {
            return;
        }
        parameter.read_into(&mut values);
        result = parameter.dense_gradient(gradients).map(|gradient| {
            let sums = parallel::map_chunks(gradient, PIECE, |i, gradient| {
                let values = &values[i * PIECE..][..gradient.len()];
                for (g, &x) in gradient.iter_mut().zip(values) {
                    *g += E::of(factor) * x;
                }
                values.iter().map(|x| x.as_f64().powi(2)).sum::<f64>()
            });
            squares += sums.iter().sum::<f64>();
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
        let values: Vec<f64> = (0..40_000).map(|i| f64::from(i).sin()).collect();
        let x: Tensor<(usize,), f64, Cpu> =
            Cpu::default().tensor_from_vec(values.clone(), (values.len(),));
        let mut gradients = alloc_gradients(&x).unwrap();
        let half = add_l2(&x, &mut gradients, 0.1).unwrap();
        let want = 0.05 * values.iter().map(|x| x * x).sum::<f64>();
        assert!((half - want).abs() < 1e-12 * want);
        let again = add_l2(&x, &mut gradients, 0.1).unwrap();
        assert_eq!(half, again);
        let got = gradients.get(&x).as_vec();
        let off = got
            .iter()
            .zip(values)
            .position(|(g, x)| (g - 0.2 * x).abs() > 1e-12);
        assert_eq!(off, None);
    }
}
