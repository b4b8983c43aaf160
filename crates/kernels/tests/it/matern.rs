//! The Matérn family at the three half-integer smoothnesses that have a short closed form.

use bochner_kernels::{Kernel, Lengthscale, Matern, MaternConfig, Smoothness};
use ndarray::array;

fn matern(smoothness: Smoothness, lengthscale: Lengthscale<f64>) -> Matern<f64> {
    let config = MaternConfig {
        smoothness,
        lengthscale,
    };
    config.build().unwrap()
}

#[test]
fn gradients_vanish_at_coincident_points() {
    let (x, one) = (array![[0.3, -2.0]], array![[1.0]]);
    for smoothness in Smoothness::ALL {
        let kernel = matern(smoothness, Lengthscale::Shared(0.5));
        assert_eq!(kernel.gram(x.view(), x.view()).unwrap(), one);
        let vjp = kernel.gram_vjp(x.view(), x.view(), one.view()).unwrap();
        assert!(vjp.x.iter().chain(&vjp.y).all(|&g| g == 0.0));
        assert_eq!(vjp.parameters, [0.0]);
    }
}

#[test]
fn the_smooth_ones_keep_their_curvature_close_to_coincidence() {
    // dk/dx is -3 t for nu = 3/2 and -5/3 t for nu = 5/2, to first order in the distance t.
    for (smoothness, curvature) in [
        (Smoothness::ThreeHalves, 3.0),
        (Smoothness::FiveHalves, 5.0 / 3.0),
    ] {
        let kernel = matern(smoothness, Lengthscale::Shared(1.0));
        let (x, y) = (array![[1e-9]], array![[0.0]]);
        let vjp = kernel.gram_vjp(x.view(), y.view(), array![[1.0]].view());
        assert!((vjp.unwrap().x[[0, 0]] / (-curvature * 1e-9) - 1.0).abs() < 1e-7);
    }
}

#[test]
fn far_points_give_zero_even_where_the_distance_overflows() {
    for smoothness in Smoothness::ALL {
        let lengthscale = Lengthscale::Shared(1.0_f32);
        let config = MaternConfig {
            smoothness,
            lengthscale,
        };
        let kernel = config.build().unwrap();
        let (x, y) = (array![[1e30]], array![[-1e30]]);
        assert_eq!(kernel.gram(x.view(), y.view()).unwrap(), array![[0.0]]);
        let vjp = kernel.gram_vjp(x.view(), y.view(), array![[1.0]].view());
        assert_eq!(vjp.unwrap().x, array![[0.0]]);
    }
}
