//! The polynomial kernel.

use crate::testing::{gradients_agree, refused, values_are_replaced_or_refused};
use bochner_kernels::{Lengthscale, PolynomialConfig};
use bochner_numerics::check::random;

fn config(degree: usize) -> PolynomialConfig<f64> {
    PolynomialConfig {
        lengthscale: Lengthscale::PerDimension(vec![0.7, 1.9, 0.4]),
        offset: 0.8,
        degree,
    }
}

#[test]
fn gradients_agree_with_finite_differences() {
    for degree in 1..4 {
        let mut kernel = config(degree).build().unwrap();
        gradients_agree(&mut kernel, &random((4, 3), "x"), &random((5, 3), "y"));
        values_are_replaced_or_refused(&mut kernel);
    }
}

#[test]
fn settings_outside_their_range_are_named() {
    assert_eq!(refused(config(0).build()), "degree");
    assert_eq!(refused(config(65).build()), "degree");
    let offset = PolynomialConfig {
        offset: -1.0,
        ..config(2)
    };
    assert_eq!(refused(offset.build()), "offset");
}
