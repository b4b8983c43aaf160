//! The sums over the keys from which a squared kernel's attention in linear time is computed.

use crate::case::{Case, Done};
use bochner_attention::engine::{HeadRows, Kernel, Side};
use bochner_attention::{Settings, attend};
use bochner_numerics::{Mat, Real};
use ndarray::{Array1, Array2, Array3, Array4, Array5, ArrayView4, Axis, s};

/// Records the sums of attention by a squared kernel without causality.
///
/// With $g_j = \exp(m_j - \max_l m_l)$ and the kernel $f = \phi \cdot \phi / c$:
///
/// $$A = \sum_j g_j \phi_j \phi_j^T, \quad B_n = \sum_j g_j v_{jn} \phi_j \phi_j^T, \quad
/// Z_i = \phi_i^T A \phi_i / c^2 + e \sum_j g_j$$
///
/// The engine stores them in an order of its own. These follow from what it is given, its operands and its weights of
/// keys, and Z from the normaliser of each row that it computes.
pub(super) fn record_sums<T: Real>(
    c: &Case<T>,
    settings: &Settings<T>,
    [q, k, v]: [ArrayView4<T>; 3],
) -> Done {
    let Kernel::Pairs(kernel) = &settings.kernel else {
        unreachable!("a squared kernel is one of pairs");
    };
    let (_, saved) = attend(settings, q, k, v)?;
    let log_sums = saved.log_sums(settings)?;
    let ((batch, heads, keys, width), values) = (k.dim(), v.dim().3);
    let size = kernel.operand_width(width);
    let mut g = Array3::zeros((batch, heads, keys));
    let mut z = Array3::zeros((batch, heads, q.dim().2));
    let mut a = Array4::zeros((batch, heads, size, size));
    let mut b = Array5::zeros((batch, heads, values, size, size));
    for (example, head) in ndarray::indices((batch, heads)) {
        let kept = settings.mask.key_limit(example, keys);
        if kept == 0 {
            continue;
        }
        let x: Vec<T> = k
            .slice(s![example, head, ..kept, ..])
            .iter()
            .copied()
            .collect();
        let rows = HeadRows {
            example,
            head,
            side: Side::Keys,
            x: Mat::new(&x, kept, width),
        };
        let (mut operands, mut weights) = (Vec::new(), Vec::new());
        kernel.operands(rows, &mut operands);
        match &settings.key_weight {
            Some(weight) => weight.log_weights(rows, &mut weights),
            None => weights.resize(kept, 0.0),
        }
        let phi = Array2::from_shape_vec((kept, size), operands)?;
        let largest = weights.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let own_g = weights.iter().map(|weight| T::of((weight - largest).exp()));
        let own_g: Array1<T> = own_g.collect();
        let weighted = &phi * &own_g.view().insert_axis(Axis(1));
        a.slice_mut(s![example, head, .., ..])
            .assign(&phi.t().dot(&weighted));
        for (n, value) in v
            .slice(s![example, head, ..kept, ..])
            .columns()
            .into_iter()
            .enumerate()
        {
            let of_value = &weighted * &value.insert_axis(Axis(1));
            b.slice_mut(s![example, head, n, .., ..])
                .assign(&phi.t().dot(&of_value));
        }
        g.slice_mut(s![example, head, ..kept]).assign(&own_g);
        let sums = log_sums.slice(s![example, head, ..]);
        let normalisers = sums.mapv(|sum| T::of((sum - largest).exp()));
        z.slice_mut(s![example, head, ..]).assign(&normalisers);
    }
    c.output("g", g);
    c.output("a", a);
    c.output("b", b);
    c.output("z", z);
    Ok(())
}
