//! Bounds on the distance of random features from their kernel anywhere on a bounded set (Proposition 4).

use crate::Error;
use bochner_numerics::argument::{self, ArgumentError};
use serde::{Deserialize, Serialize};

/// The uniform error of a non-stationary kernel's random features.
///
/// For $f_{NS}$ of $R$ independent pairs of points with the mean $k = \mathbb{E} f_{NS}$, on a set
/// of $\mathbb{R}^d$ of Euclidean diameter $D$:
///
/// $$P\Bigl[\sup_{x, y} |f_{NS}(x, y) - k(x, y)| \ge e\Bigr] \le 2^8 \Bigl(\frac{D s}{e}\Bigr)^2
/// \exp\Bigl(-\frac{R e^2}{8 (d + 1)}\Bigr) \qquad \text{for } e \le 4 \sqrt2 D s$$
///
/// *where* $s^2 = \mathbb{E} |w_1|^2 + \mathbb{E} |w_2|^2$. The statement holds for $f_S$ too,
/// which is $f_{NS}$ with $w_1 = w_2$. Densities without a second moment have no such bound.
///
/// The condition on $e$ is not printed in the paper, and without it the statement is false: as
/// $D \to 0$ the right side vanishes, but $f_{NS}(x, x)$ stays random. With $d = 1$, $w_1, w_2 \sim
/// N(0, 1)$, the set $[100, 100 + 10^{-6}]$, $R = 1$ and $e = 0.25$ the right side is below
/// $10^{-8}$, and the left is $2/3$. Here a larger error than the condition allows is an
/// [`Error::Argument`]; for a set of one point Hoeffding's inequality alone,
/// $2 \exp(-R e^2 / 2)$, is the right tool.
///
/// # Numerics
/// The bound is loose by orders of magnitude in practice: read it for how $R$ must grow
/// ($R = \Omega(d e^{-2} \log(D s / e))$), not for the $R$ to take.
///
/// # Reference
/// Song, Jung, Kim, Moon, *Implicit Kernel Attention*, AAAI 2021, Proposition 4, after Rahimi,
/// Recht 2007, Claim 1: a net over pairs of points, of diameter $\sqrt2 D$ in $\mathbb{R}^{2d}$,
/// with Hoeffding's inequality at its centres and Markov's for the slope between them.
///
/// # Example
/// ```
/// use bochner_kernels::{UniformBound, UniformBoundConfig};
///
/// // Pairs from N(0, I) in four dimensions, on a set of diameter 2.
/// let bound = UniformBoundConfig { width: 4, diameter: 2.0, spread: 8.0_f64.sqrt() }.build()?;
/// let enough = bound.points(0.2, 0.01)?;
/// assert!(bound.probability(0.2, enough)? <= 0.01);
/// assert!(bound.probability(0.2, enough - 1)? > 0.01);
/// # Ok::<(), bochner_kernels::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct UniformBound {
    settings: UniformBoundConfig,
}

/// The settings of a [`UniformBound`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, remote = "Self")]
pub struct UniformBoundConfig {
    /// The number $d$ of coordinates; at least one.
    pub width: usize,
    /// The Euclidean diameter $D$ of the set; positive.
    pub diameter: f64,
    /// $s = \sqrt{\mathbb{E} |w_1|^2 + \mathbb{E} |w_2|^2}$; positive.
    pub spread: f64,
}

bochner_numerics::checked_when_read!(UniformBoundConfig);

impl UniformBoundConfig {
    /// The bound for these settings.
    ///
    /// # Errors
    /// [`Error::Argument`] if the width is zero, or unless diameter and spread are
    /// finite and positive.
    pub fn build(self) -> Result<UniformBound, Error> {
        self.validate()?;
        Ok(UniformBound { settings: self })
    }
}

impl UniformBoundConfig {
    fn validate(&self) -> Result<(), ArgumentError> {
        argument::at_least_one("width", self.width)?;
        argument::positive("diameter", self.diameter)?;
        argument::positive("spread", self.spread)
    }
}

impl UniformBound {
    /// The largest error $4 \sqrt2 D s$ that the bound speaks of.
    pub fn largest_error(&self) -> f64 {
        4.0 * std::f64::consts::SQRT_2 * self.settings.diameter * self.settings.spread
    }

    /// A bound on the probability that somewhere on the set the features of `points` pairs are
    /// off by `error` or more; one where the formula exceeds it.
    ///
    /// # Errors
    /// [`Error::Argument`] unless `error` is positive and at most
    /// [`largest_error`](Self::largest_error), or if there are no points.
    pub fn probability(&self, error: f64, points: usize) -> Result<f64, Error> {
        self.check(error)?;
        argument::at_least_one("points", points)?;
        let log = self.log_factor(error) - points as f64 * self.rate(error);
        Ok(log.exp().min(1.0))
    }

    /// A number of points that suffices for an error below `error` everywhere on the set, except with
    /// a `probability` of failure.
    ///
    /// $$R = \Bigl\lceil \frac{8 (d + 1)}{e^2} \log \frac{2^8 (D s / e)^2}{P} \Bigr\rceil$$
    ///
    /// # Errors
    /// [`Error::Argument`] unless `error` is positive and at most
    /// [`largest_error`](Self::largest_error) and `probability` lies in $(0, 1)$, and if more than $2^{53}$
    /// points were needed.
    pub fn points(&self, error: f64, probability: f64) -> Result<usize, Error> {
        self.check(error)?;
        let inside = probability > 0.0 && probability < 1.0;
        argument::in_range(inside, "probability", probability, "between 0 and 1")?;
        let exponent = self.log_factor(error) - probability.ln();
        let points = (exponent / self.rate(error)).ceil();
        let allowed = "so large that 2^53 points suffice";
        argument::in_range(points <= 2.0_f64.powi(53), "error", error, allowed)?;
        Ok(points as usize)
    }

    fn check(&self, error: f64) -> Result<(), ArgumentError> {
        argument::positive("error", error)?;
        let largest = self.largest_error();
        let allowed = format!("at most {largest:?}, 4 sqrt(2) times diameter times spread");
        argument::in_range(error <= largest, "error", error, allowed)
    }

    /// $\log(2^8 (D s / e)^2)$.
    fn log_factor(&self, error: f64) -> f64 {
        let ratio = self.settings.diameter * self.settings.spread / error;
        8.0 * std::f64::consts::LN_2 + 2.0 * ratio.ln()
    }

    /// The decrease of the bound's logarithm by one more point.
    fn rate(&self, error: f64) -> f64 {
        error * error / (8.0 * (self.settings.width as f64 + 1.0))
    }
}
