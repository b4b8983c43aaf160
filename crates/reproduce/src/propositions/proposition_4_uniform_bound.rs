//! Proposition 4: how many points bound the error everywhere on a set.

use super::Effort;
use crate::Error;
use crate::study::case::{Case, each, largest};
use crate::study::rate::{POINTS, Rate, chart};
use crate::study::{Finding, Measure};
use bochner_kernels::{
    GaussianDensity, Kernel, Lengthscale, Rbf, RbfConfig, SpectralDensity, SpectralPoints,
    UniformBound, UniformBoundConfig, kernel_matrix,
};
use bochner_numerics::{Seed, Stream};
use ndarray::{Array2, ArrayView2, s};

/// Points of the set at which the error is looked for.
const SET: usize = 10;

/// The probability that the bound is asked for.
const PROBABILITY: f64 = 0.5;

const STATEMENT: &str = "On a set of diameter D, with s^2 = E|w1|^2 + E|w2|^2 and k = E f_NS, for \
    every e <= 4 sqrt 2 D s: P[sup |f_NS - k| >= e] <= 2^8 (D s / e)^2 exp(-R e^2 / (8 (d + 1))). \
    Without the condition on e, as printed, it is false.";

/// The outcome of one case.
struct Observed {
    /// The largest error on the set for each number of points: w1 = w2, the RBF kernel.
    rbf: [f64; POINTS.len()],
    /// The largest error with w1 and w2 independent.
    pairs: [f64; POINTS.len()],
    /// The error of which the bound says that it is exceeded with probability 1/2.
    allowed: [f64; POINTS.len()],
    draws: usize,
    exceeded: usize,
}

pub(super) fn measure(effort: &Effort) -> Result<Finding, Error> {
    let cases = each(4, effort.cases, |case| observe(case, effort.draws))?;
    let rbf = Rate::of(&cases.iter().map(|c| c.rbf).collect::<Vec<_>>())?;
    let pairs = Rate::of(&cases.iter().map(|c| c.pairs).collect::<Vec<_>>())?;
    let allowed = Rate::of(&cases.iter().map(|c| c.allowed).collect::<Vec<_>>())?;
    let draws: usize = cases.iter().map(|c| c.draws).sum();
    let exceeded: usize = cases.iter().map(|c| c.exceeded).sum();
    let half = |rate: &Rate, what: &str| rate.measure(what).within(-0.55, -0.45);
    let share =
        format!("share of {draws} draws beyond e, where the bound says at most {PROBABILITY}");
    let mut measures = vec![
        Measure::shown(share, exceeded as f64 / draws as f64).at_most(PROBABILITY),
        half(&rbf, "slope of log sup error over log R, RBF kernel"),
        half(
            &pairs,
            "slope of log sup error over log R, independent pairs",
        ),
    ];
    measures.extend(counterexample(effort.counterexample)?);
    let series = vec![
        rbf.series("RBF kernel"),
        pairs.series("independent pairs"),
        rbf.root_law(),
        allowed.series("the bound, probability 1/2"),
    ];
    Ok(Finding {
        number: 4,
        title: "the error is bounded everywhere on a bounded set",
        statement: STATEMENT,
        cases: effort.cases,
        measures,
        remarks: vec![
            format!(
                "The supremum is looked for at all pairs of {SET} points of the set, so it may be \
                 larger; R and the bound by `UniformBound::points`. For the RBF kernel w1 = w2."
            ),
            "The bound is loose: it allows errors many times those that occur, above 2 (which no \
             error can exceed) for small R. Read it for how R must grow."
                .to_owned(),
            "Counterexample to the printed form, which has no condition on e: d = 1, w1, w2 ~ N(0, \
             1), the set [100, 100 + 1e-6], R = 1, e = 0.25. There 4 sqrt 2 D s = 8e-6."
                .to_owned(),
        ],
        charts: vec![chart("Proposition 4: sup error on a bounded set", series)],
    })
}

fn observe(mut case: Case, draws: usize) -> Result<Observed, Error> {
    let setting = Setting::random(&mut case);
    let most = POINTS[POINTS.len() - 1];
    let (w1, w2) = (
        setting.draw(most, case.stream())?,
        setting.draw(most, case.stream())?,
    );
    let (stationary, mean) = (setting.rbf_gram()?, setting.mean()?);
    let bound = setting.bound()?;
    let mut observed = Observed {
        rbf: [0.0; POINTS.len()],
        pairs: [0.0; POINTS.len()],
        allowed: [0.0; POINTS.len()],
        draws,
        exceeded: 0,
    };
    for (i, count) in POINTS.into_iter().enumerate() {
        let (w1, w2) = (w1.slice(s![..count, ..]), w2.slice(s![..count, ..]));
        observed.rbf[i] = setting.sup(w1, w1, &stationary)?;
        observed.pairs[i] = setting.sup(w1, w2, &mean)?;
        observed.allowed[i] = error_allowed(&bound, count)?;
    }
    let error = case.real(0.3, 0.6).min(bound.largest_error());
    let enough = bound.points(error, PROBABILITY)?;
    for _ in 0..draws {
        let (w1, w2) = (
            setting.draw(enough, case.stream())?,
            setting.draw(enough, case.stream())?,
        );
        observed.exceeded += usize::from(setting.sup(w1.view(), w2.view(), &mean)? >= error);
    }
    Ok(observed)
}

/// The smallest error for which `count` points suffice, by bisection.
fn error_allowed(bound: &UniformBound, count: usize) -> Result<f64, Error> {
    let (mut low, mut high) = (1e-6 * bound.largest_error(), bound.largest_error());
    for _ in 0..60 {
        let middle = (low * high).sqrt();
        if bound.points(middle, PROBABILITY)? > count {
            low = middle;
        } else {
            high = middle;
        }
    }
    Ok(high)
}

/// The printed bound where it fails, and how often it does.
fn counterexample(draws: usize) -> Result<[Measure; 3], Error> {
    let (error, count) = (0.25, 1);
    let setting = Setting {
        std: 1.0,
        diameter: 1e-6,
        set: Array2::from_shape_vec((2, 1), vec![100.0, 100.0 + 1e-6]).expect("two numbers"),
    };
    let mean = setting.mean()?;
    let mut stream = Seed::new(super::SEED).stream("counterexample to proposition 4");
    let mut exceeded = 0;
    for _ in 0..draws {
        let (w1, w2) = (
            setting.draw(count, &mut stream)?,
            setting.draw(count, &mut stream)?,
        );
        exceeded += usize::from(setting.sup(w1.view(), w2.view(), &mean)? >= error);
    }
    let seen = exceeded as f64 / draws as f64;
    let deviation = (seen * (1.0 - seen) / draws as f64).sqrt();
    let ratio = setting.diameter * setting.spread() / error;
    let printed = 256.0 * ratio * ratio * (-error * error * count as f64 / 16.0).exp();
    let refused = setting.bound()?.probability(error, count).is_err();
    let expected = 2.0 / 3.0;
    let wide = 4.0 * (expected * (1.0 - expected) / draws as f64).sqrt();
    let share = format!("counterexample: share of {draws} draws with an error of e or more (2/3)");
    let refused_by_ours = "counterexample: refused by `UniformBound` (1 = yes)";
    Ok([
        Measure::shown("counterexample: what the printed bound allows", printed).at_most(1e-7),
        Measure::shown(share, seen)
            .within(expected - wide, expected + wide)
            .with_error(deviation),
        Measure::shown(refused_by_ours, f64::from(u8::from(refused))).at_least(1.0),
    ])
}

/// Pairs of points from $N(0, s^2 I)$, and a set.
struct Setting {
    std: f64,
    diameter: f64,
    set: Array2<f64>,
}

impl Setting {
    /// The ends of a cube's diagonal, and points inside the cube.
    fn random(case: &mut Case) -> Self {
        let (width, std) = (case.width, case.real(0.5, 2.0));
        let (diameter, centre) = (case.real(0.5, 3.0), case.real(-3.0, 3.0));
        let side = diameter / (width as f64).sqrt();
        let mut set = Array2::zeros((SET, width));
        for ((i, _), x) in set.indexed_iter_mut() {
            let inside = match i {
                0 => -0.5,
                1 => 0.5,
                _ => case.real(-0.5, 0.5),
            };
            *x = centre + side * inside;
        }
        Self { std, diameter, set }
    }

    fn width(&self) -> usize {
        self.set.ncols()
    }

    /// $\sqrt{\mathbb{E} |w_1|^2 + \mathbb{E} |w_2|^2}$.
    fn spread(&self) -> f64 {
        self.std * (2.0 * self.width() as f64).sqrt()
    }

    fn bound(&self) -> Result<UniformBound, Error> {
        let config = UniformBoundConfig {
            width: self.width(),
            diameter: self.diameter,
            spread: self.spread(),
        };
        Ok(config.build()?)
    }

    fn draw(&self, count: usize, stream: &mut Stream) -> Result<Array2<f64>, Error> {
        let density = GaussianDensity::new(vec![self.std; self.width()])?;
        Ok(density.sample(count, stream)?)
    }

    fn rbf(&self) -> Result<Rbf<f64>, Error> {
        let lengthscale = Lengthscale::Shared(self.std.recip());
        Ok(RbfConfig { lengthscale }.build()?)
    }

    /// The mean of f with w1 = w2.
    fn rbf_gram(&self) -> Result<Array2<f64>, Error> {
        Ok(self.rbf()?.gram(self.set.view(), self.set.view())?)
    }

    /// The mean of f of independent pairs: half the RBF kernel, and half the product of its
    /// values against the origin.
    fn mean(&self) -> Result<Array2<f64>, Error> {
        let origin = Array2::zeros((1, self.width()));
        let damped = self.rbf()?.gram(self.set.view(), origin.view())?;
        Ok((self.rbf_gram()? + damped.dot(&damped.t())) / 2.0)
    }

    /// The largest error on the set.
    fn sup(
        &self,
        w1: ArrayView2<f64>,
        w2: ArrayView2<f64>,
        mean: &Array2<f64>,
    ) -> Result<f64, Error> {
        let points = SpectralPoints::Nonstationary { w1, w2 };
        let f = kernel_matrix(self.set.view(), self.set.view(), &points)?;
        Ok(largest((f - mean).mapv(f64::abs)))
    }
}
