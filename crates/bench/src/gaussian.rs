//! Gaussian processes and the Gaussian copula, in double precision.

use crate::Error;
use crate::workload::{Element, Pass, Run, Workload};
use bochner_copula::{GaussianCopula, copula_log_density_vjp};
use bochner_numerics::{Seed, standard_normal};
use ndarray::{Array1, Array2};
use rand::Rng;
use std::hint::black_box;
use std::rc::Rc;

/// The marginal likelihood of `(n, inputs)` observations, and its gradient; draws from a copula and
/// their log densities, `(n, dimensions)`.
pub(crate) fn workloads() -> Vec<Workload> {
    let shape = [1_000_000, 8];
    vec![
        marginal_likelihood([2000, 8]),
        sample(shape),
        log_density(shape),
    ]
}

fn double(workload: Workload) -> Workload {
    Workload {
        element: Element::Double,
        ..workload
    }
}

/// A third of n³ for the factor, two thirds for the inverse that the gradient needs.
fn marginal_likelihood(shape: [usize; 2]) -> Workload {
    let [n, inputs] = shape.map(|n| n as f64);
    let bytes = 8.0 * n * (inputs + 1.0);
    let passes = vec![
        Pass::of_operations("fwd", n.powi(3) / 3.0, bytes),
        Pass::of_operations("fwd_bwd", n.powi(3), bytes),
    ];
    let start = move || observed(shape);
    double(Workload::new("gp-likelihood", shape, passes, start))
}

fn observed([n, inputs]: [usize; 2]) -> Result<Vec<Run>, Error> {
    let mut stream = Seed::new(1).stream("observations");
    let x = Array2::from_shape_simple_fn((n, inputs), || stream.gen_range(0.0..1.0));
    let y = x.rows().into_iter().map(|x| {
        let noise: f64 = standard_normal(&mut stream);
        (6.0_f64 * x[0]).sin() + x[1] + 0.1 * noise
    });
    let y: Array1<f64> = y.collect();
    let data = Rc::new((bochner_gp::rbf_process(x.view(), y.view())?, x, y));
    let again = Rc::clone(&data);
    let value = move || {
        let (process, x, y) = &*again;
        black_box(process.evidence(x.view(), y.view())?);
        Ok(())
    };
    let gradient = move || {
        let (process, x, y) = &*data;
        black_box(process.evidence_gradient(x.view(), y.view())?);
        Ok(())
    };
    Ok(vec![Box::new(value), Box::new(gradient)])
}

/// A triangle of the factor a draw.
fn sample(shape: [usize; 2]) -> Workload {
    let [n, m] = shape.map(|n| n as f64);
    let passes = vec![Pass::of_operations("fwd", n * m * (m + 1.0), 8.0 * n * m)];
    let workload = Workload::new("copula-sample", shape, passes, move || drawn(shape));
    double(workload.with("what", "sample"))
}

fn drawn([n, m]: [usize; 2]) -> Result<Vec<Run>, Error> {
    let copula = GaussianCopula::from_factor(factor(m).view())?;
    let mut stream = Seed::new(1).stream("draws");
    let run = move || {
        black_box(copula.sample(n, &mut stream));
        Ok(())
    };
    Ok(vec![Box::new(run)])
}

/// A triangular solve a draw; backward another one, and a triangle of the factor's gradient.
fn log_density(shape: [usize; 2]) -> Workload {
    let [n, m] = shape.map(|n| n as f64);
    let (triangle, bytes) = (n * m * (m + 1.0), 8.0 * n * (m + 1.0));
    let passes = vec![
        Pass::of_operations("fwd", triangle, bytes),
        Pass::of_operations("fwd_bwd", 3.0 * triangle, 2.0 * bytes),
    ];
    let workload = Workload::new("copula-log-density", shape, passes, move || dense(shape));
    double(workload.with("what", "log_density"))
}

fn dense([n, m]: [usize; 2]) -> Result<Vec<Run>, Error> {
    let factor = factor(m);
    let copula = Rc::new(GaussianCopula::from_factor(factor.view())?);
    let u = Rc::new(copula.sample(n, &mut Seed::new(1).stream("draws")));
    let (shared, again) = (Rc::clone(&copula), Rc::clone(&u));
    let value = move || {
        black_box(shared.log_density(again.view())?);
        Ok(())
    };
    let upstream = Array1::from_elem(n, 1.0 / n as f64);
    let gradient = move || {
        black_box(copula_log_density_vjp(
            u.view(),
            factor.view(),
            upstream.view(),
        )?);
        Ok(())
    };
    Ok(vec![Box::new(value), Box::new(gradient)])
}

/// A lower-triangular factor with rows of norm one.
fn factor(m: usize) -> Array2<f64> {
    let mut stream = Seed::new(1).stream("factor");
    let mut factor = Array2::from_shape_fn((m, m), |(i, j)| {
        let entry: f64 = standard_normal(&mut stream);
        match i.cmp(&j) {
            std::cmp::Ordering::Greater => entry / (m as f64).sqrt(),
            std::cmp::Ordering::Equal => 1.0,
            std::cmp::Ordering::Less => 0.0,
        }
    });
    for mut row in factor.rows_mut() {
        let norm = row.dot(&row).sqrt();
        row /= norm;
    }
    factor
}
