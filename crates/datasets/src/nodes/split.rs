//! Random splits of nodes with classes.

use crate::{Error, Split, SplitMix64};
use bochner_numerics::Seed;
use std::collections::BTreeMap;

/// The numbers of nodes in the parts of a random split.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SplitSizes {
    /// Training nodes of each class.
    pub per_class: usize,
    /// Validation nodes.
    pub validation: usize,
    /// Test nodes.
    pub test: usize,
}

impl SplitSizes {
    /// The sizes of the standard split: 20 per class, 500, 1,000.
    pub const STANDARD: Self = Self {
        per_class: 20,
        validation: 500,
        test: 1000,
    };

    /// Draws a split. Nodes without a label are in none of its parts.
    ///
    /// Node $i$ has the key of its position in the output of [`SplitMix64`] at the seed's value.
    /// The training nodes of a class are those with the smallest keys. The other nodes are ordered by
    /// their keys; the first of them are for validation and the next for the test.
    ///
    /// ```
    /// use bochner_datasets::SplitSizes;
    /// use bochner_numerics::Seed;
    ///
    /// let labels = [Some(0), Some(1), None, Some(0), Some(1), Some(1)];
    /// let sizes = SplitSizes { per_class: 1, validation: 1, test: 2 };
    /// let split = sizes.draw(&labels, Seed::new(0))?;
    /// assert_eq!((split.train.len(), split.validation.len(), split.test.len()), (2, 1, 2));
    /// # Ok::<(), bochner_datasets::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::TooFewRows`].
    pub fn draw(self, labels: &[Option<usize>], seed: Seed) -> Result<Split, Error> {
        let keys: Vec<u64> = SplitMix64::new(seed.value()).take(labels.len()).collect();
        let mut order: Vec<usize> = (0..labels.len()).collect();
        order.sort_unstable_by_key(|&node| (keys[node], node));
        let mut rest = Vec::new();
        let mut classes: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
        for node in order {
            let Some(label) = labels[node] else { continue };
            let class = classes.entry(label).or_default();
            if class.len() < self.per_class {
                class.push(node);
            } else {
                rest.push(node);
            }
        }
        for (label, class) in &classes {
            let part = || format!("the training part of class {label}");
            enough(part, self.per_class, class.len())?;
        }
        enough(|| "the validation part".into(), self.validation, rest.len())?;
        let test = rest.split_off(self.validation);
        enough(|| "the test part".into(), self.test, test.len())?;
        Ok(Split {
            train: increasing(classes.into_values().flatten()),
            validation: increasing(rest),
            test: increasing(test.into_iter().take(self.test)),
        })
    }
}

fn enough(part: impl Fn() -> String, wanted: usize, available: usize) -> Result<(), Error> {
    if wanted <= available {
        return Ok(());
    }
    Err(Error::TooFewRows {
        part: part(),
        wanted,
        available,
    })
}

fn increasing(nodes: impl IntoIterator<Item = usize>) -> Vec<usize> {
    let mut nodes: Vec<usize> = nodes.into_iter().collect();
    nodes.sort_unstable();
    nodes
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every fifth node has no label, the others one of three.
    fn labels() -> Vec<Option<usize>> {
        (0..300).map(|i| (i % 5 != 4).then_some(i % 3)).collect()
    }

    const SIZES: SplitSizes = SplitSizes {
        per_class: 7,
        validation: 31,
        test: 100,
    };

    #[test]
    fn parts_are_disjoint_labelled_increasing_and_of_their_size() {
        let labels = labels();
        for seed in 0..20 {
            let split = SIZES.draw(&labels, Seed::new(seed)).unwrap();
            let parts = [&split.train, &split.validation, &split.test];
            assert_eq!(parts.map(Vec::len), [21, 31, 100]);
            for class in 0..3 {
                let of_class = |&&i: &&usize| labels[i] == Some(class);
                assert_eq!(split.train.iter().filter(of_class).count(), 7);
            }
            assert!(parts.iter().all(|part| part.is_sorted_by(|a, b| a < b)));
            let all = increasing(parts.into_iter().flatten().copied());
            assert!(all.is_sorted_by(|a, b| a < b));
            assert!(all.iter().all(|&i| labels[i].is_some()));
        }
    }

    #[test]
    fn the_seed_decides() {
        let draw = |seed| SIZES.draw(&labels(), Seed::new(seed)).unwrap();
        assert_eq!(draw(1), draw(1));
        assert_ne!(draw(1), draw(2));
    }

    #[test]
    fn the_rule_is_the_one_described() {
        let sizes = SplitSizes {
            per_class: 2,
            validation: 3,
            test: 4,
        };
        let split = sizes.draw(&labels(), Seed::new(2021)).unwrap();
        // These numbers were computed by another program from the description.
        assert_eq!(split.train, [11, 106, 151, 162, 191, 228]);
        assert_eq!(split.validation, [37, 45, 121]);
        assert_eq!(split.test, [156, 180, 230, 280]);
    }

    #[test]
    fn parts_that_are_too_large_are_named() {
        let refused = |sizes: SplitSizes| {
            let error = sizes.draw(&labels(), Seed::new(0)).unwrap_err();
            let Error::TooFewRows {
                part,
                wanted,
                available,
            } = error
            else {
                panic!("{error}");
            };
            (part, wanted, available)
        };
        let (part, _, available) = refused(SplitSizes {
            per_class: 81,
            ..SIZES
        });
        assert!(part.contains("class 0") && available == 80);
        let (part, _, available) = refused(SplitSizes {
            validation: 220,
            ..SIZES
        });
        assert_eq!((part.as_str(), available), ("the validation part", 219));
        let (part, _, available) = refused(SplitSizes { test: 189, ..SIZES });
        assert_eq!((part.as_str(), available), ("the test part", 188));
    }
}
