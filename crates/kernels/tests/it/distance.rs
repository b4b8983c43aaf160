//! Kernels that see only a scaled distance: pairs, and the gradients through it.

use bochner_kernels::{Kernel, Lengthscale, MaternConfig, RbfConfig, Smoothness};
use bochner_numerics::Real;
use ndarray::{Array2, array};

/// The reciprocal of a lengthscale overflows in one case, a distance in the other.
#[test]
fn no_nan_comes_out_of_finite_points() {
    fn holds<T: Real>(kernel: &dyn Kernel<T>, [x, y]: [T; 2]) {
        let (x, y) = (array![[x]], array![[x], [y]]);
        assert_eq!(
            kernel.gram(x.view(), y.view()).unwrap(),
            array![[T::one(), T::zero()]]
        );
        let ones = Array2::ones((1, 2));
        let got = kernel.gram_vjp(x.view(), y.view(), ones.view()).unwrap();
        let mut all = got.x.iter().chain(&got.y).chain(&got.parameters);
        assert!(all.all(|g| !g.is_nan()), "{kernel:?}: {got:?}");
    }
    fn of<T: Real>(tiny: f64, huge: f64) {
        for (lengthscale, points) in [(tiny, [0.5, 0.75]), (1.0, [huge, -huge])] {
            let lengthscale = Lengthscale::Shared(T::of(lengthscale));
            let points = points.map(T::of);
            for smoothness in Smoothness::ALL {
                let lengthscale = lengthscale.clone();
                let config = MaternConfig {
                    smoothness,
                    lengthscale,
                };
                holds(&config.build().unwrap(), points);
            }
            holds(&RbfConfig { lengthscale }.build().unwrap(), points);
        }
    }
    of::<f32>(1e-40, 3e38);
    of::<f64>(1e-310, 1.5e308);
}

#[test]
fn a_small_distance_keeps_its_digits_far_from_the_origin() {
    let (x, y) = (array![[1e6, -1e6]], array![[1e6 + 0.25, -1e6]]);
    let lengthscale = Lengthscale::PerDimension(vec![0.5, 1.0]);
    let kernel = RbfConfig { lengthscale }.build().unwrap();
    let got = kernel.gram(x.view(), y.view()).unwrap();
    assert_eq!(got, array![[(-0.125_f64).exp()]]);
}
