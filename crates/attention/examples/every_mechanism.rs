//! One query between two clusters of keys, as every mechanism of the registry weighs them.
//!
//! `cargo run --package bochner-attention --no-default-features --example every_mechanism`

#![allow(clippy::print_stdout)]

use bochner_attention::ndarray::{Array4, s};
use bochner_attention::{Error, Mask, Mechanism, Pass, Variant, mechanism::Streams, registry};
use bochner_numerics::Seed;

const HEADS: usize = 2;
const WIDTH: usize = 4;

fn main() -> Result<(), Error> {
    // The query is at 0.4; keys are near and small, or far and large.
    let places = [0.3, 0.5, 1.5, -1.5];
    let q = Array4::from_elem((1, HEADS, 1, WIDTH), 0.4);
    let k = Array4::from_shape_fn((1, HEADS, places.len(), WIDTH), |(_, _, t, _)| places[t]);
    let v = Array4::zeros(k.raw_dim());
    let mask = Mask::none();
    let inputs = Streams::new([q.view(), k.view(), v.view()], &mask);
    let pass = Pass::Evaluation { seed: Seed::new(2) };

    println!("weights of the keys at {places:?} for a query at 0.4, head 0");
    // An attention without weights of pairs, or of a sequence to itself alone, has none to show.
    let shows = |variant: &Variant| {
        let card = variant.card();
        card.weights.is_yes() && card.cross.is_yes()
    };
    for variant in registry().into_iter().filter(shows) {
        let mechanism: &dyn Mechanism<f64> = variant.mechanism();
        let mut rng = Seed::new(1).stream("initial values");
        let parameters = mechanism.initial(inputs.size(), &mut rng)?;
        let weights = mechanism.inspect(&inputs, &parameters, &pass)?.weights;
        let row: Vec<String> = weights
            .slice(s![0, 0, 0, ..])
            .iter()
            .map(|w| format!("{w:.3}"))
            .collect();
        println!(
            "{:<12} {}   {:4} parameters",
            variant.name(),
            row.join("  "),
            parameters.len()
        );
    }
    Ok(())
}
