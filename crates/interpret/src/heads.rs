//! Differences between the heads of a layer.

use crate::Error;
use crate::entropy::entropy;
use crate::rows::{check, read};
use bochner_numerics::Real;
use ndarray::{Array1, ArrayView2, ArrayView4};

/// The diversity of the heads of each example.
///
/// $$D_b = \frac{1}{|Q_b|} \sum_{i \in Q_b} \binom{M}{2}^{-1} \sum_{m < n}
/// \mathrm{JS}(\alpha_{bmi}, \alpha_{bni}), \qquad
/// \mathrm{JS}(x, y) = H\Bigl(\frac{x + y}{2}\Bigr) - \frac{H(x) + H(y)}{2}$$
///
/// *where*
///
/// * $\alpha$: `weights`, rows of probabilities
/// * $Q_b$: the queries that `queries` keeps
/// * $H(x) = -\sum_j x_j \log x_j$ in nats, with $0 \log 0 = 0$
///
/// It lies between 0, which also stands for one head or for no kept query, and $\log 2$, where no two heads
/// look at the same key. A kept query whose rows are zeros in all heads counts as one on which they agree.
///
/// # Shapes
/// `weights: [B, M, Tq, Tk]`, `queries: [B, Tq]` (`true` keeps) to `[B]`.
///
/// # Errors
/// [`Error::Argument`] for empty weights, another shape of `queries`, or a weight of a kept query that is negative
/// or not finite. What the rows of other queries hold is not looked at.
///
/// # Numerics
/// In double precision. Rows that do not sum to 1, such as those of bipolar attention, give a number that is no
/// divergence of probabilities.
///
/// # Reference
/// Lin, *Divergence measures based on the Shannon entropy*, 1991; Song et al. 2021, Figure 2, which claims of
/// MIKAN's heads that they are more diverse and gives no measure.
pub fn head_diversity<T: Real>(
    weights: ArrayView4<T>,
    queries: ArrayView2<bool>,
) -> Result<Array1<f64>, Error> {
    check(weights, queries)?;
    let heads = weights.dim().1;
    let pairs = (heads * heads.saturating_sub(1) / 2).max(1) as f64;
    mean_over_queries(weights, queries, |rows| {
        let entropies: Vec<f64> = rows
            .iter()
            .map(|row| entropy(row.iter().copied()))
            .collect();
        let mut total = 0.0;
        for (m, x) in rows.iter().enumerate() {
            for (n, y) in rows.iter().enumerate().skip(m + 1) {
                let middle = x.iter().zip(y).map(|(x, y)| 0.5 * (x + y));
                let divergence = entropy(middle) - 0.5 * (entropies[m] + entropies[n]);
                // Rounding makes equal rows differ by less than nothing.
                total += divergence.max(0.0);
            }
        }
        total / pairs
    })
}

/// The spread of the weights over the heads of each example: for each kept query, the standard deviation over the
/// heads of the weight of a key, summed over the keys, and of that the mean over the queries.
///
/// $$S_b = \frac{1}{|Q_b|} \sum_{i \in Q_b} \sum_j
/// \sqrt{\frac1M \sum_m (\alpha_{bmij} - \bar\alpha_{bij})^2}$$
///
/// *where* $\bar\alpha_{bij}$ is the mean over the heads. Keys that no head looks at add nothing, so that padding
/// does not change it. It is 0 for heads that agree, one head, or no kept query; a kept query whose rows are zeros in all
/// heads counts as one on which they agree.
///
/// # Shapes
/// `weights: [B, M, Tq, Tk]`, `queries: [B, Tq]` (`true` keeps) to `[B]`.
///
/// # Errors
/// The errors of [`head_diversity`].
pub fn head_spread<T: Real>(
    weights: ArrayView4<T>,
    queries: ArrayView2<bool>,
) -> Result<Array1<f64>, Error> {
    check(weights, queries)?;
    mean_over_queries(weights, queries, |rows| {
        let heads = rows.len() as f64;
        let of_key = |j: usize| {
            let mean = rows.iter().map(|row| row[j]).sum::<f64>() / heads;
            let squares = rows.iter().map(|row| (row[j] - mean).powi(2)).sum::<f64>();
            (squares / heads).sqrt()
        };
        (0..rows[0].len()).map(of_key).sum()
    })
}

/// The mean over the kept queries of a function of the rows of all heads; 0 without a kept query.
fn mean_over_queries<T: Real>(
    weights: ArrayView4<T>,
    queries: ArrayView2<bool>,
    f: impl Fn(&[Vec<f64>]) -> f64,
) -> Result<Array1<f64>, Error> {
    let mut means = Array1::zeros(queries.nrows());
    for (b, kept) in queries.outer_iter().enumerate() {
        let kept: Vec<usize> = (0..kept.len()).filter(|&i| kept[i]).collect();
        let mut total = 0.0;
        for &i in &kept {
            let rows = (0..weights.dim().1).map(|m| read(weights, [b, m, i]));
            let rows: Vec<_> = rows.collect::<Result<_, _>>()?;
            total += f(&rows);
        }
        means[b] = total / kept.len().max(1) as f64;
    }
    Ok(means)
}
