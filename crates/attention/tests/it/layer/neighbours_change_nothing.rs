//! A sequence is attended to by itself: what else is in the batch changes no bit of its output.

use super::{PASS, Sequences, WIDTH, array, build, two_heads, variants};
use bochner_attention::{Form, Mask, Pass, Variant};
use bochner_nn::Element;
use bochner_numerics::{Seed, standard_normal};
use dfdx::prelude::*;
use ndarray::Axis;
use proptest::prelude::*;

/// Sequences whose numbers differ from one `purpose` to the next, except those of the first example.
fn sequences<E: Element>(batch: usize, time: usize, purpose: u64, scale: f64) -> Sequences<E> {
    let mut streams = [Seed::new(1), Seed::new(2).nth(purpose)].map(|seed| seed.stream("x"));
    let size = batch * time * WIDTH;
    let values = (0..size).map(|i| {
        let first = i < time * WIDTH;
        let x: f64 = standard_normal(&mut streams[usize::from(!first)]);
        E::of(if first { x } else { scale * x })
    });
    Cpu::default().tensor_from_vec(values.collect(), (batch, time, WIDTH))
}

fn check<E: Element>(time: usize, scale: f64) {
    for variant in variants() {
        let linear =
            matches!(&variant, Variant::IkanDirect(direct) if direct.form == Form::LinearTime);
        let training = Pass::Training {
            seed: Seed::new(4),
            // The linear-time form has no dropout.
            dropout: if linear { 0.0 } else { 0.3 },
        };
        let layer = build::<E>(two_heads(variant));
        let training = training.for_card(&layer.config().variant.card());
        for pass in [PASS, training] {
            let first = |batch, purpose| {
                let x = sequences::<E>(batch, time, purpose, scale);
                let mut lengths = vec![time; batch];
                lengths[0] = time - 1;
                let mask = Mask::none().with_key_lengths(lengths);
                let attended = layer.attend_self(x, &mask, pass).unwrap();
                array(&attended.output).index_axis(Axis(0), 0).to_owned()
            };
            let want = first(1, 0);
            assert_eq!(first(3, 1), want, "{layer:?} {pass:?}");
            assert_eq!(first(3, 2), want, "{layer:?} {pass:?}");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(ProptestConfig::default().cases.div_ceil(64)))]

    #[test]
    fn of_a_sequence(time in 2..40_usize, exponent in -60..20_i32) {
        check::<f32>(time, f64::from(exponent).exp2());
        check::<f64>(time, f64::from(exponent).exp2());
    }
}
