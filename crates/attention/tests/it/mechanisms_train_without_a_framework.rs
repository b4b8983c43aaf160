//! Mechanisms are trained by plain gradient steps on their flat parameters, without a tape.

use bochner_attention::{
    IkanDirect, Mask, Mikan, Pass, Variant,
    mechanism::{Cotangents, Streams},
};
use bochner_numerics::Seed;
use bochner_numerics::check::random;

/// The mean squared distance from the output of other parameters, before and after.
#[test]
fn they_come_closer_to_other_points() {
    let direct = IkanDirect {
        points: 8,
        ..IkanDirect::default()
    };
    let mikan = Mikan {
        points: 8,
        prior_std: 0.8,
        beta: 0.0,
        ..Mikan::default()
    };
    for variant in [Variant::from(direct), mikan.into()] {
        let mechanism = variant.mechanism::<f64>();
        let ([q, k, v], mask) = (
            ["q", "k", "v"].map(|name| random((2, 2, 5, 3), name)),
            Mask::none(),
        );
        let inputs = Streams::new([q.view(), k.view(), v.view()], &mask);
        let (seed, dropout) = (Seed::new(2), 0.0);
        let pass = Pass::Training { seed, dropout };
        let start = |seed| {
            let mut stream = Seed::new(seed).stream("initial values");
            mechanism.initial(inputs.size(), &mut stream).unwrap()
        };
        let target = mechanism.forward(&inputs, &start(1), &pass).unwrap().output;
        let (mut parameters, mut losses) = (start(3), Vec::new());
        for _ in 0..60 {
            let forward = mechanism.forward(&inputs, &parameters, &pass).unwrap();
            let off = &forward.output - &target;
            losses.push(off.mapv(|x| x * x).mean().unwrap());
            let along = off.mapv(|x| 2.0 * x);
            let cotangent = Cotangents {
                output: along.view(),
                penalty: forward.penalty.view(),
            };
            let g = mechanism.backward(&inputs, &parameters, &pass, &forward, cotangent);
            let g = g.unwrap().parameters;
            parameters
                .iter_mut()
                .zip(g)
                .for_each(|(p, g)| *p -= 0.02 * g);
        }
        assert!(losses[59] < 0.7 * losses[0], "{variant:?}: {losses:?}");
    }
}
