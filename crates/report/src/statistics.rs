//! Estimates of mean differences, and the p-values of claims about them.

mod description;

pub use description::{Line, line, mean, median, population_deviation, sample_deviation};

use bochner_numerics::{ArgumentError, argument};
use serde::Serialize;
use statrs::distribution::{Binomial, ChiSquared, ContinuousCDF, DiscreteCDF, Normal, StudentsT};
use std::fmt;

/// The level at which the claims of a page are judged together.
pub const LEVEL: f64 = 0.05;

/// The fewest runs that are judged.
pub const FEWEST: usize = 3;

/// A spread below this share of the largest value is rounding.
const ROUNDING: f64 = 1e-12;

/// The difference between two arms on one split with one seed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Difference {
    /// The split.
    pub split: usize,
    /// The difference.
    pub value: f64,
}

/// A variant against a baseline on the same splits and seeds.
///
/// $$ d_s = \mathrm{error}(\text{variant}, s) - \mathrm{error}(\text{baseline}, s), \qquad
/// \mathrm{SE} = \frac{\mathrm{sd}(d)}{\sqrt n}, \qquad
/// \mathrm{SE}' = \mathrm{sd}(d) \sqrt{\frac1n + \frac{n_\text{test}}{n_\text{train}}} $$
///
/// Folds share training rows, so SE is too small. SE' is the correction of Nadeau and Bengio (2003). Seeds on one split
/// have no SE': SE is then the spread over the randomness of training, for that split.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Paired {
    /// The number of runs.
    pub n: usize,
    /// The mean of the differences; negative if the variant's error is smaller.
    pub mean: f64,
    /// SE; absent for a single run.
    pub error: Option<f64>,
    /// SE'; absent for a single run, and for seeds on one split.
    pub corrected_error: Option<f64>,
    /// Runs in which the variant's error is smaller.
    pub wins: usize,
    /// Runs in which the two errors are equal.
    pub ties: usize,
    /// The estimate that is judged; absent with fewer than three independent runs.
    pub estimate: Option<Estimate>,
}

impl Paired {
    /// Summarises differences. `test_share` is $n_\text{test} / n_\text{train}$ of folds, and absent where runs differ in
    /// their seeds alone.
    ///
    /// # Errors
    /// [`ArgumentError`] without differences.
    pub fn new(differences: &[Difference], test_share: Option<f64>) -> Result<Self, ArgumentError> {
        let values: Vec<f64> = differences.iter().map(|d| d.value).collect();
        let deviation = sample_deviation(&values).ok();
        let inverse = 1.0 / values.len() as f64;
        Ok(Self {
            n: values.len(),
            mean: mean(&values)?,
            error: deviation.map(|sd| sd * inverse.sqrt()),
            corrected_error: deviation
                .zip(test_share)
                .map(|(sd, share)| sd * (inverse + share).sqrt()),
            wins: values.iter().filter(|&&d| d < 0.0).count(),
            ties: values.iter().filter(|&&d| d == 0.0).count(),
            estimate: Estimate::new(&independent(differences), test_share),
        })
    }

    /// Compares values that belong together one by one and are otherwise independent.
    ///
    /// # Errors
    /// [`ArgumentError`] if there are none, or not the same number.
    pub fn between(variant: &[f64], baseline: &[f64]) -> Result<Self, ArgumentError> {
        argument::shape("variant", &[baseline.len()], &[variant.len()])?;
        let pairs = variant.iter().zip(baseline);
        let differences = pairs.map(|(v, b)| Difference {
            split: 0,
            value: v - b,
        });
        Self::new(&differences.collect::<Vec<_>>(), None)
    }

    /// The finding by the two-sided 95 % interval of the mean difference.
    pub fn finding(&self) -> Finding {
        match self.estimate.map(|estimate| estimate.interval(LEVEL)) {
            None => Finding::TooFewRuns,
            Some([_, high]) if high < 0.0 => Finding::Better,
            Some([low, _]) if low > 0.0 => Finding::Worse,
            Some(_) => Finding::NoDifferenceSeen,
        }
    }
}

/// The values that count as independent: one for each split, the mean over its seeds, or the values themselves where all
/// are on one split.
pub fn independent(differences: &[Difference]) -> Vec<f64> {
    let mut splits: Vec<usize> = differences.iter().map(|d| d.split).collect();
    splits.sort_unstable();
    splits.dedup();
    if splits.len() < 2 {
        return differences.iter().map(|d| d.value).collect();
    }
    let on = |split: usize| {
        let values = differences.iter().filter(|d| d.split == split);
        let values: Vec<f64> = values.map(|d| d.value).collect();
        values.iter().sum::<f64>() / values.len() as f64
    };
    splits.into_iter().map(on).collect()
}

/// An estimate of a mean with its standard error and the degrees of freedom of its t distribution.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Estimate {
    /// The mean.
    pub mean: f64,
    /// Its standard error: SE', where training rows are shared. Zero if nothing spreads, which proves nothing.
    pub error: f64,
    /// The degrees of freedom.
    pub degrees: f64,
}

impl Estimate {
    /// The mean of independent values; `test_share` corrects for training rows that folds share. `None` for fewer than
    /// three values.
    pub fn new(values: &[f64], test_share: Option<f64>) -> Option<Self> {
        if values.len() < FEWEST {
            return None;
        }
        let inverse = 1.0 / values.len() as f64;
        let largest = values.iter().fold(0.0_f64, |most, v| most.max(v.abs()));
        let error = sample_deviation(values).ok()? * (inverse + test_share.unwrap_or(0.0)).sqrt();
        Some(Self {
            mean: mean(values).ok()?,
            error: if error <= ROUNDING * largest {
                0.0
            } else {
                error
            },
            degrees: (values.len() - 1) as f64,
        })
    }

    /// The mean of several independent estimates, with the degrees of freedom of Welch and Satterthwaite. `None` for an
    /// empty list.
    pub fn average(estimates: &[Self]) -> Option<Self> {
        let n = estimates.len() as f64;
        let variances = || estimates.iter().map(|e| (e.error / n).powi(2));
        let total: f64 = variances().sum();
        let weighted = variances().zip(estimates).map(|(v, e)| v * v / e.degrees);
        let degrees = total * total / weighted.sum::<f64>();
        let means: Vec<f64> = estimates.iter().map(|e| e.mean).collect();
        Some(Self {
            mean: mean(&means).ok()?,
            error: total.sqrt(),
            degrees: if degrees.is_finite() { degrees } else { 1.0 },
        })
    }

    /// The p-value against the null hypothesis that the mean is at most `bound`; 1 where nothing spreads.
    pub fn p_above(&self, bound: f64) -> f64 {
        self.one_sided((self.mean - bound) / self.error)
    }

    /// The p-value against the null hypothesis that the mean is at least `bound`; 1 where nothing spreads.
    pub fn p_below(&self, bound: f64) -> f64 {
        self.one_sided((bound - self.mean) / self.error)
    }

    /// The power of the one-sided test at a level, if the true mean exceeds the bound by `effect`: the chance that its
    /// p-value is at most the level. `None` where nothing spreads.
    ///
    /// The estimated standard error $s$ is taken for the true one. With $\nu$ degrees of freedom, $\delta$ the effect over
    /// $s$ and $c$ the quantile of the level,
    ///
    /// $$ \Pr(T_{\nu, \delta} > c) = \mathbb E \Phi\Bigl( \delta - c \sqrt{\chi^2_\nu / \nu} \Bigr) . $$
    ///
    /// # Numerics
    /// The expectation is a midpoint sum over 500 quantiles of $\chi^2_\nu$: three digits.
    pub fn power(&self, effect: f64, level: f64) -> Option<f64> {
        const QUANTILES: usize = 500;
        if self.error <= 0.0 {
            return None;
        }
        let spread = ChiSquared::new(self.degrees).expect("degrees of freedom are positive");
        let normal = Normal::standard();
        let critical = self.t().inverse_cdf(1.0 - level);
        let found = |place: usize| {
            let quantile = spread.inverse_cdf((place as f64 + 0.5) / QUANTILES as f64);
            normal.cdf(effect / self.error - critical * (quantile / self.degrees).sqrt())
        };
        Some((0..QUANTILES).map(found).sum::<f64>() / QUANTILES as f64)
    }

    fn one_sided(&self, t: f64) -> f64 {
        if self.error > 0.0 {
            self.t().sf(t)
        } else {
            1.0
        }
    }

    /// The two-sided confidence interval at a level of error; everything where nothing spreads.
    pub fn interval(&self, level: f64) -> [f64; 2] {
        let half = match self.error > 0.0 {
            true => self.error * self.t().inverse_cdf(1.0 - level / 2.0),
            false => f64::INFINITY,
        };
        [self.mean - half, self.mean + half]
    }

    fn t(&self) -> StudentsT {
        StudentsT::new(0.0, 1.0, self.degrees).expect("degrees of freedom are positive")
    }
}

/// The p-values of a sign test: against the null hypothesis that a run succeeds with probability at most one half, and
/// that it does so with at least one half.
pub fn sign_test(successes: usize, runs: usize) -> [f64; 2] {
    let coin = Binomial::new(0.5, runs as u64).expect("one half is a probability");
    let above = match successes {
        0 => 1.0,
        n => coin.sf(n as u64 - 1),
    };
    [above, coin.cdf(successes as u64)]
}

/// The p-value against the null hypothesis that fewer than `k` of several alternatives hold (Benjamini and Heller 2008):
/// $(m - k + 1) p_{(k)}$, which is valid however the tests depend on each other.
///
/// # Panics
/// If `k` is zero or exceeds the number of p-values.
pub fn partial_conjunction(p_values: &[f64], k: usize) -> f64 {
    assert!(
        (1..=p_values.len()).contains(&k),
        "{k} of {}",
        p_values.len()
    );
    let mut sorted = p_values.to_vec();
    sorted.sort_by(f64::total_cmp);
    (sorted[k - 1] * (sorted.len() - k + 1) as f64).min(1.0)
}

/// The p-values adjusted by the step-down procedure of Holm (1979), in their order: those of at most a level may be
/// rejected together, and the chance that a true hypothesis is among them is at most that level.
pub fn holm(p_values: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..p_values.len()).collect();
    order.sort_by(|&a, &b| p_values[a].total_cmp(&p_values[b]));
    let (mut adjusted, mut largest) = (vec![0.0; p_values.len()], 0.0_f64);
    for (step, &place) in order.iter().enumerate() {
        largest = largest.max(p_values[place] * (p_values.len() - step) as f64);
        adjusted[place] = largest.min(1.0);
    }
    adjusted
}

/// The outcome of a paired comparison by itself, without correction for other comparisons.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub enum Finding {
    /// The interval lies below zero.
    Better,
    /// The interval lies above zero.
    Worse,
    /// The interval holds zero.
    NoDifferenceSeen,
    /// There are fewer than three independent runs.
    TooFewRuns,
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Better => "better",
            Self::Worse => "worse",
            Self::NoDifferenceSeen => "no difference seen",
            Self::TooFewRuns => "too few runs",
        })
    }
}
