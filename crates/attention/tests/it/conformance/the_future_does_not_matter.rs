//! Changing a key changes no earlier row, to the bit. Over many blocks the engine's tests show it.

use crate::conformance::common::*;
use bochner_attention::{Mask, Pass};
use ndarray::{Array4, s};

const LENGTH: usize = 7;

#[test]
fn changing_a_key() {
    let (causal, example) = (
        Mask::none().with_causality(),
        Example::<f64>::new(LENGTH, LENGTH),
    );
    for case in cases().iter().filter(|case| case.card.takes(&causal)) {
        let admitted = |pass: &Pass| case.card.admit_pass(&pass.for_card(&case.card)).is_ok();
        for pass in [EVALUATION, TRAINING].into_iter().filter(admitted) {
            let want = case.output(&example, &causal, &pass);
            for changed in [1, 2, 5, 6] {
                let mut other = example.clone();
                other.k.slice_mut(s![.., .., changed.., ..]).fill(7.5);
                other.v.slice_mut(s![.., .., changed.., ..]).fill(-1e3);
                let got = case.output(&other, &causal, &pass);
                let earlier = |x: &Array4<f64>| x.slice(s![.., .., ..changed, ..]).to_owned();
                assert_eq!(earlier(&got), earlier(&want), "{} {changed}", case.name);
                assert_ne!(got, want);
            }
        }
    }
}
