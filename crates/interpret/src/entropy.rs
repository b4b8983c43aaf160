//! The entropy of attention: the number of keys that a query looks at.

use crate::Error;
use crate::rows::{check, read};
use bochner_numerics::Real;
use ndarray::{Array3, ArrayView2, ArrayView4};

/// The entropy of the weights of each head and query, in nats.
///
/// $$H_{bmi} = -\sum_j \alpha_{bmij} \log \alpha_{bmij}, \qquad 0 \log 0 = 0$$
///
/// *where* $\alpha$ is `weights`. It is 0 for a query that looks at one key, and $\log n$ for one that looks at
/// $n$ keys alike; $e^H$ is the number of keys that as many equal weights would be spread over.
///
/// # Shapes
/// `weights: [B, M, Tq, Tk]`, `queries: [B, Tq]` (`true` keeps) to `[B, M, Tq]`; 0 where a query is not kept, and for
/// a row of zeros. A mean over queries is the sum over the number of those that count, which `queries` knows.
///
/// # Errors
/// [`Error::Argument`] for empty weights, another shape of `queries`, or a weight of a kept query that is negative
/// or not finite. What the rows of other queries hold is not looked at.
///
/// # Numerics
/// In double precision. The rows are not normalised: for rows that do not sum to 1, such as those of bipolar
/// attention, the number is no entropy of probabilities.
///
/// # Reference
/// Ghader, Monz, *What does attention in neural machine translation pay attention to?*, 2017.
///
/// ```
/// use bochner_interpret::attention_entropy;
/// use bochner_interpret::ndarray::{Array2, Array4};
///
/// // One head and two queries: the first looks at one key, the second at all four alike.
/// let weights = Array4::from_shape_fn((1, 1, 2, 4), |(_, _, i, j)| match (i, j) {
///     (0, 0) => 1.0_f32,
///     (0, _) => 0.0,
///     _ => 0.25,
/// });
/// let entropy = attention_entropy(weights.view(), Array2::from_elem((1, 2), true).view())?;
/// assert_eq!(entropy[[0, 0, 0]], 0.0);
/// assert!((entropy[[0, 0, 1]].exp() - 4.0).abs() < 1e-12);
/// # Ok::<(), bochner_interpret::Error>(())
/// ```
pub fn attention_entropy<T: Real>(
    weights: ArrayView4<T>,
    queries: ArrayView2<bool>,
) -> Result<Array3<f64>, Error> {
    check(weights, queries)?;
    let (batch, heads, rows, _) = weights.dim();
    let mut entropies = Array3::zeros((batch, heads, rows));
    for ((b, i), _) in queries.indexed_iter().filter(|(_, kept)| **kept) {
        for m in 0..heads {
            entropies[[b, m, i]] = entropy(read(weights, [b, m, i])?);
        }
    }
    Ok(entropies)
}

/// The entropy of numbers that are not negative, in nats: of one row of weights, or of several rows together.
///
/// $$H = -\sum_j x_j \log x_j, \qquad 0 \log 0 = 0$$
///
/// # Numerics
/// The numbers are not normalised, and one that is negative or not a number counts as 0: [`attention_entropy`] refuses
/// such weights. A zero is positive.
///
/// ```
/// use bochner_interpret::entropy;
///
/// assert!((entropy([0.5, 0.0, 0.5]) - 2f64.ln()).abs() < 1e-15);
/// ```
pub fn entropy(numbers: impl IntoIterator<Item = f64>) -> f64 {
    let terms = numbers.into_iter().filter(|&x| x > 0.0);
    // Adding zero takes the sign from a negative zero.
    terms.map(|x| -x * x.ln()).sum::<f64>() + 0.0
}
