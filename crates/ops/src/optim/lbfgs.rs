//! Limited-memory BFGS with bounds.

use super::stop::Stop;
use bochner_numerics::{ArgumentError, argument};
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;
use std::ops::ControlFlow;

/// A function to be minimised, with its gradient.
///
/// A closure that writes the gradient and returns the value is one.
pub trait Objective {
    /// Writes the gradient at `x` and returns the value. A value that is not finite rejects the point, and the
    /// line search tries a shorter step.
    fn evaluate(&mut self, x: &[f64], gradient: &mut [f64]) -> f64;

    /// Sees every accepted point, the start included; ends the search by `Break`.
    fn accept(&mut self, _x: &[f64], _value: f64) -> ControlFlow<()> {
        ControlFlow::Continue(())
    }
}

impl<F: FnMut(&[f64], &mut [f64]) -> f64> Objective for F {
    fn evaluate(&mut self, x: &[f64], gradient: &mut [f64]) -> f64 {
        self(x, gradient)
    }
}

/// The settings of [`lbfgs`].
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(
    default,
    deny_unknown_fields,
    rename_all = "kebab-case",
    remote = "Self"
)]
pub struct LbfgsConfig {
    /// The largest number of steps; 1000 by default.
    pub steps: usize,
    /// The number of past steps that describe the curvature; 10 by default.
    pub memory: usize,
    /// The search has converged where no component of the projected gradient is larger; `1e-5` by default.
    pub tolerance: f64,
    /// The search has converged where the last ten steps together lower the value $f$ by at most this share of
    /// $\max(|f|, 1)$, as along a ridge that never ends; `1e-8` by default. 0 turns the rule off.
    #[doc(alias = "ftol")]
    #[doc(alias = "factr")]
    pub relative_change: f64,
}

bochner_numerics::checked_when_read!(LbfgsConfig);

impl Default for LbfgsConfig {
    fn default() -> Self {
        Self {
            steps: 1000,
            memory: 10,
            tolerance: 1e-5,
            relative_change: 1e-8,
        }
    }
}

impl LbfgsConfig {
    /// Refuses settings outside their range.
    ///
    /// # Errors
    /// [`ArgumentError`] if `memory` is zero, or if `tolerance` or `relative_change` is negative or not finite.
    pub fn validate(&self) -> Result<(), ArgumentError> {
        argument::at_least_one("memory", self.memory)?;
        argument::non_negative("tolerance", self.tolerance)?;
        argument::non_negative("relative_change", self.relative_change)
    }
}

/// The number of steps over which the value has to stay the same for a search to end.
const FLAT: usize = 10;

/// The report of [`lbfgs`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LbfgsReport {
    /// The reason why the search ended.
    pub stop: Stop,
    /// The value at the last accepted point, which is the smallest.
    pub value: f64,
    /// The largest absolute component of the projected gradient there.
    pub gradient: f64,
    /// The number of steps.
    pub steps: usize,
    /// The number of evaluations.
    pub evaluations: usize,
}

/// Minimises a function within bounds by limited-memory BFGS, from `x`, which is left at the best point.
///
/// $$x \leftarrow P(x - t H g), \qquad P(x)_i = \min(\max(x_i, l_i), u_i)$$
///
/// *where* $g$ is the gradient, $H$ the approximation of the inverse Hessian from the last `memory` steps,
/// $l_i \le u_i$ are the `bounds` (infinities for none) and $t$ satisfies the weak Wolfe conditions along the
/// projected path. Variables at a bound that the gradient pushes against are held there for the step.
///
/// # Errors
/// [`ArgumentError`] for settings or bounds outside their range, for a start outside the bounds, and if value or
/// gradient at the start are not finite.
///
/// # Reference
/// Liu, Nocedal, *On the limited memory BFGS method for large scale optimization*, 1989; Bertsekas, *Projected
/// Newton methods for optimization problems with simple constraints*, 1982.
///
/// # Example
/// ```
/// use bochner_ops::{LbfgsConfig, lbfgs};
///
/// let mut bowl = |x: &[f64], gradient: &mut [f64]| {
///     gradient[0] = 2.0 * (x[0] - 1.0);
///     gradient[1] = 20.0 * (x[1] + 2.0);
///     (x[0] - 1.0).powi(2) + 10.0 * (x[1] + 2.0).powi(2)
/// };
/// let mut x = [3.0, 4.0];
/// let report = lbfgs(&mut x, &[(-5.0, 5.0), (0.0, 5.0)], &LbfgsConfig::default(), &mut bowl)?;
/// assert!(report.stop.is_converged());
/// assert!((x[0] - 1.0).abs() < 1e-6 && x[1] == 0.0);
/// # Ok::<(), bochner_numerics::ArgumentError>(())
/// ```
pub fn lbfgs(
    x: &mut [f64],
    bounds: &[(f64, f64)],
    config: &LbfgsConfig,
    objective: &mut impl Objective,
) -> Result<LbfgsReport, ArgumentError> {
    config.validate()?;
    check_start(x, bounds)?;
    let mut gradient = vec![0.0; x.len()];
    let mut value = objective.evaluate(x, &mut gradient);
    argument::in_range(value.is_finite(), "the value at the start", value, "finite")?;
    argument::finite("the gradient at the start", &[x.len()], &gradient)?;
    let (mut pairs, mut steps, mut evaluations) = (Pairs::new(), 0, 1);
    let mut values = VecDeque::from([value]);
    let mut seen = objective.accept(x, value);
    let stop = loop {
        if seen.is_break() {
            break Stop::Observer;
        }
        if largest_projected(x, &gradient, bounds) <= config.tolerance {
            break Stop::Converged;
        }
        let fall = values.get(FLAT).map_or(f64::INFINITY, |past| past - value);
        if fall <= config.relative_change * value.abs().max(1.0) && config.relative_change > 0.0 {
            break Stop::Flat;
        }
        if steps == config.steps {
            break Stop::Steps;
        }
        let direction = direction(&pairs, (x, &gradient, bounds));
        let slope = dot(&gradient, &direction);
        // Where the curvature is not known, a step of length at most one.
        let first = match pairs.is_empty() {
            true => 1.0 / slope.abs().sqrt().max(1.0),
            false => 1.0,
        };
        let from = (&*x, value, &*gradient);
        let found = search(from, &direction, first, bounds, |x, gradient| {
            evaluations += 1;
            objective.evaluate(x, gradient)
        });
        let Some((next, lower, along)) = found else {
            if slope.abs() * first <= config.relative_change.max(1e-10) * value.abs() {
                break Stop::Flat;
            }
            if pairs.is_empty() {
                break Stop::NoStep;
            }
            // The curvature may be stale: the gradient alone has to fail too.
            pairs.clear();
            continue;
        };
        let (s, y) = (difference(&next, x), difference(&along, &gradient));
        if dot(&s, &y) > 1e-14 * (dot(&y, &y) * dot(&s, &s)).sqrt() {
            if pairs.len() == config.memory {
                pairs.pop_front();
            }
            pairs.push_back((s, y));
        }
        x.copy_from_slice(&next);
        (value, gradient) = (lower, along);
        steps += 1;
        seen = objective.accept(x, value);
        values.push_front(value);
        values.truncate(FLAT + 1);
    };
    Ok(LbfgsReport {
        stop,
        value,
        gradient: largest_projected(x, &gradient, bounds),
        steps,
        evaluations,
    })
}

fn check_start(x: &[f64], bounds: &[(f64, f64)]) -> Result<(), ArgumentError> {
    argument::shape("bounds", &[x.len()], &[bounds.len()])?;
    for (i, (&x, &(lower, upper))) in x.iter().zip(bounds).enumerate() {
        let allowed = "at least the lower bound";
        let name = format!("the upper bound {i}");
        argument::in_range(lower <= upper, name, upper, allowed)?;
        let allowed = format!("from {lower:?} to {upper:?}, its bounds");
        let holds = x.is_finite() && lower <= x && x <= upper;
        argument::in_range(holds, format!("the start {i}"), x, allowed)?;
    }
    Ok(())
}

/// The largest absolute component of $P(x - g) - x$.
pub fn largest_projected(x: &[f64], gradient: &[f64], bounds: &[(f64, f64)]) -> f64 {
    let each = x.iter().zip(gradient).zip(bounds);
    let each = each.map(|((&x, &g), &(lower, upper))| ((x - g).clamp(lower, upper) - x).abs());
    each.fold(0.0, f64::max)
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

fn difference(a: &[f64], b: &[f64]) -> Vec<f64> {
    a.iter().zip(b).map(|(a, b)| a - b).collect()
}

/// The last steps, each with the difference of gradients along it; the oldest first.
type Pairs = VecDeque<(Vec<f64>, Vec<f64>)>;

/// $-H g$ by the two-loop recursion, zero for the variables at a bound against which the gradient pushes them.
fn direction(pairs: &Pairs, (x, gradient, bounds): (&[f64], &[f64], &[(f64, f64)])) -> Vec<f64> {
    let is_held = |i: usize| {
        let (lower, upper) = bounds[i];
        x[i] <= lower && gradient[i] > 0.0 || x[i] >= upper && gradient[i] < 0.0
    };
    let free = |v: &[f64]| -> Vec<f64> {
        let each = v.iter().enumerate();
        each.map(|(i, &v)| if is_held(i) { 0.0 } else { v })
            .collect()
    };
    let mut q = free(gradient);
    let mut factors = Vec::with_capacity(pairs.len());
    for (s, y) in pairs.iter().rev() {
        let factor = dot(s, &q) / dot(s, y);
        q.iter_mut().zip(y).for_each(|(q, y)| *q -= factor * y);
        factors.push(factor);
    }
    if let Some((s, y)) = pairs.back() {
        let scale = dot(s, y) / dot(y, y);
        q.iter_mut().for_each(|q| *q *= scale);
    }
    for ((s, y), factor) in pairs.iter().zip(factors.into_iter().rev()) {
        let change = factor - dot(y, &q) / dot(s, y);
        q.iter_mut().zip(s).for_each(|(q, s)| *q += change * s);
    }
    free(&q).into_iter().map(|q| -q).collect()
}

/// A point along the projected path that satisfies the weak Wolfe conditions, with its value and gradient, by
/// bisection and doubling; `None` if no point is lower.
fn search(
    (x, value, gradient): (&[f64], f64, &[f64]),
    direction: &[f64],
    mut t: f64,
    bounds: &[(f64, f64)],
    mut evaluate: impl FnMut(&[f64], &mut [f64]) -> f64,
) -> Option<(Vec<f64>, f64, Vec<f64>)> {
    const TRIALS: usize = 40;
    let (mut low, mut high, mut best) = (0.0, f64::INFINITY, None);
    let slope = dot(gradient, direction);
    for _ in 0..TRIALS {
        let path = x.iter().zip(direction).zip(bounds);
        let path = path.map(|((x, d), &(l, u))| (x + t * d).clamp(l, u));
        let (next, mut along) = (path.collect::<Vec<_>>(), vec![0.0; x.len()]);
        let fall = dot(gradient, &difference(&next, x));
        if fall.abs() <= 4.0 * f64::EPSILON * value.abs() {
            break;
        }
        let lower = evaluate(&next, &mut along);
        let is_finite = lower.is_finite() && along.iter().all(|g| g.is_finite());
        if !is_finite || lower > value + 1e-4 * fall {
            // The minimum of the parabola through both values, kept away from both ends.
            let parabola = -0.5 * slope * t * t / (lower - value - slope * t);
            high = t;
            let (least, half) = (0.9 * low + 0.1 * high, 0.5 * (low + high));
            let is_bracketed = is_finite && low == 0.0;
            t = if is_bracketed {
                parabola.clamp(least, half)
            } else {
                half
            };
            continue;
        }
        let inside = |i: &usize| bounds[*i].0 < next[*i] && next[*i] < bounds[*i].1;
        let end = (0..x.len()).filter(inside).map(|i| along[i] * direction[i]);
        let is_short = end.sum::<f64>() < 0.9 * slope;
        best = Some((next, lower, along));
        if !is_short {
            break;
        }
        low = t;
        t = if high.is_finite() {
            0.5 * (low + high)
        } else {
            2.0 * low
        };
    }
    best
}
