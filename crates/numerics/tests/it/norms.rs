//! Norms of rows and their gradients.

use crate::accuracy::uniform;
use bochner_numerics::elementary::{PNorm, SquaredNorms, p_norms_into};
use bochner_numerics::{Real, finite_difference, relative_error};

fn p_norms<T: Real>(x: &[T], width: usize, p: f64) -> Vec<PNorm> {
    let mut norms = vec![PNorm::default(); x.len() / width];
    p_norms_into(x, width, p, &mut norms);
    norms
}

const EXPONENTS: [f64; 9] = [0.05, 0.5, 0.7, 1.0, 1.5, 2.0, 2.7, 3.0, 20.0];

#[test]
#[cfg_attr(miri, ignore = "a sweep over safe code")]
fn norms_are_those_of_the_definition() {
    let mut x: Vec<f32> = uniform(-3.0, 3.0, 150 * 37);
    x[..37].fill(0.0);
    for p in EXPONENTS {
        let norms = p_norms(&x, 37, p);
        assert_eq!(norms[0], PNorm::default());
        for (row, norm) in x.chunks(37).zip(norms).skip(1) {
            let scale = row.iter().map(|x| f64::from(x.abs())).fold(0.0, f64::max);
            let powers = row.iter().map(|&x| (f64::from(x.abs()) / scale).powf(p));
            let sum: f64 = powers.sum();
            assert_eq!(norm.scale, scale);
            assert!((norm.sum / sum - 1.0).abs() < 1e-13, "p = {p}");
        }
    }
}

#[test]
#[cfg_attr(miri, ignore = "a sweep over safe code")]
fn the_order_of_the_entries_changes_no_bit() {
    let x: Vec<f64> = (1..40).map(|n| 1.0 / f64::from(n)).collect();
    for p in EXPONENTS {
        for middle in 1..39 {
            let mut other = x.clone();
            other.rotate_left(middle);
            assert_eq!(p_norms(&other, 39, p), p_norms(&x, 39, p));
        }
    }
}

#[test]
fn extreme_rows_have_norms_and_others_have_none() {
    let rows = [
        [1e308, -1e308],
        [5e-324, 1e-323],
        [f64::NAN, 1.0],
        [f64::INFINITY, 1.0],
    ];
    for p in EXPONENTS {
        let norms = p_norms(rows.as_flattened(), 2, p);
        assert_eq!(
            norms[0],
            PNorm {
                scale: 1e308,
                sum: 2.0
            }
        );
        assert_eq!(norms[1].scale, 1e-323);
        assert!((norms[1].sum - (1.0 + 0.5f64.powf(p))).abs() < 1e-15);
        assert!(norms[2..].iter().all(|norm| norm.sum.is_nan()));
    }
}

#[test]
#[cfg_attr(miri, ignore = "a sweep over safe code")]
fn the_gradient_agrees_with_finite_differences() {
    let x = [0.7, -1.3, 0.4, 2.0, 0.9, -0.5];
    let cotangents = [1.5, -0.3];
    for p in [0.3, 1.0, 1.5, 2.0, 3.0, 20.0] {
        let got = SquaredNorms::new(&x, 3, p).pull_back(&x, &cotangents);
        let want = finite_difference(&x, |x| {
            let squares = SquaredNorms::new(x, 3, p)
                .logarithms()
                .into_iter()
                .map(f64::exp);
            squares.zip(cotangents).map(|(square, c)| square * c).sum()
        });
        assert!(relative_error(&got, &want) < 1e-6, "p = {p}");
    }
}

#[test]
#[should_panic(expected = "one cotangent a row")]
fn a_missing_cotangent_is_noticed() {
    SquaredNorms::new(&[1.0; 6], 3, 2.0).pull_back(&[1.0; 6], &[1.0]);
}

#[test]
#[should_panic(expected = "rows of at least one entry")]
fn rows_without_entries_are_noticed() {
    SquaredNorms::new::<f64>(&[], 0, 2.0);
}

#[test]
fn a_ratio_that_underflows_gives_no_nan() {
    for p in [0.5, 1.0, 1.5, 2.0, 3.0] {
        let x = [1e250, 1e-100];
        let got = SquaredNorms::new(&x, 2, p).pull_back(&x, &[1.0]);
        assert!(got.iter().all(|g| !g.is_nan()), "p = {p}: {got:?}");
    }
    let x = [1e250, -1e-100];
    let got = SquaredNorms::new(&x, 2, 1.0).pull_back(&x, &[1.0]);
    assert!(relative_error(&got, &[2e250, -2e250]) < 1e-12, "{got:?}");
    let got = SquaredNorms::new(&x, 2, 1.0).pull_back(&x, &[-1.0]);
    assert!(relative_error(&got, &[-2e250, 2e250]) < 1e-12, "{got:?}");
}

#[test]
fn rows_of_zeros_have_no_derivative() {
    for p in [0.5, 2.0, 4.0] {
        let norms = SquaredNorms::new(&[0.0_f32; 3], 3, p);
        assert_eq!(norms.logarithms(), [f64::NEG_INFINITY]);
        assert_eq!(norms.pull_back(&[0.0_f32; 3], &[1.0]), [0.0; 3]);
    }
}
