//! Spectral points that are parameters themselves, and where they start.

use bochner_numerics::{Real, Seed};
use bochner_spectral::{DirectInit, DirectPoints, Error, direct_points};
use ndarray::Array3;

fn points<T: Real>(
    shape: (usize, usize, usize),
    init: DirectInit,
) -> Result<DirectPoints<T>, Error> {
    let mut stream = Seed::new(3).stream("spectral points");
    direct_points(shape.0, shape.1, shape.2, init, &mut stream)
}

fn variance(w: &Array3<f64>) -> f64 {
    w.mapv(|w| w * w).mean().unwrap()
}

#[test]
fn near_softmax_has_the_variances_of_its_definition() {
    let p = points((4, 200, 16), DirectInit::NearSoftmax).unwrap();
    assert!((variance(&p.w1) - 0.125).abs() < 0.005);
    let spread = variance(&(&p.w2 - &p.w1));
    assert!((spread - 0.125 * 0.01).abs() < 5e-5);
}

#[test]
fn kaiming_fills_its_range() {
    let p = points::<f64>((4, 25, 16), DirectInit::KaimingUniform).unwrap();
    for w in [&p.w1, &p.w2] {
        let largest = w.iter().fold(0.0_f64, |m, w| m.max(w.abs()));
        assert!(largest <= 0.1 && largest > 0.099);
    }
    let product = (&p.w1 * &p.w2).mean().unwrap();
    assert!(product.abs() < 3e-4, "the two points are independent");
}

#[test]
fn single_and_double_precision_start_alike() {
    for init in [DirectInit::NearSoftmax, DirectInit::KaimingUniform] {
        let double = points::<f64>((2, 3, 4), init).unwrap();
        let single = points::<f32>((2, 3, 4), init).unwrap();
        assert_eq!(single.w1, double.w1.mapv(|w| w as f32));
        assert_eq!(single.w2, double.w2.mapv(|w| w as f32));
    }
}

#[test]
fn what_is_empty_is_named() {
    let error = points::<f32>((2, 0, 4), DirectInit::NearSoftmax).unwrap_err();
    assert!(error.to_string().starts_with("`points` is 0"), "{error}");
}
