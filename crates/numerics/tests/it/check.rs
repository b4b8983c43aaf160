use bochner_numerics::check::largest;
use bochner_numerics::{Tolerance, finite_difference, relative_error};

#[test]
fn differences_of_a_smooth_function_are_accurate() {
    let x = [0.3, -1.2, 4.0];
    let got = finite_difference(&x, |x| x[0].sin() * x[1].exp() + x[2].powi(3));
    let want = [
        x[0].cos() * x[1].exp(),
        x[0].sin() * x[1].exp(),
        3.0 * x[2] * x[2],
    ];
    assert!(relative_error(&got, &want) < 1e-9);
}

#[test]
fn the_largest_of_numbers_with_nan_is_nan_wherever_it_stands() {
    for at in 0..3 {
        let mut values = [-2.0, f64::INFINITY, 0.0];
        assert_eq!(largest(&values), f64::INFINITY);
        values[at] = f64::NAN;
        assert!(largest(&values).is_nan());
    }
    assert_eq!(largest(&[]), 0.0);
}

#[test]
fn errors_are_seen() {
    assert!(relative_error(&[1.0], &[1.1]) > 0.05);
    assert_eq!(relative_error(&[f64::NAN], &[1.0]), f64::INFINITY);
    assert_eq!(relative_error(&[1.0], &[]), f64::INFINITY);
    let infinity = f64::INFINITY;
    assert_eq!(relative_error(&[infinity, 1.0], &[infinity, 2.0]), infinity);
    assert_eq!(relative_error(&[1.0], &[infinity]), infinity);
    assert_eq!(Tolerance::outputs::<f64>().bound([3.0, -4.0]), 5e-9);
    assert_eq!(Tolerance::gradients::<f32>().bound([0.0]), 2e-5);
}
