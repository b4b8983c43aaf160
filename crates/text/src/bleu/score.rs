//! From counts to a score.

use super::{BleuConfig, BleuStatistics, Orders, Smoothing};
use crate::Error;
use bochner_numerics::argument;
use std::fmt;

/// A BLEU score with its parts, which is displayed in the one line that sacrebleu prints.
///
/// ```
/// use bochner_text::{BleuConfig, corpus_bleu};
///
/// let bleu = corpus_bleu(&["a b c d e"], &[vec!["a b c d e f"]], &BleuConfig::default())?;
/// let line = "BLEU = 81.87 100.0/100.0/100.0/100.0 (BP = 0.819 ratio = 0.833 hyp_len = 5 ref_len = 6)";
/// assert_eq!(bleu.to_string(), line);
/// # Ok::<(), bochner_text::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct BleuScore {
    /// The score, from 0 to 100 up to rounding: equal lines may score 100.00000000000004, as in sacrebleu.
    pub score: f64,
    /// The smoothed precision of each order, in percent.
    pub precisions: Vec<f64>,
    /// The factor for hypotheses that are shorter than the references.
    pub brevity_penalty: f64,
    /// The counts, before smoothing.
    pub statistics: BleuStatistics,
}

impl fmt::Display for BleuScore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let precisions = self.precisions.iter().map(|p| format!("{p:.1}"));
        let precisions = precisions.collect::<Vec<_>>().join("/");
        let [hypothesis, reference] = [
            self.statistics.hypothesis_length,
            self.statistics.reference_length,
        ];
        let ratio = match reference {
            0 => 0.0,
            _ => hypothesis as f64 / reference as f64,
        };
        write!(
            f,
            "BLEU = {:.2} {precisions} (BP = {:.3} ratio = {ratio:.3} hyp_len = {hypothesis} ref_len = {reference})",
            self.score, self.brevity_penalty
        )
    }
}

impl BleuStatistics {
    /// The score of these counts.
    ///
    /// Without any match it is 0 whatever the smoothing. An order without n-grams ends the list of
    /// precisions, and the others are 0.
    ///
    /// # Errors
    /// [`Error::Argument`] for a number of orders other than `config.max_order`, more matches than n-grams,
    /// or a setting out of range.
    pub fn score(&self, config: &BleuConfig) -> Result<BleuScore, Error> {
        config.validate()?;
        argument::shape("matches", &[config.max_order], &[self.matches.len()])?;
        argument::shape("totals", &[config.max_order], &[self.totals.len()])?;
        for (&matches, &total) in self.matches.iter().zip(&self.totals) {
            let allowed = format!("at most the number of n-grams, {total}");
            argument::in_range(matches <= total, "matches", matches as f64, allowed)?;
        }
        let brevity_penalty = self.brevity_penalty();
        let mut precisions = vec![0.0; config.max_order];
        let mut score = 0.0;
        if self.matches.iter().any(|&matches| matches > 0) {
            let orders = self.fill(&mut precisions, config.smoothing);
            let over = match config.orders {
                Orders::All => config.max_order,
                Orders::Effective => orders,
            };
            // The logarithm of a precision of zero is minus infinity, and the score zero.
            let logarithms: f64 = precisions[..over].iter().map(|p| p.ln()).sum();
            score = brevity_penalty * (logarithms / over as f64).exp();
        }
        Ok(BleuScore {
            score,
            precisions,
            brevity_penalty,
            statistics: self.clone(),
        })
    }

    fn brevity_penalty(&self) -> f64 {
        let [hypothesis, reference] = [self.hypothesis_length, self.reference_length];
        match hypothesis {
            _ if hypothesis >= reference => 1.0,
            0 => 0.0,
            _ => (1.0 - reference as f64 / hypothesis as f64).exp(),
        }
    }

    /// Fills in the precisions of the orders that have n-grams, and returns how many these are.
    fn fill(&self, precisions: &mut [f64], smoothing: Smoothing) -> usize {
        let mut halvings = 1.0;
        let counts = self.matches.iter().zip(&self.totals);
        let counts = counts.map(|(&matches, &total)| (matches as f64, total as f64));
        for (at, ((matches, total), precision)) in counts.zip(&mut *precisions).enumerate() {
            let added = match smoothing {
                Smoothing::AddK { value } if at > 0 => value,
                _ => 0.0,
            };
            let (matches, total) = (matches + added, total + added);
            if total == 0.0 {
                return at;
            }
            *precision = match smoothing {
                _ if matches > 0.0 => 100.0 * matches / total,
                Smoothing::Exp => {
                    halvings *= 2.0;
                    100.0 / (halvings * total)
                }
                Smoothing::Floor { value } => 100.0 * value / total,
                Smoothing::AddK { .. } | Smoothing::None => 0.0,
            };
        }
        precisions.len()
    }
}
