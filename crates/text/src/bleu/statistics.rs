//! The counts of BLEU in a line.

use super::BleuConfig;
use super::tokenize::tokens;
use serde::{Deserialize, Serialize};
use std::collections::HashMap;
use std::hash::Hash;

/// The counts behind a BLEU score, of a line or summed over lines.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct BleuStatistics {
    /// The number of tokens in the hypothesis.
    pub hypothesis_length: u64,
    /// The number of tokens in the reference closest in length.
    pub reference_length: u64,
    /// The n-grams that occur in a reference, each at most as often as there; one entry for each order.
    pub matches: Vec<u64>,
    /// The n-grams of the hypothesis; one entry for each order.
    pub totals: Vec<u64>,
}

impl BleuStatistics {
    /// The counts of one line, which has at least one reference.
    pub(super) fn of_line<'a>(
        hypothesis: &str,
        references: impl Iterator<Item = &'a str>,
        config: &BleuConfig,
    ) -> Self {
        let hypothesis = tokens(hypothesis, config);
        let references: Vec<_> = references.map(|line| tokens(line, config)).collect();
        let lengths = references.iter().map(Vec::len);
        let closest = lengths.min_by_key(|&length| (length.abs_diff(hypothesis.len()), length));
        let orders = 1..=config.max_order;
        Self {
            hypothesis_length: hypothesis.len() as u64,
            reference_length: closest.unwrap_or(0) as u64,
            matches: orders
                .clone()
                .map(|order| matches(&hypothesis, &references, order))
                .collect(),
            totals: orders
                .map(|order| (hypothesis.len() + 1).saturating_sub(order) as u64)
                .collect(),
        }
    }

    /// The sum over lines, which all have the same number of orders.
    pub fn sum<'a>(lines: impl IntoIterator<Item = &'a Self>) -> Self {
        let mut sum = Self::default();
        for line in lines {
            sum.hypothesis_length += line.hypothesis_length;
            sum.reference_length += line.reference_length;
            add(&mut sum.matches, &line.matches);
            add(&mut sum.totals, &line.totals);
        }
        sum
    }
}

fn add(sum: &mut Vec<u64>, line: &[u64]) {
    sum.resize(sum.len().max(line.len()), 0);
    sum.iter_mut().zip(line).for_each(|(sum, n)| *sum += n);
}

/// The n-grams of one order that occur in a reference, each at most as often as there.
fn matches(hypothesis: &[String], references: &[Vec<String>], order: usize) -> u64 {
    let mut allowed: HashMap<&[String], u64> = HashMap::new();
    for reference in references {
        for (gram, count) in counts(reference, order) {
            let most = allowed.entry(gram).or_default();
            *most = count.max(*most);
        }
    }
    let counted = counts(hypothesis, order).into_iter();
    let clipped = counted.map(|(gram, n)| n.min(allowed.get(gram).copied().unwrap_or(0)));
    clipped.sum()
}

/// Counts each n-gram of an order.
pub(crate) fn counts<T: Eq + Hash>(units: &[T], order: usize) -> HashMap<&[T], u64> {
    let mut counts = HashMap::new();
    for gram in units.windows(order) {
        *counts.entry(gram).or_default() += 1;
    }
    counts
}
