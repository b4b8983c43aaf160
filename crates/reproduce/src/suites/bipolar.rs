//! Bipolar attention: the theorems on products of ternary numbers, and what they are for.

use crate::Error;
use crate::study::case::{Case, each, head, matrix};
use crate::study::{Finding, Measure, Study};
use bochner_attention::{Mask, fixed_point::ternary, kernels, weights};
use bochner_report::Scale;
use bochner_report::statistics::{Paired, mean};
use ndarray::{Array2, ArrayView1};

/// The suite.
pub static BIPOLAR: Study = Study {
    name: "bipolar",
    title: "Bipolar attention",
    part: "statement",
    opening,
    parts: &[theorems, retrieval],
};

/// For each probability of a spike to one side, the threshold in standard deviations.
const THRESHOLDS: [(f64, f64); 4] = [
    (0.1, 1.281_551_565_5),
    (0.2, 0.841_621_233_6),
    (0.3, 0.524_400_512_7),
    (0.4, 0.253_347_103_1),
];

/// Standard deviations of queries and keys.
const DEVIATIONS: [f64; 2] = [1.0, 2.0];

/// Groups of draws, whose spread is the standard error.
const GROUPS: usize = 20;

fn opening(_: Scale) -> String {
    "Queries and keys are normal; a ternary number t is the sign of those of modulus θ or more and 0 for the others, \
     a binary one keeps the positive sign only. RMP is the product of the raw numbers, BMP that of the binary and \
     TMP that of the ternary ones; p is the probability of a spike to one side, σ the standard deviation."
        .to_owned()
}

/// Means, variances and correlations of the products of one coordinate, over what theory says.
const QUANTITIES: [&str; 7] = [
    "variance of RMP over σ^4",
    "mean of BMP over p^2",
    "variance of BMP over p^2 (1 - p^2)",
    "variance of TMP over 4 p^2",
    "covariance of RMP and BMP over φ^2 σ^2",
    "covariance of RMP and TMP over 4 φ^2 σ^2",
    "ratio of the correlations with RMP, TMP to BMP, over 2 sqrt(1 - p^2)",
];

fn theorems(scale: Scale) -> Result<Finding, Error> {
    let draws: usize = match scale {
        Scale::Smoke => 400_000,
        _ => 4_000_000,
    };
    // Three parts in a hundred at four million draws.
    let allowed = 60.0 / (draws as f64).sqrt();
    let mut measures = Vec::new();
    for (place, (p, threshold)) in THRESHOLDS.into_iter().enumerate() {
        for (i, deviation) in DEVIATIONS.into_iter().enumerate() {
            let groups = each(1 + 2 * place + i, GROUPS, |case| {
                moments(case, draws / GROUPS, (p, threshold), deviation)
            })?;
            let spread = |what: String, of: &dyn Fn(&Moments) -> f64| {
                Measure::mean(what, &groups.iter().map(of).collect::<Vec<_>>())
            };
            for (n, name) in QUANTITIES.into_iter().enumerate() {
                let what = format!("p = {p}, σ = {deviation}: {name}");
                let measure = spread(what, &|moments| moments.over_theory[n])?;
                measures.push(measure.within(1.0 - allowed, 1.0 + allowed));
            }
            for (n, name) in ["RMP", "TMP"].into_iter().enumerate() {
                let what = format!("p = {p}, σ = {deviation}: mean of {name} in standard errors");
                let of = spread(what, &|moments| moments.zero_means[n])?;
                measures.push(of.in_standard_errors().within(-5.0, 5.0));
            }
            if deviation != 1.0 {
                let what =
                    format!("control, p = {p}, σ = {deviation}: correlation over the printed form");
                let measure = spread(what, &|moments| moments.as_printed)?;
                measures
                    .push(measure.within(deviation * (1.0 - allowed), deviation * (1.0 + allowed)));
            }
        }
    }
    Ok(Finding {
        number: 1,
        title: "theorems 1 and 2",
        statement: "Moments of the products of one coordinate are those of theorem 1, covariances and the ratio of \
                    correlations those of theorem 2, within three parts in a hundred; sums over d coordinates are d \
                    times that. The correlation is 2 φ^2 / p: the paper prints a further 1 / σ, which is wrong for σ \
                    other than 1. Control: at σ = 2 the correlation is twice the printed form.",
        cases: draws,
        measures,
        ..Finding::default()
    })
}

struct Moments {
    over_theory: [f64; QUANTITIES.len()],
    /// The means of RMP and TMP.
    zero_means: [f64; 2],
    /// The correlation of RMP and TMP over 2 φ^2 / (p σ).
    as_printed: f64,
}

fn moments(
    mut case: Case,
    draws: usize,
    (p, threshold): (f64, f64),
    deviation: f64,
) -> Result<Moments, Error> {
    let [q, k] = [(); 2].map(|()| case.normal(1, draws, deviation));
    let [t, u] = [&q, &k].map(|x| ternary(head(x.view()).view(), threshold * deviation));
    let (t, u) = (t?, u?);
    let (mut sums, mut squares, mut products) = ([0.0; 3], [0.0; 3], [0.0; 2]);
    for (((q, k), &t), &u) in q.iter().zip(&k).zip(&t).zip(&u) {
        let binary = f64::from(t.max(0) * u.max(0));
        let all = [q * k, binary, f64::from(t * u)];
        for n in 0..3 {
            sums[n] += all[n];
            squares[n] += all[n] * all[n];
        }
        products[0] += all[0] * all[1];
        products[1] += all[0] * all[2];
    }
    let n = draws as f64;
    let means = sums.map(|sum| sum / n);
    let variance = |i: usize| squares[i] / n - means[i] * means[i];
    let covariance = |i: usize| products[i] / n - means[0] * means[i + 1];
    let correlation = |i: usize| covariance(i) / (variance(0) * variance(i + 1)).sqrt();
    let density = (-0.5 * threshold * threshold).exp() / (2.0 * std::f64::consts::PI).sqrt();
    let expected = (density * deviation).powi(2);
    let root = (1.0 - p * p).sqrt();
    Ok(Moments {
        over_theory: [
            variance(0) / deviation.powi(4),
            means[1] / (p * p),
            variance(1) / (p * p * (1.0 - p * p)),
            variance(2) / (4.0 * p * p),
            covariance(0) / expected,
            covariance(1) / (4.0 * expected),
            correlation(1) / correlation(0) / (2.0 * root),
        ],
        zero_means: [means[0], means[2]],
        as_printed: correlation(1) / (2.0 * density.powi(2) / (p * deviation)),
    })
}

/// Ways to weigh keys, in the order in which they are reported.
const WAYS: [&str; 4] = ["BMP", "TMP", "TMP and shiftmax", "raw scores"];

/// Widths and numbers of keys.
const SIZES: [(usize, usize); 3] = [(32, 16), (64, 64), (128, 64)];

fn retrieval(scale: Scale) -> Result<Finding, Error> {
    let queries = match scale {
        Scale::Smoke => 400,
        _ => 10_000,
    };
    let mut measures = Vec::new();
    let mut part = 20;
    for (width, keys) in SIZES {
        for (p, threshold) in THRESHOLDS {
            part += 1;
            let cases = each(part, queries, |case| found(case, width, keys, threshold))?;
            let named = |what: &str| format!("d = {width}, {keys} keys, p = {p}: {what}");
            for (n, readout) in ["key", "value"].into_iter().enumerate() {
                let of = |way: usize| cases.iter().map(|case| case[n][way]).collect::<Vec<f64>>();
                for (way, name) in WAYS.into_iter().enumerate() {
                    let what = named(&format!("{readout} found by {name}"));
                    measures.push(Measure::shown(what, mean(&of(way))?));
                }
                for (better, worse) in [(1, 0), (2, 1)] {
                    let gain = Paired::between(&of(worse), &of(better))?;
                    let what = format!("{readout}, {} less {}", WAYS[better], WAYS[worse]);
                    let error = gain.error.unwrap_or(f64::NAN);
                    let measure = Measure::shown(named(&what), -gain.mean).with_error(error);
                    measures.push(measure.at_least(0.0));
                }
            }
            let chance = 1.0 / keys as f64;
            let bmp = cases.iter().map(|case| case[0][0]).collect::<Vec<_>>();
            measures.push(
                Measure::shown(
                    named("control: key found by BMP over chance"),
                    mean(&bmp)? / chance,
                )
                .at_least(1.0),
            );
            let raw = cases.iter().map(|case| case[0][3]).collect::<Vec<_>>();
            measures.push(
                Measure::shown(named("control: key found by raw scores"), mean(&raw)?).exactly(1.0),
            );
        }
    }
    Ok(Finding {
        number: 2,
        title: "the largest score is found from ternary numbers",
        statement: "How often the key with the largest raw score has the largest of the scores that are left, ties \
                    in parts; and how often its value, one of as many random directions, is the nearest to the \
                    output of attention, in which scores weigh the values as they are or through shiftmax. TMP with \
                    shiftmax ≥ TMP ≥ BMP for every width, number of keys and p. Controls: raw scores, which find the \
                    key always, and chance.",
        cases: queries,
        measures,
        remarks: vec![
            "Shiftmax keeps the order of scores, so that keys are found as without it; it makes a difference to values."
                .to_owned(),
        ],
        ..Finding::default()
    })
}

/// For key and value, and for each way, whether the right one is found: 1, 0, or a part where it is one of several.
fn found(
    mut case: Case,
    width: usize,
    keys: usize,
    threshold: f64,
) -> Result<[[f64; 4]; 2], Error> {
    let (q, k) = (case.normal(1, width, 1.0), case.normal(keys, width, 1.0));
    let mut values = case.normal(keys, width, 1.0);
    for mut value in values.rows_mut() {
        let norm = value.dot(&value).sqrt();
        value /= norm;
    }
    let [t, u] = [&q, &k].map(|x| ternary(head(x.view()).view(), threshold));
    let [t, u] = [t?, u?].map(|spikes| matrix(spikes.mapv(f64::from)));
    let above = |x: &Array2<f64>| x.mapv(|x| x.max(0.0));
    let settings = kernels::bipolar(threshold, 1.0, &Mask::none());
    let shiftmax = weights(&settings, head(q.view()).view(), head(k.view()).view())
        .map_err(bochner_attention::Error::from)?;
    let raw = q.dot(&k.t());
    let all = [
        above(&t).dot(&above(&u).t()),
        t.dot(&u.t()),
        matrix(shiftmax),
        raw.clone(),
    ];
    let best = largest(raw.row(0)).0;
    let key = all.each_ref().map(|scores| share(scores.row(0), best));
    // Directions of the values are alike in length, so that the nearest has the largest product.
    let value = all.map(|scores| share(scores.dot(&values).dot(&values.t()).row(0), best));
    Ok([key, value])
}

fn largest(row: ArrayView1<f64>) -> (usize, f64) {
    let places = row.iter().copied().enumerate();
    places
        .max_by(|a, b| a.1.total_cmp(&b.1))
        .expect("at least one")
}

/// The part that place `best` has of the largest.
fn share(row: ArrayView1<f64>, best: usize) -> f64 {
    let (_, most) = largest(row);
    match row[best] == most {
        true => 1.0 / row.iter().filter(|x| **x == most).count() as f64,
        false => 0.0,
    }
}
