//! The seeded rule that deals rows into ten folds.

use std::collections::HashMap;
use std::hash::Hash;

/// Number of folds of every cross-validation.
pub const FOLDS: usize = 10;

/// The seed of the keys that [`deal`] sorts by.
pub const FOLD_SEED: u64 = 2021;

/// Deals rows with the given class labels into ten folds, stratified by class and in random order.
///
/// Row $i$ has the key of its position in the output of [`SplitMix64`] seeded with
/// [`FOLD_SEED`]. The rows of class 0 are ordered by (key, $i$), then those of class 1, and so
/// on; one counter runs over all rows in this order, and the fold of a row is the counter modulo ten.
/// So the sizes of the folds differ by one row at most, and so do the counts of each class.
///
/// ```
/// use bochner_datasets::deal;
///
/// // The airline series: one class, 144 months.
/// assert_eq!(deal(&[0; 144])[..8], [9, 2, 1, 9, 2, 8, 1, 8]);
/// ```
pub fn deal(labels: &[usize]) -> Vec<usize> {
    let keys: Vec<u64> = SplitMix64::new(FOLD_SEED).take(labels.len()).collect();
    let mut order: Vec<usize> = (0..labels.len()).collect();
    order.sort_unstable_by_key(|&i| (labels[i], keys[i], i));
    let mut folds = vec![0; labels.len()];
    for (counter, row) in order.into_iter().enumerate() {
        folds[row] = counter % FOLDS;
    }
    folds
}

/// Puts every row whose text occurred earlier into the fold of the first occurrence.
///
/// Without this rule, a test part would hold texts that the training part has seen.
///
/// ```
/// let mut folds = [3, 1, 4, 1];
/// bochner_datasets::unite_repeats(&mut folds, &["yes", "no", "yes", "maybe"]);
/// assert_eq!(folds, [3, 1, 3, 1]);
/// ```
///
/// # Panics
/// If there are not as many texts as folds.
pub fn unite_repeats<T: Eq + Hash>(folds: &mut [usize], texts: &[T]) {
    assert_eq!(folds.len(), texts.len(), "one text per row");
    let mut first = HashMap::new();
    for (fold, text) in folds.iter_mut().zip(texts) {
        *fold = *first.entry(text).or_insert(*fold);
    }
}

/// The SplitMix64 generator, which stands here because its outputs are part of the fold rule.
///
/// ```
/// let mut keys = bochner_datasets::SplitMix64::new(2021);
/// assert_eq!(keys.next(), Some(0x42b0_ec01_60ca_2407));
/// ```
///
/// # Reference
/// G. L. Steele, D. Lea, C. H. Flood, *Fast Splittable Pseudorandom Number Generators*, 2014.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SplitMix64 {
    state: u64,
}

impl SplitMix64 {
    /// A generator whose state starts at the seed.
    pub const fn new(seed: u64) -> Self {
        Self { state: seed }
    }
}

impl Iterator for SplitMix64 {
    type Item = u64;

    fn next(&mut self) -> Option<u64> {
        self.state = self.state.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let z = self.state;
        let z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        Some(z ^ (z >> 31))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_generator_gives_the_published_outputs() {
        let outputs: Vec<u64> = SplitMix64::new(FOLD_SEED).take(2).collect();
        assert_eq!(outputs, [0x42b0_ec01_60ca_2407, 0xfd8d_c817_96e3_864b]);
    }

    #[test]
    fn the_time_series_have_their_fixed_folds() {
        let co2 = deal(&[0; 527]);
        assert_eq!(co2[..16], [2, 9, 7, 2, 4, 5, 0, 1, 4, 8, 4, 1, 0, 4, 6, 8]);
        let passenger = deal(&[0; 144]);
        assert_eq!(
            passenger[..16],
            [9, 2, 1, 9, 2, 8, 1, 8, 7, 6, 9, 0, 4, 5, 9, 4]
        );
        let sizes =
            |folds: &[usize]| [0, 3, 4, 6, 7, 9].map(|f| folds.iter().filter(|&&g| g == f).count());
        assert_eq!(sizes(&co2), [53, 53, 53, 53, 52, 52]);
        assert_eq!(sizes(&passenger), [15, 15, 14, 14, 14, 14]);
    }

    #[test]
    fn one_counter_runs_over_all_classes() {
        // Three rows of class 0 take folds 0 to 2, so class 1 starts with fold 3.
        let folds = deal(&[1, 0, 1, 0, 0]);
        let mut of_class_1 = [folds[0], folds[2]];
        of_class_1.sort_unstable();
        assert_eq!(of_class_1, [3, 4]);
    }
}
