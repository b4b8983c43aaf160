//! The distribution function of the Gaussian copula, by quasi Monte Carlo.

use bochner_copula::{GaussianCopula, Lattice, Probability};
use bochner_numerics::{Seed, normal};
use ndarray::{Array2, array, aview1};

fn cdf(r: Array2<f64>, u: &[f64]) -> Probability {
    let copula = GaussianCopula::from_correlation(r.view()).unwrap();
    let mut rng = Seed::new(6).stream("shifts");
    copula.cdf(aview1(u), Lattice::default(), &mut rng).unwrap()
}

fn of_two(r: f64, u: [f64; 2]) -> Probability {
    cdf(array![[1.0, r], [r, 1.0]], &u)
}

/// mpmath 1.4 at 30 digits, scaled to its largest value: the integral over `s` to `h` of `npdf(s) ncdf((k - r s) / sqrt(1 - r^2))`.
#[test]
fn probabilities_of_pairs_have_the_digits_of_mpmath() {
    for (h, k, r, want) in REFERENCE {
        let got = of_two(r, [h, k].map(normal::cdf)).value;
        let error = (got / want - 1.0).abs();
        assert!(error < 1e-11, "{h} {k} {r}: {got:e} {want:e}");
    }
}

const REFERENCE: [(f64, f64, f64, f64); 11] = [
    (-1.0, 0.5, 0.3, 0.133_256_135_449_951_1),
    (2.0, -0.7, -0.8, 0.219_927_728_892_983_4),
    (-5.0, -6.0, 0.5, 1.343_318_739_767_26e-11),
    (-20.0, -21.0, 0.9, 2.597_098_291_500_151e-100),
    (-5.0, -4.0, -0.6, 1.346_698_102_311_770_4e-25),
    (1.0, 1.5, -0.95, 0.774_537_544_799_685),
    (-0.5, 0.5001, -0.999, 0.006_299_136_493_064_151),
    (3.0, 3.0, 0.99, 0.998_401_723_935_360_4),
    (-8.0, -8.5, 0.9999, 9.479_534_822_203_318e-18),
    (-30.0, 1.0, 0.7, 4.906_713_927_148_187e-198),
    (0.3, -2.0, 0.05, 0.015_070_535_197_217_053),
];

#[test]
fn independence_and_one_dimension_are_exact() {
    let got = cdf(Array2::eye(3), &[0.5, 0.2, 0.9]);
    assert!((got.value - 0.09).abs() < 1e-13 && got.error < 1e-13);
    let got = cdf(array![[1.0]], &[1e-200]);
    assert!((got.value / 1e-200 - 1.0).abs() < 1e-12);
}

#[test]
fn the_borders_of_the_cube_are_exact() {
    let r = array![[1.0, 0.7, 0.2], [0.7, 1.0, 0.5], [0.2, 0.5, 1.0]];
    assert_eq!(cdf(r.clone(), &[0.3, 0.0, 0.9]).value, 0.0);
    assert_eq!(cdf(r.clone(), &[1.0, 1.0, 1.0]).value, 1.0);
    let got = cdf(r, &[1.0, 0.3, 1.0]);
    assert!((got.value - 0.3).abs() < 1e-13 && got.error < 1e-13);
}

#[test]
fn the_order_of_the_coordinates_does_not_matter() {
    let r = array![[1.0, 0.6, -0.2], [0.6, 1.0, 0.3], [-0.2, 0.3, 1.0]];
    let turned = array![[1.0, -0.2, 0.3], [-0.2, 1.0, 0.6], [0.3, 0.6, 1.0]];
    let (a, b) = (cdf(r, &[0.2, 0.8, 0.5]), cdf(turned, &[0.5, 0.2, 0.8]));
    assert!((a.value - b.value).abs() < 1e-14);
}

#[test]
fn what_cannot_be_integrated_is_refused() {
    let copula = GaussianCopula::from_correlation(Array2::eye(2).view()).unwrap();
    let mut rng = Seed::new(6).stream("shifts");
    let mut call = |u: &[f64], points, shifts| {
        let lattice = Lattice { points, shifts };
        copula.cdf(aview1(u), lattice, &mut rng).unwrap_err()
    };
    let shape = call(&[0.5], 9, 9).to_string();
    assert!(
        shape.starts_with("`u` has length 1, but must have length 2"),
        "{shape}"
    );
    let beyond = call(&[0.5, 1.1], 9, 9).to_string();
    let want = "`coordinate 1 of u` is 1.1, but must be from 0 to 1";
    assert_eq!(beyond, want);
    let unknown = call(&[0.5, f64::NAN], 9, 9).to_string();
    assert!(unknown.starts_with("`coordinate 1 of u` is NaN"));
    assert!(
        call(&[0.5, 0.5], 0, 9)
            .to_string()
            .starts_with("`points` is 0")
    );
    assert!(
        call(&[0.5, 0.5], 9, 1)
            .to_string()
            .starts_with("`shifts` is 1")
    );
}
