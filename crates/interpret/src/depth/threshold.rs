//! The depth from which on width is better spent, in theory and as fitted to trained networks.

use crate::Error;
use bochner_numerics::argument;

/// The depth up to which depth is worth exponentially more than width.
///
/// $$L_{th} = \log_3 d$$
///
/// *where* $d$ is `width`, that of the model. Below it the separation rank grows doubly exponentially with depth;
/// above it, depth and width enter alike.
///
/// # Errors
/// [`Error::Argument`] for a width that is not finite and above 0.
///
/// # Reference
/// Levine et al., *Limits to depth efficiencies of self-attention*, NeurIPS 2020; their theorem is about
/// attention without softmax, activations, norms and residual stream.
///
/// ```
/// use bochner_interpret::depth_threshold;
///
/// assert!((depth_threshold(243.0)? - 5.0).abs() < 1e-12);
/// assert!((depth_threshold(768.0)? - 6.05).abs() < 5e-3);
/// # Ok::<(), bochner_interpret::Error>(())
/// ```
pub fn depth_threshold(width: f64) -> Result<f64, Error> {
    argument::positive("width", width)?;
    Ok(width.ln() / 3f64.ln())
}

/// The upper bound on the base-3 logarithm of the separation rank below the threshold.
///
/// $$\log_3 \mathrm{sep} \le \frac{3^L - 1}{2} \log_3 (d + H)$$
///
/// *where* $L$ is `depth`, $d$ is `width` and $H$ is `heads`.
///
/// # Numerics
/// It is 0 where width and heads together are at most 1, and infinite from a depth of 647 on otherwise.
///
/// # Reference
/// After Levine et al. 2020; the constants were not compared with the printed theorem. All exact ranks that the tests
/// of this crate know keep to it.
pub fn log3_separation_bound(width: usize, heads: usize, depth: u32) -> f64 {
    // From 647 on the power is infinite; with one of width and heads in all the bound is 0 at every depth.
    if width + heads <= 1 {
        return 0.0;
    }
    let power = 3f64.powi(depth.min(1000) as i32);
    (power - 1.0) / 2.0 * ((width + heads) as f64).ln() / 3f64.ln()
}

/// The number of parameters of the layers, $12 L d^2$: four maps of attention and a feed-forward network of width
/// $4 d$. Embeddings do not count.
///
/// # Errors
/// [`Error::Argument`] for a depth or a width that is not finite and above 0, or for a width with which the number
/// overflows.
pub fn parameter_count(depth: f64, width: f64) -> Result<f64, Error> {
    argument::positive("depth", depth)?;
    argument::positive("width", width)?;
    let count = 12.0 * depth * width * width;
    argument::in_range(
        count.is_finite(),
        "width",
        width,
        "less: the number of parameters overflows",
    )?;
    Ok(count)
}

/// The transition between the two regimes, as fitted to trained language models of depth 6 to 48.
///
/// $$\log d = a + b L, \qquad N(L) = 12 L d^2 = 12 L e^{2 a + 2 b L}$$
///
/// *where* $\log$ is the natural logarithm, $d$ the width, $L$ the depth and $N$ the number of parameters without
/// embeddings, at which networks of depth $L$ begin to gain from more depth.
///
/// # Reference
/// Levine et al. 2020, whose fit [`DepthFit::default`] is.
///
/// ```
/// use bochner_interpret::DepthFit;
///
/// let fit = DepthFit::default();
/// assert_eq!(fit.width_at(24.0)?.round(), 585.0);
/// // 175 billion parameters: 80 layers, where GPT-3 has 96.
/// assert_eq!((fit.depth_of(175e9)? * 10.0).round(), 805.0);
/// # Ok::<(), bochner_interpret::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DepthFit {
    /// The logarithm of the width at depth 0.
    pub a: f64,
    /// The amount that a layer adds to it, above 0.
    pub b: f64,
}

impl Default for DepthFit {
    /// The published fit, $a = 5.039 \pm 0.030$, $b = 0.0555 \pm 0.0013$.
    fn default() -> Self {
        Self {
            a: 5.039,
            b: 5.55e-2,
        }
    }
}

impl DepthFit {
    /// The width at which networks of this depth reach the transition.
    ///
    /// # Errors
    /// [`Error::Argument`] for a fit whose slope is not above 0, or a depth that is not finite and at least 0, or so
    /// large that the width overflows.
    pub fn width_at(&self, depth: f64) -> Result<f64, Error> {
        self.check()?;
        argument::non_negative("depth", depth)?;
        let width = (self.a + self.b * depth).exp();
        argument::in_range(
            width.is_finite(),
            "depth",
            depth,
            "less: the width overflows",
        )?;
        Ok(width)
    }

    /// The depth at which networks of this width reach the transition: the inverse of
    /// [`width_at`](Self::width_at). It is negative for widths below $e^a$, which have no such depth.
    ///
    /// # Errors
    /// [`Error::Argument`] for a fit whose slope is not above 0, or a width that is not finite and above 0, or one
    /// whose depth overflows with this fit.
    pub fn depth_at(&self, width: f64) -> Result<f64, Error> {
        self.check()?;
        argument::positive("width", width)?;
        finite("width", width, (width.ln() - self.a) / self.b)
    }

    /// The number of parameters at the transition of this depth.
    ///
    /// # Errors
    /// [`Error::Argument`] for a fit whose slope is not above 0, or a depth that is not finite and above 0, or so large
    /// that the number overflows.
    pub fn parameters_at(&self, depth: f64) -> Result<f64, Error> {
        parameter_count(depth, self.width_at(depth)?)
    }

    /// The depth whose transition lies at this number of parameters: the inverse of
    /// [`parameters_at`](Self::parameters_at).
    ///
    /// # Errors
    /// [`Error::Argument`] for a fit whose slope is not above 0, or a number that is not finite and above 0, or one
    /// whose depth overflows with this fit.
    ///
    /// # Numerics
    /// Newton's method on $\log y + y = \log c$, $y = 2 b L$; the function is concave, so that steps from the left
    /// of the solution never pass it. The relative error is a few ulps of $\log c$.
    pub fn depth_of(&self, parameters: f64) -> Result<f64, Error> {
        self.check()?;
        argument::positive("parameters", parameters)?;
        let c = parameters.ln() + (self.b.ln() - 6f64.ln()) - 2.0 * self.a;
        // Newton's method starts where one term of the left side alone gives c, which is beyond the solution.
        let mut y = if c < 1.0 { c.exp() } else { c };
        for _ in 0..60 {
            let step = (c - y.ln() - y) * y / (1.0 + y);
            let next = y + step;
            y = if next > 0.0 { next } else { 0.5 * y };
            if step.abs() <= 1e-16 * y {
                break;
            }
        }
        finite("parameters", parameters, y / 2.0 / self.b)
    }

    /// The width of the network of this many parameters at its transition.
    ///
    /// # Errors
    /// The errors of [`depth_of`](Self::depth_of).
    pub fn width_of(&self, parameters: f64) -> Result<f64, Error> {
        self.width_at(self.depth_of(parameters)?)
    }

    fn check(&self) -> Result<(), Error> {
        argument::in_range(self.a.is_finite(), "a", self.a, "finite")?;
        argument::positive("b", self.b)?;
        Ok(())
    }
}

/// A depth, if this fit has a finite one.
fn finite(name: &'static str, given: f64, depth: f64) -> Result<f64, Error> {
    let allowed = "a value whose depth does not overflow with this fit";
    argument::in_range(depth.is_finite(), name, given, allowed)?;
    Ok(depth)
}
