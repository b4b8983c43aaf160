//! The rational quadratic kernel: radial basis functions of many lengthscales.

use crate::testing::{gradients_agree, refused, values_are_replaced_or_refused};
use bochner_kernels::{Kernel, Lengthscale, RationalQuadratic, RationalQuadraticConfig, RbfConfig};
use bochner_numerics::check::random;

fn kernel(lengthscale: Lengthscale<f64>, alpha: f64) -> RationalQuadratic<f64> {
    let config = RationalQuadraticConfig { lengthscale, alpha };
    config.build().unwrap()
}

#[test]
fn gradients_agree_with_finite_differences() {
    for (lengthscale, alpha) in [
        (Lengthscale::Shared(1.3), 0.7),
        (Lengthscale::PerDimension(vec![0.7, 1.9, 0.4]), 3.0),
        (Lengthscale::Shared(20.0), 40.0),
    ] {
        let mut kernel = kernel(lengthscale, alpha);
        gradients_agree(&mut kernel, &random((4, 3), "x"), &random((5, 3), "y"));
        values_are_replaced_or_refused(&mut kernel);
    }
}

#[test]
fn a_large_alpha_leads_to_the_radial_basis_function() {
    let lengthscale = Lengthscale::Shared(0.8);
    let (x, y) = (random((4, 3), "x"), random((5, 3), "y"));
    let got = kernel(lengthscale.clone(), 1e12).gram(x.view(), y.view());
    let want = RbfConfig { lengthscale }.build().unwrap();
    let off = got.unwrap() - want.gram(x.view(), y.view()).unwrap();
    assert!(off.iter().all(|o| o.abs() < 1e-11), "{off}");
}

#[test]
fn settings_that_are_not_positive_are_named() {
    let config = RationalQuadraticConfig {
        lengthscale: Lengthscale::Shared(1.0),
        alpha: 0.0,
    };
    assert_eq!(refused(config.build()), "alpha");
}
