//! Features of time stamps are joined to the input of a layer.

use bochner_attention::time_input::{TimeBasis, TimeInput};
use bochner_numerics::check::{assert_gradient, random};
use bochner_ops::{apply, apply_vjp};
use ndarray::{ArrayD, IxDyn, array as matrix};

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
