//! The inference network: from queries and keys to the posterior of the noise.

use crate::Error;
use crate::error::{expect_non_negative, expect_positive, expect_shape, expect_some};
use crate::linear::{Linear, add, leaky_relu, leaky_relu_pull_back};
use crate::means::Positions;
use bochner_numerics::{Real, parallel};
use ndarray::{
    Array, Array1, Array2, Array3, Array4, ArrayView1, ArrayView2, ArrayView3, ArrayView4, s,
};

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
///
/// A mean over the whole sequence lets every position see every other one: with a causal mask,
/// points inferred from the same sequence leak the future into the past.
///
/// # Shapes
/// `w1` is `[d, 2d]`, `w2` and `w3` are `[d, d]`, the biases `[d]`.
///
/// # Reference
/// Song, Jung, Kim, Moon, *Implicit kernel attention*, 2021, section on the variational posterior.
///
/// # Example
/// ```
/// use bochner_spectral::InferenceNetwork;
/// use ndarray::{Array1, Array2, array};
///
/// let (w1, w, b) = (Array2::zeros((1, 2)), Array2::zeros((1, 1)), Array1::zeros(1));
/// let network = InferenceNetwork {
///     w1: w1.view(), b1: b.view(),
///     w2: w.view(), b2: b.view(),
///     w3: w.view(), b3: b.view(),
///     slope: 0.2,
///     prior_std: 0.1_f64,
/// };
/// let (q, k) = (array![[[[1.0], [3.0]]]], array![[[[5.0], [f64::NAN]]]]);
/// let k_kept = array![[true, false]];
/// let posterior = network.infer(q.view(), k.view(), None, Some(k_kept.view()))?;
/// assert_eq!(posterior.h, array![[[2.0, 5.0]]]);
/// assert_eq!(posterior.log_sigma[[0, 0, 0]], 0.1_f64.ln()); // zero weights: the prior
/// # Ok::<(), bochner_spectral::Error>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct InferenceNetwork<'a, T> {
    /// Weights from the means to the hidden layer.
    pub w1: ArrayView2<'a, T>,
    /// Biases of the hidden layer.
    pub b1: ArrayView1<'a, T>,
    /// Weights from the hidden layer to $\mu$.
    pub w2: ArrayView2<'a, T>,
    /// Biases of $\mu$.
    pub b2: ArrayView1<'a, T>,
    /// Weights from the hidden layer to $\log\sigma$.
    pub w3: ArrayView2<'a, T>,
    /// Biases of $\log\sigma$.
    pub b3: ArrayView1<'a, T>,
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
    /// Of the hidden layer, where something else reads it (an amortised copula does).
    pub hidden: Option<ArrayView3<'a, T>>,
    /// Of the mean.
    pub mu: ArrayView3<'a, T>,
    /// Of the logarithm of the standard deviation.
    pub log_sigma: ArrayView3<'a, T>,
}

/// The gradients of [`InferenceNetwork::infer`], named and shaped as what they belong to.
#[derive(Clone, Debug, PartialEq)]
pub struct InferenceGradients<T> {
    /// Along the queries, `[B, M, Tq, d]`; zero where not kept.
    pub q: Array4<T>,
    /// Along the keys, `[B, M, Tk, d]`; zero where not kept.
    pub k: Array4<T>,
    /// Along the weights of the hidden layer.
    pub w1: Array2<T>,
    /// Along the biases of the hidden layer.
    pub b1: Array1<T>,
    /// Along the weights of $\mu$.
    pub w2: Array2<T>,
    /// Along the biases of $\mu$.
    pub b2: Array1<T>,
    /// Along the weights of $\log\sigma$.
    pub w3: Array2<T>,
    /// Along the biases of $\log\sigma$.
    pub b3: Array1<T>,
}

impl<T: Real> InferenceNetwork<'_, T> {
    /// The posterior given queries and keys.
    ///
    /// # Shapes
    /// `q` is `[B, M, Tq, d]`, `k` is `[B, M, Tk, d]`; `q_kept` `[B, Tq]` and `k_kept` `[B, Tk]`
    /// are true where a position counts, and `None` keeps all.
    ///
    /// # Errors
    /// [`Error::ShapeMismatch`] naming what does not fit `q`, [`Error::Empty`] if $d = 0$,
    /// [`Error::OutOfRange`] for a negative slope or a prior without width.
    ///
    /// # Numerics
    /// The means are summed in double precision. Values at positions that are not kept are never
    /// read, be they NaN.
    pub fn infer(
        &self,
        q: ArrayView4<T>,
        k: ArrayView4<T>,
        q_kept: Option<ArrayView2<bool>>,
        k_kept: Option<ArrayView2<bool>>,
    ) -> Result<Inferred<T>, Error> {
        let (batch, heads, _, width) = q.dim();
        let layers = self.layers(width)?;
        let [q, k] = both_positions(q, k, q_kept, k_kept)?;
        let rows = batch * heads;
        let mut h = vec![T::zero(); rows * 2 * width];
        parallel::for_each_chunk(&mut h, 2 * width, |i, row| {
            let (b, m) = (i / heads, i % heads);
            let (q_mean, k_mean) = row.split_at_mut(width);
            q.mean(b, m, q_mean);
            k.mean(b, m, k_mean);
        });
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
    /// `inferred` is what [`infer`](Self::infer) gave for these arguments; of `q` and `k` only the
    /// shapes matter here.
    ///
    /// # Errors
    /// As [`infer`](Self::infer), and [`Error::ShapeMismatch`] if a part of `inferred` or a
    /// cotangent does not fit.
    pub fn infer_vjp(
        &self,
        q: ArrayView4<T>,
        k: ArrayView4<T>,
        q_kept: Option<ArrayView2<bool>>,
        k_kept: Option<ArrayView2<bool>>,
        inferred: &Inferred<T>,
        cotangents: &InferredCotangents<T>,
    ) -> Result<InferenceGradients<T>, Error> {
        let (batch, heads, _, width) = q.dim();
        let layers = self.layers(width)?;
        let [q, k] = both_positions(q, k, q_kept, k_kept)?;
        let shape = [batch, heads, width];
        expect_shape("h", &[batch, heads, 2 * width], inferred.h.shape())?;
        expect_shape("hidden", &shape, inferred.hidden.shape())?;
        cotangents.check(&shape)?;

        let rows = batch * heads;
        let (h, hidden) = (
            elements(inferred.h.view()),
            elements(inferred.hidden.view()),
        );
        let mu = layers.mu.pull_back(&hidden, &elements(cotangents.mu), rows);
        let log_sigma = elements(cotangents.log_sigma);
        let log_sigma = layers.log_sigma.pull_back(&hidden, &log_sigma, rows);
        let mut along_hidden = mu.x;
        add(&mut along_hidden, &log_sigma.x);
        if let Some(direct) = cotangents.hidden {
            add(&mut along_hidden, &elements(direct));
        }
        leaky_relu_pull_back(self.slope, &hidden, &mut along_hidden);
        let first = layers.hidden.pull_back(&h, &along_hidden, rows);
        let along_h =
            Array3::from_shape_vec((batch, heads, 2 * width), first.x).expect("one row per head");
        Ok(InferenceGradients {
            q: q.spread(|b, m| along_h.slice(s![b, m, ..width])),
            k: k.spread(|b, m| along_h.slice(s![b, m, width..])),
            w1: first.weight,
            b1: first.bias,
            w2: mu.weight,
            b2: mu.bias,
            w3: log_sigma.weight,
            b3: log_sigma.bias,
        })
    }

    fn layers(&self, width: usize) -> Result<Layers<'_, T>, Error> {
        expect_some("width", width)?;
        expect_non_negative("slope", self.slope)?;
        expect_positive("prior_std", self.prior_std)?;
        Ok(Layers {
            hidden: Linear::new(("w1", &self.w1), ("b1", &self.b1), width, 2 * width)?,
            mu: Linear::new(("w2", &self.w2), ("b2", &self.b2), width, width)?,
            log_sigma: Linear::new(("w3", &self.w3), ("b3", &self.b3), width, width)?,
        })
    }
}

impl<T: Real> InferredCotangents<'_, T> {
    fn check(&self, shape: &[usize]) -> Result<(), Error> {
        if let Some(hidden) = &self.hidden {
            expect_shape("cotangent of hidden", shape, hidden.shape())?;
        }
        expect_shape("cotangent of mu", shape, self.mu.shape())?;
        expect_shape("cotangent of log_sigma", shape, self.log_sigma.shape())
    }
}

struct Layers<'a, T> {
    hidden: Linear<'a, T>,
    mu: Linear<'a, T>,
    log_sigma: Linear<'a, T>,
}

fn both_positions<'a, T: Real>(
    q: ArrayView4<'a, T>,
    k: ArrayView4<'a, T>,
    q_kept: Option<ArrayView2<'a, bool>>,
    k_kept: Option<ArrayView2<'a, bool>>,
) -> Result<[Positions<'a, T>; 2], Error> {
    let (batch, heads, _, width) = q.dim();
    expect_shape("k", &[batch, heads, k.dim().2, width], k.shape())?;
    Ok([
        Positions::new(q, "q_kept", q_kept)?,
        Positions::new(k, "k_kept", k_kept)?,
    ])
}

/// The elements in row-major order.
fn elements<T: Real>(x: ArrayView3<T>) -> Vec<T> {
    x.iter().copied().collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{finite, random};
    use bochner_numerics::relative_error;
    use ndarray::array;

    struct Case {
        q: Array4<f64>,
        k: Array4<f64>,
        q_kept: Array2<bool>,
        k_kept: Array2<bool>,
        w1: Array2<f64>,
        square: [Array2<f64>; 2],
        biases: [Array1<f64>; 3],
        cotangents: [Array3<f64>; 3],
    }

    /// Two examples of two heads, width 3; the second example keeps no query.
    fn case() -> Case {
        Case {
            q: random((2, 2, 3, 3), "q"),
            k: random((2, 2, 4, 3), "k"),
            q_kept: array![[true, false, true], [false, false, false]],
            k_kept: array![[true, true, true, false], [false, true, false, true]],
            w1: random((3, 6), "w1"),
            square: ["w2", "w3"].map(|name| random((3, 3), name)),
            biases: ["b1", "b2", "b3"].map(|name| random(3, name)),
            cotangents: ["hidden", "mu", "log sigma"].map(|name| random((2, 2, 3), name)),
        }
    }

    impl Case {
        fn network(&self) -> InferenceNetwork<'_, f64> {
            InferenceNetwork {
                w1: self.w1.view(),
                b1: self.biases[0].view(),
                w2: self.square[0].view(),
                b2: self.biases[1].view(),
                w3: self.square[1].view(),
                b3: self.biases[2].view(),
                slope: 0.2,
                prior_std: 0.1,
            }
        }

        fn infer(&self, network: &InferenceNetwork<f64>) -> Inferred<f64> {
            self.infer_from(network, self.q.view(), self.k.view())
        }

        fn infer_from(
            &self,
            network: &InferenceNetwork<f64>,
            q: ArrayView4<f64>,
            k: ArrayView4<f64>,
        ) -> Inferred<f64> {
            let (q_kept, k_kept) = (self.q_kept.view(), self.k_kept.view());
            network.infer(q, k, Some(q_kept), Some(k_kept)).unwrap()
        }

        fn pairing(&self, inferred: &Inferred<f64>) -> f64 {
            let [hidden, mu, log_sigma] = &self.cotangents;
            (hidden * &inferred.hidden).sum()
                + (mu * &inferred.mu).sum()
                + (log_sigma * &inferred.log_sigma).sum()
        }

        fn gradients(&self) -> InferenceGradients<f64> {
            let cotangents = InferredCotangents {
                hidden: Some(self.cotangents[0].view()),
                mu: self.cotangents[1].view(),
                log_sigma: self.cotangents[2].view(),
            };
            let (q_kept, k_kept) = (Some(self.q_kept.view()), Some(self.k_kept.view()));
            let inferred = self.infer(&self.network());
            let (q, k) = (self.q.view(), self.k.view());
            self.network()
                .infer_vjp(q, k, q_kept, k_kept, &inferred, &cotangents)
                .unwrap()
        }
    }

    fn close<D: ndarray::Dimension>(got: &Array<f64, D>, want: Vec<f64>) {
        assert!(relative_error(got.as_slice().unwrap(), &want) < 1e-6);
    }

    #[test]
    fn gradients_along_queries_and_keys_agree_with_finite_differences() {
        let c = case();
        let (got, network) = (c.gradients(), c.network());
        let from =
            |q: ArrayView4<f64>, k: ArrayView4<f64>| c.pairing(&c.infer_from(&network, q, k));
        close(&got.q, finite(&c.q, |q| from(q, c.k.view())));
        close(&got.k, finite(&c.k, |k| from(c.q.view(), k)));
        assert!(got.q.slice(s![1, .., .., ..]).iter().all(|&g| g == 0.0));
    }

    #[test]
    fn gradients_along_the_parameters_agree_with_finite_differences() {
        let c = case();
        let got = c.gradients();
        let value = |network: InferenceNetwork<f64>| c.pairing(&c.infer(&network));
        let [w2, w3] = &c.square;
        close(
            &got.w1,
            finite(&c.w1, |w1| value(InferenceNetwork { w1, ..c.network() })),
        );
        close(
            &got.w2,
            finite(w2, |w2| value(InferenceNetwork { w2, ..c.network() })),
        );
        close(
            &got.w3,
            finite(w3, |w3| value(InferenceNetwork { w3, ..c.network() })),
        );
        let [b1, b2, b3] = &c.biases;
        close(
            &got.b1,
            finite(b1, |b1| value(InferenceNetwork { b1, ..c.network() })),
        );
        close(
            &got.b2,
            finite(b2, |b2| value(InferenceNetwork { b2, ..c.network() })),
        );
        close(
            &got.b3,
            finite(b3, |b3| value(InferenceNetwork { b3, ..c.network() })),
        );
    }

    #[test]
    fn nothing_kept_leaves_the_biases_alone() {
        let c = case();
        let none = (
            Array2::from_elem((2, 3), false),
            Array2::from_elem((2, 4), false),
        );
        let kept = (Some(none.0.view()), Some(none.1.view()));
        let got = c
            .network()
            .infer(c.q.view(), c.k.view(), kept.0, kept.1)
            .unwrap();
        assert!(got.h.iter().all(|&h| h == 0.0));
        for l in 0..3 {
            let b = c.biases[0][l];
            let want = if b > 0.0 { b } else { 0.2 * b };
            assert_eq!(got.hidden[[1, 1, l]], want);
        }
    }

    #[test]
    fn zero_weights_leave_the_prior() {
        let mut c = case();
        c.square.iter_mut().for_each(|w| w.fill(0.0));
        c.biases[1..].iter_mut().for_each(|b| b.fill(0.0));
        let got = c.infer(&c.network());
        assert!(got.mu.iter().all(|&mu| mu == 0.0));
        assert!(got.log_sigma.iter().all(|&s| s == 0.1_f64.ln()));
    }

    #[test]
    fn what_does_not_fit_is_named() {
        let c = case();
        let (q, k) = (c.q.view(), c.k.view());
        let what = |result: Result<Inferred<f64>, Error>| match result.unwrap_err() {
            Error::ShapeMismatch { what, .. } | Error::OutOfRange { what, .. } => what,
            Error::Empty { what } => what,
            other => panic!("{other}"),
        };
        let network = c.network();
        assert_eq!(
            what(network.infer(q, k, Some(c.k_kept.view()), None)),
            "q_kept"
        );
        assert_eq!(
            what(network.infer(q, k, None, Some(c.q_kept.view()))),
            "k_kept"
        );
        let one_head = k.slice_move(s![.., ..1, .., ..]);
        assert_eq!(what(network.infer(q, one_head, None, None)), "k");
        let flat = InferenceNetwork {
            prior_std: 0.0,
            ..c.network()
        };
        assert_eq!(what(flat.infer(q, k, None, None)), "prior_std");
        let square = InferenceNetwork {
            w1: c.square[0].view(),
            ..c.network()
        };
        assert_eq!(what(square.infer(q, k, None, None)), "w1");
    }
}
