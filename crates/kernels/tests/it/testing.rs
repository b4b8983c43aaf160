//! Tests that every kernel passes.

use bochner_kernels::{
    Along, AnyKernel, Domain, Error, Kernel, Lengthscale, LinearConfig, MaternConfig, RbfConfig,
    Smoothness,
};
use bochner_numerics::check::{assert_gradient, random};
use bochner_numerics::relative_error;
use ndarray::{Array1, Array2, ArrayView2};

/// The argument that is refused.
pub(crate) fn refused<R>(result: Result<R, impl Into<Error>>) -> String {
    match result.err().expect("something is refused").into() {
        Error::Argument(error) => error.name().to_owned(),
        other => panic!("{other}"),
    }
}

/// Compares each of the gradients with finite differences.
pub(crate) fn gradients_agree(kernel: &mut dyn Kernel<f64>, x: &Array2<f64>, y: &Array2<f64>) {
    let cotangent = random((x.nrows(), y.nrows()), "cotangent");
    let got = kernel
        .gram_vjp(x.view(), y.view(), cotangent.view())
        .unwrap();
    let pair = |kernel: &dyn Kernel<f64>, x: ArrayView2<f64>, y: ArrayView2<f64>| {
        (&kernel.gram(x, y).unwrap() * &cotangent).sum()
    };
    assert_gradient(&got.x, x, |x| pair(kernel, x, y.view()));
    assert_gradient(&got.y, y, |y| pair(kernel, x.view(), y));
    let values: Array1<f64> = kernel.parameters().iter().map(|p| p.value).collect();
    assert_gradient(&got.parameters.clone().into(), &values, |values| {
        kernel.set_parameters(values.as_slice().unwrap()).unwrap();
        pair(kernel, x.view(), y.view())
    });
    kernel.set_parameters(values.as_slice().unwrap()).unwrap();
    let alone = kernel.gram_vjp_along(Along::Parameters, x.view(), y.view(), cotangent.view());
    let alone = alone.unwrap();
    assert_eq!(alone.parameters, got.parameters);
    assert_eq!([alone.x.nrows(), alone.y.nrows()], [0, 0]);
    diagonal_is_that_of_the_gram_matrix(kernel, x);
}

fn diagonal_is_that_of_the_gram_matrix(kernel: &dyn Kernel<f64>, x: &Array2<f64>) {
    let mut x = x.clone();
    let got = kernel.diagonal(x.view()).unwrap();
    let want = kernel.gram(x.view(), x.view()).unwrap().diag().to_vec();
    assert!(relative_error(got.as_slice().unwrap(), &want) < 1e-14);
    let cotangent: Array1<f64> = random(x.nrows(), "diagonal");
    let whole = Array2::from_diag(&cotangent);
    let want = kernel.gram_vjp(x.view(), x.view(), whole.view()).unwrap();
    let got = kernel.diagonal_vjp(x.view(), cotangent.view()).unwrap();
    assert!(relative_error(&got, &want.parameters) < 1e-13, "{got:?}");
    x[[1, 0]] = f64::NAN;
    let spoilt = kernel.diagonal(x.view()).unwrap();
    assert!(spoilt[1].is_nan() && !spoilt[0].is_nan());
    let none = Array2::zeros((2, 0));
    assert!(kernel.diagonal(none.view()).is_err());
}

/// Replaces the parameters by others, and tries values that may not stand.
pub(crate) fn values_are_replaced_or_refused(kernel: &mut dyn Kernel<f64>) {
    let values = |kernel: &dyn Kernel<f64>| -> Vec<f64> {
        kernel.parameters().iter().map(|p| p.value).collect()
    };
    let others: Vec<f64> = values(kernel).iter().map(|v| 1.5 * v).collect();
    let (before, copy) = (values(kernel), kernel.clone_box());
    kernel.set_parameters(&others).unwrap();
    assert_eq!(values(kernel), others);
    assert_eq!(values(copy.as_ref()), before);

    for (i, parameter) in kernel.parameters().iter().enumerate() {
        let mut wrong = values(kernel);
        // The first value is good, and must not be taken either.
        wrong[0] = 0.25;
        wrong[i] = match parameter.domain {
            Domain::Positive => -1.0,
            Domain::Finite | Domain::Frequency { .. } => f64::NAN,
        };
        assert_eq!(refused(kernel.set_parameters(&wrong)), parameter.name);
        assert_eq!(values(kernel), others);
    }
    let short = kernel.set_parameters(&others[1..]);
    assert_eq!(refused(short), "values");
}

/// Three kernels for inputs of three dimensions.
pub(crate) fn parts() -> Vec<AnyKernel<f64>> {
    let each = Lengthscale::PerDimension(vec![0.9, 1.4, 2.0]);
    let shared = Lengthscale::Shared(1.2);
    let rbf = RbfConfig { lengthscale: each }.build().unwrap();
    let matern = MaternConfig {
        smoothness: Smoothness::ThreeHalves,
        lengthscale: shared.clone(),
    };
    let linear = LinearConfig {
        lengthscale: shared,
    };
    vec![
        rbf.into(),
        matern.build().unwrap().into(),
        linear.build().unwrap().into(),
    ]
}
