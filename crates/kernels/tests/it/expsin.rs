//! The exponentiated sine, or periodic, kernel.

use bochner_kernels::{
    AnyKernel, ColumnsConfig, Error, Expsin, ExpsinConfig, Kernel, Lengthscale, Product,
    ScaleConfig, Sum,
};
use bochner_numerics::Real;
use bochner_numerics::check::random;
use ndarray::{Array2, array};

fn expsin() -> Expsin<f64> {
    with(Lengthscale::Shared(0.9))
}

fn with(lengthscale: Lengthscale<f64>) -> Expsin<f64> {
    let period = 1.7;
    ExpsinConfig {
        period,
        lengthscale,
    }
    .build()
    .unwrap()
}

#[test]
fn with_a_lengthscale_for_each_column_it_is_a_product_over_columns() {
    let (x, y) = (random((4, 2), "x"), random((5, 2), "y"));
    let lengthscales = [0.7, 1.9];
    let kernel = with(Lengthscale::PerDimension(lengthscales.to_vec()));
    let factors = lengthscales.into_iter().enumerate().map(|(n, l)| {
        let (columns, base) = (vec![n], with(Lengthscale::Shared(l)).into());
        ColumnsConfig { columns, base }.build().unwrap().into()
    });
    let product = Product::new(factors.collect()).unwrap();
    let [got, want] = [&kernel as &dyn Kernel<_>, &product]
        .map(|kernel| kernel.gram(x.view(), y.view()).unwrap());
    assert!((got - want).iter().all(|off| off.abs() < 1e-15));
    assert_eq!(kernel.check_positive_semi_definite(2), Ok(()));
}

#[test]
fn gradients_vanish_at_coincident_points() {
    let (x, one) = (array![[0.3, -2.0]], array![[1.0]]);
    let vjp = expsin().gram_vjp(x.view(), x.view(), one.view()).unwrap();
    assert!(vjp.x.iter().chain(&vjp.y).all(|&g| g == 0.0));
    assert_eq!(vjp.parameters, [0.0, 0.0]);
}

#[test]
fn the_curvature_at_coincidence_is_finite() {
    let (x, y) = (array![[1e-9]], array![[0.0]]);
    let vjp = expsin().gram_vjp(x.view(), y.view(), array![[1.0]].view());
    let curvature = 4.0 * (std::f64::consts::PI / (1.7 * 0.9)).powi(2);
    assert!((vjp.unwrap().x[[0, 0]] / (-curvature * 1e-9) - 1.0).abs() < 1e-7);
}

#[test]
fn no_nan_comes_out_of_finite_points() {
    fn holds<T: Real>(sizes: &[f64], points: &[f64]) {
        let all = |x: &[f64]| x.iter().map(|&x| T::of(x)).collect::<Vec<_>>();
        let x = Array2::from_shape_vec((points.len(), 1), all(points)).unwrap();
        let signs = |(i, j)| T::of(if (i + j) % 2 == 0 { 2.0 } else { -2.0 });
        let cotangent = Array2::from_shape_fn((points.len(), points.len()), signs);
        for &period in &all(sizes) {
            let each = |&l| [Lengthscale::Shared(l), Lengthscale::PerDimension(vec![l])];
            for lengthscale in all(sizes).iter().flat_map(each) {
                let config = ExpsinConfig {
                    period,
                    lengthscale,
                };
                let kernel = config.build().unwrap();
                let k = kernel.gram(x.view(), x.view()).unwrap();
                let within = |&k: &T| k >= T::zero() && k <= T::one();
                assert!(k.iter().all(within), "{kernel:?}: {k:?}");
                let got = kernel.gram_vjp(x.view(), x.view(), cotangent.view());
                let got = got.unwrap();
                let mut all = got.x.iter().chain(&got.y).chain(&got.parameters);
                assert!(all.all(|g| !g.is_nan()), "{kernel:?}: {got:?}");
            }
        }
    }
    let sizes = [5e-324, 1e-310, 1e-200, 1e-155, 1e-80, 1.0, 1e155, 1e308];
    let points = [0.0, 1e-320, 1e-155, 0.3, 1.0, 1e160, -1.7e308];
    holds::<f64>(&sizes, &points);
    holds::<f32>(
        &[1e-45, 1e-38, 1e-20, 1.0, 1e20, 3e38],
        &[0.0, 1e-40, 0.3, 1e20, -3e38],
    );
}

/// At the corners of a square whose side is one period, neighbours are as like as can be, and opposite
/// corners, 1.41 periods apart, are not.
#[test]
fn in_the_plane_it_is_not_positive_semi_definite() {
    let config = ExpsinConfig {
        period: 2.0,
        lengthscale: Lengthscale::Shared(3.0),
    };
    let kernel = config.build().unwrap();
    let corners = array![[0.0, 0.0], [0.0, 2.0], [2.0, 2.0], [2.0, 0.0]];
    let weights = array![1.0, -1.0, 1.0, -1.0];
    let k = kernel.gram(corners.view(), corners.view()).unwrap();
    assert!(weights.dot(&k.dot(&weights)) < -0.1);
    let refused = |kernel: &dyn Kernel<f64>, width| {
        kernel.check_positive_semi_definite(width)
            == Err(Error::Indefinite {
                kernel: "periodic",
                width: 2,
            })
    };
    let base = || AnyKernel::from(kernel.clone());
    let scaled = ScaleConfig {
        variance: 2.0,
        base: base(),
    }
    .build()
    .unwrap();
    for kernel in [
        &kernel as &dyn Kernel<_>,
        &scaled,
        &Sum::new(vec![base()]).unwrap(),
        &Product::new(vec![base()]).unwrap(),
    ] {
        assert!(refused(kernel, 2) && !refused(kernel, 1));
    }
    let columns = |columns| {
        ColumnsConfig {
            columns,
            base: base(),
        }
        .build()
        .unwrap()
    };
    assert!(!refused(&columns(vec![1]), 2) && refused(&columns(vec![0, 1]), 3));
}
