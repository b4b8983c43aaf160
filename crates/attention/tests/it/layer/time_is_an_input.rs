//! Features of time stamps, joined to the input of a layer, serve any mechanism.

use super::{PASS, array, build, two_heads, variants};
use bochner_attention::{Mask, TimeBasis, TimeInput};
use bochner_nn::{TapeInputs, record};
use bochner_numerics::relative_error;
use dfdx::prelude::*;
use ndarray::Array2;

/// The frequencies of the time features: two, whose four features fill up the width of the layers.
const FREQUENCIES: usize = 2;

#[test]
fn for_every_mechanism() {
    let device = Cpu::default();
    let h: Tensor<(usize, usize, usize), f64, Cpu> =
        Cpu::seed_from_u64(4).sample_normal_like(&(2, 5, 2));
    let frequencies = device.tensor_from_vec(vec![0.5, 2.0], (FREQUENCIES,));
    let times = Array2::from_shape_fn((2, 5), |(b, t)| (t * t) as f64 + 0.3 * b as f64);
    let attended = |layer: &bochner_attention::MultiHead<usize, f64>, shift: f64| {
        let map = TimeInput::new(&times + shift, TimeBasis::Bochner).unwrap();
        let inputs = TapeInputs::<f64, OwnedTape<f64, Cpu>>::new();
        let inputs = inputs.with(h.leaky_trace()).unwrap();
        let mut joined = record(map, inputs.with(frequencies.clone()).unwrap()).unwrap();
        let joined = joined.take((2, 5, 2 + 2 * FREQUENCIES)).unwrap();
        layer.attend_self(joined, &Mask::none(), PASS).unwrap()
    };
    for variant in variants() {
        let layer = build::<f64>(two_heads(variant));
        let (one, later) = (attended(&layer, 0.0), attended(&layer, 1.0));
        let [one_values, later_values] = [&one, &later].map(|x| x.output.as_vec());
        assert!(
            relative_error(&one_values, &later_values) > 1e-6,
            "time does not count"
        );
        let loss = one.output.square().sum::<Rank0, _>() + one.penalty;
        let gradients = loss.backward();
        let along = gradients.get(&frequencies).as_vec();
        assert!(
            along.iter().all(|g| g.is_finite() && *g != 0.0),
            "{layer:?}"
        );
        assert!(array(&gradients.get(&h)).iter().any(|&g| g != 0.0));
    }
}
