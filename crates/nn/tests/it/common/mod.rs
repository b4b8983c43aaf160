//! Helpers of the tests.
#![allow(dead_code, reason = "each test file uses its own part")]

use bochner_nn::{Element, Parameters};
use bochner_numerics::{Seed, finite_difference, standard_normal};
use dfdx::prelude::*;

/// Standard normal draws.
pub(crate) fn random<E: Element, S: Shape>(shape: S, purpose: &str) -> Tensor<S, E, Cpu> {
    let mut stream = Seed::new(1).stream(purpose);
    let values = (0..shape.num_elements())
        .map(|_| standard_normal(&mut stream))
        .collect();
    Cpu::default().tensor_from_vec(values, shape)
}

/// The elements of a contiguous tensor, in double precision.
pub(crate) fn values<E: Element, S: Shape, T>(tensor: &Tensor<S, E, Cpu, T>) -> Vec<f64> {
    let mut values = vec![E::default(); tensor.shape().num_elements()];
    tensor.copy_into(&mut values);
    values.into_iter().map(|x| x.as_f64()).collect()
}

/// Fails unless the two agree as vectors.
#[track_caller]
pub(crate) fn close(got: &[f64], want: &[f64], tolerance: f64) {
    let error = bochner_numerics::relative_error(got, want);
    assert!(error < tolerance, "relative error {error:e}");
}

/// A tensor whose operations are recorded.
pub(crate) type Traced<S> = Tensor<S, f64, Cpu, OwnedTape<f64, Cpu>>;

/// Fails unless the recorded gradients of `loss` are those of finite differences, for `x` and for
/// every parameter.
#[track_caller]
pub(crate) fn gradients_are_right<M: Parameters<f64> + Clone, S: Shape>(
    model: &M,
    x: &Tensor<S, f64, Cpu>,
    loss: impl Fn(&M, Traced<S>) -> Traced<()>,
) {
    let mut gradients = loss(model, x.leaky_trace()).backward();
    let (mut at, mut got) = (values(x), values(&gradients.get(x)));
    model.for_each("", &mut |_, p| {
        let mut part = Vec::new();
        p.read_into(&mut part);
        at.extend(part);
        got.extend_from_slice(p.gradient(&mut gradients).unwrap());
    });
    let want = finite_difference(&at, |point| {
        let (mut model, mut x) = (model.clone(), x.clone());
        let (first, mut rest) = point.split_at(x.shape().num_elements());
        x.copy_from(first);
        model.for_each_mut("", &mut |_, p| {
            let (part, others) = rest.split_at(p.len());
            p.write(part);
            rest = others;
        });
        loss(&model, x.leaky_traced()).array()
    });
    close(&got, &want, 1e-6);
}
