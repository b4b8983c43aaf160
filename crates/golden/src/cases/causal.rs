//! `partial_correlation` and `sem_from_attention`: attention as a structural equation model.

use super::reshaped;
use crate::case_file::CaseFile;
use crate::comparison::Computed;
use crate::error::Fault;
use bochner_interpret::{Correlations, FisherTest, ValueCovariance, sem_from_attention};
use bochner_numerics::Real;
use ndarray::{Array1, Array2, Array3, ArrayD};

/// The correlations, and Fisher's test of each pair that is asked for.
pub(super) fn partial_correlation<T: Real>(file: &CaseFile) -> Result<Computed, Fault> {
    let correlations = correlations::<T>(file)?;
    let samples = file.count("n")?;
    let pairs: Array2<i64> = file.integers("pairs")?;
    let given = file.mask("given")?;
    let mut tests = Vec::new();
    for (pair, given) in pairs.rows().into_iter().zip(given.rows()) {
        let given: Vec<usize> = (0..given.len()).filter(|&token| given[token]).collect();
        let [i, j] = [pair[0], pair[1]].map(|token| token as usize);
        let r = correlations.partial(i, j, &given).map_err(Fault::refused)?;
        let test = FisherTest::new(r, samples, given.len()).map_err(Fault::refused)?;
        tests.push((r, test));
    }
    let mut computed = Computed::default();
    let mut of = |name: &str, of: fn(&(f64, FisherTest)) -> f64| {
        computed.output(name, &tests.iter().map(of).collect::<Array1<f64>>());
    };
    of("partial", |(r, _)| *r);
    of("z", |(_, test)| test.z);
    of("statistic", |(_, test)| test.statistic);
    of("p_value", |(_, test)| test.p_value);
    computed.output("covariance", &correlations.covariance());
    computed.output("correlation", &correlations.correlation());
    Ok(computed)
}

fn correlations<T: Real>(file: &CaseFile) -> Result<Correlations, Fault> {
    let a: Array2<T> = file.array("a")?;
    let of = |values: ValueCovariance<T>| Correlations::of_attention(a.view(), values);
    let correlations = match file.choice("covariance", &["identity", "given", "values"])? {
        "identity" => of(ValueCovariance::Identity),
        "given" => of(ValueCovariance::Given(file.array("cov_v")?.view())),
        _ => of(ValueCovariance::OfValues(file.array("v")?.view())),
    };
    correlations.map_err(Fault::refused)
}

/// The coefficients of every matrix along the leading axes.
pub(super) fn sem<T: Real>(file: &CaseFile) -> Result<Computed, Fault> {
    let a: ArrayD<T> = file.floats("a")?;
    let shape = a.shape().to_vec();
    let tokens = shape.last().copied().unwrap_or_default();
    let matrices = a.len() / (tokens * tokens).max(1);
    let a = reshaped(a, &[matrices, tokens, tokens]);
    let a: Array3<T> = a.into_dimensionality().expect("three axes");
    let [mut g, mut g_z] = [Vec::new(), Vec::new()];
    for a in a.outer_iter() {
        let sem = sem_from_attention(a).map_err(Fault::refused)?;
        g.extend(sem.g);
        g_z.extend(sem.g_z);
    }
    let whole = |x| ArrayD::from_shape_vec(shape.clone(), x).expect("as many matrices");
    let mut computed = Computed::default();
    computed.output("g", &whole(g));
    computed.output("g_z", &whole(g_z));
    Ok(computed)
}
