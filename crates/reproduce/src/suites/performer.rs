//! Random features of softmax attention: their error against the theory, over the number of frequencies and by how
//! these are coupled.

use crate::Error;
use crate::study::case::{Case, each, normalised};
use crate::study::rate::{POINTS, Rate, chart};
use crate::study::{Finding, Measure, Study};
use bochner_kernels::{
    Coupling, Lengthscale, Norms, RandomFeatureMap, RbfConfig, coupled_frequencies,
    random_feature_map,
};
use bochner_report::Scale;
use bochner_report::statistics::mean;
use ndarray::{Array2, ArrayView2, s};

/// The suite.
pub static PERFORMER: Study = Study {
    name: "performer",
    title: "Random features of softmax attention",
    part: "statement",
    opening,
    parts: &[theory, rate, attention, signs],
};

const MAPS: [(&str, RandomFeatureMap); 3] = [
    ("positive", RandomFeatureMap::Positive),
    ("hyperbolic", RandomFeatureMap::Hyperbolic),
    ("trigonometric", RandomFeatureMap::Trigonometric),
];

const COUPLINGS: [(&str, Coupling); 3] = [
    ("independent", Coupling::Independent),
    ("orthogonal", Coupling::Orthogonal),
    ("simplex", Coupling::Simplex),
];

/// Maps times couplings, by turns.
const ESTIMATORS: usize = MAPS.len() * COUPLINGS.len();

/// The width of the points, and the number of frequencies where the theory is in closed form.
const WIDTH: usize = 8;

/// Groups of draws, whose spread is the standard error.
const GROUPS: usize = 25;

fn opening(_: Scale) -> String {
    "Nine estimators of exp(x.y): positive (FAVOR+), hyperbolic and trigonometric features, each with independent, \
     orthogonal and simplex frequencies whose norms are those of normal vectors. In double precision."
        .to_owned()
}

fn frequencies(
    case: &mut Case,
    width: usize,
    count: usize,
    how: Coupling,
) -> Result<Array2<f64>, Error> {
    let lengthscale = Lengthscale::Shared(1.0);
    let kernel = RbfConfig { lengthscale }.build()?;
    let drawn = coupled_frequencies(&kernel, width, count, (how, Norms::Chi), case.stream())?;
    Ok(drawn.w)
}

/// The estimates of the exponentials of the products of the rows of `x` with those of `y`.
fn estimate(
    x: ArrayView2<f64>,
    y: ArrayView2<f64>,
    w: ArrayView2<f64>,
    map: RandomFeatureMap,
) -> Result<Array2<f64>, Error> {
    let [x, y] = [x, y].map(|points| random_feature_map(points, w, map));
    Ok(x?.dot(&y?.t()))
}

/// Two points with |x + y| of about 0.6, at which squared errors have moderate tails.
fn two_points() -> [Array2<f64>; 2] {
    let x = [0.3, -0.2, 0.1, 0.4, 0.0, -0.3, 0.2, 0.1];
    let y = [-0.1, 0.3, 0.2, -0.2, 0.3, 0.1, -0.1, 0.2];
    [x, y].map(|point| Array2::from_shape_fn((1, WIDTH), |(_, i)| point[i]))
}

/// The mean squared errors of independent frequencies in closed form, map by map.
fn closed_form(x: &Array2<f64>, y: &Array2<f64>, count: usize) -> [f64; MAPS.len()] {
    let square = |x: Array2<f64>| x.iter().map(|x| x * x).sum::<f64>();
    let (sum, difference) = (square(x + y), square(x - y));
    let (exact, m) = ((x * y).sum().exp(), count as f64);
    let positive = sum.exp() * exact.powi(2) * (1.0 - (-sum).exp()) / m;
    let hyperbolic = 0.5 * (1.0 - (-sum).exp()) * positive;
    let off = (1.0 - (-difference).exp()).powi(2);
    [
        positive,
        hyperbolic,
        sum.exp() / exact.powi(2) * off / (2.0 * m),
    ]
}

/// The gain that orthogonal frequencies have over independent ones at least, for positive features.
fn least_gain(x: &Array2<f64>, y: &Array2<f64>, count: usize) -> f64 {
    let norms = (x * x).sum() + (y * y).sum();
    let (exact, m, d) = ((x * y).sum().exp(), count as f64, WIDTH as f64);
    2.0 * (m - 1.0) / (m * (d + 2.0)) * (exact - (-norms / 2.0).exp()).powi(2)
}

/// Means over the draws of a group, of each estimator: of the estimates and of the squared errors.
type Means = [[f64; 2]; ESTIMATORS];

fn theory(scale: Scale) -> Result<Finding, Error> {
    let draws = match scale {
        Scale::Smoke => 400,
        _ => 16_000,
    };
    let groups = each(1, GROUPS, |case| group(case, draws))?;
    let [x, y] = two_points();
    let exact = (&x * &y).sum().exp();
    let spread = |what: String, of: &dyn Fn(&Means) -> f64| {
        Measure::mean(what, &groups.iter().map(of).collect::<Vec<_>>())
    };
    let mut measures = Vec::new();
    for n in 0..ESTIMATORS {
        let what = format!(
            "{}: mean of the estimates less exp(x.y), in standard errors",
            named(n)
        );
        let off = spread(what, &|means| means[n][0] - exact)?;
        measures.push(off.in_standard_errors().within(-6.0, 6.0));
    }
    let allowed = match scale {
        Scale::Smoke => 0.15,
        _ => 0.05,
    };
    let formulas = closed_form(&x, &y, WIDTH);
    for n in 0..ESTIMATORS {
        let (map, how) = (n / COUPLINGS.len(), n % COUPLINGS.len());
        let what = format!(
            "{}: squared error over the closed form for independent ones",
            named(n)
        );
        let measure = spread(what, &|means| means[n][1] / formulas[map])?;
        measures.push(match how {
            0 => measure.within(1.0 - allowed, 1.0 + allowed),
            _ => measure,
        });
    }
    let gain = least_gain(&x, &y, WIDTH);
    let what = "positive, orthogonal: squared error over its bound".to_owned();
    let bound = spread(what, &|means| means[1][1] / (formulas[0] - gain))?;
    measures.push(bound.at_most(1.0 + allowed));
    for (better, worse) in [(1, 0), (2, 1)] {
        let what = format!(
            "{} below {}: difference in standard errors",
            named(better),
            named(worse)
        );
        let measure = spread(what, &|means| means[worse][1] - means[better][1])?;
        let measure = measure.in_standard_errors();
        measures.push(match (scale, worse) {
            // A difference of a tenth, which takes many draws to see.
            (Scale::Smoke, 0) => measure,
            _ => measure.at_least(2.0),
        });
    }
    // At a point and itself, and at a point and its opposite, one of the two kinds of map is exact.
    let [same, opposite] = [1.0, -1.0].map(|sign| closed_form(&x, &(sign * &x), WIDTH));
    let zero = same[2].max(opposite[0]).max(opposite[1]);
    measures.push(Measure::shown("closed forms where a map is exact", zero).at_most(1e-15));
    Ok(Finding {
        number: 1,
        title: "errors are those of the theory",
        statement: "At two points of width 8 and with 8 frequencies every estimator is unbiased (within 6 standard \
                    errors), independent frequencies have the mean squared errors of the closed forms, orthogonal ones \
                    of positive features at most their bound, and simplex < orthogonal < independent by two standard \
                    errors for positive features. The controls are the other rows: coupled frequencies of other maps \
                    against the closed form that is not theirs, shown and not judged.",
        cases: GROUPS * draws,
        measures,
        ..Finding::default()
    })
}

fn named(estimator: usize) -> String {
    let (map, how) = (estimator / COUPLINGS.len(), estimator % COUPLINGS.len());
    format!("{}, {}", MAPS[map].0, COUPLINGS[how].0)
}

fn group(mut case: Case, draws: usize) -> Result<Means, Error> {
    let [x, y] = two_points();
    let exact = (&x * &y).sum().exp();
    let mut means = [[0.0; 2]; ESTIMATORS];
    for _ in 0..draws {
        for (how, (_, coupling)) in COUPLINGS.into_iter().enumerate() {
            let w = frequencies(&mut case, WIDTH, WIDTH, coupling)?;
            for (map, (_, features)) in MAPS.into_iter().enumerate() {
                let found = estimate(x.view(), y.view(), w.view(), features)?[[0, 0]];
                let of = &mut means[map * COUPLINGS.len() + how];
                of[0] += found / draws as f64;
                of[1] += (found - exact).powi(2) / draws as f64;
            }
        }
    }
    Ok(means)
}

/// Relative errors over the number of frequencies, one array an estimator, the last with frequencies of another
/// density.
type Curves = [[f64; POINTS.len()]; ESTIMATORS + 1];

fn rate(scale: Scale) -> Result<Finding, Error> {
    // Few cases, some of whose errors are large, tell a slope no better.
    let (cases, off) = match scale {
        Scale::Smoke => (16, 0.1),
        _ => (1024, 0.05),
    };
    let curves = each(2, cases, curves)?;
    let mut measures = Vec::new();
    let mut series = Vec::new();
    for n in 0..=ESTIMATORS {
        let rate = Rate::of(&curves.iter().map(|curves| curves[n]).collect::<Vec<_>>())?;
        let slope = |what: String| rate.measure(what);
        if n == ESTIMATORS {
            let what = "control, frequencies 1.5 times too large: slope";
            measures.push(slope(what.to_owned()).at_least(-0.2));
            continue;
        }
        measures.push(slope(format!("{}: slope", named(n))).within(-0.5 - off, -0.5 + off));
        for place in [0, POINTS.len() - 1] {
            let squares: Vec<f64> = curves.iter().map(|c| c[n][place].powi(2)).collect();
            let what = format!("{}: relative error at R = {}", named(n), POINTS[place]);
            measures.push(Measure::shown(what, mean(&squares)?.sqrt()));
        }
        series.push(rate.series(&named(n)));
    }
    Ok(Finding {
        number: 2,
        title: "errors fall like the root of the number of frequencies",
        statement: "Root mean square relative errors over 16 pairs of points of width 16 and norm up to 1 fall from \
                    16 to 4,096 frequencies with a slope of -1/2 ± 0.05 in the logarithms, for all nine estimators. \
                    Control: with frequencies of another density the error stays.",
        cases,
        measures,
        charts: vec![chart("relative error of exp(x.y)", series)],
        ..Finding::default()
    })
}

fn curves(mut case: Case) -> Result<Curves, Error> {
    const PAIRS: usize = 16;
    let points = |case: &mut Case| {
        let mut points = case.normal(PAIRS, 16, 1.0);
        for mut point in points.rows_mut() {
            let norm = point.dot(&point).sqrt();
            point *= case.real(0.0, 1.0) / norm;
        }
        points
    };
    let (x, y) = (points(&mut case), points(&mut case));
    let exact = x.dot(&y.t()).mapv(f64::exp);
    let most = POINTS[POINTS.len() - 1];
    let mut curves = [[0.0; POINTS.len()]; ESTIMATORS + 1];
    for (how, (_, coupling)) in COUPLINGS.into_iter().enumerate() {
        let w = frequencies(&mut case, 16, most, coupling)?;
        let mut errors = |n: usize, map, w: &Array2<f64>| -> Result<(), Error> {
            for (place, count) in POINTS.into_iter().enumerate() {
                let found = estimate(x.view(), y.view(), w.slice(s![..count, ..]), map)?;
                let off = (found / &exact - 1.0).diag().mapv(|e| e * e);
                curves[n][place] = (off.sum() / PAIRS as f64).sqrt();
            }
            Ok(())
        };
        for (map, (_, features)) in MAPS.into_iter().enumerate() {
            errors(map * COUPLINGS.len() + how, features, &w)?;
        }
        if how == 0 {
            errors(ESTIMATORS, RandomFeatureMap::Positive, &(1.5 * &w))?;
        }
    }
    Ok(curves)
}

/// Frequencies with which whole rows of attention are estimated.
const MANY: [usize; 3] = [64, 256, 1024];

fn attention(scale: Scale) -> Result<Finding, Error> {
    let cases = match scale {
        Scale::Smoke => 8,
        _ => 256,
    };
    let mut measures = Vec::new();
    // Normal queries and keys, as a layer norm gives them, and ones of half the size.
    for (setting, (width, size)) in [(16, 0.5), (16, 1.0), (64, 0.5), (64, 1.0)]
        .into_iter()
        .enumerate()
    {
        let errors = each(3 + setting, cases, |case| outputs(case, width, size))?;
        let at =
            |n: usize, place: usize| mean(&errors.iter().map(|e| e[n][place]).collect::<Vec<_>>());
        for (n, (name, _)) in MAPS.into_iter().enumerate() {
            for (place, count) in MANY.into_iter().enumerate() {
                let what = format!("d = {width}, deviation {size}, {name}, R = {count}: error");
                let error = Measure::shown(what, at(n, place)?);
                measures.push(match (n, place, size) {
                    // Signed features may have a normaliser of about zero, and an error of any size.
                    (0 | 1, 1.., 0.5) => error.at_most(at(n, place - 1)?),
                    _ => error,
                });
            }
        }
        let uniform = at(MAPS.len(), 0)?;
        let what = format!("control, d = {width}, deviation {size}, uniform attention: error");
        let measure = Measure::shown(what, uniform);
        measures.push(match (scale, size) {
            (Scale::Smoke, 1.0) => measure,
            _ => measure.at_least(at(0, MANY.len() - 1)?),
        });
    }
    Ok(Finding {
        number: 3,
        title: "what is left of it in attention",
        statement: "Relative errors of the outputs of one head over 64 tokens with orthogonal frequencies, queries \
                    and keys normal, each divided by the fourth root of the width. For queries and keys of deviation \
                    0.5 more frequencies make a smaller error with positive and hyperbolic features; what size the \
                    errors have at deviation 1 is reported. Control: attention that weighs all keys alike is worse \
                    than positive features with 1,024 frequencies.",
        cases,
        measures,
        ..Finding::default()
    })
}

/// Relative errors of outputs, map by map over the numbers of frequencies, and at last of uniform weights.
fn outputs(
    mut case: Case,
    width: usize,
    size: f64,
) -> Result<[[f64; MANY.len()]; MAPS.len() + 1], Error> {
    const TOKENS: usize = 64;
    let scaled = size / (width as f64).sqrt().sqrt();
    let [q, k, v] = [scaled, scaled, 1.0].map(|std| case.normal(TOKENS, width, std));
    let exact = normalised(&q.dot(&k.t())).dot(&v);
    let error = |weights: Array2<f64>| {
        let sums = weights
            .sum_axis(ndarray::Axis(1))
            .insert_axis(ndarray::Axis(1));
        let off = (weights / sums).dot(&v) - &exact;
        ((&off * &off).sum() / (&exact * &exact).sum()).sqrt()
    };
    let mut errors = [[0.0; MANY.len()]; MAPS.len() + 1];
    for (place, count) in MANY.into_iter().enumerate() {
        let w = frequencies(&mut case, width, count, Coupling::Orthogonal)?;
        for (n, (_, map)) in MAPS.into_iter().enumerate() {
            errors[n][place] = error(estimate(q.view(), k.view(), w.view(), map)?);
        }
    }
    errors[MAPS.len()] = [error(Array2::ones((TOKENS, TOKENS))); MANY.len()];
    Ok(errors)
}

fn signs(_: Scale) -> Result<Finding, Error> {
    const CASES: usize = 100;
    let negative = each(7, CASES, |mut case| {
        let [q, k] = [(); 2].map(|()| case.normal(64, 16, 1.0));
        let w = frequencies(&mut case, 16, 16, Coupling::Orthogonal)?;
        let mut shares = [0.0; MAPS.len()];
        for (share, (_, map)) in shares.iter_mut().zip(MAPS) {
            let sums = estimate(q.view(), k.view(), w.view(), map)?.sum_axis(ndarray::Axis(1));
            *share = sums.iter().filter(|sum| **sum <= 0.0).count() as f64 / 64.0;
        }
        Ok(shares)
    })?;
    let share = |n: usize| mean(&negative.iter().map(|shares| shares[n]).collect::<Vec<_>>());
    Ok(Finding {
        number: 4,
        title: "only signed features lose their normaliser",
        statement: "Of the rows of attention over 64 normal keys of width 16 with 16 frequencies, none has a \
                    normaliser that is not above zero with positive and hyperbolic features, and some have with \
                    trigonometric ones.",
        cases: CASES,
        measures: vec![
            Measure::shown("positive: share of rows", share(0)?).at_most(0.0),
            Measure::shown("hyperbolic: share of rows", share(1)?).at_most(0.0),
            Measure::shown("trigonometric: share of rows", share(2)?).at_least(0.01),
        ],
        ..Finding::default()
    })
}
