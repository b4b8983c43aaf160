//! Attention in general: any weight of a pair, queries that are parameters, and data on a grid.

use crate::attend::{Saved, attend_saving, weights};
use crate::{Error, Mask, Settings};
use bochner_numerics::{ArgumentError, Real, argument, parallel};
use ndarray::{
    Array, Array2, Array3, Array4, ArrayView1, ArrayView2, ArrayView3, ArrayView4, ArrayViewMut1,
    Axis, Dimension, IntoDimension,
};
use serde::{Deserialize, Serialize};

/// The weight of a query and a key before it is normalised, $f(q, k)$, with its gradient.
pub trait PairFunction<T>: Sync {
    /// $f(q, k)$.
    fn weight(&self, q: ArrayView1<T>, k: ArrayView1<T>) -> T;

    /// Adds the gradient of $f(q, k)$, times `g`, along both arguments.
    fn pull_back(
        &self,
        q: ArrayView1<T>,
        k: ArrayView1<T>,
        g: T,
        dq: ArrayViewMut1<T>,
        dk: ArrayViewMut1<T>,
    );
}

/// Attention by any weight of a pair: $o_j = \frac1{C_j} \sum_i f(q_j, k_i)\, v_i$, $C_j = \sum_i f(q_j, k_i)$.
///
/// A linear map g of the values is applied before: `v` holds $g(v_i)$. There are as many outputs as queries.
///
/// # Shapes
/// `q: [n, d]`, `k: [m, d']`, `v: [m, p]` to `[n, p]`.
///
/// # Errors
/// [`Error::Argument`] if `k` and `v` have other numbers of rows, or one of them has no elements; if f is NaN or
/// infinite, if the sum of a row is infinite or so small that a weight divided by it overflows, or if a sum of
/// values overflows.
///
/// # Numerics
/// O(n m) calls of f. A row whose weights sum to zero has a zero output. If f is one of the kernels of
/// [`Settings`], use [`attend`](crate::attend()), which neither stores the weights nor overflows.
///
/// # Reference
/// Wang, Girshick, Gupta, He, *Non-local neural networks*, 2018, equation 1.
///
/// ```
/// use bochner_attention::{PairFunction, general_attention};
/// use bochner_attention::ndarray::{ArrayView1, ArrayViewMut1, array};
///
/// /// (1 + q . k)^2
/// struct Square;
///
/// impl PairFunction<f64> for Square {
///     fn weight(&self, q: ArrayView1<f64>, k: ArrayView1<f64>) -> f64 {
///         (1.0 + q.dot(&k)).powi(2)
///     }
///
///     fn pull_back(
///         &self,
///         q: ArrayView1<f64>,
///         k: ArrayView1<f64>,
///         g: f64,
///         mut dq: ArrayViewMut1<f64>,
///         mut dk: ArrayViewMut1<f64>,
///     ) {
///         let slope = 2.0 * g * (1.0 + q.dot(&k));
///         dq.scaled_add(slope, &k);
///         dk.scaled_add(slope, &q);
///     }
/// }
///
/// let (q, k, v) = (array![[1.0]], array![[1.0], [0.0]], array![[5.0], [0.0]]);
/// let output = general_attention(&Square, q.view(), k.view(), v.view())?;
/// assert_eq!(output[[0, 0]], 4.0);
/// # Ok::<(), bochner_attention::Error>(())
/// ```
pub fn general_attention<T: Real>(
    f: &impl PairFunction<T>,
    q: ArrayView2<T>,
    k: ArrayView2<T>,
    v: ArrayView2<T>,
) -> Result<Array2<T>, Error> {
    let output = shares(f, q, k, v)?.0.dot(&v);
    argument::finite("output", output.shape(), &output)?;
    Ok(output)
}

/// Gradients of [`general_attention`], shaped as its arguments.
#[derive(Clone, Debug, PartialEq)]
pub struct GeneralAttentionGradients<T> {
    /// With respect to the queries.
    pub q: Array2<T>,
    /// With respect to the keys.
    pub k: Array2<T>,
    /// With respect to the values.
    pub v: Array2<T>,
}

/// The vector-Jacobian product of [`general_attention`].
///
/// # Errors
/// The errors of [`general_attention`]; [`Error::Argument`] if the cotangent does not fit, or the gradient along f
/// overflows.
pub fn general_attention_vjp<T: Real>(
    f: &impl PairFunction<T>,
    q: ArrayView2<T>,
    k: ArrayView2<T>,
    v: ArrayView2<T>,
    cotangent: ArrayView2<T>,
) -> Result<GeneralAttentionGradients<T>, Error> {
    argument::shape("cotangent", &[q.nrows(), v.ncols()], cotangent.shape())?;
    let (shares, totals) = shares(f, q, k, v)?;
    let along = cotangent.dot(&v.t());
    let (mut dq, mut dk) = (Array2::zeros(q.raw_dim()), Array2::zeros(k.raw_dim()));
    for (j, &total) in totals.iter().enumerate() {
        if total == T::zero() {
            continue;
        }
        let mean = shares.row(j).dot(&along.row(j));
        for i in 0..k.nrows() {
            let slope = (along[[j, i]] - mean) / total;
            if !slope.is_finite() {
                let name = format!("gradient along f(q, k) of query {j}");
                let allowed = "finite: scale f up, or the cotangent down";
                return Err(argument::out_of_range(name, slope, allowed).into());
            }
            f.pull_back(q.row(j), k.row(i), slope, dq.row_mut(j), dk.row_mut(i));
        }
    }
    Ok(GeneralAttentionGradients {
        q: dq,
        k: dk,
        v: shares.t().dot(&cotangent),
    })
}

/// The normalised weights `[n, m]`, and what they were divided by.
fn shares<T: Real>(
    f: &impl PairFunction<T>,
    q: ArrayView2<T>,
    k: ArrayView2<T>,
    v: ArrayView2<T>,
) -> Result<(Array2<T>, Vec<T>), Error> {
    argument::shape("v", &[k.nrows(), v.ncols()], v.shape())?;
    for (name, x) in [("q", q), ("k", k), ("v", v)] {
        argument::not_empty(name, x.shape())?;
    }
    let mut shares = vec![T::zero(); q.nrows() * k.nrows()];
    let totals = parallel::map_chunks(&mut shares, k.nrows(), |j, row| {
        for (weight, k) in row.iter_mut().zip(k.rows()) {
            *weight = f.weight(q.row(j), k);
        }
        normalise(j, row)
    });
    let totals = totals.into_iter().collect::<Result<_, _>>()?;
    let shares = Array2::from_shape_vec((q.nrows(), k.nrows()), shares);
    Ok((shares.expect("a weight for each pair"), totals))
}

/// Divides the weights of query `j` by their sum, and gives the sum.
fn normalise<T: Real>(j: usize, weights: &mut [T]) -> Result<T, ArgumentError> {
    let total: T = weights.iter().copied().sum();
    if total == T::zero() {
        weights.fill(T::zero());
        return Ok(total);
    }
    if !total.is_normal() || weights.iter().any(|&w| !(w / total).is_finite()) {
        argument::finite(format!("f(q, k) of query {j}"), &[weights.len()], &*weights)?;
        let name = format!("sum of f(q, k) of query {j}");
        let allowed =
            "finite, and tiny neither by itself nor beside its terms: scale f, or keep it positive";
        return Err(argument::out_of_range(name, total, allowed));
    }
    weights.iter_mut().for_each(|weight| *weight /= total);
    Ok(total)
}

/// Attention of queries that are parameters, the same for all examples: an output of fixed size, whatever the
/// length, that does not depend on the order of the positions, unless the mask does. Under a causal mask or a window the
/// n queries count as the last n positions.
///
/// $$O_b = \operatorname{softmax}(c\, Q K_b^\top)\, V_b$$
///
/// where $Q$ is `[M, n, d]` and c the [`QueryScale`].
///
/// # Reference
/// The notes of Ji and Xie, *Attention*: learnable queries; the scale, the lengths and a length of 0, which
/// gives zeros, are ours.
///
/// ```
/// use bochner_attention::{LearnableQuery, Mask};
/// use bochner_attention::ndarray::{Array3, Array4};
///
/// let queries = Array3::<f32>::ones((2, 3, 4));
/// let x = Array4::ones((5, 2, 7, 4));
/// let pooled = LearnableQuery::default().attend(queries.view(), x.view(), x.view(), &Mask::none())?;
/// assert_eq!(pooled.output.dim(), (5, 2, 3, 4));
/// # Ok::<(), bochner_attention::Error>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct LearnableQuery {
    /// What products of queries and keys are multiplied with.
    pub scale: QueryScale,
}

/// The factor of [`LearnableQuery`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum QueryScale {
    /// 1.
    #[default]
    None,
    /// $1 / \sqrt d$.
    InverseSqrt,
}

/// The output of [`LearnableQuery::attend`].
#[derive(Debug)]
pub struct Pooled<'a, T> {
    /// The attended values, `[B, M, n, dv]`.
    pub output: Array4<T>,
    queries: Array4<T>,
    k: ArrayView4<'a, T>,
    v: ArrayView4<'a, T>,
    saved: Saved<T>,
}

/// Gradients of [`LearnableQuery::attend`], shaped as its arguments.
#[derive(Clone, Debug, PartialEq)]
pub struct PooledGradients<T> {
    /// With respect to the queries, summed over the examples in order.
    pub queries: Array3<T>,
    /// With respect to the keys.
    pub k: Array4<T>,
    /// With respect to the values.
    pub v: Array4<T>,
}

impl LearnableQuery {
    /// Attention from the queries to each example.
    ///
    /// # Shapes
    /// `queries: [M, n, d]`, `k: [B, M, T, d]`, `v: [B, M, T, dv]` to `[B, M, n, dv]`.
    ///
    /// # Errors
    /// The errors of [`attend`](crate::attend()).
    pub fn attend<'a, T: Real>(
        &self,
        queries: ArrayView3<T>,
        k: ArrayView4<'a, T>,
        v: ArrayView4<'a, T>,
        mask: &Mask,
    ) -> Result<Pooled<'a, T>, Error> {
        let (queries, settings) = self.of_examples(queries, k.dim().0, mask);
        let (output, saved) = attend_saving(queries.view(), k, v, &settings)?;
        Ok(Pooled {
            output,
            queries,
            k,
            v,
            saved,
        })
    }

    /// The weights, `[B, M, n, T]`.
    ///
    /// # Errors
    /// The errors of [`weights`](crate::weights()).
    pub fn weights<T: Real>(
        &self,
        queries: ArrayView3<T>,
        k: ArrayView4<T>,
        mask: &Mask,
    ) -> Result<Array4<T>, Error> {
        let (queries, settings) = self.of_examples(queries, k.dim().0, mask);
        weights(queries.view(), k, &settings)
    }

    /// The queries of each example, and how they attend.
    fn of_examples<T: Real>(
        &self,
        queries: ArrayView3<T>,
        batch: usize,
        mask: &Mask,
    ) -> (Array4<T>, Settings<T>) {
        let (heads, count, width) = queries.dim();
        let queries = queries.broadcast((batch, heads, count, width));
        let settings = match self.scale {
            QueryScale::None => Settings::scaled_softmax(1.0, mask),
            QueryScale::InverseSqrt => Settings::softmax(mask),
        };
        (queries.expect("an axis more").to_owned(), settings)
    }
}

impl<T: Real> Pooled<'_, T> {
    /// The vector-Jacobian product of [`LearnableQuery::attend`].
    ///
    /// # Errors
    /// [`Error::Argument`] if the cotangent does not fit.
    pub fn vjp(&self, cotangent: ArrayView4<T>) -> Result<PooledGradients<T>, Error> {
        let arrays = [self.queries.view(), self.k, self.v];
        let g = self.saved.vjp(arrays, self.output.view(), cotangent)?;
        Ok(PooledGradients {
            queries: g.q.sum_axis(Axis(0)),
            k: g.k,
            v: g.v,
        })
    }
}

/// The positions of a grid as a sequence: `[B, h, w, .., c]` to `[B, h w .., c]`, the last axis of the grid
/// fastest.
///
/// # Errors
/// [`Error::Argument`] for fewer than two axes.
///
/// ```
/// use bochner_attention::{fold, unfold};
/// use bochner_attention::ndarray::Array4;
///
/// let image = Array4::from_shape_fn((1, 2, 3, 4), |(_, y, x, c)| y * 100 + x * 10 + c);
/// let sequence = unfold(&image)?;
/// assert_eq!(sequence[[0, 1 * 3 + 2, 3]], 123);
/// assert_eq!(fold(&sequence, (2, 3))?, image.into_dyn());
/// # Ok::<(), bochner_attention::Error>(())
/// ```
pub fn unfold<A: Clone, D: Dimension>(x: &Array<A, D>) -> Result<Array3<A>, Error> {
    let shape = x.shape();
    let [batch, grid @ .., channels] = shape else {
        let (name, allowed) = ("the axes of a grid", "at least 2");
        return Err(argument::out_of_range(name, shape.len() as f64, allowed).into());
    };
    let shape = (*batch, grid.iter().product(), *channels);
    let values = x.iter().cloned().collect();
    Ok(Array3::from_shape_vec(shape, values).expect("as many positions"))
}

/// The sequence as a grid, the inverse of [`unfold`]. The grid of an output is that of the queries, which so
/// choose its size.
///
/// # Errors
/// [`Error::Argument`] if the grid has another number of positions than the sequence.
pub fn fold<A: Clone>(
    x: &Array3<A>,
    grid: impl IntoDimension,
) -> Result<ndarray::ArrayD<A>, Error> {
    let (batch, time, channels) = x.dim();
    let grid = grid.into_dimension();
    let positions = grid.slice().iter().product();
    argument::shape(
        "the sequence of a grid",
        &[batch, positions, channels],
        x.shape(),
    )?;
    debug_assert_eq!(positions, time);
    let shape = [&[batch], grid.slice(), &[channels]].concat();
    let values = x.iter().cloned().collect();
    Ok(ndarray::ArrayD::from_shape_vec(shape, values).expect("as many positions"))
}
