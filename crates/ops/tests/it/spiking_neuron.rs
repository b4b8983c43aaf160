//! Neurons that spike over steps of time.

use bochner_numerics::check::random;
use bochner_ops::{Operation, Spikes, SpikingNeuron, filled};

const STEPS: usize = 5;
const WIDTH: usize = 40;

fn neurons() -> [SpikingNeuron; 4] {
    let ternary = SpikingNeuron {
        threshold: 0.75,
        reset: 0.125,
        decay: 0.5,
        ..Default::default()
    };
    let spikes = Spikes::Binary;
    let (threshold, reset) = (0.0, 0.0);
    let free = SpikingNeuron {
        threshold,
        reset,
        ..ternary
    };
    [
        ternary,
        SpikingNeuron { spikes, ..ternary },
        free,
        SpikingNeuron { spikes, ..free },
    ]
}

fn numbers(purpose: &str) -> Vec<f64> {
    random([STEPS, WIDTH], purpose).into_raw_vec_and_offset().0
}

/// Spikes with a slope: numbers that carry a derivative along with them.
#[derive(Clone, Copy)]
struct Dual(f64, f64);

impl Dual {
    fn plus(self, other: Self) -> Self {
        Self(self.0 + other.0, self.1 + other.1)
    }

    fn times(self, other: Self) -> Self {
        Self(self.0 * other.0, self.0 * other.1 + self.1 * other.0)
    }

    /// The spike and its size.
    fn spike(self, of: &SpikingNeuron) -> [Self; 2] {
        let distance = |u: f64| (u - of.threshold).abs();
        let (fires, near, sign) = match of.spikes {
            Spikes::Binary => (self.0 >= of.threshold, distance(self.0), 1.0),
            Spikes::Ternary => (
                self.0.abs() >= of.threshold && self.0 != 0.0,
                distance(self.0.abs()),
                self.0.signum(),
            ),
        };
        let slope = if near < of.surrogate_width / 2.0 {
            self.1 / of.surrogate_width
        } else {
            0.0
        };
        let size = f64::from(u8::from(fires));
        [Self(sign * size, slope), Self(size, sign * slope)]
    }
}

/// One neuron by its formula, with derivatives along a direction.
fn formula(of: &SpikingNeuron, x: impl Iterator<Item = Dual>) -> Vec<Dual> {
    let mut held = Dual(0.0, 0.0);
    let mut spikes = Vec::new();
    for x in x {
        let u = held.plus(x);
        let [s, size] = u.spike(of);
        let rest = Dual(1.0 - size.0, -size.1);
        let decayed = Dual(of.decay, 0.0).times(u).times(rest);
        held = Dual(of.reset, 0.0).times(s).plus(decayed);
        spikes.push(s);
    }
    spikes
}

#[test]
fn spikes_and_gradients_are_those_of_the_formula() {
    let (x, along, ds) = (numbers("x"), numbers("direction"), numbers("cotangent"));
    for neuron in neurons() {
        let train = neuron.run(&x, STEPS).unwrap();
        let [dx] = filled([x.len()], |[dx]| {
            neuron.vjp(&train.membrane, &ds, STEPS, dx)
        });
        let mut flowed = 0.0;
        for n in 0..WIDTH {
            let at = |step: usize| step * WIDTH + n;
            let duals = (0..STEPS).map(|step| Dual(x[at(step)], along[at(step)]));
            let want = formula(&neuron, duals);
            let (mut forward, mut back) = (0.0, 0.0);
            for (step, want) in want.into_iter().enumerate() {
                assert_eq!(train.spikes[at(step)], want.0, "{neuron:?}");
                forward += want.1 * ds[at(step)];
                back += dx[at(step)] * along[at(step)];
            }
            assert!(
                (forward - back).abs() < 1e-12,
                "{neuron:?}: {forward} {back}"
            );
            flowed += forward.abs();
        }
        assert!(flowed > 1.0, "{neuron:?}");
    }
}

#[test]
fn what_overflows_is_forgotten_without_decay() {
    let neuron = SpikingNeuron {
        spikes: Spikes::Binary,
        reset: -f64::MAX,
        decay: 0.0,
        ..SpikingNeuron::default()
    };
    // A spike, a sum beyond the smallest number, and what follows it.
    let train = neuron.run(&[2.0, -f64::MAX, 0.5], 3).unwrap();
    assert_eq!(train.membrane, [2.0, f64::NEG_INFINITY, 0.5]);
    assert_eq!(train.held, [-f64::MAX, 0.0, 0.0]);
}

#[test]
fn thresholds_are_inclusive_and_zero_has_no_sign() {
    let x = [1.0, -1.0, 0.0, -0.0];
    for neuron in neurons() {
        let neuron = SpikingNeuron {
            threshold: 1.0,
            ..neuron
        };
        let negative = if neuron.spikes == Spikes::Ternary {
            -1.0
        } else {
            0.0
        };
        assert_eq!(neuron.run(&x, 1).unwrap().spikes, [1.0, negative, 0.0, 0.0]);
        let free = SpikingNeuron {
            threshold: 0.0,
            ..neuron
        };
        let of_zero = if neuron.spikes == Spikes::Ternary {
            0.0
        } else {
            1.0
        };
        assert_eq!(free.run(&x[2..], 1).unwrap().spikes, [of_zero; 2]);
    }
    let neuron = SpikingNeuron::default();
    assert!(neuron.run(&[f64::NAN], 1).unwrap().spikes[0].is_nan());
    let huge = neuron.run(&[f64::MAX, f64::MAX, -f64::MAX], 3).unwrap();
    assert_eq!(
        (huge.spikes, huge.held),
        (vec![1.0, 1.0, -1.0], vec![0.0; 3])
    );
}

#[test]
fn what_is_out_of_range_is_named() {
    let good = SpikingNeuron::default();
    let bad = [
        (
            "threshold",
            SpikingNeuron {
                threshold: -1.0,
                ..good
            },
        ),
        (
            "reset",
            SpikingNeuron {
                reset: f64::NAN,
                ..good
            },
        ),
        ("decay", SpikingNeuron { decay: 1.5, ..good }),
        (
            "surrogate_width",
            SpikingNeuron {
                surrogate_width: 0.0,
                ..good
            },
        ),
    ];
    for (name, neuron) in bad {
        assert_eq!(neuron.run(&[0.0], 1).unwrap_err().name(), name);
    }
    let far = SpikingNeuron {
        reset: 1e39,
        ..good
    };
    assert_eq!(far.run(&[0.0_f32], 1).unwrap_err().name(), "reset");
    assert!(far.run(&[0.0_f64], 1).is_ok());
    assert_eq!(good.run(&[0.0_f64], 0).unwrap_err().name(), "steps");
    assert_eq!(good.run(&[0.0; 5], 2).unwrap_err().name(), "x");
    let shapes = Operation::<f64>::output_shapes(&good, &[&[]]);
    assert_eq!(shapes.unwrap_err().name(), "steps");
}
