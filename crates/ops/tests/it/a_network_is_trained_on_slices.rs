//! A training is a list of operations over arrays that stay in place.

use bochner_numerics::{Seed, operations};
use bochner_ops::{
    Activation, AdamConfig, AdamRule, FeedForward, Moments, Operation, Rows, Sgd, Slot,
    SquaredError, clip_by_norm,
};
use ndarray::{ArrayView, ArrayViewD, IxDyn};
use rand::Rng;

/// The shape and the elements of an array.
struct Values {
    shape: Vec<usize>,
    values: Vec<f64>,
}

impl Values {
    fn new(shape: &[usize], value: impl FnMut() -> f64) -> Self {
        let values = std::iter::repeat_with(value);
        Self {
            shape: shape.to_vec(),
            values: values.take(shape.iter().product()).collect(),
        }
    }

    fn view(&self) -> ArrayViewD<'_, f64> {
        ArrayView::from_shape(IxDyn(&self.shape), &self.values).unwrap()
    }
}

/// The arrays that are reused from step to step: inputs, parameters, and the places of all that is computed.
struct Network {
    x: Values,
    target: Values,
    parameters: Vec<Values>,
    prediction: Values,
    loss: Values,
    dprediction: Values,
    gradients: Vec<Vec<f64>>,
}

const LAYERS: FeedForward = FeedForward {
    mask: None,
    hidden: Activation::Relu,
    activation: Activation::Identity,
};

impl Network {
    /// Sixty points of the function $|x_1| - x_2 / 2$, and 16 hidden units.
    fn new() -> Self {
        let mut rng = Seed::new(4).stream("data");
        let x = Values::new(&[60, 2], || rng.gen_range(-1.0..1.0));
        let mut rows = x.values.chunks(2);
        let target = Values::new(&[60, 1], || {
            let row = rows.next().unwrap();
            row[0].abs() - 0.5 * row[1]
        });
        let shapes: [&[usize]; 4] = [&[16, 2], &[16], &[1, 16], &[1]];
        let parameters = shapes.map(|shape| Values::new(shape, || rng.gen_range(-0.5..0.5)));
        let none = |shape: &[usize]| Values::new(shape, || 0.0);
        Self {
            x,
            target,
            gradients: shapes.iter().map(|_| Vec::new()).collect(),
            parameters: parameters.into(),
            prediction: none(&[60, 1]),
            loss: none(&[]),
            dprediction: none(&[60, 1]),
        }
    }

    /// The loss; leaves the gradients of the parameters in their places.
    fn pass(&mut self) -> f64 {
        let error = SquaredError::new(Rows::All, 60).unwrap();
        let mut inputs = vec![self.x.view()];
        inputs.extend(self.parameters.iter().map(Values::view));
        for place in [&mut self.prediction, &mut self.loss, &mut self.dprediction] {
            place.values.clear();
        }
        self.gradients.iter_mut().for_each(Vec::clear);

        let prediction = Slot::new(&mut self.prediction.values, 60);
        let saved = LAYERS.forward(&inputs, vec![prediction]).unwrap();
        let pair = [self.prediction.view(), self.target.view()];
        let loss = Slot::new(&mut self.loss.values, 1);
        error.forward(&pair, vec![loss]).unwrap();
        let one = ArrayView::from_shape(IxDyn(&[]), &[1.0]).unwrap();
        let dprediction = Slot::new(&mut self.dprediction.values, 60);
        // The target is a constant.
        let wanted = vec![Some(dprediction), None];
        error.backward(&pair, &(), &[one], wanted).unwrap();
        let slots = self.gradients.iter_mut().zip(&self.parameters);
        let slots = slots.map(|(g, p)| Some(Slot::new(g, p.values.len())));
        let wanted = std::iter::once(None).chain(slots).collect();
        let dy = self.dprediction.view();
        LAYERS.backward(&inputs, &saved, &[dy], wanted).unwrap();
        self.loss.values[0]
    }
}

#[test]
fn adam_learns_a_function() {
    let mut network = Network::new();
    let config = AdamConfig {
        learning_rate: 0.02,
        ..Default::default()
    };
    let sizes = network.parameters.iter().map(|p| p.values.len());
    let mut moments: Vec<Moments<f64>> = sizes.map(Moments::zeros).collect();
    let first = network.pass();
    for step in 1..=600 {
        network.pass();
        let mut gradients: Vec<&mut [f64]> =
            network.gradients.iter_mut().map(|g| &mut g[..]).collect();
        clip_by_norm(&mut gradients, 1.0).unwrap();
        let rule = AdamRule::new(&config, config.learning_rate, step);
        for (i, p) in network.parameters.iter_mut().enumerate() {
            rule.step(&mut p.values, &mut moments[i], &network.gradients[i]);
        }
    }
    let last = network.pass();
    assert!(first > 0.1 && last < 1e-3, "{first} to {last}");
}

#[test]
fn momentum_learns_a_function() {
    let mut network = Network::new();
    let rule = Sgd {
        learning_rate: 0.05,
        momentum: 0.9,
    };
    let sizes = network.parameters.iter().map(|p| p.values.len());
    let mut velocities: Vec<Vec<f64>> = sizes.map(|n| vec![0.0; n]).collect();
    for _ in 0..600 {
        network.pass();
        for (i, p) in network.parameters.iter_mut().enumerate() {
            rule.step(&mut p.values, &mut velocities[i], &network.gradients[i]);
        }
    }
    let last = network.pass();
    assert!(last < 2e-3, "{last}");
}

/// The multiplications of a backward pass through two layers of 60 rows, along these of the five inputs.
fn cost(wanted: [bool; 5]) -> u64 {
    let network = Network::new();
    let mut inputs = vec![network.x.view()];
    inputs.extend(network.parameters.iter().map(Values::view));
    let mut y = Vec::new();
    let saved = LAYERS
        .forward(&inputs, vec![Slot::new(&mut y, 60)])
        .unwrap();
    let mut places = wanted.map(|_| Vec::new());
    let slots = places.iter_mut().zip(&inputs).zip(wanted);
    let slots = slots.map(|((place, x), wanted)| wanted.then(|| Slot::new(place, x.len())));
    let (slots, dy) = (slots.collect(), network.target.view());
    let (result, counted) = operations::count(|| LAYERS.backward(&inputs, &saved, &[dy], slots));
    result.unwrap();
    for (place, wanted) in places.iter().zip(wanted) {
        assert_eq!(place.is_empty(), !wanted);
    }
    counted.multiply_adds
}

#[test]
fn what_nobody_wants_costs_nothing() {
    let [first, second] = [60 * 2 * 16, 60 * 16];
    assert_eq!(cost([false; 5]), 0);
    // Every layer multiplies twice: along its weights, and along what it was given.
    assert_eq!(cost([true; 5]), 2 * first + 2 * second);
    assert_eq!(cost([false, true, true, true, true]), first + 2 * second);
    assert_eq!(cost([false, false, false, true, true]), second);
    assert_eq!(cost([true, false, false, false, false]), first + second);
}
