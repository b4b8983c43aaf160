//! The kernels that scikit-learn has too give its values: version 1.9.1, in float64.

use bochner_kernels::{
    AnyKernel, ConstantConfig, Kernel, Lengthscale, PolynomialConfig, RationalQuadraticConfig,
};
use ndarray::{Array2, array};

#[test]
fn agrees_with_scikit_learn() {
    // RationalQuadratic(length_scale=0.8, alpha=0.6), DotProduct(sigma_0=0.7) ** 3, ConstantKernel(1.7).
    let rational = RationalQuadraticConfig {
        lengthscale: Lengthscale::Shared(0.8),
        alpha: 0.6,
    };
    let polynomial = PolynomialConfig {
        lengthscale: Lengthscale::Shared(1.0),
        offset: 0.7 * 0.7,
        degree: 3,
    };
    let cases: [(AnyKernel<f64>, Array2<f64>); 3] = [
        (
            rational.build().unwrap().into(),
            array![
                [0.7135144892419168, 0.606355575928913, 0.2548293640272972],
                [0.5651541278164702, 1.0, 0.20542944471869692]
            ],
        ),
        (
            polynomial.build().unwrap().into(),
            array![
                [0.059318999999999955, 0.405224, -0.029791000000000033],
                [0.32850899999999994, 6.434856000000001, -2.2480910000000014]
            ],
        ),
        (
            ConstantConfig { variance: 1.7 }.build().unwrap().into(),
            Array2::from_elem((2, 3), 1.7),
        ),
    ];
    let x = array![[0.3, -0.2], [1.1, 0.4]];
    let y = array![[0.0, 0.5], [1.1, 0.4], [-2.0, 1.0]];
    for (kernel, want) in cases {
        let off = kernel.gram(x.view(), y.view()).unwrap() - want;
        assert!(off.iter().all(|o| o.abs() < 1e-14), "{kernel:?} {off}");
    }
}
