use bochner_numerics::normal::{cdf, density, ln_cdf, ln_density, quantile};
use bochner_numerics::{elementary, finite_difference};

#[test]
fn one_number_is_as_in_a_slice() {
    let u: Vec<f64> = [0.0, 1e-300, 1e-17, 1e-9, 0.1, 0.2, 0.5, 0.7, 0.9, 1.0, 2.0].to_vec();
    let mut x = u.clone();
    elementary::normal_quantile_in_place(&mut x);
    let mut back = x.clone();
    elementary::normal_cdf_in_place(&mut back);
    for ((&u, &x), &back) in u.iter().zip(&x).zip(&back) {
        let near = |got: f64, want: f64| {
            let both_nan = got.is_nan() && want.is_nan();
            both_nan || got == want || (got - want).abs() <= 9.0 * f64::EPSILON * want.abs()
        };
        assert!(near(quantile(u), x), "{u:e}: {} {x}", quantile(u));
        assert!(near(cdf(x), back), "{x}: {} {back}", cdf(x));
    }
}

#[test]
fn the_distribution_function_takes_quantiles_back() {
    let mut u = 1e-300;
    while u < 0.5 {
        let x = quantile(u);
        assert!((ln_cdf(x) - u.ln()).abs() < 2e-15 * u.ln().abs(), "{u:e}");
        u *= 7.3;
    }
    assert!((ln_cdf(1.0) - 0.8413447460685429_f64.ln()).abs() < 1e-16);
}

#[test]
fn the_logarithm_is_continuous_where_its_formula_changes() {
    for x in [-5.0, 0.0_f64] {
        let (below, above) = (ln_cdf(x.next_down()), ln_cdf(x));
        assert!((below - above).abs() < 4e-15 * above.abs());
    }
}

#[test]
fn the_density_is_the_slope_of_the_distribution_function() {
    for x in [-3.0, -0.4, 0.0, 1.7] {
        let slope = finite_difference(&[x], |x| cdf(x[0]))[0];
        assert!((density(x) - slope).abs() < 1e-11);
        assert!((density(x).ln() - ln_density(x)).abs() < 1e-15 * 9.0);
    }
}
