//! The fold rule: even sizes, even classes, one fold for equal texts.

use bochner_datasets::{FOLDS, Split, deal, unite_repeats};
use proptest::prelude::*;

fn spread(counts: impl IntoIterator<Item = usize>) -> usize {
    let counts: Vec<usize> = counts.into_iter().collect();
    counts.iter().max().unwrap() - counts.iter().min().unwrap()
}

fn count(folds: &[usize], keep: impl Fn(usize) -> bool) -> [usize; FOLDS] {
    let mut counts = [0; FOLDS];
    for (i, &fold) in folds.iter().enumerate() {
        counts[fold] += usize::from(keep(i));
    }
    counts
}

proptest! {
    #[test]
    fn sizes_and_classes_differ_by_one_at_most(labels in prop::collection::vec(0usize..4, 0..200)) {
        let folds = deal(&labels);
        prop_assert_eq!(folds.len(), labels.len());
        prop_assert!(spread(count(&folds, |_| true)) <= 1);
        for class in 0..4 {
            prop_assert!(spread(count(&folds, |i| labels[i] == class)) <= 1);
        }
    }

    #[test]
    fn the_same_rows_are_dealt_the_same_way(n in 0usize..200) {
        prop_assert_eq!(deal(&vec![0; n]), deal(&vec![7; n]));
    }

    #[test]
    fn equal_texts_share_the_first_one_s_fold(texts in prop::collection::vec(0u8..9, 0..60)) {
        let dealt = deal(&vec![0; texts.len()]);
        let mut folds = dealt.clone();
        unite_repeats(&mut folds, &texts);
        for (i, text) in texts.iter().enumerate() {
            let first = texts.iter().position(|other| other == text).unwrap();
            prop_assert_eq!(folds[i], dealt[first]);
        }
    }

    #[test]
    fn each_row_is_tested_once_and_validated_once(n in 0usize..120) {
        let splits = Split::cross_validation(&deal(&vec![0; n]));
        let (mut tested, mut validated) = (vec![0; n], vec![0; n]);
        for split in &splits {
            split.test.iter().for_each(|&i| tested[i] += 1);
            split.validation.iter().for_each(|&i| validated[i] += 1);
            let mut all = [&split.train[..], &split.validation, &split.test].concat();
            all.sort_unstable();
            prop_assert_eq!(all, (0..n).collect::<Vec<_>>());
        }
        prop_assert!(tested.iter().chain(&validated).all(|&times| times == 1));
    }
}
