//! The bound and its gradient against formulas over all pairs of observations.

use crate::testing::{config, kernels, process, scaled_rbf};
use bochner_dense::Cholesky;
use bochner_gp::{
    Error, FitConfig, GaussianProcess, GaussianProcessConfig, Jitter, SparsePosterior,
    SparseProcess, inducing_points,
};
use bochner_kernels::Kernel;
use bochner_numerics::check::random;
use bochner_numerics::{finite_difference, relative_error};
use ndarray::{Array, Array1, Array2, Axis, s};
use std::f64::consts::TAU;

/// Observations, with known noise of some of them.
fn data(rows: usize) -> (Array2<f64>, Array1<f64>, Vec<f64>) {
    let known = random::<f64, _>(rows, "noise").mapv(|v| v * v).to_vec();
    (random((rows, 2), "x"), random(rows, "y"), known)
}

fn noisy(known: Vec<f64>) -> GaussianProcess {
    let config = GaussianProcessConfig {
        observation_noise: Some(known),
        ..config(scaled_rbf(1.3, 0.6), 0.2, 0.3)
    };
    config.build().unwrap()
}

fn sparse(process: GaussianProcess, points: usize) -> SparseProcess {
    SparseProcess::new(process, random((points, 2), "inducing")).unwrap()
}

/// The bound by its definition: the density of the observations under $Q + D$ and the trace.
fn by_definition(sparse: &SparseProcess, x: &Array2<f64>, y: &Array1<f64>) -> f64 {
    let (process, z) = (sparse.process(), sparse.inducing());
    let cross = process.kernel().gram(x.view(), z).unwrap();
    let inducing = process.kernel().gram(z, z).unwrap();
    let mut solved = cross.clone();
    Cholesky::new(inducing.view())
        .unwrap()
        .solve(solved.view_mut())
        .unwrap();
    let q = solved.dot(&cross.t());
    let known = process.observation_noise().unwrap();
    let noise: Vec<f64> = known.iter().map(|v| process.noise() + v).collect();
    let covariance = &q + &Array2::from_diag(&Array1::from(noise.clone()));
    let factor = Cholesky::new(covariance.view()).unwrap();
    let residuals = y - process.mean();
    let mut alpha = residuals.clone().insert_axis(Axis(0));
    factor.solve(alpha.view_mut()).unwrap();
    let misfit = residuals.dot(&alpha.row(0));
    let density = -0.5 * (misfit + factor.log_determinant() + y.len() as f64 * TAU.ln());
    let missed = process.kernel().diagonal(x.view()).unwrap() - q.diag();
    density - 0.5 * missed.iter().zip(noise).map(|(m, n)| m / n).sum::<f64>()
}

#[test]
fn bound_and_gradients_agree_with_the_definition_for_every_kernel() {
    for kernel in kernels() {
        let (x, y, known) = data(11);
        let config = GaussianProcessConfig {
            observation_noise: Some(known),
            jitter: Jitter::Fixed(1e-9),
            ..config(kernel, 0.3, 0.2)
        };
        let process = config.build().unwrap();
        // A linear kernel has as many independent values as columns.
        let name = format!("{:?}", process.kernel());
        let sparse = sparse(process, 2);
        let got = sparse.bound_gradient(x.view(), y.view()).unwrap();
        let want = by_definition(&sparse, &x, &y);
        assert!(
            (got.bound.log_likelihood - want).abs() < 1e-6 * want.abs(),
            "{name}"
        );
        let (process, inducing) = (sparse.process().clone(), sparse.inducing().to_owned());
        let values: Vec<f64> = process.parameters().iter().map(|p| p.value).collect();
        let value =
            |sparse: &SparseProcess| sparse.bound(x.view(), y.view()).unwrap().log_likelihood;
        let want = finite_difference(&values, |v| {
            let mut process = process.clone();
            process.set_parameters(v).unwrap();
            value(&SparseProcess::new(process, inducing.clone()).unwrap())
        });
        assert!(
            relative_error(&got.parameters, &want) < 1e-6,
            "{name} {:?} {want:?}",
            got.parameters
        );
        let want = finite_difference(inducing.as_slice().unwrap(), |z| {
            let inducing = Array2::from_shape_vec((2, 2), z.to_vec()).unwrap();
            value(&SparseProcess::new(process.clone(), inducing).unwrap())
        });
        // A linear kernel of as many points as columns depends on none of them.
        let scale = want.iter().fold(1.0_f64, |scale, g| scale.max(g.abs()));
        let mut pairs = got.inducing.iter().zip(&want);
        assert!(pairs.all(|(g, w)| (g - w).abs() < 1e-6 * scale), "{name}");
    }
}

#[test]
fn inducing_points_at_all_inputs_make_the_exact_process() {
    let (x, y, known) = data(12);
    let exact = noisy(known);
    let sparse = SparseProcess::new(exact.clone(), x.clone()).unwrap();
    let evidence = exact.evidence(x.view(), y.view()).unwrap().log_likelihood;
    let bound = sparse.bound(x.view(), y.view()).unwrap().log_likelihood;
    assert!((evidence - bound).abs() < 1e-9, "{evidence} {bound}");
    let at = random((5, 2), "at");
    let want = exact
        .condition(x.view(), y.view())
        .unwrap()
        .predict(at.view())
        .unwrap();
    let got = sparse
        .condition(x.view(), y.view())
        .unwrap()
        .predict(at.view())
        .unwrap();
    for (got, want) in [
        (&got.mean, &want.mean),
        (&got.observed_variance, &want.observed_variance),
    ] {
        assert!((got - want).iter().all(|off| off.abs() < 1e-9));
    }
    // Fewer points give a lower bound.
    let few = SparseProcess::new(exact, x.slice(s![..6, ..]).to_owned()).unwrap();
    assert!(few.bound(x.view(), y.view()).unwrap().log_likelihood < evidence);
}

/// More rows than are computed at a time.
#[test]
fn pieces_and_known_noise_change_nothing() {
    let rows = 2 * 512 + 37;
    let (x, y, _) = data(rows);
    let process = process(scaled_rbf(1.3, 0.6), 0.2, 0.3);
    let sparse = sparse(process, 5);
    let got = sparse.bound_gradient(x.view(), y.view()).unwrap();
    let config = GaussianProcessConfig {
        observation_noise: Some(vec![0.0; rows]),
        ..config(scaled_rbf(1.3, 0.6), 0.2, 0.3)
    };
    let again = SparseProcess::new(config.build().unwrap(), sparse.inducing().to_owned()).unwrap();
    assert_eq!(again.bound_gradient(x.view(), y.view()).unwrap(), got);
    let want = by_definition(&again, &x, &y);
    assert!((got.bound.log_likelihood - want).abs() < 1e-7 * want.abs());
}

#[test]
fn a_fit_comes_close_to_that_of_the_exact_process() {
    let x = Array::linspace(0.0, 10.0, 120).insert_axis(Axis(1));
    let y = x.column(0).mapv(f64::sin) + random::<f64, _>(120, "y") * 0.1;
    let config = FitConfig {
        steps: 200,
        ..FitConfig::default()
    };
    let mut exact = bochner_gp::rbf_process(x.view(), y.view()).unwrap();
    let mut sparse = SparseProcess::new(
        exact.clone(),
        inducing_points(x.view(), 15, bochner_numerics::Seed::new(1)).unwrap(),
    )
    .unwrap();
    let evidence = exact
        .fit(x.view(), y.view(), &config)
        .unwrap()
        .evidence()
        .log_likelihood;
    let fixed = FitConfig {
        fixed: vec!["inducing".to_owned()],
        ..config.clone()
    };
    let before = sparse.inducing().to_owned();
    sparse.fit(x.view(), y.view(), &fixed).unwrap();
    assert_eq!(sparse.inducing(), before);
    let fit = sparse.fit(x.view(), y.view(), &config).unwrap();
    assert_ne!(sparse.inducing(), before);
    let bound = fit.evidence().log_likelihood;
    assert!(
        bound <= evidence + 1e-6 && bound > evidence - 0.5,
        "{bound} {evidence}"
    );
}

#[test]
fn a_posterior_that_is_read_predicts_the_same() {
    let (x, y, known) = data(30);
    let posterior = sparse(noisy(known), 6)
        .condition(x.view(), y.view())
        .unwrap();
    let text = serde_json::to_string(&posterior).unwrap();
    let read: SparsePosterior = serde_json::from_str(&text).unwrap();
    let at = random((4, 2), "at");
    assert_eq!(read.predict(at.view()), posterior.predict(at.view()));
    assert_eq!(read.bound(), posterior.bound());
    let newer = text.replacen("\"version\":1", "\"version\":2", 1);
    let refused = serde_json::from_str::<SparsePosterior>(&newer)
        .unwrap_err()
        .to_string();
    assert!(
        refused.starts_with("the file has the version 2 of the format"),
        "{refused}"
    );
}

#[test]
fn data_that_do_not_fit_are_named() {
    let (mut x, y, _) = data(4);
    let process = process(scaled_rbf(1.3, 0.6), 0.2, 0.3);
    let (inducing, rows) = (5, 4);
    let many = sparse(process.clone(), 5).bound(x.view(), y.view());
    assert_eq!(many, Err(Error::InducingPoints { inducing, rows }));
    x[[2, 1]] = f64::NAN;
    let said = sparse(process, 2)
        .bound(x.view(), y.view())
        .unwrap_err()
        .to_string();
    assert!(said.starts_with("`x` is NaN at [2, 1]"), "{said}");
}
