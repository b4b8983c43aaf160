//! Learning rates by the step, and the norm beside the loss.

use super::*;

#[test]
fn the_schedule_and_the_norm_of_the_settings_are_obeyed() {
    let moved = |training: TrainingConfig| {
        let mut trainer = trainer_of(&training, 60, 0.0);
        let before = logits(&trainer);
        let report = trainer.epoch().unwrap();
        let moves = before.iter().zip(logits(&trainer));
        (moves.map(|(x, y)| (x - y).abs()).sum::<f64>(), report)
    };
    let (far, plain) = moved(training());
    let slow = TrainingConfig {
        schedule: Schedule::Warmup { warmup: 1_000_000 },
        ..training()
    };
    assert!(moved(slow).0 < 1e-3 * far);
    // The factor is 1 in the first step and 0 in the second.
    let (warmup, steps) = (0, 1);
    let falling = TrainingConfig {
        schedule: Schedule::Cosine { warmup, steps },
        ..training()
    };
    assert_eq!(moved(falling.clone()).0, far);
    let mut trainer = trainer_of(&falling, 60, 0.0);
    trainer.epoch().unwrap();
    let first = logits(&trainer);
    trainer.epoch().unwrap();
    assert_eq!(logits(&trainer), first);
    let (_, normed) = moved(TrainingConfig {
        l2: 0.1,
        ..training()
    });
    assert!(plain.l2 == 0.0 && normed.l2 > 0.0);
    assert!((normed.loss - plain.loss - normed.l2).abs() < 1e-6 * normed.loss);
}
