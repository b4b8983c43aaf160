//! The choice of an epoch, and the end of training.

use bochner_report::suite::Direction;
use bochner_reproduce::trial::History;
use std::num::NonZeroUsize;

fn curves(loss: &[f64], error: &[f64]) -> History {
    History {
        validation_loss: loss.to_vec(),
        validation: error.to_vec(),
        ..History::default()
    }
}

/// The number of epochs after which a run that asks after each of them ends, and the epoch that is chosen then.
fn end(history: &History, patience: usize) -> (Option<usize>, Option<usize>) {
    let patience = NonZeroUsize::new(patience);
    let first = |epochs: usize| {
        curves(
            &history.validation_loss[..epochs],
            &history.validation[..epochs],
        )
    };
    let all = history.validation.len();
    let end = (1..=all).find(|&epochs| first(epochs).stops(patience));
    let whole = history.chosen(patience, Direction::Smaller);
    let at_end = first(end.unwrap_or(all)).chosen(patience, Direction::Smaller);
    assert_eq!(at_end, whole, "what follows the end changes nothing");
    assert_eq!(history.stops(patience), end.is_some());
    (end, whole)
}

#[test]
fn training_goes_on_as_long_as_loss_or_error_is_as_good_as_ever() {
    // Loss and error fall, then the error alone, then the loss alone, then neither for four epochs, then both.
    let falling = curves(
        &[1.0, 0.9, 0.95, 0.8, 0.81, 0.82, 0.83, 0.84, 0.1],
        &[0.5, 0.4, 0.30, 0.4, 0.40, 0.40, 0.40, 0.40, 0.1],
    );
    // A rule that asked for both would end after the fourth epoch with patience 2.
    assert_eq!(end(&falling, 2), (Some(6), Some(1)));
    assert_eq!(end(&falling, 4), (Some(8), Some(1)));
    assert_eq!(end(&falling, 5), (None, Some(8)));
    let equal = curves(&[1.0; 6], &[0.5; 6]);
    assert_eq!(end(&equal, 1), (None, Some(5)));
    let equal_error = curves(&[1.0, 1.1, 1.2, 1.3], &[0.5; 4]);
    assert_eq!(end(&equal_error, 1), (None, Some(0)));
}

#[test]
fn a_loss_that_was_not_measured_is_not_written_down() {
    let history = curves(&[], &[0.5]);
    let text = serde_json::to_string(&history).unwrap();
    assert!(!text.contains("validation_loss"), "{text}");
    assert_eq!(serde_json::from_str::<History>(&text).unwrap(), history);
}
