use crate::conformance::common::*;
use bochner_attention::{Mask, Pass, card::Draws};
use bochner_numerics::Seed;
use bochner_ops::Mode;

#[test]
fn the_same_seed_gives_the_same_result() {
    let mask = Mask::none();
    for case in cases::<f64>() {
        let example = case.example(5, 6);
        for pass in [EVALUATION, TRAINING] {
            let want = case.output(&example, &mask, &pass);
            assert_eq!(case.output(&example, &mask, &pass), want);
            let want = case.gradients(&example, &mask, &pass);
            assert_eq!(case.gradients(&example, &mask, &pass), want);
        }
    }
}

/// Draws of a pass agree with the claim of the card.
pub(crate) fn draws_are_as_claimed(case: &Case<f64>) {
    let (example, mask) = (case.example(5, 6), Mask::none());
    let results = |pass| {
        let output = case.output(&example, &mask, &pass);
        (output, case.gradients(&example, &mask, &pass))
    };
    let trained = |seed, dropout| {
        let seed = Seed::new(seed);
        results(Pass::Training { seed, dropout })
    };
    let evaluated = |seed| {
        let seed = Seed::new(seed);
        results(Pass::Evaluation { seed })
    };
    assert_eq!(
        evaluated(1) != evaluated(2),
        case.is_latent(),
        "{}",
        case.name
    );
    let nothing = trained(1, 0.0) == evaluated(2);
    assert_eq!(nothing, case.card.draws == Draws::Nothing, "{}", case.name);
    // Weights of pairs are dropped.
    let differs = trained(1, 0.3).0 != trained(2, 0.3).0;
    assert!(differs || !case.has_pairs(), "{}", case.name);
}

#[test]
fn another_seed_gives_another_draw() {
    cases().iter().for_each(draws_are_as_claimed);
}

/// A pass of training stays one without dropout on the weights: the model's other layers have rates of their own.
#[test]
fn the_mode_of_other_layers_is_that_of_the_pass() {
    let seed = Seed::new(3);
    for dropout in [0.0, 0.3] {
        let pass = Pass::Training { seed, dropout };
        assert_eq!(Mode::from(pass), Mode::Training(seed));
    }
    assert_eq!(Mode::from(Pass::Evaluation { seed }), Mode::Evaluation);
}

#[test]
fn initial_values_come_from_their_stream() {
    for case in cases::<f64>() {
        let draw = |seed: u64| {
            let mut rng = Seed::new(seed).stream("initial values");
            case.mechanism().initial(size(), &mut rng).unwrap()
        };
        assert_eq!(draw(1), draw(1));
        assert_eq!(
            draw(1) != draw(2),
            !case.parameters.is_empty(),
            "{}",
            case.name
        );
    }
}
