//! The layers that the networks are made of: $y = W x + b$ and LeakyReLU.

use bochner_numerics::Seed;
use bochner_spectral::affine_init;
use ndarray::Array1;

#[test]
fn initial_weights_fill_their_range_and_round_alike() {
    let draw = || Seed::new(2).stream("initial values");
    let (double, _) = affine_init::<f64>(50, 16, &mut draw());
    let (single, bias) = affine_init::<f32>(50, 16, &mut draw());
    assert_eq!(single, double.mapv(|w| w as f32));
    assert_eq!(bias, Array1::<f32>::zeros(50));
    let largest = double.iter().fold(0.0_f64, |m, w| m.max(w.abs()));
    assert!(largest <= 0.25 && largest > 0.24);
    // A uniform variable in +-b has variance b^2 / 3.
    let variance = double.mapv(|w| w * w).mean().unwrap();
    assert!((variance - 0.25_f64.powi(2) / 3.0).abs() < 0.002);
}
