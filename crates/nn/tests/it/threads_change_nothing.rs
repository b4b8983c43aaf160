//! Values and gradients are the same to the bit for any number of threads.

use crate::common::{random, values};
use bochner_nn::{FeedForward, FeedForwardConfig, LayerNorm, Linear, Parameters, alloc_gradients};
use bochner_numerics::Seed;
use bochner_ops::Mode;
use dfdx::prelude::*;

/// Loss, output and all gradients of a model large enough to use threads.
fn pass() -> Vec<f64> {
    let device = Cpu::default();
    let mut rng = Seed::new(1).stream("initial values");
    let config = FeedForwardConfig::default();
    let linear: Linear<usize, usize, f32> = Linear::try_new(&device, 40, 64, &mut rng).unwrap();
    let norm: LayerNorm<usize, f32> = LayerNorm::try_new(&device, 64).unwrap();
    let last: FeedForward<usize, usize, usize, f32> =
        FeedForward::try_new(&device, (64, 128, 3), config, &mut rng).unwrap();

    let x = random::<f32, _>((17_003, 40), "x");
    let mut gradients = alloc_gradients(&linear).unwrap();
    let y = linear.apply(x.trace(gradients)).unwrap();
    let y = norm.apply(y).unwrap();
    let y = last.apply(y, Mode::Training(Seed::new(2))).unwrap();
    let mut found = values(&y);
    gradients = y.square().mean().backward();
    for part in [&linear as &dyn Parameters<f32>, &norm, &last] {
        part.for_each("", &mut |_, p| {
            let gradient = p.gradient(&mut gradients).unwrap();
            found.extend(gradient.iter().map(|&g| f64::from(g)));
        });
    }
    found
}

#[test]
fn one_thread_and_three_agree_to_the_bit() {
    let with = |threads| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads);
        pool.build().unwrap().install(pass)
    };
    assert!(with(1) == with(3));
}
