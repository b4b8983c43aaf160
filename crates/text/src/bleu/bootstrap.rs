//! Intervals and comparisons by resampling lines.

use super::{BleuConfig, BleuStatistics, Pcg64};
use crate::Error;
use bochner_numerics::{ArgumentError, argument};
use serde::{Deserialize, Serialize};
use std::fmt;

/// The settings of the bootstrap; the defaults are sacrebleu's.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(
    default,
    deny_unknown_fields,
    rename_all = "kebab-case",
    remote = "Self"
)]
pub struct BootstrapConfig {
    /// The number of resampled corpora; 1,000 by default.
    pub samples: usize,
    /// The seed of numpy's generator; 12345 by default.
    pub seed: u64,
}

impl Default for BootstrapConfig {
    fn default() -> Self {
        Self {
            samples: 1000,
            seed: 12345,
        }
    }
}

impl BootstrapConfig {
    fn validate(&self) -> Result<(), ArgumentError> {
        argument::at_least_one("samples", self.samples)
    }
}

bochner_numerics::checked_when_read!(BootstrapConfig);

/// A score and how it varies over resampled corpora, displayed as `score [low, high]`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Interval {
    /// The score of the corpus itself.
    pub score: f64,
    /// The mean of the resampled scores.
    pub mean: f64,
    /// The lower end of the 95 % interval.
    pub low: f64,
    /// The upper end of the 95 % interval.
    pub high: f64,
}

impl fmt::Display for Interval {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:.2} [{:.2}, {:.2}]", self.score, self.low, self.high)
    }
}

impl Interval {
    /// Half of the interval's width, which sacrebleu prints behind a plus-minus sign.
    pub fn half_width(&self) -> f64 {
        (self.high - self.low) / 2.0
    }

    fn of(score: f64, resampled: &[f64]) -> Self {
        let mut sorted = resampled.to_vec();
        sorted.sort_unstable_by(f64::total_cmp);
        let cut = sorted.len() / 40;
        Self {
            score,
            mean: resampled.iter().sum::<f64>() / resampled.len() as f64,
            low: sorted[cut],
            high: sorted[sorted.len() - cut - 1],
        }
    }
}

/// A system beside the baseline.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Comparison {
    /// The system's score.
    pub interval: Interval,
    /// The probability of a difference at least as large if the two systems are equally good, as sacrebleu computes it.
    /// Deviations to one side count, so that it is about half of a two-sided p-value. It is never below $1 / (n + 1)$
    /// for n samples.
    ///
    /// The formula gives $1 / (n + 1)$ for a system that is compared with itself: see
    /// [`reported_p_value`](Self::reported_p_value).
    pub p_value: f64,
    /// The system's score less the baseline's.
    pub difference: f64,
}

impl Comparison {
    /// The p-value for a report: 1 where there is no difference at all.
    pub fn reported_p_value(&self) -> f64 {
        if self.difference == 0.0 {
            1.0
        } else {
            self.p_value
        }
    }
}

/// A baseline and the systems that were compared with it.
#[derive(Clone, Debug, PartialEq)]
pub struct PairedBootstrap {
    /// The baseline's score.
    pub baseline: Interval,
    /// The systems, in the order in which they were given.
    pub systems: Vec<Comparison>,
}

/// The 95 % interval of a corpus' BLEU over corpora of lines drawn with repetition.
///
/// # Errors
/// Those of [`paired_bootstrap`].
///
/// # Reference
/// P. Koehn, *Statistical significance tests for machine translation evaluation*, 2004.
pub fn bootstrap(
    lines: &[BleuStatistics],
    bleu: &BleuConfig,
    config: &BootstrapConfig,
) -> Result<Interval, Error> {
    Ok(paired_bootstrap(lines, &[], bleu, config)?.baseline)
}

/// Compares systems with a baseline on the same resampled lines, as sacrebleu's paired bootstrap does.
///
/// $$p = \frac{1 + \\#\lbrace i : D_i - \bar D > D \rbrace}{n + 1}$$
///
/// *where* $D$ is the absolute difference of the two scores, $D_i$ that on the $i$-th of $n$ resampled
/// corpora, and $\bar D$ the mean of all $D_i$. Every system is scored on the same draws.
///
/// ```
/// use bochner_text::{BleuConfig, BootstrapConfig, line_statistics, paired_bootstrap};
///
/// let references: Vec<_> = (0..50).map(|i| format!("line {i} of some fifty lines")).collect();
/// let hypotheses: Vec<_> = references.iter().map(|line| line.replace("some", "the")).collect();
/// let bleu = BleuConfig::default();
/// let of = |system: &[String]| line_statistics(system, &[references.clone()], &bleu);
/// let config = BootstrapConfig { samples: 200, ..Default::default() };
/// let found = paired_bootstrap(&of(&hypotheses)?, &[of(&references)?], &bleu, &config)?;
/// assert_eq!(found.systems[0].interval.low, found.systems[0].interval.score); // 100 in each
/// assert_eq!(found.systems[0].p_value, 1.0 / 201.0);
/// # Ok::<(), bochner_text::Error>(())
/// ```
///
/// # Errors
/// [`Error::Argument`] without lines or samples, for systems of another number of lines than the baseline,
/// or of counts that do not fit the settings of BLEU.
///
/// # Reference
/// P. Koehn, *Statistical significance tests for machine translation evaluation*, 2004; M. Post, *A call for
/// clarity in reporting BLEU scores*, 2018.
pub fn paired_bootstrap(
    baseline: &[BleuStatistics],
    systems: &[Vec<BleuStatistics>],
    bleu: &BleuConfig,
    config: &BootstrapConfig,
) -> Result<PairedBootstrap, Error> {
    config.validate()?;
    argument::not_empty("baseline", &[baseline.len()])?;
    let holds = u32::try_from(baseline.len()).is_ok();
    argument::in_range(
        holds,
        "baseline",
        baseline.len() as f64,
        "fewer than 2^32 lines",
    )?;
    for (system, lines) in systems.iter().enumerate() {
        argument::shape(
            format!("system {system}"),
            &[baseline.len()],
            &[lines.len()],
        )?;
    }
    let all = || std::iter::once(baseline).chain(systems.iter().map(Vec::as_slice));
    let mut scored = Vec::new();
    for lines in all() {
        for line in lines {
            // A line that does not fit is named before any sum hides it.
            line.score(bleu)?;
        }
        scored.push((BleuStatistics::sum(lines).score(bleu)?.score, Vec::new()));
    }
    let mut rng = Pcg64::new(config.seed);
    let mut drawn = vec![0; baseline.len()];
    for _ in 0..config.samples {
        drawn.fill_with(|| rng.below(baseline.len() as u32) as usize);
        for (lines, (_, resampled)) in all().zip(&mut scored) {
            let sum = BleuStatistics::sum(drawn.iter().map(|&at| &lines[at]));
            resampled.push(sum.score(bleu)?.score);
        }
    }
    let (score, resampled) = scored.remove(0);
    let systems = scored
        .iter()
        .map(|(of_system, resampled_of_system)| Comparison {
            interval: Interval::of(*of_system, resampled_of_system),
            p_value: p_value(score - of_system, &resampled, resampled_of_system),
            difference: of_system - score,
        });
    Ok(PairedBootstrap {
        baseline: Interval::of(score, &resampled),
        systems: systems.collect(),
    })
}

fn p_value(difference: f64, of_baseline: &[f64], of_system: &[f64]) -> f64 {
    let differences = of_baseline
        .iter()
        .zip(of_system)
        .map(|(a, b)| (a - b).abs());
    let differences: Vec<f64> = differences.collect();
    let n = differences.len() as f64;
    let mean = differences.iter().sum::<f64>() / n;
    let beyond = differences
        .iter()
        .filter(|&d| d - mean > difference.abs())
        .count();
    (beyond + 1) as f64 / (n + 1.0)
}
