//! Learning rates that follow the step.

use bochner_ops::Schedule;

#[test]
fn factors_are_those_of_the_formulas() {
    let factors = |schedule: Schedule| [0, 1, 2, 4, 9, 16].map(|step| schedule.factor(step));
    assert_eq!(factors(Schedule::Constant), [1.0; 6]);
    let rising = Schedule::InverseSquareRoot { warmup: 4 };
    assert_eq!(factors(rising), [0.25, 0.25, 0.5, 1.0, 2.0 / 3.0, 0.5]);
    let falling = Schedule::InverseSquareRoot { warmup: 0 };
    let roots = [1.0, 1.0, 0.5_f64.sqrt(), 0.5, (1.0 / 9.0_f64).sqrt(), 0.25];
    assert_eq!(factors(falling), roots);
    let warm = Schedule::Warmup { warmup: 4 };
    assert_eq!(factors(warm), [0.25, 0.25, 0.5, 1.0, 1.0, 1.0]);
    assert_eq!(factors(Schedule::Warmup { warmup: 0 }), [1.0; 6]);
    let halving = Schedule::Halving { every: 4 };
    assert_eq!(factors(halving), [1.0, 1.0, 1.0, 1.0, 0.25, 0.125]);
}

/// The factors are those of `CosineAnnealingLR` with `T_max=7` in PyTorch 2, alone and behind `LinearLR`.
#[test]
fn a_cosine_is_that_of_pytorch_and_ends_at_zero() {
    let falling = [
        1.0,
        0.9504844339512095,
        0.8117449009293668,
        0.6112604669781572,
        0.38873953302184283,
        0.18825509907063326,
        0.04951556604879048,
        0.0,
    ];
    for (warmup, rising) in [(0, &[][..]), (3, &[1.0 / 3.0, 2.0 / 3.0, 1.0])] {
        let steps = 7 + warmup;
        let schedule = Schedule::Cosine { warmup, steps };
        schedule.validate().unwrap();
        let want = rising.iter().chain(&falling).chain(&[0.0; 3]);
        for (want, step) in want.zip(1..) {
            assert!((schedule.factor(step) - want).abs() < 1e-15, "{step}");
        }
    }
}

#[test]
fn a_warm_up_that_does_not_end_is_refused_when_it_is_read() {
    for (warmup, fits) in [(0, true), (9, true), (10, false), (11, false)] {
        let steps = 10;
        let schedule = Schedule::Cosine { warmup, steps };
        assert_eq!(schedule.validate().is_ok(), fits);
        let written = serde_json::to_string(&schedule).unwrap();
        assert_eq!(serde_json::from_str::<Schedule>(&written).is_ok(), fits);
    }
    let unknown = r#"{"cosine": {"warmup": 1, "steps": 9, "floor": 0.1}}"#;
    let error = serde_json::from_str::<Schedule>(unknown).unwrap_err();
    assert!(error.to_string().contains("`floor`"), "{error}");
}
