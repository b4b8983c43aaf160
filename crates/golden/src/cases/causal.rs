//! `partial_correlation` and `sem_from_attention`: attention as a structural equation model.

use crate::case::{Case, Done, matrices};
use bochner_interpret::{Correlations, FisherTest, ValueCovariance, sem_from_attention};
use bochner_numerics::Real;
use ndarray::{Array1, Array2};

/// The correlations, and Fisher's test of each pair that is asked for.
pub(super) fn partial_correlation<T: Real>(c: &Case<T>) -> Done {
    let a: Array2<T> = c.array("a")?;
    let of = |values: ValueCovariance<T>| Correlations::of_attention(a.view(), values);
    let correlations = match c.choice("covariance", &["identity", "given", "values"])? {
        "identity" => of(ValueCovariance::Identity),
        "given" => of(ValueCovariance::Given(c.array("cov_v")?.view())),
        _ => of(ValueCovariance::OfValues(c.array("v")?.view())),
    }?;
    let samples = c.count("n")?;
    let pairs: Array2<i64> = c.integers("pairs")?;
    let mut tests = Vec::new();
    for (pair, given) in pairs.rows().into_iter().zip(c.mask("given")?.rows()) {
        let given: Vec<usize> = (0..given.len()).filter(|&token| given[token]).collect();
        let r = correlations.partial(pair[0] as usize, pair[1] as usize, &given)?;
        tests.push((r, FisherTest::new(r, samples, given.len())?));
    }
    let of = |name: &str, of: fn(&(f64, FisherTest)) -> f64| {
        c.output(name, &tests.iter().map(of).collect::<Array1<f64>>());
    };
    of("partial", |(r, _)| *r);
    of("z", |(_, test)| test.z);
    of("statistic", |(_, test)| test.statistic);
    of("p_value", |(_, test)| test.p_value);
    c.output("covariance", &correlations.covariance());
    c.output("correlation", &correlations.correlation());
    Ok(())
}

/// The coefficients of every matrix along the leading axes.
pub(super) fn sem<T: Real>(c: &Case<T>) -> Done {
    let (all, _) = matrices("in.a", &c.floats("a")?)?;
    let sems = all.iter().map(|a| sem_from_attention(a.view()));
    let sems: Vec<_> = sems.collect::<Result<_, _>>()?;
    c.flat_output("g", sems.iter().flat_map(|sem| sem.g.iter().copied()))?;
    c.flat_output("g_z", sems.iter().flat_map(|sem| sem.g_z.iter().copied()))
}
