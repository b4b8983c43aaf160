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

#[test]
fn the_decay_rates_of_the_settings_are_obeyed() {
    let after = |betas| {
        let mut trainer = trainer_of(
            &TrainingConfig {
                betas,
                ..training()
            },
            30,
            0.0,
        );
        trainer.epoch().unwrap();
        logits(&trainer)
    };
    let usual = after(training().betas);
    assert!(usual != after([0.5, 0.999]) && usual != after([0.9, 0.5]));
}

/// Without the gradients of the loss, those of the norm are left; a table of more rows than a piece is cut into some.
#[test]
fn the_gradient_of_the_norm_is_a_share_of_the_parameters() {
    let l2 = 0.1;
    let config = TextClassifierConfig {
        words: 2500,
        ..config(Softmax::default().into(), 0.0)
    };
    let training = TrainingConfig {
        l2,
        clip_norm: Some(1e6),
        ..training()
    };
    let trainer = Trainer::new(&config, &training, task(60), Seed::new(3)).unwrap();
    let mut trainer = trainer.with_gradient_hook(|gradients| {
        gradients.fill(0.0);
        Ok(())
    });
    let squares = common::values(trainer.model());
    let squares: f64 = squares.iter().map(|&x| f64::from(x).powi(2)).sum();
    let report = trainer.epoch().unwrap();
    let norm = l2 * squares.sqrt();
    assert!(
        (report.gradient_norm / norm - 1.0).abs() < 1e-5,
        "{report:?}"
    );
    assert!((report.l2 / (0.5 * l2 * squares) - 1.0).abs() < 1e-9);
}
