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
