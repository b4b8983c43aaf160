//! Proposition 3: squared random features go to the RBF kernel.

use super::Effort;
use crate::Error;
use crate::study::case::{Case, each, largest};
use crate::study::rate::{POINTS, Rate, chart};
use crate::study::{Finding, Measure};
use bochner_kernels::{
    Kernel, Lengthscale, Rbf, RbfConfig, SpectralDensity, SpectralPoints, kernel_matrix,
    squared_kernel_matrix, squared_rbf_density,
};
use ndarray::{Array2, s};

/// Pairs of points of each case.
const PAIRS: usize = 16;

/// The probability with which all errors together may exceed their bound by chance.
const CHANCE: f64 = 1e-6;

const STATEMENT: &str = "With w_r ~ N(0, I / (2 l^2)) and f_S(x, y) = mean_r cos(w_r.(x - y)): f_S^2 \
    -> exp(-|x - y|^2 / (2 l^2)), the RBF kernel, almost surely; the error falls like 1 / sqrt R.";

/// Root mean square errors over the pairs of one case, for each number of points.
struct Errors {
    squared: [f64; POINTS.len()],
    plain: [f64; POINTS.len()],
    /// The largest error of f^2 with the most points.
    last: f64,
}

pub(super) fn measure(effort: &Effort) -> Result<Finding, Error> {
    let errors = each(3, effort.cases, |case| errors(case, 1.0))?;
    let squared = Rate::of(&errors.iter().map(|e| e.squared).collect::<Vec<_>>())?;
    let plain = Rate::of(&errors.iter().map(|e| e.plain).collect::<Vec<_>>())?;
    let last = largest(errors.iter().map(|e| e.last));
    let half = |rate: &Rate, what: &str| rate.measure(what).within(-0.55, -0.45);
    let measures = vec![
        Measure::shown("largest error of f_S^2 at R = 4096", last)
            .at_most(bound(effort.cases * PAIRS)),
        half(&squared, "slope of log error of f_S^2 over log R"),
        half(&plain, "slope of log error of f_S over log R"),
    ];
    let series = vec![
        squared.series("f_S^2 against RBF(l)"),
        plain.series("f_S against RBF(sqrt 2 l)"),
        squared.root_law(),
    ];
    Ok(Finding {
        number: 3,
        title: "squared random features go to the RBF kernel",
        statement: STATEMENT,
        cases: effort.cases,
        measures,
        remarks: vec![format!(
            "Root mean square errors over {PAIRS} pairs a case, up to 2.5 lengthscales apart, with \
             l^2 = sqrt d (softmax attention's own) in every other case; one sequence of 4096 draws \
             a case, of which the first R are used. The bound on the largest error is Hoeffding's \
             for all pairs together at a chance of {CHANCE:e}. Standard errors from 16 independent \
             groups of cases."
        )],
        charts: vec![chart("Proposition 3: RBF kernel", series)],
    })
}

/// Hoeffding's inequality for the mean of cosines, and |f^2 - k^2| <= 2 |f - k|.
fn bound(comparisons: usize) -> f64 {
    let points = POINTS[POINTS.len() - 1] as f64;
    2.0 * (2.0 * (2.0 * comparisons as f64 / CHANCE).ln() / points).sqrt()
}

fn rbf(lengthscale: f64) -> Result<Rbf<f64>, Error> {
    let lengthscale = Lengthscale::Shared(lengthscale);
    Ok(RbfConfig { lengthscale }.build()?)
}

/// `stretch` multiplies the frequencies: anything but one is the wrong density.
fn errors(mut case: Case, stretch: f64) -> Result<Errors, Error> {
    let width = case.width;
    let lengthscale = match case.number / 64 % 2 {
        0 => (width as f64).sqrt().sqrt(),
        _ => case.real(0.3, 3.0),
    };
    let kernel = rbf(lengthscale)?;
    let centre = case.normal(1, width, 1.0);
    let points = around(&mut case, &centre, lengthscale);
    let most = POINTS[POINTS.len() - 1];
    let w = squared_rbf_density(&kernel, width)?.sample(most, case.stream())? * stretch;

    let want = kernel.gram(centre.view(), points.view())?;
    let want_plain = rbf(lengthscale * 2f64.sqrt())?.gram(centre.view(), points.view())?;
    let mut errors = Errors {
        squared: [0.0; POINTS.len()],
        plain: [0.0; POINTS.len()],
        last: 0.0,
    };
    for (i, count) in POINTS.into_iter().enumerate() {
        let first = SpectralPoints::Stationary {
            w: w.slice(s![..count, ..]),
        };
        let off = squared_kernel_matrix(centre.view(), points.view(), &first)? - &want;
        errors.squared[i] = root_mean_square(&off);
        errors.last = largest(off.mapv(f64::abs));
        let plain = kernel_matrix(centre.view(), points.view(), &first)? - &want_plain;
        errors.plain[i] = root_mean_square(&plain);
    }
    Ok(errors)
}

/// Points in random directions from a centre, up to two and a half lengthscales away.
fn around(case: &mut Case, centre: &Array2<f64>, lengthscale: f64) -> Array2<f64> {
    let mut points = case.normal(PAIRS, centre.ncols(), 1.0);
    for mut point in points.rows_mut() {
        let distance = case.real(0.0, 2.5) * lengthscale;
        let norm = point.dot(&point).sqrt();
        point *= distance / norm;
    }
    points + centre
}

fn root_mean_square(errors: &Array2<f64>) -> f64 {
    (errors.mapv(|e| e * e).sum() / errors.len() as f64).sqrt()
}
