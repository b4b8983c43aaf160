use crate::conformance::common::*;
use bochner_attention::{Mask, Pass};
use bochner_numerics::Seed;

#[test]
fn the_same_seed_gives_the_same_result() {
    let example = Example::<f64>::new(5, 6);
    let mask = Mask::none();
    for case in cases::<f64>() {
        for pass in [EVALUATION, TRAINING] {
            let want = case.output(&example, &mask, &pass);
            assert_eq!(case.output(&example, &mask, &pass), want);
            let want = case.gradients(&example, &mask, &pass);
            assert_eq!(case.gradients(&example, &mask, &pass), want);
        }
    }
}

#[test]
fn another_seed_gives_another_draw() {
    let example = Example::<f64>::new(5, 6);
    let mask = Mask::none();
    for case in cases::<f64>() {
        let evaluated = |seed| {
            let seed = Seed::new(seed);
            case.output(&example, &mask, &Pass::Evaluation { seed })
        };
        // Only spectral points are drawn in evaluation.
        assert_eq!(
            evaluated(1) != evaluated(2),
            case.is_latent(),
            "{}",
            case.name
        );
        let trained = |seed| {
            let (seed, dropout) = (Seed::new(seed), 0.3);
            case.output(&example, &mask, &Pass::Training { seed, dropout })
        };
        assert_ne!(trained(1), trained(2), "{}", case.name);
    }
}

#[test]
fn what_is_deterministic_is_the_same_in_training_and_with_any_seed() {
    let example = Example::<f64>::new(5, 6);
    let mask = Mask::none();
    let results = |case: &Case<f64>, pass| {
        let output = case.output(&example, &mask, &pass);
        (output, case.gradients(&example, &mask, &pass))
    };
    for case in cases::<f64>() {
        let (dropout, one, other) = (0.0, Seed::new(1), Seed::new(2));
        let trained = results(&case, Pass::Training { seed: one, dropout });
        let evaluated = results(&case, Pass::Evaluation { seed: other });
        let claimed = case.mechanism().is_deterministic();
        assert_eq!(trained == evaluated, claimed, "{}", case.name);
    }
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
