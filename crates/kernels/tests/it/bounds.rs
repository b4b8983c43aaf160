//! Bounds on the distance of random features from their kernel anywhere on a bounded set (Proposition 4).

use crate::testing::refused;
use bochner_kernels::{Error, UniformBound, UniformBoundConfig};

fn bound(width: usize, diameter: f64, spread: f64) -> Result<UniformBound, Error> {
    let config = UniformBoundConfig {
        width,
        diameter,
        spread,
    };
    config.build()
}

#[test]
fn settings_and_questions_out_of_range_are_refused() {
    assert_eq!(refused(bound(0, 1.0, 1.0)), "width");
    assert!(bound(1, 0.0, 1.0).is_err() && bound(1, 1.0, f64::INFINITY).is_err());
    let bound = bound(1, 0.1, 1.0).unwrap();
    assert!(bound.probability(0.5, 1).is_ok());
    let large = bound.probability(0.6, 1).unwrap_err().to_string();
    assert!(
        large.starts_with("`error` is 0.6, but must be at most 0.56568"),
        "{large}"
    );
    assert!(bound.points(-0.1, 0.1).is_err() && bound.points(f64::NAN, 0.1).is_err());
    for probability in [-0.1, 0.0, 1.0, 1.1, f64::NAN] {
        assert_eq!(refused(bound.points(0.1, probability)), "probability");
    }
    assert_eq!(refused(bound.probability(0.1, 0)), "points");
    assert_eq!(refused(bound.points(1e-200, 0.1)), "error");
    assert_eq!(refused(bound.points(1e-12, 0.1)), "error");
}
