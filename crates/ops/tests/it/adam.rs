//! The rule by which Adam and AdamW change a parameter.

use bochner_numerics::relative_error;
use bochner_ops::{AdamConfig, AdamRule, Moments, WeightDecay};

fn gradient(i: usize, step: usize) -> f64 {
    ((1 + i) * (1 + step)) as f64 * if step.is_multiple_of(3) { -0.1 } else { 0.3 }
}

/// A rate that falls, as under a schedule: weight decay follows it too.
fn scheduled(config: &AdamConfig, step: usize) -> f64 {
    config.learning_rate / (1 + step) as f64
}

/// The published algorithm, one number at a time.
fn textbook(config: &AdamConfig, steps: usize, mut x: f64, i: usize) -> f64 {
    let [b1, b2] = config.betas;
    let (mut m, mut v) = (0.0, 0.0);
    for step in 0..steps {
        let (mut g, lr) = (gradient(i, step), scheduled(config, step));
        match config.weight_decay {
            WeightDecay::L2(l) => g += l * x,
            WeightDecay::Decoupled(l) => x -= lr * l * x,
        }
        m = b1 * m + (1.0 - b1) * g;
        v = b2 * v + (1.0 - b2) * g * g;
        let t = step as i32 + 1;
        let (m_hat, v_hat) = (m / (1.0 - b1.powi(t)), v / (1.0 - b2.powi(t)));
        x -= lr * m_hat / (f64::sqrt(v_hat) + config.epsilon);
    }
    x
}

#[test]
fn steps_follow_the_published_algorithm() {
    let l2 = AdamConfig {
        learning_rate: 0.05,
        betas: [0.8, 0.95],
        epsilon: 1e-3,
        weight_decay: WeightDecay::L2(0.3),
        ..AdamConfig::default()
    };
    let decoupled = AdamConfig {
        weight_decay: WeightDecay::Decoupled(0.3),
        ..l2
    };
    let start = [1.0, -2.0, 0.5];
    for config in [AdamConfig::default(), l2, decoupled] {
        let (mut x, mut moments) = (start, Moments::zeros(3));
        for step in 0..10 {
            let gradients = [0, 1, 2].map(|i| gradient(i, step));
            let rule = AdamRule::new(&config, scheduled(&config, step), step as u64 + 1);
            rule.step(&mut x, &mut moments, &gradients);
        }
        let want = [0, 1, 2].map(|i| textbook(&config, 10, start[i], i));
        assert!(relative_error(&x, &want) < 1e-13);
    }
}

#[test]
#[should_panic(expected = "counted from 1")]
fn there_is_no_step_zero() {
    AdamRule::<f64>::new(&AdamConfig::default(), 0.1, 0);
}

#[test]
fn long_parameters_are_stepped_to_their_end() {
    let n = 3 * (1 << 14) + 5;
    let (mut x, mut moments) = (vec![0.0; n], Moments::zeros(n));
    let config = AdamConfig::default();
    AdamRule::new(&config, config.learning_rate, 1).step(&mut x, &mut moments, &vec![0.6; n]);
    assert!(x.iter().all(|x: &f64| (x + 1e-3).abs() < 1e-9));
}
