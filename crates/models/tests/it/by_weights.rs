//! Multi-head attention with given weights, by its formula.

use bochner_attention::{MultiHead, layer::Projection};
use bochner_nn::Linear;
use dfdx::prelude::*;
use ndarray::{Array3, Array4, s};

type Sequences = Tensor<(usize, usize, usize), f64, Cpu>;

/// $\operatorname{concat}_m(A_m V_m) W_o^\top + b_o$ for the weights A, `[B, M, Tq, Tk]`, and the sequences that values
/// are made of, `[B, Tk, width]`.
pub(crate) fn by_weights(
    layer: &MultiHead<usize, f64>,
    weights: &Array4<f64>,
    memory: Sequences,
) -> Sequences {
    let mapped = |map: &Projection<usize, usize, f64>, x: Sequences| {
        let (weight, bias) = (map.weight.clone(), map.bias.clone().unwrap());
        Linear { weight, bias }.apply(x).unwrap()
    };
    let values = mapped(&layer.maps[2], memory);
    let ((batch, heads, queries, keys), width) = (weights.dim(), values.shape().2);
    let values = Array3::from_shape_vec((batch, keys, width), values.as_vec()).unwrap();
    let shape = (batch, queries, width);
    let attended = Array3::from_shape_fn(shape, |(b, i, n)| {
        let weights = weights.slice(s![b, n / (width / heads), i, ..]);
        weights.dot(&values.slice(s![b, .., n]))
    });
    let attended = attended.into_iter().collect();
    mapped(
        &layer.output,
        Cpu::default().tensor_from_vec(attended, shape),
    )
}
