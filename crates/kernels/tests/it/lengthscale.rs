//! One lengthscale for all dimensions, or one for each.

use crate::testing::refused;
use bochner_kernels::{Kernel, Lengthscale, RbfConfig};
use ndarray::{Array2, array};

#[test]
fn values_that_are_not_positive_are_named() {
    let of = |lengthscale: Lengthscale<f64>| RbfConfig { lengthscale }.build();
    assert!(of(Lengthscale::Shared(0.5)).is_ok());
    for value in [0.0, -1.0, f64::NAN, f64::INFINITY] {
        let error = of(Lengthscale::PerDimension(vec![1.0, value]));
        assert_eq!(refused(error), "lengthscale[1]");
    }
    let none = Lengthscale::PerDimension(Vec::new());
    assert_eq!(refused(of(none)), "lengthscale");
}

#[test]
fn one_lengthscale_fits_any_width_and_one_each_only_its_own() {
    let of = |lengthscale: Lengthscale<f64>, x: Array2<f64>| {
        let kernel = RbfConfig { lengthscale }.build().unwrap();
        kernel.gram(x.view(), Array2::zeros((1, x.ncols())).view())
    };
    let each = || Lengthscale::PerDimension(vec![2.0, 4.0]);
    let half = array![[(-0.5_f64).exp()]];
    assert_eq!(of(Lengthscale::Shared(2.0), array![[2.0]]).unwrap(), half);
    assert_eq!(
        of(Lengthscale::Shared(2.0), array![[0.0, 0.0, 2.0]]).unwrap(),
        half
    );
    assert_eq!(of(each(), array![[2.0, 0.0]]).unwrap(), half);
    assert_eq!(of(each(), array![[0.0, 4.0]]).unwrap(), half);
    assert_eq!(refused(of(each(), array![[0.0, 4.0, 1.0]])), "x");
}
