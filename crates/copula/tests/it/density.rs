//! The density of the Gaussian copula as a function that can be trained through.

use bochner_copula::{Error, copula_log_density, copula_log_density_vjp};
use bochner_numerics::check::{assert_gradient, relative_error};
use ndarray::{Array1, Array2, ArrayView1, array};

fn factor() -> Array2<f64> {
    array![[1.3, 0.0, 0.0], [-0.4, 0.7, 0.0], [0.9, 0.5, 1.1]]
}

fn scores() -> Array2<f64> {
    array![[0.2, 0.5, 0.9], [0.8, 0.35, 0.66]]
}

#[test]
fn gradients_agree_with_finite_differences() {
    let (u, factor, g) = (scores(), factor(), array![0.7, -1.4]);
    let got = copula_log_density_vjp(u.view(), factor.view(), g.view()).unwrap();
    // The scores are divided by 20 so that the step of the differences stays in the unit interval.
    assert_gradient(&(&got.u / 20.0), &(&u * 20.0), |u| {
        let u = &u / 20.0;
        copula_log_density(u.view(), factor.view()).unwrap().dot(&g)
    });
    assert_gradient(&got.factor, &factor, |factor| {
        copula_log_density(u.view(), factor).unwrap().dot(&g)
    });
}

#[test]
fn many_rows_have_the_gradients_of_each() {
    let (u, factor, times) = (scores(), factor(), 150);
    let few = copula_log_density_vjp(u.view(), factor.view(), array![0.7, -1.4].view());
    let few = few.unwrap();
    let many = Array2::from_shape_fn((2 * times, 3), |(i, m)| u[[i % 2, m]]);
    let g = Array1::from_shape_fn(2 * times, |i| [0.7, -1.4][i % 2]);
    let got = copula_log_density_vjp(many.view(), factor.view(), g.view()).unwrap();
    for (i, row) in got.u.rows().into_iter().enumerate() {
        assert_eq!(row, few.u.row(i % 2));
    }
    let all = few.factor.mapv(|x| x * times as f64);
    assert!(relative_error(got.factor.as_slice().unwrap(), all.as_slice().unwrap()) < 1e-12);
}

#[test]
fn independence_has_density_one_exactly() {
    let u = array![[1e-300, 1.0 - 1e-16], [0.3, 0.4]];
    let value = copula_log_density(u.view(), Array2::eye(2).view()).unwrap();
    assert_eq!(value, array![0.0, 0.0]);
}

#[test]
fn an_almost_degenerate_factor_does_not_give_nan() {
    let factor = array![[1.0, 0.0, 0.0], [1.0, 1e-300, 0.0], [0.0, 1.0, 1e-300]];
    let u = array![[0.1, 0.9, 0.5], [0.5, 0.5, 0.5], [0.9, 0.1, 1e-300]];
    let value = copula_log_density(u.view(), factor.view()).unwrap();
    assert!(value[0] == f64::NEG_INFINITY && value[1] > 1000.0 && !value[2].is_nan());
}

#[test]
fn single_precision_is_double_precision_rounded() {
    let (u, l) = (scores().mapv(|x| x as f32), factor().mapv(|x| x as f32));
    let single = copula_log_density(u.view(), l.view()).unwrap();
    let (u, l) = (u.mapv(f64::from), l.mapv(f64::from));
    let double = copula_log_density(u.view(), l.view()).unwrap();
    assert_eq!(single, double.mapv(|x| x as f32));
}

#[test]
fn a_factor_without_dimensions_is_refused() {
    let (u, factor, g) = (
        Array2::zeros((4, 0)),
        Array2::<f64>::zeros((0, 0)),
        [0.0; 4],
    );
    let refused = |error: Error| matches!(error, Error::Argument(_));
    assert!(refused(
        copula_log_density(u.view(), factor.view()).unwrap_err()
    ));
    let got = copula_log_density_vjp(u.view(), factor.view(), ArrayView1::from(&g));
    assert!(refused(got.unwrap_err()));
}

#[test]
fn scores_on_the_border_and_wrong_shapes_are_refused() {
    let call = |u: Array2<f64>| copula_log_density(u.view(), factor().view()).unwrap_err();
    let border = call(array![[0.5, 0.5, 0.5], [0.5, 1.0, 0.5]]);
    let (row, coordinate) = (1, 1);
    assert_eq!(
        border,
        Error::Score {
            row,
            coordinate,
            got: 1.0
        }
    );
    assert!(matches!(
        call(array![[0.5, f64::NAN, 0.5]]),
        Error::Score { .. }
    ));
    let mut long = Array2::from_elem((300, 3), 0.5);
    long[[299, 2]] = 0.0;
    assert!(matches!(call(long), Error::Score { row, coordinate: 2, .. } if row == 299));
    let shape = call(array![[0.5, 0.5]]).to_string();
    assert!(shape.starts_with("`u` has shape [1, 2], but must have [1, 3]"));
    assert!(!shape.contains("heads"));
}
