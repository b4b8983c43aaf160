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

#[cfg(test)]
mod tests {
    use super::*;
    use ndarray::{Array2, Array4, s};

    fn weights(rows: &[&[f64]]) -> Array4<f64> {
        let flat = rows.concat();
        Array4::from_shape_vec((1, rows.len(), 1, rows[0].len()), flat).unwrap()
    }

    fn of(rows: &[&[f64]]) -> [f64; 2] {
        let (weights, all) = (weights(rows), Array2::from_elem((1, 1), true));
        let diversity = head_diversity(weights.view(), all.view()).unwrap()[0];
        [
            diversity,
            head_spread(weights.view(), all.view()).unwrap()[0],
        ]
    }

    #[test]
    fn heads_worked_out_by_hand() {
        assert_eq!(of(&[&[0.25, 0.75], &[0.25, 0.75]]), [0.0, 0.0]);
        assert_eq!(of(&[&[0.25, 0.75]]), [0.0, 0.0]);
        let [diversity, spread] = of(&[&[1.0, 0.0], &[0.0, 1.0]]);
        assert!((diversity - 2f64.ln()).abs() < 1e-15 && spread == 1.0);
        // Two of the three pairs are disjoint.
        let [diversity, _] = of(&[&[1.0, 0.0], &[0.0, 1.0], &[0.0, 1.0]]);
        assert!((diversity - 2.0 / 3.0 * 2f64.ln()).abs() < 1e-15);
        // H(3/4) - (H(1/2) + 0) / 2.
        let [diversity, spread] = of(&[&[0.5, 0.5], &[1.0, 0.0]]);
        let want = -(0.75 * 0.75f64.ln() + 0.25 * 0.25f64.ln()) - 0.5 * 2f64.ln();
        assert!((diversity - want).abs() < 1e-15 && (spread - 0.5).abs() < 1e-15);
    }

    #[test]
    fn padding_counts_neither_as_query_nor_as_key() {
        let alone = weights(&[&[0.3, 0.7], &[0.9, 0.1]]);
        let mut padded = Array4::zeros((1, 2, 3, 4));
        padded.slice_mut(s![.., .., 1..2, ..2]).assign(&alone);
        // The rows of padded queries are whatever a layer makes of them.
        padded.slice_mut(s![.., .., 2, ..]).fill(f64::NAN);
        let mut kept = Array2::from_elem((1, 3), false);
        for f in [head_diversity, head_spread] {
            let nothing = f(padded.view(), kept.view()).unwrap();
            assert_eq!(nothing[0], 0.0);
        }
        kept[[0, 1]] = true;
        let one = Array2::from_elem((1, 1), true);
        for f in [head_diversity, head_spread] {
            let want = f(alone.view(), one.view()).unwrap();
            assert_eq!(f(padded.view(), kept.view()).unwrap(), want);
        }
        kept[[0, 2]] = true;
        for f in [head_diversity, head_spread] {
            let error = f(padded.view(), kept.view()).unwrap_err().to_string();
            let place = "`weights[[0, 0, 2, 0]]` is NaN, but must be";
            assert!(error.starts_with(place), "{error}");
        }
    }

    #[test]
    fn queries_of_another_shape_are_refused() {
        let weights = weights(&[&[0.5, 0.5]]);
        let wrong = Array2::from_elem((1, 2), true);
        assert!(head_diversity(weights.view(), wrong.view()).is_err());
        let none = Array4::<f32>::zeros((0, 1, 1, 1));
        let kept = Array2::from_elem((0, 1), true);
        assert!(head_spread(none.view(), kept.view()).is_err());
    }

    #[test]
    fn each_example_has_numbers_of_its_own() {
        // The heads of the first example agree, and those of the second are disjoint.
        let looks = |b: usize, m: usize, j: usize| f64::from(u8::from(j == b * m));
        let weights = Array4::from_shape_fn((2, 2, 1, 2), |(b, m, _, j)| looks(b, m, j));
        let all = Array2::from_elem((2, 1), true);
        let diversity = head_diversity(weights.view(), all.view()).unwrap();
        assert!(diversity[0] == 0.0 && (diversity[1] - 2f64.ln()).abs() < 1e-15);
        let spread = head_spread(weights.view(), all.view()).unwrap();
        assert_eq!(spread.to_vec(), [0.0, 1.0]);
    }
}
