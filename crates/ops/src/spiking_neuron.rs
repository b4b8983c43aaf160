//! Neurons that spike over steps of time.

use crate::operation::{BoxError, Operation, Slot, given, slices, slots};
use bochner_numerics::{ArgumentError, Real, argument};
use ndarray::ArrayViewD;
use serde::{Deserialize, Serialize};

/// Leaky integrate-and-fire neurons over the leading axis, one for each element of a step.
///
/// $$U_t = H_{t-1} + X_t \qquad S_t = s(U_t) \qquad H_t = V S_t + \tau U_t (1 - |S_t|)$$
///
/// * $X$: the input, `[steps, ..]`; $H_0 = 0$
/// * $S$: the spikes, what an [`Operation`] gives
/// * $s$: [`Spikes`], with the `threshold` $\theta$, which is inclusive
/// * $V$: `reset`, what is held after a positive spike; after a negative one it is $-V$
/// * $\tau$: `decay`, the part of a potential without a spike that is held
///
/// # Gradients
/// A spike is a step, so backwards s has a surrogate slope: one over `surrogate_width` where the potential, or its
/// size for ternary spikes, is less than half that width from the threshold, and none elsewhere. It counts
/// wherever s stands, in what is held too; everything else has its own derivative.
///
/// # Reference
/// Wang et al. 2025, "Bipolar self-attention for spiking transformers"; the thresholds' inclusion and the slope are
/// ours.
///
/// ```
/// use bochner_ops::{Spikes, SpikingNeuron};
///
/// let neuron = SpikingNeuron { threshold: 1.0, ..Default::default() };
/// let train = neuron.run(&[0.75, 0.75, -2.0], 3)?;
/// assert_eq!(train.membrane, [0.75, 1.125, -2.0]);
/// assert_eq!(train.spikes, [0.0, 1.0, -1.0]);
///
/// let binary = SpikingNeuron { spikes: Spikes::Binary, ..neuron };
/// assert_eq!(binary.run(&[0.75, 0.75, -2.0], 3)?.spikes, [0.0, 1.0, 0.0]);
/// # Ok::<(), bochner_numerics::ArgumentError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(
    default,
    deny_unknown_fields,
    rename_all = "kebab-case",
    remote = "Self"
)]
pub struct SpikingNeuron {
    /// The values of the spikes.
    pub spikes: Spikes,
    /// The threshold $\theta$, at least 0; 1 by default.
    pub threshold: f64,
    /// The potential V after a spike; 0 by default.
    pub reset: f64,
    /// The part $\tau$ of the potential that is kept without a spike, from 0 to 1; 1/2 by default.
    pub decay: f64,
    /// The width of the window in which a spike has a slope, which is one over it; 1 by default.
    #[serde(alias = "surrogate_width")]
    pub surrogate_width: f64,
}

bochner_numerics::checked_when_read!(SpikingNeuron);

/// The spikes of a [`SpikingNeuron`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Spikes {
    /// $s(u) = [u \ge \theta]$: 0 and 1.
    Binary,
    /// $s(u) = \operatorname{sign}(u) [|u| \ge \theta]$: -1, 0 and 1; a potential of 0 has no sign, so it gives 0.
    #[default]
    Ternary,
}

impl Default for SpikingNeuron {
    fn default() -> Self {
        Self {
            spikes: Spikes::Ternary,
            threshold: 1.0,
            reset: 0.0,
            decay: 0.5,
            surrogate_width: 1.0,
        }
    }
}

/// The states of neurons over time; each array is as long as the input.
#[derive(Clone, Debug, PartialEq)]
pub struct SpikeTrain<T> {
    /// The spikes S.
    pub spikes: Vec<T>,
    /// The potentials U before a spike.
    pub membrane: Vec<T>,
    /// The potentials H after it.
    pub held: Vec<T>,
}

impl SpikingNeuron {
    /// `Ok` if all numbers are in their ranges.
    ///
    /// # Errors
    /// [`ArgumentError::OutOfRange`] naming the one that is not.
    pub fn validate(&self) -> Result<(), ArgumentError> {
        argument::non_negative("threshold", self.threshold)?;
        argument::in_range(self.reset.is_finite(), "reset", self.reset, "finite")?;
        let decays = (0.0..=1.0).contains(&self.decay);
        argument::in_range(decays, "decay", self.decay, "from 0 to 1")?;
        argument::positive("surrogate_width", self.surrogate_width)
    }

    /// Everything that happens over `steps` steps, which `x` holds one after the other.
    ///
    /// # Errors
    /// The errors of [`validate`](Self::validate), [`ArgumentError::OutOfRange`] for a reset beyond the range
    /// of the type, [`ArgumentError::Empty`] for no steps, [`ArgumentError::Shape`] if they do not divide the
    /// numbers of `x`.
    pub fn run<T: Real>(&self, x: &[T], steps: usize) -> Result<SpikeTrain<T>, ArgumentError> {
        self.validate()?;
        let (reset, decay) = (T::of(self.reset), T::of(self.decay));
        let allowed = "finite in the type of the numbers";
        argument::in_range(reset.is_finite(), "reset", self.reset, allowed)?;
        argument::at_least_one("steps", steps)?;
        let width = x.len() / steps;
        argument::shape("x", &[steps * width], &[x.len()])?;
        let mut train = SpikeTrain {
            spikes: Vec::with_capacity(x.len()),
            membrane: x.to_vec(),
            held: vec![T::zero(); x.len()],
        };
        for step in 0..steps {
            let start = step * width;
            let (before, held) = train.held.split_at_mut(start);
            let membrane = &mut train.membrane[start..][..width];
            if step > 0 {
                let before = &before[start - width..];
                membrane.iter_mut().zip(before).for_each(|(u, &h)| *u += h);
            }
            let spikes = membrane.iter().map(|&u| self.spike(u));
            train.spikes.extend(spikes);
            let spikes = &train.spikes[start..];
            for ((h, &u), &s) in held.iter_mut().zip(&*membrane).zip(spikes) {
                *h = if s != T::zero() {
                    reset * s
                } else if decay == T::zero() {
                    // The potential may have overflowed, and 0 times infinity is not a number.
                    T::zero()
                } else {
                    decay * u
                };
            }
        }
        Ok(train)
    }

    /// The vector-Jacobian product of the spikes, given the potentials and the cotangents `ds`, step by step
    /// from the last to the first.
    ///
    /// # Panics
    /// Unless `membrane`, `ds` and `dx` have one length, which `steps` divides.
    pub fn vjp<T: Real>(&self, membrane: &[T], ds: &[T], steps: usize, dx: Slot<'_, T>) {
        let (len, width) = (membrane.len(), membrane.len() / steps);
        assert_eq!(
            [ds.len(), dx.len(), width * steps],
            [len; 3],
            "numbers of whole steps"
        );
        let mut gradients = vec![T::zero(); len];
        let mut of_held = vec![T::zero(); width];
        let (reset, decay) = (T::of(self.reset), T::of(self.decay));
        for start in (0..steps).rev().map(|step| step * width) {
            let step = membrane[start..][..width].iter().zip(&ds[start..]);
            let out = gradients[start..].iter_mut().zip(&mut of_held);
            for ((&u, &ds), (du, dh)) in step.zip(out) {
                let kept = if self.spike(u) == T::zero() {
                    decay * *dh
                } else {
                    T::zero()
                };
                let (slope, sign) = self.slope(u);
                *du = if slope == T::zero() {
                    kept
                } else {
                    (ds + *dh * (reset - decay * u * sign)) * slope + kept
                };
                *dh = *du;
            }
        }
        dx.put(gradients);
    }

    /// $s(u)$; NaN stays NaN.
    #[inline(always)]
    fn spike<T: Real>(&self, u: T) -> T {
        let threshold = T::of(self.threshold);
        let is_ternary = self.spikes == Spikes::Ternary;
        if u >= threshold && !(is_ternary && u == T::zero()) {
            T::one()
        } else if is_ternary && u <= -threshold && u < T::zero() {
            -T::one()
        } else if u.is_nan() {
            u
        } else {
            T::zero()
        }
    }

    /// The surrogate slope of $s(u)$, and what it is multiplied with to be that of $|s(u)|$.
    #[inline(always)]
    fn slope<T: Real>(&self, u: T) -> (T, T) {
        let (size, sign) = match self.spikes {
            Spikes::Binary => (u, T::one()),
            Spikes::Ternary => (u.abs(), u.signum()),
        };
        let is_near = (size.as_f64() - self.threshold).abs() < 0.5 * self.surrogate_width;
        // Finite: next to it stand gradients of zero.
        let slope = T::of(self.surrogate_width.recip()).min(T::max_value());
        (if is_near { slope } else { T::zero() }, sign)
    }
}

/// The spikes of an array `[steps, ..]`, as an operation on it.
impl<T: Real> Operation<T> for SpikingNeuron {
    /// The potentials.
    type Saved = Vec<T>;

    fn output_shapes(&self, inputs: &[&[usize]]) -> Result<Vec<Vec<usize>>, ArgumentError> {
        self.validate()?;
        let [x] = given(inputs)?;
        argument::at_least_one("steps", x.first().copied().unwrap_or(0))?;
        Ok(vec![x.to_vec()])
    }

    fn forward(
        &self,
        inputs: &[ArrayViewD<'_, T>],
        outputs: Vec<Slot<'_, T>>,
    ) -> Result<Self::Saved, BoxError> {
        let ([x], [spikes]) = (slices(inputs), slots(outputs));
        let train = self.run(x, inputs[0].shape()[0])?;
        spikes.put(train.spikes);
        Ok(train.membrane)
    }

    fn backward(
        &self,
        inputs: &[ArrayViewD<'_, T>],
        membrane: &Self::Saved,
        cotangents: &[ArrayViewD<'_, T>],
        gradients: Vec<Option<Slot<'_, T>>>,
    ) -> Result<(), BoxError> {
        let ([ds], [dx]) = (slices(cotangents), slots(gradients));
        if let Some(dx) = dx {
            self.vjp(membrane, ds, inputs[0].shape()[0], dx);
        }
        Ok(())
    }
}
