//! Attention from queries that are parameters.

use crate::{Error, Mask, Settings};
use bochner_engine::{DotProduct, Output, Saved, Wanted, attend, attend_vjp, weights};
use bochner_numerics::Real;
use ndarray::{Array3, Array4, ArrayView3, ArrayView4, Axis};
use serde::{Deserialize, Serialize};

/// Attention of queries that are parameters, the same for all examples: an output of fixed size, whatever the
/// length, that does not depend on the order of the positions, unless the mask does. Under a causal mask or a window the
/// n queries count as the last n positions.
///
/// $$O_b = \operatorname{softmax}(c Q K_b^\top) V_b$$
///
/// where $Q$ is `[M, n, d]` and c the [`QueryScale`].
///
/// # Reference
/// The notes of Ji and Xie, *Attention*: learnable queries; the scale, the lengths and a length of 0, which
/// gives zeros, are ours.
///
/// ```
/// use bochner_attention::{Mask, learnable_query::LearnableQuery};
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
    /// The factor of the products of queries and keys.
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
pub struct Pooled<'a, T: Real> {
    /// The attended values, `[B, M, n, dv]`.
    pub output: Output<T>,
    queries: Array4<T>,
    k: ArrayView4<'a, T>,
    v: ArrayView4<'a, T>,
    settings: Settings<T>,
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
        let (output, saved) = attend(&settings, queries.view(), k, v)?;
        Ok(Pooled {
            output,
            queries,
            settings,
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
        Ok(weights(&settings, queries.view(), k)?)
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
        let scale = match self.scale {
            QueryScale::None => Some(1.0),
            QueryScale::InverseSqrt => None,
        };
        let settings = Settings::pairs(DotProduct { scale }, mask);
        (queries.expect("an axis more").to_owned(), settings)
    }
}

impl<T: Real> Pooled<'_, T> {
    /// The vector-Jacobian product of [`LearnableQuery::attend`].
    ///
    /// # Errors
    /// [`Error::Argument`] if the cotangent does not fit.
    pub fn vjp(&self, cotangent: ArrayView4<T>) -> Result<PooledGradients<T>, Error> {
        let (queries, wanted) = (self.queries.view(), Wanted::default());
        let g = attend_vjp(
            &self.settings,
            &self.saved,
            queries,
            self.k,
            self.v,
            cotangent,
            wanted,
        )?;
        Ok(PooledGradients {
            queries: g.q.sum_axis(Axis(0)),
            k: g.k,
            v: g.v,
        })
    }
}
