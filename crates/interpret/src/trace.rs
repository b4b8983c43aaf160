//! Contributions of the similarity and the magnitude to the weights of a layer.

use crate::Error;
use bochner_attention::{Magnitude, Mask, kernels::Points, magnitude::magnitude};
use bochner_kernels::{SpectralPoints, kernel_matrix};
use bochner_numerics::Real;
use bochner_numerics::argument::{self, ArgumentError};
use ndarray::{Array1, Array2, ArrayView1, ArrayView2, ArrayView4, s};
use std::f64::consts::{LN_10, PI};

/// A similarity $s_{ij}$ of queries and keys, which the magnitude multiplies.
#[derive(Clone, Copy, Debug)]
pub enum Similarity<'a, T> {
    /// $\exp(-|q_i - k_j|^2 / (2 \sqrt d))$: that of softmax attention (Proposition 1) and of its kernel alone.
    Rbf,
    /// $\exp(-2 \sin^2(\pi |q_i - k_j| / P) / \sqrt d)$.
    Periodic {
        /// The period P.
        period: f64,
    },
    /// $(q_i \cdot k_j / \sqrt d)^2$.
    Linear,
    /// $f(q_i, k_j)^2 + e$ with a kernel given by its spectral points.
    Squared {
        /// The points, `[1 or B, M, R, d]`.
        points: Points<'a, T>,
        /// The floor e.
        floor: f64,
    },
}

/// Means of decimal logarithms, one for each head, `[M]`.
#[derive(Clone, Debug, PartialEq)]
pub struct SimilarityMagnitudeTrace {
    /// The mean over the kept queries that keep a key of $\max_j \log_{10} s_{ij}$ over the kept keys. Queries that keep
    /// none have rows of zeros, and do not count.
    pub log10_similarity: Array1<f64>,
    /// The mean over the kept pairs of $(m_i + m_j) / \ln 10$, the magnitudes of query and key, as
    /// Proposition 1 multiplies them.
    pub log10_magnitude: Array1<f64>,
    /// The mean over the kept pairs of $m_j / \ln 10$: of the two magnitudes, only the key's changes weights.
    pub log10_key_magnitude: Array1<f64>,
}

/// The similarity and the magnitude behind the weights of a layer, on a logarithmic scale.
///
/// A pair is kept if the mask keeps it and the query lies within its own length
/// ([`Mask::with_query_lengths`]). The means are over all examples of the batch together; they are means of
/// logarithms, not logarithms of means. Without a magnitude, both of its means are 0.
///
/// # Shapes
/// `q: [B, M, Tq, d]`, `k: [B, M, Tk, d]`.
///
/// # Errors
/// [`Error::Argument`] for shapes that do not fit each other, no elements, a period or a floor out of range, or a query
/// or key of a kept pair that is not finite, whatever the others hold;
/// [`Error::Attention`] for a mask or a magnitude that attention refuses; [`Error::Kernel`] for points of
/// another width; [`Error::NothingKept`] if the mask keeps no pair.
///
/// # Numerics
/// Sums and logarithms are in double precision; the values of a squared kernel are in the type of `q`. A
/// similarity of 0, which [`Similarity::Linear`] and a floor of 0 allow, has the logarithm minus infinity, and so
/// has the mean over queries one of which is similar to no key.
///
/// # Reference
/// Song et al. 2021, Figure 3.
///
/// ```
/// use bochner_attention::{Magnitude, Mask};
/// use bochner_interpret::{Similarity, similarity_magnitude_trace};
/// use bochner_interpret::ndarray::Array4;
///
/// // Queries equal to their keys: the similarity of the nearest key is 1, its logarithm 0.
/// let x = Array4::from_shape_fn((1, 2, 5, 4), |(_, m, t, n)| 0.3 * (m + 2 * t + n) as f32);
/// let softmax = (&Similarity::Rbf, Magnitude::Norm { p: 2.0 });
/// let seen = similarity_magnitude_trace(x.view(), x.view(), softmax, &Mask::none())?;
/// assert_eq!(seen.log10_similarity.to_vec(), [0.0, 0.0]);
/// assert!(seen.log10_magnitude[1] > seen.log10_magnitude[0]);
/// # Ok::<(), bochner_interpret::Error>(())
/// ```
pub fn similarity_magnitude_trace<T: Real>(
    q: ArrayView4<T>,
    k: ArrayView4<T>,
    (similarity, of_keys): (&Similarity<'_, T>, Magnitude),
    mask: &Mask,
) -> Result<SimilarityMagnitudeTrace, Error> {
    let (batch, heads, queries, width) = q.dim();
    let keys = k.dim().2;
    argument::not_empty("q", q.shape())?;
    argument::not_empty("k", k.shape())?;
    argument::shape("k", &[batch, heads, keys, width], k.shape())?;
    let fits = mask.check([batch, heads, queries, keys]);
    fits.map_err(bochner_attention::Error::from)?;
    similarity.check(batch, heads)?;
    let kept_queries = mask.kept_queries(batch, queries);
    let is_query = |b, i| kept_queries.as_ref().is_none_or(|kept| kept[[b, i]]);
    let mut trace = SimilarityMagnitudeTrace {
        log10_similarity: Array1::zeros(heads),
        log10_magnitude: Array1::zeros(heads),
        log10_key_magnitude: Array1::zeros(heads),
    };
    for m in 0..heads {
        let mut nearest = Mean::default();
        let (mut of_pairs, mut of_kept_keys) = (Mean::default(), Mean::default());
        for b in 0..batch {
            let [q, k] = [q, k].map(|x| x.slice_move(s![b, m, .., ..]));
            let logs = similarity.logarithms([b, m], q, k)?;
            let [of_q, of_k] = [logarithms(q, of_keys)?, logarithms(k, of_keys)?];
            for i in (0..queries).filter(|&i| is_query(b, i)) {
                let kept = |j: &usize| mask.keeps([b, m, i, *j], [queries, keys]);
                let kept: Vec<usize> = (0..keys).filter(kept).collect();
                if !kept.is_empty() {
                    finite("q", q.row(i), [b, m, i])?;
                }
                for &j in &kept {
                    finite("k", k.row(j), [b, m, j])?;
                }
                // NaN, which numbers that are too large may give, is the largest, so that it shows.
                let larger = |a: f64, b: f64| if b > a || b.is_nan() { b } else { a };
                let most = kept.iter().map(|&j| logs[[i, j]]).reduce(larger);
                most.into_iter().for_each(|most| nearest.add(most / LN_10));
                for j in kept {
                    of_pairs.add((of_q[i] + of_k[j]) / LN_10);
                    of_kept_keys.add(of_k[j] / LN_10);
                }
            }
        }
        trace.log10_similarity[m] = nearest.value()?;
        trace.log10_magnitude[m] = of_pairs.value()?;
        trace.log10_key_magnitude[m] = of_kept_keys.value()?;
    }
    Ok(trace)
}

impl<T: Real> Similarity<'_, T> {
    fn check(&self, batch: usize, heads: usize) -> Result<(), Error> {
        match self {
            Self::Rbf | Self::Linear => {}
            Self::Periodic { period } => argument::positive("period", *period)?,
            Self::Squared { points, floor } => {
                let holds = (0.0..=1.0).contains(floor);
                argument::in_range(holds, "floor", *floor, "from 0 to 1")?;
                for set in points.sets() {
                    let (examples, _, count, width) = set.dim();
                    let examples = if examples == 1 { 1 } else { batch };
                    argument::shape("points", &[examples, heads, count, width], set.shape())?;
                }
            }
        }
        Ok(())
    }

    /// The natural logarithms of the similarities of one head, `[Tq, Tk]`.
    fn logarithms(
        &self,
        [b, m]: [usize; 2],
        q: ArrayView2<T>,
        k: ArrayView2<T>,
    ) -> Result<Array2<f64>, Error> {
        let root = (q.ncols() as f64).sqrt();
        let of_pairs = |f: &dyn Fn(f64, f64) -> f64, g: &dyn Fn(f64) -> f64| {
            Array2::from_shape_fn((q.nrows(), k.nrows()), |(i, j)| {
                let pairs = q.row(i).into_iter().zip(k.row(j));
                g(pairs.map(|(x, y)| f(x.as_f64(), y.as_f64())).sum::<f64>())
            })
        };
        let square = |x: f64, y: f64| (x - y).powi(2);
        Ok(match self {
            Self::Rbf => of_pairs(&square, &|total| -total / (2.0 * root)),
            Self::Periodic { period } => of_pairs(&square, &|total| {
                // An infinite distance is a whole number of periods, as it is to attention.
                let turns = total.sqrt() / period;
                let part = if turns.is_infinite() {
                    0.0
                } else {
                    turns.fract()
                };
                -2.0 * (PI * part).sin().powi(2) / root
            }),
            Self::Linear => of_pairs(&|x, y| x * y, &|total| 2.0 * (total / root).abs().ln()),
            Self::Squared { points, floor } => {
                let own = |set: ArrayView4<'_, T>| if set.dim().0 == 1 { 0 } else { b };
                let points: SpectralPoints<'_, T> =
                    points.map(|set| set.slice_move(s![own(set), m, .., ..]));
                let f = kernel_matrix(q, k, &points)?;
                f.mapv(|f| (f.as_f64().powi(2) + floor).ln())
            }
        })
    }
}

/// Refuses a row that is not finite.
fn finite<T: Real>(
    name: &'static str,
    row: ArrayView1<T>,
    [b, m, i]: [usize; 3],
) -> Result<(), ArgumentError> {
    match row.iter().position(|x| !x.is_finite()) {
        None => Ok(()),
        Some(at) => Err(ArgumentError::NotFinite {
            name: name.into(),
            index: vec![b, m, i, at],
            got: row[at].as_f64(),
        }),
    }
}

/// The magnitudes $m$ of rows, `[N]`.
fn logarithms<T: Real>(x: ArrayView2<T>, of: Magnitude) -> Result<Array1<f64>, Error> {
    let (p, factor) = match of {
        Magnitude::None => return Ok(Array1::zeros(x.nrows())),
        Magnitude::Norm { p } => (p, 1.0),
        // Its divisor is the fourth root of the width, not the square root.
        Magnitude::Released { p } => (p, (x.ncols() as f64).sqrt().sqrt()),
    };
    let wide = x.mapv(T::as_f64);
    Ok(magnitude(wide.view(), p)? * factor)
}

/// A mean in the making.
#[derive(Default)]
struct Mean {
    total: f64,
    count: usize,
}

impl Mean {
    fn add(&mut self, x: f64) {
        self.total += x;
        self.count += 1;
    }

    fn value(&self) -> Result<f64, Error> {
        match self.count {
            0 => Err(Error::NothingKept),
            count => Ok(self.total / count as f64),
        }
    }
}
