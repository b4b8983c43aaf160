use crate::conformance::common::*;
use bochner_attention::{Mask, Pass, card::Draws};
use bochner_numerics::Seed;
use ndarray::Array4;

fn trained(case: &Case<f64>, example: &Example<f64>, seed: u64, dropout: f64) -> Array4<f64> {
    let seed = Seed::new(seed);
    case.output(example, &Mask::none(), &Pass::Training { seed, dropout })
}

/// The mean over masks is the output without dropout, within five standard errors.
pub(crate) fn the_mean_is_kept(case: &Case<f64>) {
    if case.card.draws != Draws::Nothing || !case.has_pairs() {
        return;
    }
    let example = case.example(3, 4);
    let want = case.output(&example, &Mask::none(), &EVALUATION);
    let n = 600;
    let mut sum = Array4::<f64>::zeros(want.raw_dim());
    let mut squares = sum.clone();
    for seed in 0..n {
        let deviation = trained(case, &example, seed, 0.4) - &want;
        squares += &deviation.mapv(|x| x * x);
        sum += &deviation;
    }
    let n = n as f64;
    for (sum, square) in sum.iter().zip(&squares) {
        let standard_error = (square / n).sqrt() / n.sqrt();
        assert!(standard_error > 0.0, "{}: nothing is dropped", case.name);
        assert!((sum / n).abs() < 5.0 * standard_error, "{}", case.name);
    }
}

#[test]
fn over_many_seeds() {
    cases().iter().for_each(the_mean_is_kept);
}

#[test]
fn at_rate_zero_training_is_evaluation() {
    let is_fixed = |case: &Case<f64>| case.card.draws == Draws::Nothing;
    for case in cases().into_iter().filter(is_fixed) {
        let example = case.example(3, 4);
        let pass = Pass::Evaluation { seed: Seed::new(7) };
        let want = case.output(&example, &Mask::none(), &pass);
        assert_eq!(trained(&case, &example, 7, 0.0), want, "{}", case.name);
    }
}
