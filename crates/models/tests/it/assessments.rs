//! Counts and scores of predictions.

use bochner_models::assessment::{Average, ConfusionMatrix, Scores};
use ndarray::arr2;

const CLASSES: [usize; 12] = [0, 0, 0, 1, 1, 2, 2, 2, 2, 4, 4, 3];
const PREDICTED: [usize; 12] = [0, 1, 0, 1, 2, 2, 2, 0, 2, 4, 2, 2];

/// The values are those of `confusion_matrix`, `accuracy_score` and `precision_recall_fscore_support` in scikit-learn;
/// class 3 is never predicted, and class 5 does not occur.
#[test]
fn scores_are_those_of_scikit_learn() {
    let confusion = ConfusionMatrix::new(&CLASSES, &PREDICTED, 6).unwrap();
    let counts = [
        [2, 1, 0, 0, 0, 0],
        [0, 1, 1, 0, 0, 0],
        [1, 0, 3, 0, 0, 0],
        [0, 0, 1, 0, 0, 0],
        [0, 0, 1, 0, 1, 0],
        [0; 6],
    ];
    assert_eq!(confusion.counts(), arr2(&counts));
    let close = |got: Scores, [precision, recall, f1]: [f64; 3]| {
        let pairs = [
            (got.precision, precision),
            (got.recall, recall),
            (got.f1, f1),
        ];
        for (got, want) in pairs {
            assert!((got - want).abs() < 1e-15, "{got} {want}");
        }
    };
    let third = 2.0 / 3.0;
    let each = [
        [third; 3],
        [0.5; 3],
        [0.5, 0.75, 0.6],
        [0.0; 3],
        [1.0, 0.5, third],
        [0.0; 3],
    ];
    for (got, want) in confusion.scores().into_iter().zip(each) {
        close(got, want);
    }
    let accuracy = 0.5833333333333334;
    close(confusion.average(Average::Micro), [accuracy; 3]);
    assert_eq!(confusion.accuracy(), accuracy);
    let of_classes = [0.5333333333333333, 0.4833333333333333, 0.48666666666666664];
    close(confusion.average(Average::Macro), of_classes);
    let weighted = [accuracy, accuracy, 0.5611111111111111];
    close(confusion.average(Average::Weighted), weighted);
}

#[test]
fn the_largest_logit_is_predicted_and_misfits_are_named() {
    let logits = arr2(&[[0.0, 1.0], [2.0, 2.0], [-1.0, -3.0]]);
    let confusion = ConfusionMatrix::of_rows(logits.view(), &[1, 1, 0]).unwrap();
    assert_eq!(confusion.counts(), arr2(&[[1, 0], [1, 1]]));
    let infinite = arr2(&[[0.0, f32::NAN]]);
    for (refused, name) in [
        (ConfusionMatrix::of_rows(infinite.view(), &[0]), "logits"),
        (ConfusionMatrix::new(&[], &[], 2), "classes"),
        (ConfusionMatrix::new(&[0], &[0, 1], 2), "predicted"),
        (ConfusionMatrix::new(&[2], &[0], 2), "classes"),
        (ConfusionMatrix::new(&[0], &[2], 2), "predicted"),
    ] {
        let said = refused.unwrap_err().to_string();
        assert!(said.starts_with(&format!("`{name}`")), "{said}");
    }
}
