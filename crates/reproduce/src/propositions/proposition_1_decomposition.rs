//! Proposition 1: softmax attention is an RBF similarity times a magnitude.

use super::Effort;
use crate::Error;
use crate::study::case::{
    Case, each, head, larger, largest, largest_difference, matrix, normalised,
};
use crate::study::{Finding, Measure};
use bochner_attention::{Magnitude, Mask, kernels, magnitude::magnitude, weights};
use bochner_kernels::{Kernel, Lengthscale, RbfConfig};
use bochner_numerics::Tolerance;
use ndarray::{Array2, Axis};

/// Norms for which the query's magnitude must cancel.
const NORMS: [f64; 4] = [1.0, 1.5, 2.0, 3.0];

const STATEMENT: &str = "For all q, k in R^d: exp(q.k / sqrt d) = exp(-|q-k|^2 / (2 sqrt d)) \
    exp((|q|^2 + |k|^2) / (2 sqrt d)). After normalising over the keys the query's own magnitude \
    cancels, for every p.";

/// The measured errors.
const MEASURED: [&str; 3] = [
    "largest relative error, pair by pair",
    "largest error of the weights against softmax by its definition",
    "largest change of a weight by the query's magnitude, p = 1, 1.5, 2, 3",
];

pub(super) fn measure(effort: &Effort) -> Result<Finding, Error> {
    let errors = each(1, effort.cases, errors)?;
    let measures = MEASURED.iter().enumerate().map(|(i, what)| {
        let error = largest(errors.iter().map(|errors| errors[i]));
        Measure::shown(*what, error).at_most(Tolerance::outputs::<f64>().relative)
    });
    let measures = measures.collect();
    Ok(Finding {
        number: 1,
        title: "softmax attention decomposes",
        statement: STATEMENT,
        cases: effort.cases,
        measures,
        remarks: vec![
            "Similarity by `Rbf::gram` with lengthscale d^(1/4), magnitude by `magnitude`, weights \
             by `weights`; 1 to 12 queries and keys a case, normal with deviations 0.1 to 3."
                .to_owned(),
        ],
        charts: Vec::new(),
    })
}

/// The largest [`MEASURED`] errors of one case.
fn errors(mut case: Case) -> Result<[f64; 3], Error> {
    let width = case.width;
    let std = 10f64.powf(case.real(-1.0, 0.5));
    let (queries, keys) = (case.count(1, 12), case.count(1, 12));
    let (q, k) = (
        case.normal(queries, width, std),
        case.normal(keys, width, std),
    );
    let root = (width as f64).sqrt();
    let lengthscale = Lengthscale::Shared(root.sqrt());
    let similarity = RbfConfig { lengthscale }
        .build()?
        .gram(q.view(), k.view())?;
    let logits = q.dot(&k.t()) / root;

    let loud = |p| Ok::<_, Error>((magnitude(q.view(), p)?, magnitude(k.view(), p)?));
    let (of_q, of_k) = loud(2.0)?;
    let pairs = similarity.indexed_iter().map(|((i, j), s)| {
        let product = s * (of_q[i] + of_k[j]).exp();
        (product / logits[[i, j]].exp() - 1.0).abs()
    });
    let pairs = largest(pairs);

    let softmax = largest_difference(&attended(&q, &k, 2.0)?, &normalised(&logits));
    let mut cancelled = 0.0;
    for p in NORMS {
        let (of_q, of_k) = loud(p)?;
        let logs = similarity.mapv(f64::ln) + of_q.insert_axis(Axis(1)) + of_k;
        let error = largest_difference(&attended(&q, &k, p)?, &normalised(&logs));
        cancelled = larger(cancelled, error);
    }
    Ok([pairs, softmax, cancelled])
}

fn attended(q: &Array2<f64>, k: &Array2<f64>, p: f64) -> Result<Array2<f64>, Error> {
    let settings = kernels::rbf(&Mask::none()).with_key_weight(Magnitude::Norm { p });
    let [q, k] = [q, k].map(|x| head(x.view()));
    let found = weights(&settings, q.view(), k.view());
    Ok(matrix(found.map_err(bochner_attention::Error::from)?))
}
