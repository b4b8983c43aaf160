//! The structural equations of attention that looks back only.

use crate::Error;
use bochner_numerics::{Real, argument};
use ndarray::{Array2, ArrayView2};

/// The coefficients of the structural equations of a causal head; both are strictly lower-triangular.
#[derive(Clone, Debug, PartialEq)]
pub struct OrderedSem {
    /// $G = I - A^{-1} D$, of outputs that are divided by the weights that tokens give themselves.
    pub g: Array2<f64>,
    /// $G_z = I - D A^{-1} = D G D^{-1}$, of the outputs $Z = A V$ in their own units: the graph is that of `g`.
    pub g_z: Array2<f64>,
}

/// The structural equations of one head with a causal mask, exactly.
///
/// $$D^{-1} A = (I - G)^{-1}, \qquad A = (I - G_z)^{-1} D, \qquad D = \operatorname{diag} A$$
///
/// *where* $A$ is `a`. The order of the tokens is that of the causes: entry $(i, j)$ is the direct effect of token
/// $j$ on token $i > j$, and no search is needed.
///
/// # Shapes
/// `a: [T, T]`, rows are queries; both results are `[T, T]`.
///
/// # Errors
/// [`Error::Argument`] for weights that are not square, empty, or not finite; [`Error::NotCausal`] for a weight of a
/// later token; [`Error::NoOwnWeight`] for a token that gives itself none, and [`Error::Overflow`] for one that gives
/// itself so little that a coefficient is not finite.
///
/// # Numerics
/// Forward substitution, $T^3 / 6$ multiplications. The upper triangles are exactly zero.
///
/// # Reference
/// Rohekar, Gurwicz, Yu, Aflalo, Lal, *A causal world model underlying next token prediction*, 2025.
///
/// ```
/// use bochner_interpret::sem_from_attention;
/// use bochner_interpret::ndarray::array;
///
/// let a = array![[1.0, 0.0], [0.75, 0.25]];
/// let sem = sem_from_attention(a.view())?;
/// assert_eq!(sem.g, array![[0.0, 0.0], [3.0, 0.0]]);
/// assert_eq!(sem.g_z, array![[0.0, 0.0], [0.75, 0.0]]);
/// # Ok::<(), bochner_interpret::Error>(())
/// ```
pub fn sem_from_attention<T: Real>(a: ArrayView2<T>) -> Result<OrderedSem, Error> {
    check(a)?;
    let a = a.mapv(T::as_f64);
    let tokens = a.nrows();
    // Column j of A^{-1} D: row i of A times it is the entry of D.
    let mut inverse: Array2<f64> = Array2::eye(tokens);
    for j in 0..tokens {
        for i in j + 1..tokens {
            let before: f64 = (j..i).map(|k| a[[i, k]] * inverse[[k, j]]).sum();
            inverse[[i, j]] = -before / a[[i, i]];
        }
    }
    let g = Array2::from_shape_fn((tokens, tokens), |(i, j)| match i > j {
        true => -inverse[[i, j]],
        false => 0.0,
    });
    let g_z = Array2::from_shape_fn((tokens, tokens), |(i, j)| match i > j {
        true => g[[i, j]] * a[[i, i]] / a[[j, j]],
        false => 0.0,
    });
    let overflow = |((effect, cause), x): ((usize, usize), &f64)| {
        (!x.is_finite()).then_some(Error::Overflow { effect, cause })
    };
    match g
        .indexed_iter()
        .chain(g_z.indexed_iter())
        .find_map(overflow)
    {
        None => Ok(OrderedSem { g, g_z }),
        Some(error) => Err(error),
    }
}

fn check<T: Real>(a: ArrayView2<T>) -> Result<(), Error> {
    let tokens = a.nrows();
    argument::shape("a", &[tokens, tokens], a.shape())?;
    argument::not_empty("a", a.shape())?;
    argument::finite("a", a.shape(), a)?;
    for ((row, column), &weight) in a.indexed_iter() {
        if column > row && weight != T::zero() {
            let got = weight.as_f64();
            return Err(Error::NotCausal { row, column, got });
        }
        if column == row && weight == T::zero() {
            return Err(Error::NoOwnWeight { token: row });
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use bochner_numerics::check::{largest, random};
    use ndarray::{Array1, Axis, array};

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
}
