//! The test of whether points are a sample of a Gaussian.

use bochner_interpret::GaussianTest;
use bochner_numerics::{Seed, standard_normal};
use ndarray::{Array2, array};

const POINTS: usize = 16;
const DIMENSIONS: usize = 3;
const HEADS: u64 = 8;

/// A sample of a Gaussian with a mean and a covariance of its own.
fn gaussian(seed: Seed) -> Array2<f64> {
    let mut stream = seed.stream("points");
    let mut normal = |rows: usize| {
        Array2::from_shape_simple_fn((rows, DIMENSIONS), || standard_normal::<f64>(&mut stream))
    };
    let (mean, map) = (10.0 * normal(1), normal(DIMENSIONS));
    normal(POINTS).dot(&map) + &mean
}

#[test]
fn gaussian_heads_are_rejected_as_often_as_the_level_says() {
    const TIMES: u64 = 300;
    let (mut rejected, mut below_tenth) = (0, 0);
    for time in 0..TIMES {
        let seed = Seed::new(time).child("test");
        let test = GaussianTest::new(POINTS, DIMENSIONS, seed).unwrap();
        let heads = (0..HEADS).map(|head| gaussian(Seed::new(HEADS * time + head)));
        let p_values = heads.map(|head| test.p_value(head.view()).unwrap());
        let p_values: Vec<f64> = p_values.collect();
        let level = 0.01 / HEADS as f64;
        rejected += usize::from(p_values.iter().any(|&p| p <= level));
        below_tenth += usize::from(p_values[0] <= 0.1);
    }
    // The smallest of eight p-values is a thousandth in at most 0.8 % of 300 times, 2.4 on average; more than 8
    // has a chance below one thousandth. Of single p-values 30 ± 5 are below a tenth.
    assert!(rejected <= 8, "{rejected} of {TIMES}");
    assert!((14..=46).contains(&below_tenth), "{below_tenth} of {TIMES}");
}

/// Without the distances to normal points the test would not see these.
#[test]
fn two_centres_and_heavy_tails_are_rejected() {
    let test = GaussianTest::new(100, 2, Seed::new(3)).unwrap();
    let mut stream = Seed::new(1).stream("points");
    let mut p_value = |point: fn(usize, f64) -> f64| {
        let points = Array2::from_shape_fn((100, 2), |(i, _)| {
            point(i, standard_normal::<f64>(&mut stream))
        });
        test.p_value(points.view()).unwrap()
    };
    let centres = |i: usize, z: f64| {
        if i.is_multiple_of(2) {
            z - 3.0
        } else {
            z + 3.0
        }
    };
    assert!(p_value(centres) <= 0.001);
    assert!(p_value(|_, z| z.powi(3)) <= 0.001);
    assert!(p_value(|_, z| 5.0 - 7.0 * z) > 0.01);
}

#[test]
fn too_few_points_are_refused_and_points_on_a_line_are_no_sample_of_a_gaussian() {
    let few = GaussianTest::new(2, 2, Seed::new(1)).unwrap_err();
    assert!(few.to_string().contains("number of points"), "{few}");
    let test = GaussianTest::new(3, 2, Seed::new(1)).unwrap();
    let line = array![[0.0, 0.0], [1.0, 1.0], [2.0, 2.0]];
    assert_eq!(test.p_value(line.view()).unwrap(), 0.001);
    assert_eq!(test.p_value(Array2::zeros((3, 2)).view()).unwrap(), 0.001);
    assert!(test.p_value(Array2::zeros((4, 2)).view()).is_err());
}
