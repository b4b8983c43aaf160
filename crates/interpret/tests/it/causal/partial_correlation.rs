//! Partial correlations and their test.

use bochner_dense::Cholesky;
use bochner_interpret::{Correlations, Error, FisherTest, ValueCovariance};
use bochner_numerics::check::random;
use ndarray::{Array2, Axis};

fn of(a: &Array2<f64>) -> Correlations {
    Correlations::of_attention(a.view(), ValueCovariance::Identity).unwrap()
}

/// The definition, by the inverse of the correlations of $i$, $j$ and $S$.
fn by_inverse(correlations: &Correlations, i: usize, j: usize, given: &[usize]) -> f64 {
    let tokens = [&[i, j], given].concat();
    let rho = correlations.correlation();
    let part = rho.select(Axis(0), &tokens).select(Axis(1), &tokens);
    let p = Cholesky::new(part.view()).unwrap().inverse();
    -p[[0, 1]] / (p[[0, 0]] * p[[1, 1]]).sqrt()
}

#[test]
fn it_is_the_inverse_of_the_correlations() {
    let correlations = of(&random((7, 7), "a"));
    let rho = correlations.correlation();
    let sets: [&[usize]; 5] = [&[], &[5], &[6, 0], &[3, 5, 0], &[0, 3, 4, 5, 6]];
    for given in sets {
        let got = correlations.partial(1, 2, given).unwrap();
        let want = by_inverse(&correlations, 1, 2, given);
        assert!((got - want).abs() < 1e-12, "{given:?}: {got} {want}");
        assert_eq!(got, correlations.partial(2, 1, given).unwrap());
        // The sign of the off-diagonal entry, forgotten, would be seen.
        assert!((got + want).abs() > 0.01);
    }
    let of = |i: usize, j: usize| rho[[i, j]];
    let closed = (of(1, 2) - of(1, 5) * of(2, 5))
        / ((1.0 - of(1, 5).powi(2)) * (1.0 - of(2, 5).powi(2))).sqrt();
    assert!((correlations.partial(1, 2, &[5]).unwrap() - closed).abs() < 1e-14);
}

#[test]
fn zeros_survive_a_chain_whose_covariance_is_nearly_singular() {
    // Weights of 2 multiply the variance by 4 at each of eleven links.
    let a = Array2::from_shape_fn((12, 12), |(i, j)| match i >= j {
        true => 2f64.powi((i - j) as i32),
        false => 0.0,
    });
    let correlations = of(&a);
    for (i, middle, j) in [(0, 1, 2), (9, 10, 11), (0, 6, 11), (0, 10, 11)] {
        let got = correlations.partial(i, j, &[middle]).unwrap();
        assert!(got.abs() < 1e-13, "{i} {middle} {j}: {got:e}");
    }
    let all: Vec<usize> = (1..11).collect();
    assert!(correlations.partial(0, 11, &all).unwrap().abs() < 1e-12);
    // The inverse has lost the zero that the projections keep.
    assert!(by_inverse(&correlations, 9, 11, &[10]).abs() > 1e-12);
}

#[test]
fn tokens_must_be_distinct_and_there() {
    let correlations = of(&random((4, 4), "a"));
    for (i, j, given) in [(1, 1, vec![]), (0, 1, vec![1]), (0, 1, vec![2, 2])] {
        let refused = correlations.partial(i, j, &given);
        assert!(matches!(refused, Err(Error::RepeatedNode { .. })));
    }
    assert!(matches!(
        correlations.partial(0, 4, &[]),
        Err(Error::Argument(_))
    ));
}

#[test]
fn the_test_at_its_ends() {
    let of = |r, samples, given| FisherTest::new(r, samples, given);
    for r in [1.0, -1.0, 1.0 + 1e-12] {
        assert_eq!(of(r, 10, 0).unwrap().p_value, 0.0);
    }
    let none = of(0.0, 10, 0).unwrap();
    assert!((none.p_value - 1.0).abs() < 1e-15 && none.statistic == 0.0);
    assert!(of(-0.5, 10, 0).unwrap().z < 0.0);
    // At n - |S| - 3 = 1 the statistic is |z| itself, and 1.96 leaves five in a hundred.
    let border = of(1.959963984540054f64.tanh(), 6, 2).unwrap();
    assert!((border.p_value - 0.05).abs() < 1e-12);
    assert!(matches!(
        of(0.5, 0, 0),
        Err(Error::TooFewSamples {
            samples: 0,
            least: 4
        })
    ));
    assert!(matches!(
        of(0.5, 5, 2),
        Err(Error::TooFewSamples {
            samples: 5,
            least: 6
        })
    ));
    assert!(of(f64::NAN, 10, 0).is_err());
}

/// Rows of length 1 that point the same way have a product that rounding brings above 1.
#[test]
fn no_partial_correlation_is_above_one() {
    let rows: Array2<f64> = random((300, 5), "rows");
    for row in rows.outer_iter() {
        let mut a = Array2::eye(5);
        a.row_mut(0).assign(&row);
        a.row_mut(1).assign(&row);
        a[[1, 1]] += 1e-9;
        let correlations = of(&a);
        for given in [&[][..], &[3]] {
            let r = correlations.partial(0, 1, given).unwrap();
            assert!((1.0 - 1e-12..=1.0).contains(&r), "{r}");
        }
    }
}
