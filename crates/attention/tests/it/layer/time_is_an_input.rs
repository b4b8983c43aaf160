//! Features of time stamps, joined to the input of a layer, serve any mechanism.

use super::{PASS, array, build, two_heads, variants};
use bochner_attention::{
    Mask,
    time_input::{TimeBasis, TimeInput},
};
use bochner_nn::{TapeInputs, record};
use bochner_numerics::check::{assert_gradient, random};
use bochner_numerics::relative_error;
use bochner_ops::{apply, apply_vjp};
use dfdx::prelude::*;
use ndarray::{Array2, ArrayD, IxDyn, array as matrix};

/// The width of the layers.
const WIDTH: usize = 6;

#[test]
fn for_every_mechanism() {
    let device = Cpu::default();
    let vector = |numbers: &[f64]| device.tensor_from_vec(numbers.to_vec(), (numbers.len(),));
    let inputs = |width: usize| -> Tensor<(usize, usize, usize), f64, Cpu> {
        Cpu::seed_from_u64(4).sample_normal_like(&(2, 5, width))
    };
    // Two frequencies, or one half-period with three coefficients; both fill up the width of the layers.
    let (frequencies, half_periods) = (vector(&[0.5, 2.0]), vector(&[0.4]));
    let roots = device.tensor_from_vec(vec![0.8, 0.6, -0.5], (1_usize, 3_usize));
    let times = Array2::from_shape_fn((2, 5), |(b, t)| (t * t) as f64 + 0.3 * b as f64);
    for (basis, h, parameters) in [
        (TimeBasis::Bochner, inputs(2), &frequencies),
        (TimeBasis::Mercer, inputs(3), &half_periods),
    ] {
        let attended = |layer: &bochner_attention::MultiHead<usize, f64>, shift: f64| {
            let map = TimeInput::new(&times + shift, basis).unwrap();
            let inputs = TapeInputs::<f64, OwnedTape<f64, Cpu>>::new();
            let inputs = inputs.with(h.leaky_trace()).unwrap();
            let mut inputs = inputs.with(parameters.clone()).unwrap();
            if basis == TimeBasis::Mercer {
                inputs = inputs.with(roots.clone()).unwrap();
            }
            let joined = record(map, inputs).unwrap().take((2, 5, WIDTH)).unwrap();
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
            let along = gradients.get(parameters).as_vec();
            assert!(
                along.iter().all(|g| g.is_finite() && *g != 0.0),
                "{basis:?}, {layer:?}"
            );
            assert!(array(&gradients.get(&h)).iter().any(|&g| g != 0.0));
        }
    }
}

/// The input joined with features of its times.
fn run(map: &TimeInput, inputs: &[ArrayD<f64>]) -> ArrayD<f64> {
    let views: Vec<_> = inputs.iter().map(|x| x.view()).collect();
    apply(map, &views).unwrap().0.remove(0)
}

#[test]
fn gradients_are_those_of_finite_differences() {
    let t = matrix![[0.1, 0.7, 2.0], [-1.0, 0.4, 3.3]];
    for (basis, shapes, width) in [
        (TimeBasis::Bochner, vec![vec![2, 3, 4], vec![3]], 4 + 6),
        (
            TimeBasis::Mercer,
            vec![vec![2, 3, 4], vec![2], vec![2, 5]],
            4 + 10,
        ),
    ] {
        let map = TimeInput::new(t.clone(), basis).unwrap();
        let inputs: Vec<_> = shapes
            .iter()
            .map(|shape| random(IxDyn(shape), "inputs"))
            .collect();
        let cotangent = random(IxDyn(&[2, 3, width]), "cotangent");
        let views: Vec<_> = inputs.iter().map(|x| x.view()).collect();
        let pull_back =
            |wanted: &[bool]| apply_vjp(&map, &views, &(), &[cotangent.view()], wanted).unwrap();
        let gradients = pull_back(&vec![true; inputs.len()]);
        // The parameters' gradients do not need that of the input.
        let mut others = vec![true; inputs.len()];
        others[0] = false;
        assert_eq!(pull_back(&others)[1..], gradients[1..]);
        for (i, gradient) in gradients.into_iter().enumerate() {
            assert_gradient(&gradient.unwrap(), &inputs[i], |at| {
                let mut inputs = inputs.clone();
                inputs[i] = at.to_owned();
                (run(&map, &inputs) * &cotangent).sum()
            });
        }
    }
}
