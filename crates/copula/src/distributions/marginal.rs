//! Marginal distributions: the functions of each coordinate that a joint distribution needs.

use crate::Error;
use crate::distributions::normal::{ln_tails, quantile_of_ln, slope_of_score};
use bochner_numerics::ArgumentError;

/// A continuous distribution on the real line.
///
/// [`Univariate`](crate::Univariate) holds the usual families, those that are fitted to data among them, and every
/// continuous distribution of statrs is a marginal too. Boxed, marginals of different types can be mixed:
/// `Vec<Box<dyn Marginal>>`. An implementation has a density, its two tails and its support; draws are solved for.
///
/// # Example
///
/// ```
/// use bochner_copula::{LogTails, Marginal};
///
/// /// The logistic distribution.
/// struct Logistic;
///
/// impl Marginal for Logistic {
///     fn log_density(&self, z: f64) -> f64 {
///         let LogTails { lower, upper } = self.log_tails(z);
///         lower + upper
///     }
///
///     fn log_tails(&self, z: f64) -> LogTails {
///         let lower = -(-z).exp().ln_1p();
///         LogTails { lower, upper: lower - z }
///     }
///
///     fn support(&self) -> (f64, f64) {
///         (f64::NEG_INFINITY, f64::INFINITY)
///     }
/// }
///
/// assert!((Logistic.at_score(1.0) - 1.668).abs() < 1e-3);
/// ```
pub trait Marginal: Send + Sync {
    /// The logarithm of the density; minus infinity outside of the support.
    fn log_density(&self, z: f64) -> f64;

    /// The logarithms of the distribution function and of the survival function.
    fn log_tails(&self, z: f64) -> LogTails;

    /// The ends of the support, which may be infinite.
    fn support(&self) -> (f64, f64);

    /// The quantile at a normal score, $F^{-1}(\Phi(x))$.
    ///
    /// By default the equation is solved within the support, by Newton's method and bisection. Where the distribution
    /// function jumps, the solution is the jump.
    fn at_score(&self, x: f64) -> f64 {
        Start::anywhere(self.support()).solve(self, x)
    }

    /// Replaces each normal score by the quantile there.
    fn at_scores(&self, scores: &mut [f64]) {
        scores.iter_mut().for_each(|x| *x = self.at_score(*x));
    }

    /// Refuses parameters that give no distribution.
    ///
    /// # Errors
    /// [`ArgumentError`] for the first such parameter. By default there are none.
    fn check(&self) -> Result<(), ArgumentError> {
        Ok(())
    }
}

impl<D: Marginal + ?Sized> Marginal for Box<D> {
    fn log_density(&self, z: f64) -> f64 {
        (**self).log_density(z)
    }

    fn log_tails(&self, z: f64) -> LogTails {
        (**self).log_tails(z)
    }

    fn support(&self) -> (f64, f64) {
        (**self).support()
    }

    fn at_score(&self, x: f64) -> f64 {
        (**self).at_score(x)
    }

    fn at_scores(&self, scores: &mut [f64]) {
        (**self).at_scores(scores);
    }

    fn check(&self) -> Result<(), ArgumentError> {
        (**self).check()
    }
}

/// The logarithms of the probabilities on the two sides of a number.
///
/// A probability of 1e-400 is no number, but its logarithm is, and so is its normal score.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LogTails {
    /// The logarithm of the distribution function.
    pub lower: f64,
    /// The logarithm of the survival function, one minus the distribution function.
    pub upper: f64,
}

impl LogTails {
    /// The tails at the lower end of a support.
    pub(crate) const LOWEST: Self = Self {
        lower: f64::NEG_INFINITY,
        upper: 0.0,
    };
    /// The tails at the upper end of a support.
    pub(crate) const HIGHEST: Self = Self {
        lower: 0.0,
        upper: f64::NEG_INFINITY,
    };

    /// The tails of the standard normal distribution at a score.
    pub(crate) fn of_score(x: f64) -> Self {
        let (lower, upper) = ln_tails(x);
        Self { lower, upper }
    }

    /// The two tails exchanged, those of the mirrored distribution.
    pub(crate) fn mirrored(self) -> Self {
        Self {
            lower: self.upper,
            upper: self.lower,
        }
    }

    /// The normal score, from whichever tail is the smaller; infinite at the ends of a support.
    pub(crate) fn score(self) -> f64 {
        if self.lower <= self.upper {
            quantile_of_ln(self.lower)
        } else {
            -quantile_of_ln(self.upper)
        }
    }
}

/// The normal score `Phi^-1(F(z))`.
pub(crate) fn normal_score(
    marginal: &impl Marginal,
    coordinate: usize,
    z: f64,
) -> Result<f64, Error> {
    let tails = marginal.log_tails(z);
    number(coordinate, "distribution function", z, tails.lower)?;
    number(coordinate, "survival function", z, tails.upper)?;
    Ok(tails.score())
}

/// The value of a marginal's function, unless it is NaN.
pub(crate) fn number(
    coordinate: usize,
    function: &'static str,
    at: f64,
    got: f64,
) -> Result<f64, Error> {
    if got.is_nan() {
        Err(Error::Marginal {
            coordinate,
            function,
            at,
            got,
        })
    } else {
        Ok(got)
    }
}

/// The point from which the equation `F(z) = Phi(x)` is solved.
#[derive(Clone, Copy)]
pub(crate) struct Start {
    /// A guess of the solution, in the support.
    pub(crate) guess: f64,
    /// The number from which distances are taken in logarithms, `None` for steps in `z`.
    pub(crate) origin: Option<f64>,
}

impl Start {
    /// Somewhere in the middle of a support.
    fn anywhere((low, high): (f64, f64)) -> Self {
        Self {
            guess: between(low.max(f64::MIN), high.min(f64::MAX)),
            origin: None,
        }
    }

    /// The solution, NaN if the marginal's functions are.
    ///
    /// Newton's steps are taken on the normal score, which is almost linear in `z` or in the logarithm of its
    /// distance from the origin. A step that leaves the bracket is replaced by bisection over the floating-point
    /// numbers, which ends after 64 steps whatever the function.
    pub(crate) fn solve(self, marginal: &(impl Marginal + ?Sized), x: f64) -> f64 {
        const NEWTON: usize = 12;
        let (low, high) = marginal.support();
        let (mut below, mut above) = (low.max(f64::MIN), high.min(f64::MAX));
        let mut z = self.guess.clamp(below, above);
        for round in 0..NEWTON + 70 {
            let tails = marginal.log_tails(z);
            let (score, density) = (tails.score(), marginal.log_density(z));
            if score.is_nan() || density.is_nan() {
                return f64::NAN;
            }
            let excess = score - x;
            if excess.abs() <= f64::EPSILON * (1.0 + x.abs()) {
                return z;
            }
            if excess < 0.0 {
                below = z;
            } else {
                above = z;
            }
            let step = -excess / slope_of_score(density, score);
            let step = match self.origin {
                Some(origin) => (z - origin) * (step / (z - origin)).exp_m1(),
                None => step,
            };
            let next = z + step;
            let inside = next > below && next < above;
            if inside && step.abs() <= 2.0 * f64::EPSILON * z.abs() {
                return next;
            }
            z = if inside && round < NEWTON {
                next
            } else {
                between(below, above)
            };
            if z <= below || z >= above {
                return above;
            }
        }
        above
    }
}

/// The number half-way between two in the order of floating-point numbers.
fn between(low: f64, high: f64) -> f64 {
    // The integers that are in the same order as the numbers.
    let order = |x: f64| {
        let bits = x.to_bits() as i64;
        bits ^ (((bits >> 63) as u64) >> 1) as i64
    };
    let (low, high) = (i128::from(order(low)), i128::from(order(high)));
    let middle = ((low + high).div_euclid(2)) as i64;
    f64::from_bits((middle ^ (((middle >> 63) as u64) >> 1) as i64) as u64)
}
