//! The part of the divergence from the prior that is due to the dependence between the heads.

use crate::testing::factors;
use bochner_copula::half_neg_log_det;
use bochner_copula::heads::{dependence_kl, dependence_kl_vjp};
use bochner_numerics::check::assert_gradient;
use ndarray::{array, s};

#[test]
fn gradients_agree_with_finite_differences() {
    let (lh, g) = (factors(2, 3, 4), array![0.4, -1.7]);
    let got = dependence_kl_vjp(lh.view(), g.view()).unwrap();
    assert_gradient(&got, &lh, |lh| dependence_kl(lh).unwrap().dot(&g));
}

#[test]
fn latent_dimensions_add_up_within_an_example() {
    let all = factors(2, 3, 4);
    let one = |b: usize, l: usize| half_neg_log_det(all.slice(s![b, l..l + 1, .., ..])).unwrap()[0];
    let got = dependence_kl(all.view()).unwrap();
    for b in 0..2 {
        assert!((got[b] - (0..3).map(|l| one(b, l)).sum::<f64>()).abs() < 1e-14);
    }
}

#[test]
fn shapes_are_checked() {
    let x = factors(2, 3, 4);
    let short = dependence_kl_vjp(x.view(), array![1.0].view());
    assert!(
        short
            .unwrap_err()
            .to_string()
            .starts_with("`cotangent` has length 1")
    );
    let none = dependence_kl(x.slice(s![.., 0..0, .., ..]));
    assert!(none.unwrap_err().to_string().contains("no elements"));
}
