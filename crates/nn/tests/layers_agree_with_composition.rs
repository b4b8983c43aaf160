//! Each layer has the values and gradients of the same computation in dfdx's own operations.

mod common;

use bochner_nn::Linear;
use bochner_numerics::Seed;
use common::{close, gradients_are_right, random, values};
use dfdx::prelude::*;

macro_rules! linear_agrees {
    ($E:ty, $tolerance:expr) => {
        let mut rng = Seed::new(3).stream("initial values");
        let device = Cpu::default();
        let layer: Linear<usize, Const<5>, $E> =
            Linear::try_new(&device, 7, Const, &mut rng).unwrap();
        let x = random::<$E, _>((2, 150, 7), "x");
        let cotangent = random::<$E, _>((2, 150, Const::<5>), "cotangent");

        let y = layer.apply(x.leaky_trace()).unwrap();
        let w = layer.weight.retaped::<OwnedTape<$E, Cpu>>();
        let want = x.leaky_trace().matmul(w.permute::<_, Axes2<1, 0>>());
        let b = layer.bias.retaped::<OwnedTape<$E, Cpu>>();
        let want = b.broadcast_like(&(2, 150, Const::<5>)) + want;
        close(&values(&y), &values(&want), $tolerance);
        let got = (y * cotangent.clone()).sum().backward();
        let want = (want * cotangent).sum().backward();
        close(&values(&got.get(&x)), &values(&want.get(&x)), $tolerance);
        let (w, b) = (&layer.weight, &layer.bias);
        close(&values(&got.get(w)), &values(&want.get(w)), $tolerance);
        close(&values(&got.get(b)), &values(&want.get(b)), $tolerance);
    };
}

#[test]
fn linear() {
    linear_agrees!(f32, 1e-4);
    linear_agrees!(f64, 1e-12);

    let mut rng = Seed::new(3).stream("initial values");
    let layer: Linear<usize, usize, f64> =
        Linear::try_new(&Cpu::default(), 3, 2, &mut rng).unwrap();
    gradients_are_right(&layer, &random((4, 3), "x"), |layer, x| {
        layer.apply(x).unwrap().square().sum()
    });
}
