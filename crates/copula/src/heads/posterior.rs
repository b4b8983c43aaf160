//! MIKAN's joint posterior: Gaussian marginals, coupled over the heads by a Gaussian copula.

use crate::Error;
use crate::factor::{Stack, flat};
use bochner_numerics::operations::record;
use bochner_numerics::scaling::bounded;
use bochner_numerics::{Operations, Real, argument, parallel};
use ndarray::{Array3, Array4, ArrayView3, ArrayView4, Axis};
use std::ops::Range;

/// Draws from the joint posterior.
#[derive(Clone, Debug, PartialEq)]
pub struct JointDraw<T> {
    /// The draws, `[B, M, R, d]`.
    pub z: Array4<T>,
    /// The standard normal variables behind them, correlated over the heads, `[B, M, R, d]`.
    pub x: Array4<T>,
}

/// Draws from the joint posterior over the heads, from independent standard normal numbers.
///
/// $$x_{mlr} = \sum_{k \le m} \hat L_{l,mk} \epsilon_{klr}, \qquad
///   z_{mlr} = \mu_{ml} + \sigma_{ml} x_{mlr}$$
///
/// *where* `m`, `k` run over the heads, `l` over the latent dimensions and `r` over the draws. The
/// marginals are Gaussian, so that the copula's quantile functions cancel and nothing is clamped.
/// With the identity as factor the result is the independent posterior's, value for value.
///
/// # Shapes
/// `mu` and `log_sigma: [B, M, d]`, `lh: [1 or B, d, M, M]` (shared by the batch or one per
/// example), `eps: [B, M, R, d]`; `z` and `x: [B, M, R, d]`.
///
/// # Errors
/// [`Error::Argument`] for shapes that do not fit together or without entries, or an `lh` that is not
/// finite; [`Error::Diagonal`] for `lh`. The rows of `lh` are not normalised here: normalise them first.
///
/// # Numerics
/// A standard deviation beyond the type's range is its largest number, and so is a gradient: moderate noise
/// gives no NaN. $O(B d R M^2)$. The loops over the heads are written out: for each pair of heads the inner loop runs
/// over the latent dimensions, which stand next to each other, where a product per latent dimension
/// would multiply matrices of M x M.
///
/// # Reference
/// Song, Jung, Kim, Moon, *Implicit Kernel Attention*, AAAI 2021, MIKAN. The authors' code
/// contracts each head with itself only, which leaves the heads independent; here they are not.
///
/// # Example
///
/// ```
/// use bochner_copula::heads::joint_posterior;
/// use bochner_copula::ndarray::{Array, array};
///
/// let (mu, log_sigma) = (Array::ones((1, 2, 1)), Array::zeros((1, 2, 1)));
/// let lh = array![[[[1.0, 0.0], [0.6, 0.8]]]];
/// let eps = array![[[[1.0]], [[-0.5]]]];
/// let draw = joint_posterior(mu.view(), log_sigma.view(), lh.view(), eps.view())?;
/// assert_eq!(draw.x, array![[[[1.0]], [[0.6 * 1.0 - 0.8 * 0.5]]]]);
/// assert_eq!(draw.z, 1.0 + &draw.x);
/// # Ok::<(), bochner_copula::Error>(())
/// ```
pub fn joint_posterior<T: Real>(
    mu: ArrayView3<T>,
    log_sigma: ArrayView3<T>,
    lh: ArrayView4<T>,
    eps: ArrayView4<T>,
) -> Result<JointDraw<T>, Error> {
    let size = Size::of(log_sigma, lh, eps)?;
    argument::shape("mu", log_sigma.shape(), mu.shape())?;
    let weights = heads_first(lh);
    let source = eps.as_standard_layout();
    let source = slice(source.as_slice());
    let mut x = Array4::zeros(eps.dim());
    let target = x.as_slice_mut().expect("made in standard layout");
    parallel::for_each_chunk(target, size.heads * size.head(), |b, x| {
        mix(size, size.factor(&weights, b), size.nth(source, b), x);
    });
    record(Operations::multiply_adds(x.len()) + Operations::exponentials(x.len()));
    let z = Array4::from_shape_fn(x.dim(), |(b, m, r, l)| {
        mu[[b, m, l]] + bounded(log_sigma[[b, m, l]].exp()) * x[[b, m, r, l]]
    });
    Ok(JointDraw { z, x })
}

/// The gradients of [`joint_posterior`].
#[derive(Clone, Debug, PartialEq)]
pub struct JointGradients<T> {
    /// The gradient along `mu`, `[B, M, d]`.
    pub mu: Array3<T>,
    /// The gradient along `log_sigma`, `[B, M, d]`.
    pub log_sigma: Array3<T>,
    /// The gradient along `lh`, `[1 or B, d, M, M]`, zero above the diagonals.
    pub lh: Array4<T>,
    /// The gradient along `eps`, `[B, M, R, d]`.
    pub eps: Array4<T>,
}

/// The vector-Jacobian product of [`joint_posterior`]'s `z`.
///
/// $$\bar x_{mlr} = \sigma_{ml} \bar z_{mlr}, \quad
///   \bar \mu_{ml} = \sum_r \bar z_{mlr}, \quad
///   \bar L_{l,mk} = \sum_r \bar x_{mlr} \epsilon_{klr}, \quad
///   \bar \lambda_{ml} = \sum_{k \le m} \hat L_{l,mk} \bar L_{l,mk}, \quad
///   \bar \epsilon_{klr} = \sum_{m \ge k} \hat L_{l,mk} \bar x_{mlr}$$
///
/// *where* a bar marks the cotangent of what is below it, and $\lambda = \log \sigma$.
///
/// # Shapes
/// `log_sigma`, `lh`, `eps` as in [`joint_posterior`] (the mean does not matter), `cotangent:
/// [B, M, R, d]`. The gradient of a factor shared by the batch is the sum over the examples.
///
/// # Errors
/// The errors of [`joint_posterior`].
pub fn joint_posterior_vjp<T: Real>(
    log_sigma: ArrayView3<T>,
    lh: ArrayView4<T>,
    eps: ArrayView4<T>,
    cotangent: ArrayView4<T>,
) -> Result<JointGradients<T>, Error> {
    let size = Size::of(log_sigma, lh, eps)?;
    argument::shape("cotangent", eps.shape(), cotangent.shape())?;
    let weights = heads_first(lh);
    let eps = eps.as_standard_layout();
    let mut bar = Array4::zeros(eps.dim());
    bar.assign(&cotangent);
    let mu = bar.sum_axis(Axis(2));
    let sigma = log_sigma.mapv(|x| bounded(x.exp()));
    bar = (bar * sigma.insert_axis(Axis(2))).mapv_into(bounded);
    let (source, bar) = (slice(eps.as_slice()), slice(bar.as_slice()));
    let examples = parallel::map(size.batch, |b| {
        let weights = size.factor(&weights, b);
        let (eps, bar) = (size.nth(source, b), size.nth(bar, b));
        let found = unmix(size, weights, eps, bar, |x| x);
        if [&found.0, &found.1]
            .into_iter()
            .flatten()
            .all(|x| x.is_finite())
        {
            return found;
        }
        // Infinities of both signs would meet.
        unmix(size, weights, eps, bar, bounded)
    });
    let (log_sigma, lh, eps) = gather(size, &weights, examples);
    Ok(JointGradients {
        mu,
        log_sigma,
        lh,
        eps,
    })
}

/// The lengths of the axes.
#[derive(Clone, Copy)]
struct Size {
    batch: usize,
    heads: usize,
    draws: usize,
    width: usize,
    /// 1 or `batch`.
    factors: usize,
}

impl Size {
    fn of<T: Real>(
        log_sigma: ArrayView3<T>,
        lh: ArrayView4<T>,
        eps: ArrayView4<T>,
    ) -> Result<Self, Error> {
        argument::not_empty("eps", eps.shape())?;
        let (batch, heads, draws, width) = eps.dim();
        argument::shape("log_sigma", &[batch, heads, width], log_sigma.shape())?;
        let factors = if lh.dim().0 == 1 { 1 } else { batch };
        argument::shape("lh", &[factors, width, heads, heads], lh.shape())?;
        Stack::new("lh", flat(&lh).view())?;
        Ok(Self {
            batch,
            heads,
            draws,
            width,
            factors,
        })
    }

    /// The number of elements of one head's draws.
    fn head(self) -> usize {
        self.draws * self.width
    }

    /// Example `b` of `[B, M, R, d]`.
    fn nth<T>(self, data: &[T], b: usize) -> &[T] {
        let length = self.heads * self.head();
        &data[b * length..][..length]
    }

    /// The weights `[M, M, d]` of example `b`.
    fn factor<T>(self, weights: &[T], b: usize) -> &[T] {
        let length = self.heads * self.heads * self.width;
        &weights[b % self.factors * length..][..length]
    }

    /// The range of the weights of head `k` in head `m` in `[M, M, d]`.
    fn pair(self, m: usize, k: usize) -> Range<usize> {
        let start = (m * self.heads + k) * self.width;
        start..start + self.width
    }
}

/// `[n, d, M, M]` as rows over the latent dimensions, `[n, M, M, d]`: the innermost loops then run
/// over consecutive numbers.
fn heads_first<T: Real>(lh: ArrayView4<T>) -> Vec<T> {
    lh.permuted_axes([0, 2, 3, 1]).iter().copied().collect()
}

/// Adds `x_m = sum_(k <= m) Lh_mk eps_k` of one example to `x`.
fn mix<T: Real>(size: Size, weights: &[T], eps: &[T], x: &mut [T]) {
    let pairs = size.heads * (size.heads + 1) / 2;
    record(Operations::multiply_adds(pairs * size.head()));
    for (m, x) in x.chunks_exact_mut(size.head()).enumerate() {
        for (k, eps) in eps.chunks_exact(size.head()).take(m + 1).enumerate() {
            add_scaled(&weights[size.pair(m, k)], eps, x, |x| x);
        }
    }
}

/// The cotangents `[M, M, d]` of the weights and `[M, R, d]` of `eps` of one example, from that
/// of `x`; `held` is applied to every term and sum.
fn unmix<T: Real>(
    size: Size,
    weights: &[T],
    eps: &[T],
    bar: &[T],
    held: impl Fn(T) -> T + Copy,
) -> (Vec<T>, Vec<T>) {
    let mut to_weights = vec![T::zero(); weights.len()];
    let mut to_eps = vec![T::zero(); eps.len()];
    for (m, bar) in bar.chunks_exact(size.head()).enumerate() {
        let heads = eps.chunks_exact(size.head());
        let targets = to_eps.chunks_exact_mut(size.head());
        for (k, (eps, to_eps)) in heads.zip(targets).take(m + 1).enumerate() {
            add_scaled(&weights[size.pair(m, k)], bar, to_eps, held);
            add_products(bar, eps, &mut to_weights[size.pair(m, k)], held);
        }
    }
    (to_weights, to_eps)
}

/// `y_rl += w_l x_rl`.
#[inline]
fn add_scaled<T: Real>(w: &[T], x: &[T], y: &mut [T], held: impl Fn(T) -> T) {
    for (x, y) in x.chunks_exact(w.len()).zip(y.chunks_exact_mut(w.len())) {
        for ((y, &x), &w) in y.iter_mut().zip(x).zip(w) {
            *y = held(*y + held(w * x));
        }
    }
}

/// `w_l += sum_r x_rl y_rl`.
#[inline]
fn add_products<T: Real>(x: &[T], y: &[T], w: &mut [T], held: impl Fn(T) -> T) {
    for (x, y) in x.chunks_exact(w.len()).zip(y.chunks_exact(w.len())) {
        for ((w, &x), &y) in w.iter_mut().zip(x).zip(y) {
            *w = held(*w + held(x * y));
        }
    }
}

/// The cotangents of `log_sigma`, `lh` and `eps`, from those of each example in order.
fn gather<T: Real>(
    size: Size,
    weights: &[T],
    examples: Vec<(Vec<T>, Vec<T>)>,
) -> (Array3<T>, Array4<T>, Array4<T>) {
    let Size { heads, width, .. } = size;
    let mut log_sigma = Array3::zeros((size.batch, heads, width));
    let mut lh = Array4::zeros((size.factors, heads, heads, width));
    let mut eps = Vec::with_capacity(size.batch * heads * size.head());
    for (b, (to_weights, to_eps)) in examples.into_iter().enumerate() {
        let shape = (heads, heads, width);
        let bar = ArrayView3::from_shape(shape, &to_weights).expect("M M d elements");
        let w = ArrayView3::from_shape(shape, size.factor(weights, b)).expect("M M d elements");
        log_sigma
            .index_axis_mut(Axis(0), b)
            .assign(&(&w * &bar).sum_axis(Axis(1)));
        lh.index_axis_mut(Axis(0), b % size.factors)
            .scaled_add(T::one(), &bar);
        eps.extend(to_eps);
    }
    let eps = Array4::from_shape_vec((size.batch, heads, size.draws, width), eps);
    let lh = lh
        .permuted_axes([0, 3, 1, 2])
        .as_standard_layout()
        .into_owned();
    (log_sigma, lh, eps.expect("B M R d elements"))
}

fn slice<T>(slice: Option<&[T]>) -> &[T] {
    slice.expect("brought into standard layout before")
}
