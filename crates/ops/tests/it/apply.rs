//! Operations on whole arrays, for callers without a tape.

use bochner_numerics::check::random;
use bochner_numerics::relative_error;
use bochner_ops::{Affine, MeanOverTime, apply, apply_vjp};
use ndarray::{Array2, Array3, ArrayD, ArrayViewD, IxDyn};

fn inputs() -> [ArrayD<f64>; 3] {
    [
        ("x", &[4, 3][..]),
        ("weight", &[2, 3][..]),
        ("bias", &[2][..]),
    ]
    .map(|(name, shape)| random(IxDyn(shape), name))
}

#[test]
fn arrays_may_have_any_order_in_memory() {
    let [x, weight, bias] = inputs();
    let cotangent: ArrayD<f64> = random(IxDyn(&[4, 2]), "cotangent");
    let turned = |a: &ArrayD<f64>| a.t().as_standard_layout().into_owned();
    let columns = [&x, &weight, &cotangent].map(turned);
    let plain = [x.view(), weight.view(), bias.view()];
    let other = [columns[0].t(), columns[1].t(), bias.view()];
    let cotangents = [cotangent.view(), columns[2].t()];
    let all = [plain, other].into_iter().zip(cotangents);
    let found = all.map(|(inputs, cotangent)| {
        let (outputs, ()) = apply(&Affine, &inputs).unwrap();
        let gradients = apply_vjp(&Affine, &inputs, &(), &[cotangent], &[true; 3]);
        (outputs, gradients.unwrap())
    });
    let found: Vec<_> = found.collect();
    assert_eq!(found[0], found[1]);
    let along_bias = found[0].1[2].as_ref().unwrap();
    let want = cotangent.sum_axis(ndarray::Axis(0));
    assert!((along_bias - &want).iter().all(|x| x.abs() < 1e-14));
}

#[test]
fn gradients_that_nobody_wants_are_none() {
    let inputs = inputs();
    let inputs = inputs.each_ref().map(|x| x.view());
    let cotangent = ArrayD::ones(IxDyn(&[4, 2]));
    let pull =
        |wanted: [bool; 3]| apply_vjp(&Affine, &inputs, &(), &[cotangent.view()], &wanted).unwrap();
    for (i, gradient) in pull([true; 3]).iter().enumerate() {
        let wanted = std::array::from_fn(|j| i == j);
        let one = pull(wanted);
        assert!(one.iter().map(Option::is_some).eq(wanted));
        let [one, among_all] = [&one[i], gradient].map(|x| x.as_ref().unwrap());
        assert_eq!(one.shape(), inputs[i].shape());
        let [one, among_all] = [one, among_all].map(|x| x.as_slice().unwrap());
        assert!(relative_error(one, among_all) < 1e-13);
    }
}

#[test]
fn arrays_that_do_not_fit_are_named() {
    let inputs = inputs();
    let inputs = inputs.each_ref().map(|x| x.view());
    let cotangent = ArrayD::ones(IxDyn(&[4, 3]));
    let says = |cotangents: &[ArrayViewD<f64>], wanted: &[bool]| {
        let refused = apply_vjp(&Affine, &inputs, &(), cotangents, wanted);
        refused.unwrap_err().to_string()
    };
    assert!(says(&[cotangent.view()], &[true; 3]).starts_with("`cotangents[0]` has shape"));
    assert!(says(&[], &[true; 3]).starts_with("`cotangents` has length 0"));
    assert!(says(&[cotangent.view()], &[true]).starts_with("`wanted` has length 1"));
    let mean = MeanOverTime { lengths: None };
    let empty = Array3::<f64>::zeros((2, 0, 3)).into_dyn();
    let error = apply(&mean, &[empty.view()]).unwrap_err().to_string();
    assert!(
        error.starts_with("`inputs[0]` has shape [2, 0, 3]"),
        "{error}"
    );
    let flat = Array2::<f64>::zeros((2, 3)).into_dyn();
    assert!(apply(&mean, &[flat.view()]).is_err());
}
