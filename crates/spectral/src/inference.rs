//! The inference network: from queries and keys to the posterior of the noise.

use crate::Error;
use crate::affine::{AffineGradients, AffineLayer, Layer, leaky_relu, leaky_relu_pull_back};
use crate::features::{Features, same_values};
use bochner_numerics::{Real, argument};
use bochner_ops::rows::add;
use ndarray::{Array, Array3, Array4, ArrayView3, s};

/// The network $q(z \mid h)$, shared by the heads of a layer.
///
/// $$h = (\bar q, \bar k), \qquad
/// \mathrm{hidden} = \lambda(W_1 h + b_1), \qquad
/// \mu = W_2 \mathrm{hidden} + b_2, \qquad
/// \log\sigma = W_3 \mathrm{hidden} + b_3 + \log s_0$$
///
/// *where*
/// * $\bar q$, $\bar k$: means over the kept positions, zero if there is none
/// * $\lambda$: LeakyReLU with the given slope
/// * $s_0$: `prior_std`, the standard deviation of the prior $z \sim N(0, s_0^2 I)$; adding its
///   logarithm makes the posterior start near the prior
/// * $W_1, b_1$: `hidden`, $W_2, b_2$: `mu`, $W_3, b_3$: `log_sigma`
///
/// A mean over the whole sequence lets every position see every other one: with a causal mask,
/// points inferred from the same sequence leak the future into the past.
///
/// # Shapes
/// The weights of `hidden` are `[d, 2d]`, those of `mu` and `log_sigma` `[d, d]`, the biases `[d]`.
///
/// # Reference
/// Song, Jung, Kim, Moon, *Implicit kernel attention*, 2021, section on the variational posterior.
///
/// # Example
/// ```
/// use bochner_spectral::{AffineLayer, Features, InferenceNetwork};
/// use bochner_spectral::ndarray::{Array1, Array2, array};
///
/// let (wide, square, bias) = (Array2::zeros((1, 2)), Array2::zeros((1, 1)), Array1::zeros(1));
/// let zero = AffineLayer { weight: square.view(), bias: bias.view() };
/// let network = InferenceNetwork {
///     hidden: AffineLayer { weight: wide.view(), bias: bias.view() },
///     mu: zero,
///     log_sigma: zero,
///     slope: 0.2,
///     prior_std: 0.1_f64,
/// };
/// let (q, k) = (array![[[[1.0], [3.0]]]], array![[[[5.0], [f64::NAN]]]]);
/// let k_kept = array![[true, false]];
/// let features = Features { k_kept: Some(k_kept.view()), ..Features::new(q.view(), k.view()) };
/// let posterior = network.infer(&features)?;
/// assert_eq!(posterior.h, array![[[2.0, 5.0]]]);
/// assert_eq!(posterior.log_sigma[[0, 0, 0]], 0.1_f64.ln()); // zero weights: the prior
/// # Ok::<(), bochner_spectral::Error>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct InferenceNetwork<'a, T> {
    /// The layer from the means to the hidden features.
    pub hidden: AffineLayer<'a, T>,
    /// The layer from the hidden features to $\mu$.
    pub mu: AffineLayer<'a, T>,
    /// The layer from the hidden features to $\log\sigma - \log s_0$.
    pub log_sigma: AffineLayer<'a, T>,
    /// Slope of LeakyReLU on the negative side.
    pub slope: T,
    /// Standard deviation of the prior.
    pub prior_std: T,
}

/// The posterior of each head of each example, with what led to it.
#[derive(Clone, Debug, PartialEq)]
pub struct Inferred<T> {
    /// The means of queries and keys, `[B, M, 2d]`.
    pub h: Array3<T>,
    /// The hidden layer after LeakyReLU, `[B, M, d]`.
    pub hidden: Array3<T>,
    /// The posterior's mean, `[B, M, d]`.
    pub mu: Array3<T>,
    /// The logarithm of the posterior's standard deviation, `[B, M, d]`.
    pub log_sigma: Array3<T>,
}

/// Cotangents of an [`Inferred`], each `[B, M, d]`.
#[derive(Clone, Copy, Debug)]
pub struct InferredCotangents<'a, T> {
    /// The cotangent of the hidden layer, where something else reads it (an amortised copula does).
    pub hidden: Option<ArrayView3<'a, T>>,
    /// The cotangent of the mean.
    pub mu: ArrayView3<'a, T>,
    /// The cotangent of the logarithm of the standard deviation.
    pub log_sigma: ArrayView3<'a, T>,
}

/// The gradients of [`InferenceNetwork::infer`], along features and parameters.
#[derive(Clone, Debug, PartialEq)]
pub struct InferenceGradients<T> {
    /// Along the queries, `[B, M, Tq, d]`; zero where not kept.
    pub q: Array4<T>,
    /// Along the keys, `[B, M, Tk, d]`; zero where not kept.
    pub k: Array4<T>,
    /// Along the parameters of the hidden layer.
    pub hidden: AffineGradients<T>,
    /// Along the parameters of $\mu$'s layer.
    pub mu: AffineGradients<T>,
    /// Along the parameters of $\log\sigma$'s layer.
    pub log_sigma: AffineGradients<T>,
}

impl<T: Real> InferenceNetwork<'_, T> {
    /// The posterior given queries and keys.
    ///
    /// # Errors
    /// [`Error::Argument`] if something does not fit the queries, if $d = 0$, or if `slope` is negative
    /// or `prior_std` not positive.
    ///
    /// # Numerics
    /// The means are summed in double precision. Values at positions that are not kept are never
    /// read, be they NaN.
    pub fn infer(&self, features: &Features<T>) -> Result<Inferred<T>, Error> {
        let (batch, heads, width) = features.checked()?;
        let layers = self.layers(width)?;
        let (rows, h) = (batch * heads, features.means());
        let mut hidden = layers.hidden.apply(&h, rows);
        leaky_relu(self.slope, &mut hidden);
        let mu = layers.mu.apply(&hidden, rows);
        let mut log_sigma = layers.log_sigma.apply(&hidden, rows);
        let log_prior_std = self.prior_std.ln();
        log_sigma.iter_mut().for_each(|x| *x += log_prior_std);

        let array = |width, data| {
            Array::from_shape_vec((batch, heads, width), data).expect("one row per head")
        };
        Ok(Inferred {
            h: array(2 * width, h),
            hidden: array(width, hidden),
            mu: array(width, mu),
            log_sigma: array(width, log_sigma),
        })
    }

    /// The vector-Jacobian product of [`infer`](Self::infer).
    ///
    /// With $\dot a$ the cotangent of the hidden layer before LeakyReLU,
    /// $$\dot a = \lambda'(a) \odot (\dot{\mathrm{hidden}} + W_2^\top \dot\mu +
    /// W_3^\top \dot{\log\sigma}), \qquad \dot h = W_1^\top \dot a,$$
    /// and every kept query takes $\dot{\bar q}$ divided by their number, every kept key
    /// likewise.
    ///
    /// # Shapes
    /// `inferred` is what [`infer`](Self::infer) gave for these features.
    ///
    /// # Errors
    /// The errors of [`infer`](Self::infer), [`Error::Argument`] if a part of `inferred` or a cotangent
    /// does not fit, and [`Error::ForeignDraw`] if features with other means led to `inferred`.
    pub fn infer_vjp(
        &self,
        features: &Features<T>,
        inferred: &Inferred<T>,
        cotangents: &InferredCotangents<T>,
    ) -> Result<InferenceGradients<T>, Error> {
        let (batch, heads, width) = features.checked()?;
        let layers = self.layers(width)?;
        let [q, k] = features.positions();
        let shape = [batch, heads, width];
        argument::shape("h", &[batch, heads, 2 * width], inferred.h.shape())?;
        argument::shape("hidden", &shape, inferred.hidden.shape())?;
        cotangents.check(&shape)?;

        let (h, hidden) = (
            elements(inferred.h.view()),
            elements(inferred.hidden.view()),
        );
        if !same_values(&h, &features.means()) {
            return Err(Error::ForeignDraw);
        }
        let (mut x, mu) = (layers.mu).pull_back(&hidden, &elements(cotangents.mu));
        let along_log_sigma = elements(cotangents.log_sigma);
        let (more, log_sigma) = (layers.log_sigma).pull_back(&hidden, &along_log_sigma);
        add(&mut x, &more);
        if let Some(direct) = cotangents.hidden {
            add(&mut x, &elements(direct));
        }
        leaky_relu_pull_back(self.slope, &hidden, &mut x);
        let (x, hidden) = layers.hidden.pull_back(&h, &x);
        let along_h =
            Array3::from_shape_vec((batch, heads, 2 * width), x).expect("one row per head");
        Ok(InferenceGradients {
            q: q.spread(|b, m| along_h.slice(s![b, m, ..width])),
            k: k.spread(|b, m| along_h.slice(s![b, m, width..])),
            hidden,
            mu,
            log_sigma,
        })
    }

    fn layers(&self, width: usize) -> Result<Layers<'_, T>, Error> {
        argument::non_negative("slope", self.slope)?;
        argument::positive("prior_std", self.prior_std)?;
        Ok(Layers {
            hidden: self.hidden.checked("hidden", width, 2 * width)?,
            mu: self.mu.checked("mu", width, width)?,
            log_sigma: self.log_sigma.checked("log_sigma", width, width)?,
        })
    }
}

impl<T: Real> InferredCotangents<'_, T> {
    fn check(&self, shape: &[usize]) -> Result<(), Error> {
        if let Some(hidden) = &self.hidden {
            argument::shape("cotangent of hidden", shape, hidden.shape())?;
        }
        argument::shape("cotangent of mu", shape, self.mu.shape())?;
        argument::shape("cotangent of log_sigma", shape, self.log_sigma.shape())?;
        Ok(())
    }
}

struct Layers<'a, T> {
    hidden: Layer<'a, T>,
    mu: Layer<'a, T>,
    log_sigma: Layer<'a, T>,
}

/// The elements in row-major order.
fn elements<T: Real>(x: ArrayView3<T>) -> Vec<T> {
    x.iter().copied().collect()
}
