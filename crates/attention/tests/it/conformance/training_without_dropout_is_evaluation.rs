use crate::conformance::common::*;
use bochner_attention::{Mask, Pass, card::Draws};
use bochner_numerics::Seed;
use ndarray::Array4;

fn trained(case: &Case<f64>, example: &Example<f64>, seed: u64, dropout: f64) -> Array4<f64> {
    let seed = Seed::new(seed);
    case.output(example, &Mask::none(), &Pass::Training { seed, dropout })
}

#[test]
fn for_mechanisms_that_draw_nothing() {
    let is_fixed = |case: &Case<f64>| case.card.draws == Draws::Nothing;
    for case in cases().into_iter().filter(is_fixed) {
        let example = case.example(3, 4);
        let pass = Pass::Evaluation { seed: Seed::new(7) };
        let want = case.output(&example, &Mask::none(), &pass);
        assert_eq!(trained(&case, &example, 7, 0.0), want, "{}", case.name);
    }
}
