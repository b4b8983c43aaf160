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

#[cfg(test)]
mod tests {
    use super::*;
    use bochner_numerics::{Seed, relative_error, standard_normal};

    fn close(got: f64, want: f64) {
        assert!(relative_error(&[got], &[want]) < 1e-10, "{got} != {want}");
    }

    fn on_splits(values: &[f64]) -> Vec<Difference> {
        let values = values.iter().copied().enumerate();
        values
            .map(|(split, value)| Difference { split, value })
            .collect()
    }

    #[test]
    fn a_comparison_worked_out_by_hand() {
        // d = -3, -1, 1, -1: mean -1, squares 4 + 0 + 4 + 0 = 8, sd = sqrt(8 / 3).
        let paired = Paired::new(&on_splits(&[-3.0, -1.0, 1.0, -1.0]), Some(0.125)).unwrap();
        let sd = (8.0_f64 / 3.0).sqrt();
        assert_eq!((paired.n, paired.wins, paired.ties), (4, 3, 0));
        close(paired.mean, -1.0);
        close(paired.error.unwrap(), sd / 2.0);
        close(paired.corrected_error.unwrap(), sd * 0.375_f64.sqrt());
        let estimate = paired.estimate.unwrap();
        close(estimate.error, sd * 0.375_f64.sqrt());
        assert_eq!(estimate.degrees, 3.0);
        assert_eq!(paired.finding(), Finding::NoDifferenceSeen);
        assert!(Paired::new(&[], None).is_err());
    }

    #[test]
    fn intervals_and_p_values_are_those_of_the_t_distribution() {
        // Mean 7 / 3 and variance 7 / 3, so that t is the root of 7. With two degrees of freedom the two-sided p-value is
        // 1 - t / sqrt(2 + t^2) = 0.118083, and the quantile of 0.975 is 4.302653.
        let estimate = Estimate::new(&[1.0, 2.0, 4.0], None).unwrap();
        close(2.0 * estimate.p_above(0.0), 1.0 - 7_f64.sqrt() / 3.0);
        close(estimate.p_above(0.0) + estimate.p_below(0.0), 1.0);
        let [low, high] = estimate.interval(0.05);
        assert!((low + 1.461_249).abs() < 1e-3 && (high - 6.127_916).abs() < 1e-3);
        // Welch and Satterthwaite, by hand.
        let other = Estimate::new(&[0.0, -1.0, -1.0, -2.0], None).unwrap();
        let both = Estimate::average(&[estimate, other]).unwrap();
        let variances = [7.0 / 3.0 / 3.0, 2.0 / 3.0 / 4.0_f64];
        let degrees = (variances[0] + variances[1]).powi(2)
            / (variances[0].powi(2) / 2.0 + variances[1].powi(2) / 3.0);
        close(both.degrees, degrees);
        close(both.mean, (7.0 / 3.0 - 1.0) / 2.0);
        close(both.error, (variances[0] + variances[1]).sqrt() / 2.0);
    }

    #[test]
    fn two_runs_and_runs_that_do_not_spread_prove_nothing() {
        let two = Paired::new(&on_splits(&[-2.0, -2.1]), None).unwrap();
        assert_eq!(two.finding(), Finding::TooFewRuns);
        let equal = Paired::new(&on_splits(&[-0.3; 10]), None).unwrap();
        assert_eq!(equal.finding(), Finding::NoDifferenceSeen);
        assert_eq!(equal.estimate.unwrap().p_below(0.0), 1.0);
    }

    #[test]
    fn seeds_on_one_split_count_and_seeds_on_several_are_averaged() {
        let of = |runs: &[(usize, f64)]| {
            let runs = runs
                .iter()
                .map(|&(split, value)| Difference { split, value });
            independent(&runs.collect::<Vec<_>>())
        };
        assert_eq!(of(&[(0, 1.0), (0, 3.0), (0, 8.0)]), [1.0, 3.0, 8.0]);
        assert_eq!(of(&[(8, 1.0), (0, 5.0), (8, 3.0)]), [5.0, 2.0]);
    }

    #[test]
    fn p_values_are_combined_and_adjusted_as_by_hand() {
        close(partial_conjunction(&[0.3, 0.01, 0.02], 2), 0.04);
        close(partial_conjunction(&[0.3, 0.01, 0.02], 3), 0.3);
        close(partial_conjunction(&[0.9, 0.8], 1), 1.0);
        // 3 * 0.01, then 2 * 0.02, then 1 * 0.03, never less than the one before.
        let adjusted = holm(&[0.03, 0.01, 0.02]);
        for (got, want) in adjusted.into_iter().zip([0.04, 0.03, 0.04]) {
            close(got, want);
        }
        let [above, below] = sign_test(10, 10);
        close(above, 2f64.powi(-10));
        close(below, 1.0);
        close(sign_test(0, 3)[1], 0.125);
    }

    #[test]
    fn power_is_the_share_of_samples_in_which_an_effect_is_found() {
        const TIMES: usize = 20_000;
        for (n, effect) in [(3, 1.5), (10, 0.0), (10, 0.8), (20, 0.3)] {
            let mut stream = Seed::new(n as u64).stream("differences");
            let found = (0..TIMES).filter(|_| {
                let value = |_| effect + standard_normal::<f64>(&mut stream);
                let values: Vec<f64> = (0..n).map(value).collect();
                Estimate::new(&values, None).unwrap().p_above(0.0) <= LEVEL / 2.0
            });
            let share = found.count() as f64 / TIMES as f64;
            let exact = Estimate {
                mean: 7.0,
                error: 1.0 / (n as f64).sqrt(),
                degrees: (n - 1) as f64,
            };
            let power = exact.power(effect, LEVEL / 2.0).unwrap();
            // Four standard errors of a share of one half.
            assert!((power - share).abs() < 0.015, "{power} {share} at {n} runs");
        }
        let flat = Estimate {
            mean: 1.0,
            error: 0.0,
            degrees: 9.0,
        };
        assert_eq!(flat.power(1.0, LEVEL), None);
    }

    /// The share of null data sets in which a claim or its opposite is found.
    fn alarms(n: usize, correlation: f64, test_share: Option<f64>) -> f64 {
        const TIMES: usize = 20_000;
        let mut stream = Seed::new(n as u64).stream("null differences");
        let mut normal = || standard_normal::<f64>(&mut stream);
        let mut found = 0;
        for _ in 0..TIMES {
            let common = correlation.sqrt() * normal();
            let own = (1.0 - correlation).sqrt();
            let values: Vec<f64> = (0..n).map(|_| common + own * normal()).collect();
            let paired = Paired::new(&on_splits(&values), test_share).unwrap();
            found += usize::from(paired.finding() != Finding::NoDifferenceSeen);
        }
        found as f64 / TIMES as f64
    }

    #[test]
    fn false_alarms_are_as_rare_as_the_level_says() {
        // Three standard errors of a share of 0.05 among 20,000.
        let most = LEVEL + 3.0 * (0.05 * 0.95 / 20_000_f64).sqrt();
        for n in [3, 5, 10] {
            let rate = alarms(n, 0.0, None);
            assert!(rate <= most, "{rate} for {n} runs");
        }
        // Ten folds, one of which is tested and eight of which train: differences correlated by 1 / 9.
        let rate = alarms(10, 1.0 / 9.0, Some(1.0 / 8.0));
        assert!(rate <= most, "{rate} for ten folds");
        // Without the correction folds raise false alarms.
        assert!(alarms(10, 1.0 / 9.0, None) > 2.0 * LEVEL);
    }
}
