//! Clipping gradients by their norm.

use bochner_ops::clip_by_norm;

#[test]
fn huge_and_tiny_gradients_have_a_norm() {
    for scale in [1e-300, 1e300] {
        let mut g = [3.0 * scale, 4.0 * scale];
        let norm = clip_by_norm(&mut [&mut g], f64::INFINITY).unwrap();
        assert!((norm / scale - 5.0).abs() < 1e-12);
        assert_eq!(g, [3.0 * scale, 4.0 * scale]);
    }
    assert_eq!(clip_by_norm(&mut [&mut [0.0_f64; 3]], 1.0), Ok(0.0));
    // The largest element counts wherever it stands.
    for [x, y] in [[3e200, 4e-200], [4e-200, 3e200]] {
        let norm = clip_by_norm(&mut [&mut [x], &mut [y]], f64::INFINITY);
        assert_eq!(norm, Ok(3e200));
    }
}

#[test]
fn gradients_whose_norm_overflows_are_clipped_and_not_cleared() {
    let mut gradient = [1.7e308_f64, -1.7e308, 1.7e308, 1.7e308];
    let norm = clip_by_norm(&mut [&mut gradient], 1.0);
    assert_eq!(norm, Ok(f64::INFINITY));
    for (g, want) in gradient.iter().zip([0.5, -0.5, 0.5, 0.5]) {
        assert!((g - want).abs() < 1e-12, "{g}");
    }
}

#[test]
fn the_norm_is_joint_and_cut_to_the_maximum() {
    let (mut x, mut y) = ([2.0, -3.0], [6.0]);
    assert_eq!(clip_by_norm(&mut [&mut x, &mut y], 7.1), Ok(7.0));
    assert_eq!((x, y), ([2.0, -3.0], [6.0]));
    assert_eq!(clip_by_norm(&mut [&mut x, &mut y], 3.5), Ok(7.0));
    for (got, want) in x.iter().chain(&y).zip([1.0, -1.5, 3.0]) {
        assert!((got - want * 7.0 / 7.000001_f64).abs() < 1e-15);
    }
}

#[test]
fn what_is_not_finite_changes_nothing() {
    let (mut x, mut y) = ([100.0_f32, 1.0], [1.0, f32::NAN]);
    let error = clip_by_norm(&mut [&mut x, &mut y], 1.0).unwrap_err();
    assert!(
        error.to_string().contains("`gradient 1` is NaN at [1]"),
        "{error}"
    );
    assert_eq!(x, [100.0, 1.0]);
    for wrong in [0.0, -1.0, f64::NAN] {
        assert!(clip_by_norm(&mut [&mut x], wrong).is_err());
    }
}
