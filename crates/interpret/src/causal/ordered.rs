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
