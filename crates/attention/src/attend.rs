//! Attention itself: weights, outputs and their vector-Jacobian product.

use crate::engine::{
    Cotangent, Exponents, Finite, Head, HeadGradients, PairDropout, QUERY_BLOCK, RowStatistics,
    Rows, Score, all_finite, blocks,
};
use crate::error::{positive, same_shape};
use crate::similarity::{PointsGradients, Similarity};
use crate::{Error, Mask};
use bochner_kernels::{feature_map, feature_map_vjp};
use bochner_numerics::{Dropout, Mat, Real, parallel};
use ndarray::{Array2, Array4, ArrayView2, ArrayView4, Axis, CowArray, Ix2, Ix4, Zip, s};

/// What multiplies the similarity: $\exp m_j$.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Magnitude {
    /// Nothing: the similarity alone.
    None,
    /// $m_j = |k_j|_p^2 / (2 \sqrt d)$; `p = 2` in softmax attention.
    Norm {
        /// The exponent of the norm, above 0.
        p: f64,
    },
    /// As the authors' released code has it: $(|q_i|_p^2 + |k_j|_p^2) / (2 d^{1/4})$ with dropout
    /// on the sum.
    Released {
        /// The exponent of the norm, above 0.
        p: f64,
        /// Dropout on the `[Tq, Tk]` sums, in training.
        dropout: Option<Dropout>,
    },
}

/// One kind of attention, with everything but the queries, keys and values.
#[derive(Clone, Copy, Debug)]
pub struct Settings<'a, T> {
    /// How alike a query and a key are.
    pub similarity: Similarity<'a, T>,
    /// What a key's size adds.
    pub magnitude: Magnitude,
    /// Which keys count.
    pub mask: &'a Mask,
    /// Dropout on the normalised weights.
    pub dropout: Option<Dropout>,
}

/// The output of [`attend`], and what [`attend_vjp`] needs again.
#[derive(Debug)]
pub struct Attended<T> {
    /// The attended values, `[B, M, Tq, dv]`.
    pub output: Array4<T>,
    heads: Vec<HeadState<T>>,
}

/// What is kept of one head between the passes: O(T) numbers.
struct HeadState<T> {
    features: Option<(Array2<T>, Array2<T>)>,
    score: Score,
    statistics: Vec<RowStatistics<T>>,
}

impl<T> std::fmt::Debug for HeadState<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("HeadState")
            .field("rows", &self.statistics.len())
            .finish_non_exhaustive()
    }
}

/// Gradients of [`attend`], shaped as its arguments.
#[derive(Clone, Debug, PartialEq)]
pub struct AttentionGradients<T> {
    /// With respect to the queries.
    pub q: Array4<T>,
    /// With respect to the keys.
    pub k: Array4<T>,
    /// With respect to the values.
    pub v: Array4<T>,
    /// With respect to the spectral points, if the similarity has any.
    pub points: Option<PointsGradients<T>>,
}

/// Attention: $o_i = \sum_j \alpha_{ij} v_j$, $\alpha_{ij} = s_{ij} e^{m_j} / \sum_l s_{il} e^{m_l}$.
///
/// *where* s is the [`Similarity`], m the [`Magnitude`], and j, l run over the keys that the
/// [`Mask`] keeps.
///
/// # Shapes
/// `q: [B, M, Tq, d]`, `k: [B, M, Tk, d]`, `v: [B, M, Tk, dv]` to `[B, M, Tq, dv]`; spectral
/// points `[1 or B, M, R, d]`.
///
/// # Errors
/// [`Error::ShapeMismatch`], [`Error::Empty`], [`Error::Mask`], or [`Error::OutOfRange`] for a
/// `p` or floor out of range.
///
/// # Numerics
/// Blocked: no `[Tq, Tk]` array is stored; O(Tq Tk (R + dv)) time, O(T (R + dv)) memory.
/// Magnitudes are compared by their logarithms, so weights are right even where a magnitude
/// overflows. A row without a kept key has a zero output; if all kept similarities of a row are
/// exactly zero, its weights are those of the magnitudes alone. The result is the same to the bit
/// for any number of threads.
///
/// # Reference
/// Song et al. 2021, equations 8, 9, 12-16.
///
/// ```
/// use bochner_attention::{Magnitude, Mask, Settings, Similarity, attend};
/// use ndarray::Array4;
///
/// let q = Array4::from_shape_fn((1, 2, 3, 4), |(_, m, t, n)| (m + t * n) as f64 * 0.1);
/// let settings = Settings {
///     similarity: Similarity::Rbf,
///     magnitude: Magnitude::Norm { p: 2.0 },
///     mask: &Mask::none().with_causality(),
///     dropout: None,
/// };
/// let attended = attend(q.view(), q.view(), q.view(), &settings)?;
/// // The first row sees only itself.
/// assert_eq!(attended.output[[0, 1, 0, 2]], q[[0, 1, 0, 2]]);
/// # Ok::<(), bochner_attention::Error>(())
/// ```
pub fn attend<T: Real>(
    q: ArrayView4<T>,
    k: ArrayView4<T>,
    v: ArrayView4<T>,
    settings: &Settings<T>,
) -> Result<Attended<T>, Error> {
    let call = Call::new(q.reborrow(), k.reborrow(), v.reborrow(), settings)?;
    let mut heads = call.prepare()?;
    let pieces: Vec<_> = blocks(0..call.queries, QUERY_BLOCK).collect();
    let results = parallel::map(heads.len() * pieces.len(), |task| {
        let (h, piece) = (task / pieces.len(), task % pieces.len());
        call.head(h, &heads[h]).forward(pieces[piece].clone())
    });
    let mut output = Vec::with_capacity(heads.len() * call.queries * call.value_width());
    for (task, (rows, statistics)) in results.into_iter().enumerate() {
        output.extend(rows);
        heads[task / pieces.len()].statistics.extend(statistics);
    }
    Ok(Attended {
        output: call.array(call.queries, call.value_width(), output),
        heads,
    })
}

/// The vector-Jacobian product of [`attend`].
///
/// With $P$ the weights and $G_{ij} = dO_i \cdot v_j - dO_i \cdot O_i$: $dV = P^T dO$,
/// $dm_j = \sum_i P_{ij} G_{ij}$, $df_{ij} = 2 f_{ij} g_j G_{ij} / Z_i$, and back through the
/// features.
///
/// # Shapes
/// `cotangent: [B, M, Tq, dv]`; the gradients have the shapes of what they belong to.
///
/// # Errors
/// As [`attend`]; [`Error::ShapeMismatch`] if the cotangent does not fit.
///
/// # Numerics
/// The same blocks are recomputed: memory stays O(T). Gradients of masked keys and values, and of
/// rows without a kept key, are exactly zero.
pub fn attend_vjp<T: Real>(
    q: ArrayView4<T>,
    k: ArrayView4<T>,
    v: ArrayView4<T>,
    settings: &Settings<T>,
    attended: &Attended<T>,
    cotangent: ArrayView4<T>,
) -> Result<AttentionGradients<T>, Error> {
    let call = Call::new(q.reborrow(), k.reborrow(), v.reborrow(), settings)?;
    same_shape("cotangent", attended.output.shape(), cotangent.shape())?;
    same_shape(
        "attended output",
        &call.shape(call.queries, call.value_width()),
        attended.output.shape(),
    )?;
    let cotangent = cotangent.as_standard_layout();
    let chunk = call.backward_chunk();
    let pieces: Vec<_> = blocks(0..call.queries, chunk).collect();
    let mut parts = parallel::map(attended.heads.len() * pieces.len(), |task| {
        let (h, piece) = (task / pieces.len(), task % pieces.len());
        let state = &attended.heads[h];
        let given = Cotangent {
            statistics: &state.statistics,
            output: slab(attended.output.view(), h),
            cotangent: slab(cotangent.view(), h),
        };
        call.head(h, state).backward(pieces[piece].clone(), &given)
    })
    .into_iter();
    let joined: Vec<HeadGradients<T>> = (0..attended.heads.len())
        .map(|_| {
            let mut whole = parts.next().expect("every head has a first chunk");
            parts
                .by_ref()
                .take(pieces.len() - 1)
                .for_each(|part| whole.join(part));
            whole
        })
        .collect();
    call.pull_back(&attended.heads, joined)
}

/// The normalised weights $\alpha$, `[B, M, Tq, Tk]`, before dropout.
///
/// Takes O(Tq Tk) memory: for looking at, not for computing with.
///
/// # Errors
/// As [`attend`].
pub fn weights<T: Real>(
    q: ArrayView4<T>,
    k: ArrayView4<T>,
    settings: &Settings<T>,
) -> Result<Array4<T>, Error> {
    let call = Call::new(q.reborrow(), k.reborrow(), k.reborrow(), settings)?;
    let heads = call.prepare()?;
    let pieces: Vec<_> = blocks(0..call.queries, QUERY_BLOCK).collect();
    let results = parallel::map(heads.len() * pieces.len(), |task| {
        let (h, piece) = (task / pieces.len(), task % pieces.len());
        call.head(h, &heads[h]).weights(pieces[piece].clone())
    });
    let mut weights = Array4::zeros((call.batch, call.heads, call.queries, call.keys));
    for (task, rows) in results.into_iter().enumerate() {
        let (h, piece) = (task / pieces.len(), &pieces[task % pieces.len()]);
        let (b, m) = (h / call.heads, h % call.heads);
        let kept = call.settings.mask.key_limit(b, call.keys);
        let rows = ArrayView2::from_shape((piece.len(), kept), &rows).expect("one row a query");
        weights
            .slice_mut(s![b, m, piece.clone(), ..kept])
            .assign(&rows);
    }
    Ok(weights)
}

/// One call's arguments, checked and contiguous.
struct Call<'a, 'p, T> {
    batch: usize,
    heads: usize,
    queries: usize,
    keys: usize,
    width: usize,
    q: CowArray<'a, T, Ix4>,
    k: CowArray<'a, T, Ix4>,
    v: CowArray<'a, T, Ix4>,
    settings: &'a Settings<'p, T>,
}

impl<'a, 'p, T: Real> Call<'a, 'p, T> {
    fn new(
        q: ArrayView4<'a, T>,
        k: ArrayView4<'a, T>,
        v: ArrayView4<'a, T>,
        settings: &'a Settings<'p, T>,
    ) -> Result<Self, Error> {
        let (batch, heads, queries, width) = q.dim();
        let keys = k.len_of(Axis(2));
        same_shape("k", &[batch, heads, keys, width], k.shape())?;
        same_shape("v", &[batch, heads, keys, v.len_of(Axis(3))], v.shape())?;
        for (what, array) in [("q", &q), ("k", &k), ("v", &v)] {
            let axes = ["batch", "heads", "time", "width"];
            if let Some(empty) = array.shape().iter().position(|&length| length == 0) {
                return Err(Error::Empty {
                    what,
                    axis: axes[empty],
                });
            }
        }
        settings.mask.validate(batch, queries, keys)?;
        settings.validate(batch, heads, width)?;
        let contiguous = |array: ArrayView4<'a, T>| match array.is_standard_layout() {
            true => CowArray::from(array),
            false => CowArray::from(array.as_standard_layout().into_owned()),
        };
        let (q, k, v) = (contiguous(q), contiguous(k), contiguous(v));
        Ok(Self {
            batch,
            heads,
            queries,
            keys,
            width,
            q,
            k,
            v,
            settings,
        })
    }

    fn value_width(&self) -> usize {
        self.v.len_of(Axis(3))
    }

    fn shape(&self, rows: usize, width: usize) -> [usize; 4] {
        [self.batch, self.heads, rows, width]
    }

    fn array(&self, rows: usize, width: usize, data: Vec<T>) -> Array4<T> {
        Array4::from_shape_vec(self.shape(rows, width), data).expect("one slab a head")
    }

    /// The number of keys of head `h` that are not padding.
    fn kept(&self, h: usize) -> usize {
        self.settings.mask.key_limit(h / self.heads, self.keys)
    }

    /// Queries of one backward task: whole heads if there are many, halves and quarters of a few
    /// long ones. At most sixteen accumulators exist beyond one a head, whatever the machine.
    fn backward_chunk(&self) -> usize {
        let parts = 16usize.div_ceil(self.batch * self.heads);
        self.queries.div_ceil(parts).next_multiple_of(QUERY_BLOCK)
    }

    /// Features and exponents of every head.
    fn prepare(&self) -> Result<Vec<HeadState<T>>, Error> {
        parallel::map(self.batch * self.heads, |h| self.prepare_head(h))
            .into_iter()
            .collect()
    }

    fn prepare_head(&self, h: usize) -> Result<HeadState<T>, Error> {
        let keys = slab(self.k.view(), h).row_range(0..self.kept(h));
        let (features, score) = match &self.settings.similarity {
            Similarity::Rbf => (None, self.exponential(keys)),
            Similarity::Squared { points, floor } => {
                let own = points.head(h / self.heads, h % self.heads);
                let map = |x| feature_map(x, &own);
                let features = (map(self.rows(&self.q, h))?, map(self.kept_rows(h))?);
                let exponents = self.exponents(h, keys);
                let normaliser = points.normaliser();
                (
                    Some(features),
                    Score::Squared {
                        normaliser,
                        floor: *floor,
                        exponents,
                    },
                )
            }
        };
        Ok(HeadState {
            features,
            score,
            statistics: Vec::with_capacity(self.queries),
        })
    }

    /// $\log a_{ij} = q_i k_j / \sqrt d - |k_j|^2/(2\sqrt d) + m_j$, up to a constant of the row;
    /// the last two cancel at p = 2.
    fn exponential(&self, keys: Mat<T>) -> Score {
        let root = (self.width as f64).sqrt();
        let square = |j| keys.row(j).iter().map(|x| x.as_f64().powi(2)).sum::<f64>() / (2.0 * root);
        let count = keys.shape().0;
        let bias = match self.settings.magnitude {
            Magnitude::Norm { p: 2.0 } | Magnitude::Released { .. } => None,
            Magnitude::None => Some((0..count).map(|j| -square(j)).collect()),
            Magnitude::Norm { p } => {
                let norm = Exponents::of_keys(keys, p, 2.0 * root);
                Some((0..count).map(|j| norm.value(j) - square(j)).collect())
            }
        };
        Score::Exponential {
            scale: 1.0 / root,
            bias,
        }
    }

    fn exponents(&self, h: usize, keys: Mat<T>) -> Exponents {
        match self.settings.magnitude {
            Magnitude::None => Exponents::zero(keys.shape().0),
            Magnitude::Norm { p } => Exponents::of_keys(keys, p, self.divisor()),
            Magnitude::Released { p, dropout } => {
                let alone = Exponents::of_keys(keys, p, self.divisor());
                match dropout {
                    None => alone,
                    Some(mask) => {
                        let queries = slab(self.q.view(), h);
                        alone.with_pairs(queries, p, self.divisor(), self.pairs(h, mask))
                    }
                }
            }
        }
    }

    fn divisor(&self) -> f64 {
        let root = (self.width as f64).sqrt();
        match self.settings.magnitude {
            Magnitude::Released { .. } => 2.0 * root.sqrt(),
            _ => 2.0 * root,
        }
    }

    /// A dropout mask on the pairs of a head.
    fn pairs(&self, h: usize, mask: Dropout) -> PairDropout {
        PairDropout {
            mask,
            base: (h * self.queries * self.keys) as u64,
            keys: self.keys,
        }
    }

    fn rows<'b>(&self, x: &'b CowArray<T, Ix4>, h: usize) -> ArrayView2<'b, T> {
        x.slice(s![h / self.heads, h % self.heads, .., ..])
    }

    fn kept_rows(&self, h: usize) -> ArrayView2<'_, T> {
        self.k
            .slice(s![h / self.heads, h % self.heads, ..self.kept(h), ..])
    }

    fn head<'b>(&'b self, h: usize, state: &'b HeadState<T>) -> Head<'b, T> {
        let kept = self.kept(h);
        let (left, right) = match &state.features {
            None => (
                slab(self.q.view(), h),
                slab(self.k.view(), h).row_range(0..kept),
            ),
            Some((left, right)) => (matrix(left), matrix(right)),
        };
        let values = slab(self.v.view(), h).row_range(0..kept);
        Head {
            finite: Finite {
                left: all_finite(left.data()),
                right: all_finite(right.data()),
                values: all_finite(values.data()),
            },
            left,
            right,
            values,
            score: &state.score,
            rows: Rows {
                mask: self.settings.mask,
                example: h / self.heads,
                queries: self.queries,
                keys: self.keys,
            },
            dropout: self.settings.dropout.map(|mask| self.pairs(h, mask)),
        }
    }

    /// From gradients with respect to features and exponents to those with respect to the
    /// arguments.
    fn pull_back(
        &self,
        states: &[HeadState<T>],
        parts: Vec<HeadGradients<T>>,
    ) -> Result<AttentionGradients<T>, Error> {
        let mut gradients = AttentionGradients {
            q: Array4::zeros(self.q.raw_dim()),
            k: Array4::zeros(self.k.raw_dim()),
            v: Array4::zeros(self.v.raw_dim()),
            points: match &self.settings.similarity {
                Similarity::Rbf => None,
                Similarity::Squared { points, .. } => Some(points.zero_gradients()),
            },
        };
        let heads = parallel::map(parts.len(), |h| {
            self.pull_back_head(h, &states[h], &parts[h])
        });
        for (h, (head, part)) in heads.into_iter().zip(parts).enumerate() {
            let head = head?;
            let (b, m, kept) = (h / self.heads, h % self.heads, self.kept(h));
            let values = Array2::from_shape_vec((kept, self.value_width()), part.values);
            gradients.q.slice_mut(s![b, m, .., ..]).assign(&head.q);
            gradients.k.slice_mut(s![b, m, ..kept, ..]).assign(&head.k);
            gradients
                .v
                .slice_mut(s![b, m, ..kept, ..])
                .assign(&values.expect("one row a value"));
            if let (Some(all), Some(own)) = (&mut gradients.points, head.points)
                && let Similarity::Squared { points, .. } = &self.settings.similarity
            {
                let set = points.set(b);
                all.add(set, m, &own);
            }
        }
        Ok(gradients)
    }

    fn pull_back_head(
        &self,
        h: usize,
        state: &HeadState<T>,
        part: &HeadGradients<T>,
    ) -> Result<OneHead<T>, Error> {
        let (queries, keys) = (self.rows(&self.q, h), self.kept_rows(h));
        let width = part.left.len() / self.queries;
        let shaped = |data: &[T], rows: usize| {
            Array2::from_shape_vec((rows, width), data.to_vec()).expect("one row a position")
        };
        let (left, right) = (
            shaped(&part.left, self.queries),
            shaped(&part.right, self.kept(h)),
        );
        let mut head = match &self.settings.similarity {
            Similarity::Rbf => OneHead {
                q: left,
                k: right,
                points: None,
            },
            Similarity::Squared { points, .. } => {
                let own = points.head(h / self.heads, h % self.heads);
                let pull = |x, cotangent: Array2<T>| {
                    feature_map_vjp(without_masked(x, &cotangent).view(), &own, cotangent.view())
                };
                let (mut q, k) = (pull(queries, left)?, pull(keys, right)?);
                q.w1 += &k.w1;
                if let (Some(sum), Some(more)) = (&mut q.w2, &k.w2) {
                    *sum += more;
                }
                OneHead {
                    q: q.x,
                    k: k.x,
                    points: Some((q.w1, q.w2)),
                }
            }
        };
        self.add_magnitude(&state.score, keys, &part.keys, &mut head.k);
        self.add_magnitude(&state.score, queries, &part.queries, &mut head.q);
        Ok(head)
    }

    /// Adds what flows through the exponents of `x`.
    fn add_magnitude(
        &self,
        score: &Score,
        x: ArrayView2<T>,
        cotangent: &[T],
        gradient: &mut Array2<T>,
    ) {
        let root = (self.width as f64).sqrt();
        let (p, square) = match (self.settings.magnitude, score) {
            (_, Score::Exponential { bias: None, .. }) => return,
            (Magnitude::None, Score::Squared { .. }) => return,
            (Magnitude::None, Score::Exponential { .. }) => (None, root.recip()),
            (Magnitude::Norm { p }, Score::Exponential { .. }) => (Some(p), root.recip()),
            (Magnitude::Norm { p } | Magnitude::Released { p, .. }, _) => (Some(p), 0.0),
        };
        for ((mut gradient, row), &c) in
            gradient.rows_mut().into_iter().zip(x.rows()).zip(cotangent)
        {
            if c == T::zero() {
                continue;
            }
            let norm = p.map(|p| crate::magnitude::PNorm::of(row, p));
            for (g, &x) in gradient.iter_mut().zip(row) {
                let (x, c) = (x.as_f64(), c.as_f64());
                let pulled = norm
                    .as_ref()
                    .map_or(0.0, |n| n.pull_back(x, c / self.divisor()));
                *g += T::of(pulled - square * c * x);
            }
        }
    }
}

/// The gradients of one head.
struct OneHead<T> {
    q: Array2<T>,
    k: Array2<T>,
    points: Option<(Array2<T>, Option<Array2<T>>)>,
}

impl<T: Real> PointsGradients<T> {
    fn add(&mut self, set: usize, head: usize, own: &(Array2<T>, Option<Array2<T>>)) {
        let mut w1 = self.w1.slice_mut(s![set, head, .., ..]);
        w1 += &own.0;
        if let (Some(w2), Some(own)) = (&mut self.w2, &own.1) {
            let mut w2 = w2.slice_mut(s![set, head, .., ..]);
            w2 += own;
        }
    }
}

impl<T: Real> Settings<'_, T> {
    fn validate(&self, batch: usize, heads: usize, width: usize) -> Result<(), Error> {
        match self.magnitude {
            Magnitude::None => {}
            Magnitude::Norm { p } | Magnitude::Released { p, .. } => positive("p", p)?,
        }
        let Similarity::Squared { points, floor } = &self.similarity else {
            return Ok(());
        };
        if !(*floor >= 0.0 && floor.is_finite()) {
            return Err(Error::OutOfRange {
                name: "floor",
                range: "finite and at least 0",
                got: *floor,
            });
        }
        points.validate(batch, heads, width)
    }
}

/// `x` with zeros in place of the rows that are not finite and had no influence: behind a mask they
/// may hold anything, and `0 * NaN` would carry it into the gradient of the points.
fn without_masked<'a, T: Real>(
    x: ArrayView2<'a, T>,
    cotangent: &Array2<T>,
) -> CowArray<'a, T, Ix2> {
    let mut x = CowArray::from(x);
    if x.iter().any(|x| !x.is_finite()) {
        Zip::from(x.rows_mut())
            .and(cotangent.rows())
            .for_each(|mut row, cotangent| {
                if cotangent.iter().all(|&c| c == T::zero()) {
                    row.fill(T::zero());
                }
            });
    }
    x
}

/// Head `h` of a contiguous `[B, M, T, w]` array as a matrix.
fn slab<T: Real>(x: ArrayView4<'_, T>, h: usize) -> Mat<'_, T> {
    let (_, _, rows, width) = x.dim();
    let data = x.to_slice().expect("contiguous");
    Mat::new(&data[h * rows * width..(h + 1) * rows * width], rows, width)
}

fn matrix<T: Real>(x: &Array2<T>) -> Mat<'_, T> {
    Mat::new(x.as_slice().expect("contiguous"), x.nrows(), x.ncols())
}
