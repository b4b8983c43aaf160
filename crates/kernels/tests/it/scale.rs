//! A multiple of a kernel.

use crate::testing::{gradients_agree, parts, refused, values_are_replaced_or_refused};
use bochner_kernels::{Kernel, ScaleConfig, Sum};
use bochner_numerics::check::random;

#[test]
fn gradients_agree_with_finite_differences() {
    let base = Sum::new(parts()).unwrap().into();
    let variance = 1.7;
    let mut kernel = ScaleConfig { variance, base }.build().unwrap();
    gradients_agree(&mut kernel, &random((4, 3), "x"), &random((5, 3), "y"));
    values_are_replaced_or_refused(&mut kernel);
    let names = kernel.parameters();
    assert_eq!(names[0].name, "variance");
    assert_eq!(names[1].name, "base.0.lengthscale[0]");
}

#[test]
fn a_variance_that_is_not_positive_is_refused() {
    for variance in [0.0, -2.0, f64::NAN] {
        let base = parts().remove(0);
        assert_eq!(refused(ScaleConfig { variance, base }.build()), "variance");
    }
}
