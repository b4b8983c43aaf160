//! Structural equations of causal attention.

use bochner_interpret::{Error, OrderedSem, sem_from_attention};
use bochner_numerics::check::{largest, random};
use ndarray::{Array1, Array2, Axis, array};

/// Rows of probabilities of a causal softmax.
fn softmax(tokens: usize) -> Array2<f64> {
    let logits: Array2<f64> = random((tokens, tokens), "logits");
    let mut a = Array2::from_shape_fn((tokens, tokens), |(i, j)| match i >= j {
        true => logits[[i, j]].exp(),
        false => 0.0,
    });
    let sums = a.sum_axis(Axis(1)).insert_axis(Axis(1));
    a /= &sums;
    a
}

fn distance(a: &Array2<f64>, b: &Array2<f64>) -> f64 {
    largest(&(a - b))
}

#[test]
fn the_equations_give_the_attention_back() {
    let a = softmax(9);
    let OrderedSem { g, g_z } = sem_from_attention(a.view()).unwrap();
    let eye = Array2::<f64>::eye(9);
    let d = Array2::from_diag(&a.diag());
    // (I - G) D^{-1} A = I and (I - G_z) A = D.
    let scaled = Array2::from_diag(&a.diag().mapv(f64::recip)).dot(&a);
    let size = g.iter().fold(1.0, |m: f64, x| m.max(x.abs()));
    assert!(distance(&(&eye - &g).dot(&scaled), &eye) < 1e-14 * size);
    assert!(distance(&(&eye - &g_z).dot(&a), &d) < 1e-14 * size);
    // The diagonal on the other side, the error to be made here, would be seen.
    assert!(distance(&(&eye - &g_z).dot(&scaled), &eye) > 0.1);
    let strict = |g: &Array2<f64>| g.indexed_iter().all(|((i, j), &x)| i > j || x == 0.0);
    assert!(strict(&g) && strict(&g_z));
}

#[test]
fn coefficients_of_known_equations_come_back() {
    let g: Array2<f64> = random((6, 6), "coefficients");
    let g = Array2::from_shape_fn((6, 6), |(i, j)| if i > j { g[[i, j]] } else { 0.0 });
    let noise: Array1<f64> = array![1.0, 0.5, 2.0, 1.0, -1.0, 0.25];
    // The total effects, by substitution: row i is its noise plus the effects of the rows before.
    let mut a = Array2::from_diag(&noise);
    for i in 0..6 {
        for k in 0..i {
            let cause = a.row(k).to_owned();
            a.row_mut(i).scaled_add(g[[i, k]], &cause);
        }
    }
    let got = sem_from_attention(a.view()).unwrap();
    assert!(distance(&got.g_z, &g) < 1e-13);
}

#[test]
fn weights_that_are_not_causal_are_refused() {
    let mut a = softmax(3);
    a[[1, 2]] = 1e-9;
    let refused = sem_from_attention(a.view());
    assert!(matches!(
        refused,
        Err(Error::NotCausal {
            row: 1,
            column: 2,
            ..
        })
    ));
    let mut a = softmax(3);
    a[[1, 1]] = 0.0;
    let refused = sem_from_attention(a.view());
    assert!(matches!(refused, Err(Error::NoOwnWeight { token: 1 })));
    a[[1, 1]] = 1e-320;
    let refused = sem_from_attention(a.view()).unwrap_err();
    assert!(matches!(
        refused,
        Error::Overflow {
            effect: 1,
            cause: 0
        }
    ));
    // The ratio of the diagonal alone overflows, the coefficient does not.
    let tiny = array![[1e-310, 0.0], [1e-10, 1.0]];
    let g_z = sem_from_attention(tiny.view()).unwrap().g_z;
    assert!((g_z[[1, 0]] / 1e300 - 1.0).abs() < 1e-9);
    // Here g alone does not overflow.
    let tiny = array![[1e-320, 0.0], [0.5, 0.5]];
    assert!(matches!(
        sem_from_attention(tiny.view()),
        Err(Error::Overflow {
            effect: 1,
            cause: 0
        })
    ));
    a[[1, 1]] = f64::NAN;
    assert!(matches!(
        sem_from_attention(a.view()),
        Err(Error::Argument(_))
    ));
    for shape in [(0, 0), (2, 3)] {
        let refused = sem_from_attention(Array2::<f64>::zeros(shape).view());
        assert!(matches!(refused, Err(Error::Argument(_))));
    }
}
