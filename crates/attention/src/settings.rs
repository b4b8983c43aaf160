//! One kind of attention, put together from its parts.

use crate::engine::{Attend, RandomFeatures, Tiled, Trained};
use crate::score::{Bipolar, Dot, LinearForm, PairKernel, Periodic, Points, Rbf, Squared};
use crate::{Bias, Error, Form, Magnitude, Mask, score};
use bochner_kernels::RandomFeatureMap;
use bochner_numerics::{DropoutMask, Real, argument};
use ndarray::ArrayView3;
use std::sync::Arc;

/// One kind of attention, with everything but the queries, keys and values.
///
/// Checked where it is used ([`attend`](crate::attend()), [`Settings::form_for`]). A clone shares
/// spectral points and masks.
///
/// ```
/// use bochner_attention::{Magnitude, Mask, Settings, attend};
/// use bochner_attention::ndarray::Array4;
///
/// let x = Array4::from_shape_fn((1, 2, 5, 4), |(_, m, t, n)| ((m + 2 * t + n) as f32).sin());
/// let softmax = Settings::softmax(&Mask::none().with_causality());
/// let rbf = Settings { magnitude: Magnitude::Norm { p: 1.5 }, ..Settings::rbf(&Mask::none()) };
/// for settings in [softmax, rbf] {
///     assert_eq!(attend(x.view(), x.view(), x.view(), &settings)?.output.shape(), x.shape());
/// }
/// # Ok::<(), bochner_attention::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Settings<T> {
    /// How alike a query and a key are.
    pub kernel: AttentionKernel<T>,
    /// What a key's size adds.
    pub magnitude: Magnitude,
    /// Which keys count.
    pub mask: Mask,
    /// What is added to the logits of pairs.
    pub bias: Option<Bias<T>>,
    /// Dropout on the normalised weights.
    pub dropout: Option<DropoutMask>,
    /// In which form attention is computed. [`Form::Automatic`] takes the linear-time form of a
    /// squared kernel or of random features where that is faster; it rounds otherwise ([`Form::LinearTime`]).
    pub form: Form,
}

/// A kernel of a query and a key, one of those that [`Settings`] makes.
#[derive(Clone, Debug)]
pub struct AttentionKernel<T>(Arc<dyn Attend<T>>);

impl<T: Real> Settings<T> {
    /// Attention with a kernel, without a magnitude and without dropout.
    pub(crate) fn of(kernel: impl PairKernel<T>, mask: &Mask) -> Self {
        Self::by(Tiled(kernel), mask)
    }

    /// Attention with a kernel that the engine does not weigh pair by pair.
    pub(crate) fn by(kernel: impl Attend<T> + 'static, mask: &Mask) -> Self {
        Self {
            kernel: AttentionKernel(Arc::new(kernel)),
            magnitude: Magnitude::None,
            mask: mask.clone(),
            bias: None,
            dropout: None,
            form: Form::Automatic,
        }
    }

    /// Softmax attention, $a_{ij} = \exp(q_i \cdot k_j / \sqrt d)$: [`Settings::rbf`] with the magnitude
    /// [`Norm`](Magnitude::Norm) at p = 2, where the squares of the keys cancel (Proposition 1).
    pub fn softmax(mask: &Mask) -> Self {
        Self::of(Dot { scale: None }, mask)
    }

    /// [`Settings::softmax`] with a scale of one's own, $a_{ij} = \exp(s q_i \cdot k_j)$, from 1e-30 to 1e30;
    /// other kernels have it in their own parameters.
    pub fn scaled_softmax(scale: f64, mask: &Mask) -> Self {
        Self::of(Dot { scale: Some(scale) }, mask)
    }

    /// $a_{ij} = \exp(-|q_i - k_j|^2 / (2\sqrt d))$, softmax attention's own kernel.
    pub fn rbf(mask: &Mask) -> Self {
        Self::of(Rbf, mask)
    }

    /// $a_{ij} = \exp(-2 \sin^2(\pi |q_i - k_j| / P) / \sqrt d)$ with the period P, from 1e-30 to 1e30:
    /// alike at every whole number of periods.
    pub fn expsin(period: f64, mask: &Mask) -> Self {
        Self::of(Periodic { period }, mask)
    }

    /// $a_{ij} = (q_i \cdot k_j / \sqrt d)^2$, squared so that it is not negative.
    pub fn linear(mask: &Mask) -> Self {
        Self::of(score::Linear, mask)
    }

    /// Bipolar attention: weights $2^{x_{ij} - \gamma_i}$ with the whole scores $x_{ij} = t(q_i) \cdot t(k_j)$ of
    /// ternary numbers, $t(x) = \operatorname{sign}(x) [|x| \ge \theta]$, and the smallest whole $\gamma_i$ with
    /// which a row sums to at most 1, whatever the rounding of the sum.
    ///
    /// Backwards t has the slope 1 / `surrogate_width` where $||x| - \theta|$ is less than half that width. With
    /// a bias or a magnitude scores are not whole, and $\gamma$ follows their sum in `f64`, its rounding errors added.
    pub fn bipolar(threshold: f64, surrogate_width: f64, mask: &Mask) -> Self {
        let window = Some(surrogate_width);
        Self::of(Bipolar { threshold, window }, mask)
    }

    /// [`Settings::bipolar`] of queries and keys that are ternary already; their gradient is their own.
    #[cfg(feature = "dfdx")]
    pub(crate) fn of_spikes(mask: &Mask) -> Self {
        let (threshold, window) = (0.5, None);
        Self::of(Bipolar { threshold, window }, mask)
    }

    /// $a_{ij} = f(q_i, k_j)^2 + e$ with a kernel given by its spectral points and a floor e from 0 to 1,
    /// the largest that $f^2$ can be; 1e-5 by default elsewhere (equations 12 to 16). The points are
    /// copied.
    pub fn squared(points: Points<T>, floor: f64, mask: &Mask) -> Self {
        let sets = points.sets().map(|w| w.to_owned()).collect();
        Self::of(Squared { sets, floor }, mask)
    }

    /// $a_{ij} = \phi(q_i / d^{1/4}) \cdot \phi(k_j / d^{1/4})$ with the random features of a map at the
    /// frequencies `w`, `[M, m, d]`: in the mean over the frequencies, but for the ReLU's, those of softmax
    /// attention. Frequencies are copied; [`attend_vjp`](crate::attend_vjp) gives their gradient if they are
    /// [`Trained`].
    ///
    /// In [`Form::Quadratic`] weights are computed pair by pair, for any mask and dropout.
    pub fn random_features(
        w: ArrayView3<T>,
        map: RandomFeatureMap,
        trained: Trained,
        mask: &Mask,
    ) -> Self {
        Self::by(RandomFeatures::new(w, map, trained), mask)
    }

    pub(crate) fn kernel(&self) -> &dyn Attend<T> {
        self.kernel.0.as_ref()
    }

    /// What the linear-time form needs to know of the kernel, if there is such a form.
    pub(crate) fn linear_form(&self) -> Option<LinearForm> {
        self.kernel().linear_form()
    }

    /// Example `b` gets the spectral points that `indices[b]` had, if they have any of their own.
    pub(crate) fn reorder(&mut self, indices: &[usize]) {
        if let Some(kernel) = self.kernel().reordered(indices) {
            self.kernel = AttentionKernel(kernel);
        }
    }

    pub(crate) fn validate(&self, batch: usize, heads: usize, width: usize) -> Result<(), Error> {
        if let Some(p) = self.magnitude.p() {
            argument::positive("p", p)?;
        }
        let adds = self.magnitude != Magnitude::None || self.bias.is_some();
        if adds && !self.kernel().has_logits() {
            return Err(Error::Unsupported {
                what: "a magnitude or a bias with a kernel that has the magnitude of keys in it (random features, or \
                       dropout on magnitudes)",
                instead: "Magnitude::None and no bias",
            });
        }
        self.kernel().validate(batch, heads, width)
    }

    /// Whether pairs are dropped, by the kernel or after it.
    pub(crate) fn has_dropout(&self) -> bool {
        self.dropout.is_some() || self.kernel().has_dropout()
    }

    /// Refuses what needs the whole sequence.
    pub(crate) fn check_decoding(&self) -> Result<(), Error> {
        let unsupported = |what, instead| Err(Error::Unsupported { what, instead });
        self.mask.check_reach()?;
        if !self.mask.is_of_positions() || self.mask.has_lengths() {
            return unsupported(
                "decoding with a mask by lengths, a matrix, a prefix, blocks or packed sequences",
                "a causal mask, with a window or without, and Decoder::step_with_counts for \
                 sequences of different lengths",
            );
        }
        if self.mask.looks_ahead() {
            return unsupported(
                "decoding with a window to the right",
                "a window without positions to the right, or a causal one",
            );
        }
        if self
            .bias
            .as_ref()
            .is_some_and(|bias| !bias.is_of_positions())
        {
            return unsupported(
                "decoding with a fixed bias",
                "a bias that follows from positions",
            );
        }
        if self.has_dropout() {
            return unsupported("decoding with dropout on pairs", "no dropout");
        }
        Ok(())
    }
}
