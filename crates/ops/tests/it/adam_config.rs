//! The settings of Adam.

use bochner_ops::{AdamConfig, AdamRule, Moments, WeightDecay, check_factor};

#[test]
fn settings_are_checked_in_the_type_of_the_weights() {
    /// Whether weights in single and in double precision can be stepped.
    fn fits(change: impl Fn(&mut AdamConfig)) -> [bool; 2] {
        let mut config = AdamConfig::adamw();
        change(&mut config);
        [config.validate::<f32>(), config.validate::<f64>()].map(|checked| checked.is_ok())
    }
    assert_eq!(fits(|_| ()), [true, true]);
    for (large, in_double) in [(1e300, false), (1e38, true), (2e19, true)] {
        let want = [false, in_double];
        assert_eq!(fits(|c| c.learning_rate = large), want);
        assert_eq!(fits(|c| c.weight_decay = WeightDecay::L2(large)), want);
        assert_eq!(
            fits(|c| c.weight_decay = WeightDecay::Decoupled(large)),
            want
        );
    }
    for epsilon in [1e-50, 1e-40, 1e39] {
        assert_eq!(fits(|c| c.epsilon = epsilon), [false, true]);
    }
    for wrong in [-1.0, f64::NAN, f64::INFINITY] {
        assert_eq!(fits(|c| c.learning_rate = wrong), [false; 2]);
        assert_eq!(
            fits(|c| c.weight_decay = WeightDecay::L2(wrong)),
            [false; 2]
        );
        assert_eq!(fits(|c| c.betas[0] = wrong), [false; 2]);
        assert_eq!(fits(|c| c.epsilon = wrong), [false; 2]);
    }
    assert_eq!(fits(|c| c.epsilon = 0.0), [false; 2]);
    assert_eq!(fits(|c| c.betas[1] = 1.0), [false; 2]);
    let error = check_factor::<f32>("learning_rate", -1.0).unwrap_err();
    assert_eq!(
        error.to_string(),
        "`learning_rate` is -1, but must be at least 0 and at most 1.8e19, the root of the largest `f32`"
    );
}

#[test]
fn the_outermost_settings_leave_weights_finite() {
    for decay in [WeightDecay::L2, WeightDecay::Decoupled] {
        let config = AdamConfig {
            learning_rate: 1.8e19,
            betas: [0.999_999_999; 2],
            epsilon: 1.2e-38,
            weight_decay: decay(1.8e19),
            ..AdamConfig::default()
        };
        assert_eq!(config.validate::<f32>(), Ok(()));
        let (mut x, mut moments) = ([0.0_f32, 0.5], Moments::zeros(2));
        AdamRule::new(&config, config.learning_rate, 1).step(&mut x, &mut moments, &[0.0; 2]);
        assert!(x.iter().all(|x| x.is_finite()), "{x:?}");
    }
}
