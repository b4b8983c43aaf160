//! Marginal distributions: the functions of each coordinate that a joint distribution needs.

use crate::Error;
use crate::distributions::normal::clamped_quantile;
use bochner_numerics::normal;
use statrs::distribution::{Continuous, ContinuousCDF};

/// A continuous distribution on the real line.
///
/// Every continuous distribution of statrs is a marginal. Boxed, marginals of different families can be
/// mixed: `Vec<Box<dyn Marginal>>`.
pub trait Marginal {
    /// The logarithm of the density; minus infinity outside of the support.
    fn log_density(&self, z: f64) -> f64;

    /// The distribution function, accurate where it is small.
    fn distribution(&self, z: f64) -> f64;

    /// The survival function, one minus the distribution function, accurate where it is small.
    fn survival(&self, z: f64) -> f64;

    /// The quantile function, for probabilities strictly between 0 and 1.
    ///
    /// The value need not be accurate: draws start from it and correct it by the distribution function.
    fn quantile(&self, u: f64) -> f64;

    /// The ends of the support, which may be infinite.
    fn support(&self) -> (f64, f64);
}

impl<D> Marginal for D
where
    D: Continuous<f64, f64> + ContinuousCDF<f64, f64>,
{
    fn log_density(&self, z: f64) -> f64 {
        self.ln_pdf(z)
    }

    fn distribution(&self, z: f64) -> f64 {
        self.cdf(z)
    }

    fn survival(&self, z: f64) -> f64 {
        self.sf(z)
    }

    fn quantile(&self, u: f64) -> f64 {
        self.inverse_cdf(u)
    }

    fn support(&self) -> (f64, f64) {
        (self.min(), self.max())
    }
}

impl Marginal for Box<dyn Marginal> {
    fn log_density(&self, z: f64) -> f64 {
        (**self).log_density(z)
    }

    fn distribution(&self, z: f64) -> f64 {
        (**self).distribution(z)
    }

    fn survival(&self, z: f64) -> f64 {
        (**self).survival(z)
    }

    fn quantile(&self, u: f64) -> f64 {
        (**self).quantile(u)
    }

    fn support(&self) -> (f64, f64) {
        (**self).support()
    }
}

/// The normal score `Phi^-1(F(z))`, from whichever tail is the smaller.
pub(crate) fn normal_score(
    marginal: &impl Marginal,
    coordinate: usize,
    z: f64,
) -> Result<f64, Error> {
    let lower = probability(
        coordinate,
        "distribution function",
        z,
        marginal.distribution(z),
    )?;
    if lower <= 0.5 {
        return Ok(clamped_quantile(lower));
    }
    let upper = probability(coordinate, "survival function", z, marginal.survival(z))?;
    Ok(-clamped_quantile(upper))
}

fn probability(coordinate: usize, function: &'static str, at: f64, got: f64) -> Result<f64, Error> {
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

/// The number whose normal score is `x`: `F^-1(Phi(x))`, solved for in the smaller tail.
pub(crate) fn at_normal_score(
    marginal: &impl Marginal,
    coordinate: usize,
    x: f64,
) -> Result<f64, Error> {
    let tail = Tail {
        marginal,
        coordinate,
        x,
    };
    let guess = tail.guess();
    let excess = tail.excess(guess)?;
    if excess.abs() <= 1e-13 * normal::cdf(-x.abs()) {
        Ok(guess)
    } else {
        tail.bisect(guess, excess)
    }
}

/// The equation `F(z) = Phi(x)`, in the tail in which `x` lies.
struct Tail<'a, D> {
    marginal: &'a D,
    coordinate: usize,
    x: f64,
}

impl<D: Marginal> Tail<'_, D> {
    /// The difference of the two sides, which increases with `z` and is zero at the solution.
    fn excess(&self, z: f64) -> Result<f64, Error> {
        let of = |function, got| probability(self.coordinate, function, z, got);
        Ok(if self.x <= 0.0 {
            of("distribution function", self.marginal.distribution(z))? - normal::cdf(self.x)
        } else {
            normal::cdf(-self.x) - of("survival function", self.marginal.survival(z))?
        })
    }

    fn support(&self) -> (f64, f64) {
        let (low, high) = self.marginal.support();
        (low.max(f64::MIN), high.min(f64::MAX))
    }

    /// The marginal's own quantile, moved into the support; 0 if it is NaN.
    fn guess(&self) -> f64 {
        // Further out some implementations fail; the bracket finds the solution from here.
        let u = normal::cdf(self.x).clamp(1e-12, 1.0 - 1e-12);
        let guess = self.marginal.quantile(u);
        let (low, high) = self.support();
        if guess.is_nan() {
            0.0_f64.clamp(low, high)
        } else {
            guess.clamp(low, high)
        }
    }

    /// The solution, by bisection between neighbouring numbers, from a point and the excess there.
    fn bisect(&self, guess: f64, excess: f64) -> Result<f64, Error> {
        let (mut low, mut high) = self.bracket(guess, excess < 0.0)?;
        for _ in 0..200 {
            let middle = 0.5 * low + 0.5 * high;
            if middle <= low || middle >= high {
                break;
            }
            if self.excess(middle)? < 0.0 {
                low = middle;
            } else {
                high = middle;
            }
        }
        Ok(high)
    }

    /// Steps away from `start`, four times as far each time, until the solution is passed or the
    /// support ends.
    fn bracket(&self, start: f64, up: bool) -> Result<(f64, f64), Error> {
        let (lowest, highest) = self.support();
        let mut near = start;
        let mut step = 1e-9 * start.abs().max(1e-9);
        loop {
            let far = if up { near + step } else { near - step }.clamp(lowest, highest);
            let passed = (self.excess(far)? < 0.0) != up;
            if passed || far == lowest || far == highest {
                return Ok(if up { (near, far) } else { (far, near) });
            }
            near = far;
            step *= 4.0;
        }
    }
}

/// A marginal whose functions all return NaN.
#[cfg(test)]
pub(crate) struct Broken;

#[cfg(test)]
impl Marginal for Broken {
    fn log_density(&self, _: f64) -> f64 {
        f64::NAN
    }

    fn distribution(&self, _: f64) -> f64 {
        f64::NAN
    }

    fn survival(&self, _: f64) -> f64 {
        f64::NAN
    }

    fn quantile(&self, _: f64) -> f64 {
        f64::NAN
    }

    fn support(&self) -> (f64, f64) {
        (f64::NEG_INFINITY, f64::INFINITY)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use statrs::distribution::{Beta, Exp, Gamma, LogNormal, Normal, StudentsT, Uniform, Weibull};

    fn families() -> Vec<Box<dyn Marginal>> {
        vec![
            Box::new(Normal::new(-3.0, 0.5).unwrap()),
            Box::new(Gamma::new(0.4, 2.0).unwrap()),
            Box::new(Gamma::new(30.0, 1e-3).unwrap()),
            Box::new(Exp::new(1e6).unwrap()),
            Box::new(StudentsT::new(1.0, 2.0, 3.0).unwrap()),
            Box::new(Beta::new(2.0, 0.7).unwrap()),
            Box::new(LogNormal::new(2.0, 1.5).unwrap()),
            Box::new(Weibull::new(0.8, 40.0).unwrap()),
            Box::new(Uniform::new(-1.0, 4.0).unwrap()),
        ]
    }

    #[test]
    fn scores_are_taken_back_in_every_family() {
        for (m, marginal) in families().iter().enumerate() {
            for x in [-3.0, -0.7, 0.0, 0.2, 2.0, 3.0] {
                let z = at_normal_score(marginal, m, x).unwrap();
                let back = normal_score(marginal, m, z).unwrap();
                assert!((back - x).abs() < 1e-9, "{m}: {x} {z} {back}");
            }
        }
    }

    /// Some of the distribution functions have absolute precision only, and so increase in steps.
    #[test]
    fn far_out_the_distribution_function_passes_its_value() {
        for (m, marginal) in families().iter().enumerate() {
            for x in [-7.5, -5.0, 4.5, 6.0] {
                let coordinate = m;
                let tail = Tail {
                    marginal,
                    coordinate,
                    x,
                };
                let z = at_normal_score(marginal, m, x).unwrap();
                let bound = 2e-13 * normal::cdf(-x.abs());
                let excess = |z| tail.excess(z).unwrap();
                let (below, at) = (excess(z.next_down()), excess(z));
                assert!(below < bound && at > -bound, "{m}: {x} {z} {below} {at}");
            }
        }
    }

    /// [`Joint::sample`](crate::Joint::sample) says what that means for draws.
    #[test]
    fn where_a_distribution_function_jumps_the_solution_is_the_jump() {
        let gamma = Gamma::new(0.01, 1.0).unwrap();
        let at = |x| at_normal_score(&gamma, 0, x).unwrap();
        let jump = at(0.0);
        assert_eq!(gamma.distribution(jump.next_down()), 0.0);
        assert!((gamma.distribution(jump) - 0.7127).abs() < 1e-3);
        assert_eq!((at(-3.0), at(0.5)), (jump, jump));
        let above = at(1.0);
        assert!((gamma.distribution(above) / normal::cdf(1.0) - 1.0).abs() < 1e-12);
    }

    #[test]
    fn extreme_scores_stay_in_the_support() {
        for (m, marginal) in families().iter().enumerate() {
            let (low, high) = marginal.support();
            for x in [-38.0, -20.0, 9.0, 38.0] {
                let z = at_normal_score(marginal, m, x).unwrap();
                assert!(z.is_finite() && z >= low && z <= high, "{m}: {x} {z}");
            }
        }
    }

    #[test]
    fn far_tails_are_clamped_and_finite() {
        let normal = Normal::new(0.0, 1.0).unwrap();
        for z in [-20.0, -5.0, 5.0, 20.0, 37.0] {
            assert!((normal_score(&normal, 0, z).unwrap() / z - 1.0).abs() < 1e-12);
        }
        assert!(normal_score(&normal, 0, 1e300).unwrap() < 38.5);
        assert!(normal_score(&normal, 0, -1e300).unwrap() > -38.5);
    }

    #[test]
    fn a_broken_marginal_is_named_and_does_not_hang() {
        let got = normal_score(&Broken, 3, 0.5);
        assert!(matches!(
            got,
            Err(Error::Marginal {
                coordinate: 3,
                at: 0.5,
                ..
            })
        ));
        for x in [-1.0, 1.0] {
            let drawn = at_normal_score(&Broken, 3, x);
            assert!(matches!(drawn, Err(Error::Marginal { coordinate: 3, .. })));
        }
    }
}
