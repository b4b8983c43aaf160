//! `partial_correlation` and `sem_from_attention`: attention as a structural equation model.

use crate::case::{Case, Done};
use bochner_interpret::{Correlations, FisherTest, ValueCovariance, sem_from_attention};
use bochner_numerics::Real;
use ndarray::{Array2, Ix2};

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
    for (pair, given) in pairs.rows().into_iter().zip(c.mask::<Ix2>("given")?.rows()) {
        let given: Vec<usize> = (0..given.len()).filter(|&token| given[token]).collect();
        let r = correlations.partial(pair[0] as usize, pair[1] as usize, &given)?;
        tests.push((r, FisherTest::new(r, samples, given.len())?));
    }
    c.output("partial", tests.iter().map(|(r, _)| *r));
    c.output("z", tests.iter().map(|(_, test)| test.z));
    c.output("statistic", tests.iter().map(|(_, test)| test.statistic));
    c.output("p_value", tests.iter().map(|(_, test)| test.p_value));
    c.output("covariance", correlations.covariance().iter().copied());
    c.output("correlation", correlations.correlation().iter().copied());
    Ok(())
}

/// The coefficients of every matrix along the leading axes.
pub(super) fn sem<T: Real>(c: &Case<T>) -> Done {
    let a = c.matrices("a")?;
    let sems = a.outer_iter().map(sem_from_attention);
    let sems: Vec<_> = sems.collect::<Result<_, _>>()?;
    c.output("g", sems.iter().flat_map(|sem| sem.g.iter().copied()));
    c.output("g_z", sems.iter().flat_map(|sem| sem.g_z.iter().copied()));
    Ok(())
}
