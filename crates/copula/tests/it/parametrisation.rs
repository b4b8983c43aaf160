//! Factors from the parameters of a layer, or from the features of an example.

use bochner_copula::heads::{amortised, amortised_vjp, free, free_vjp};
use bochner_numerics::check::{assert_gradient, random};
use ndarray::{Array3, Array4, ArrayView1, ArrayView2, ArrayView3, array};

#[test]
fn two_heads_by_hand() {
    let h = array![[[0.5], [-0.25]]];
    let factor = amortised(h.view(), array![[2.0]].view(), array![0.1].view()).unwrap();
    let want = 1.1_f64.tanh() * (-0.4_f64).tanh();
    assert_eq!(factor, array![[[[1.0, 0.0], [want, 1.0]]]]);
}

#[test]
fn gradients_agree_with_finite_differences() {
    let (h, w, b) = (random((2, 4, 3), "h"), random((3, 3), "w"), random(3, "b"));
    let g: Array4<f64> = random((2, 3, 4, 4), "g");
    let loss = |h: ArrayView3<f64>, w: ArrayView2<f64>, b: ArrayView1<f64>| {
        (&amortised(h, w, b).unwrap() * &g).sum()
    };
    let got = amortised_vjp(h.view(), w.view(), b.view(), g.view()).unwrap();
    assert_gradient(&got.hidden, &h, |h| loss(h, w.view(), b.view()));
    assert_gradient(&got.wc, &w, |w| loss(h.view(), w, b.view()));
    assert_gradient(&got.bc, &b, |b| loss(h.view(), w.view(), b));
}

#[test]
fn the_free_factor_passes_gradients_below_the_diagonal_only() {
    let (x, g): (_, Array3<f64>) = (random((6, 2, 2), "x"), random((6, 2, 2), "g"));
    let got = free_vjp(g.view()).unwrap();
    assert_gradient(&got, &x, |x| (&free(x).unwrap() * &g).sum());
    assert_eq!(got.iter().filter(|&&x| x != 0.0).count(), 6);
}

#[test]
fn shapes_are_checked() {
    let h: Array3<f64> = random((2, 4, 3), "h");
    let short = amortised(h.view(), random((3, 3), "w").view(), random(2, "b").view());
    assert!(
        short
            .unwrap_err()
            .to_string()
            .starts_with("`bc` has length 2, but must have length 3")
    );
    let flat = free(Array3::<f32>::zeros((2, 3, 2)).view());
    assert!(
        flat.unwrap_err()
            .to_string()
            .starts_with("`raw` has shape [2, 3, 2]")
    );
    let none = free(Array3::<f32>::zeros((0, 3, 3)).view());
    assert!(none.unwrap_err().to_string().contains("no elements"));
}
