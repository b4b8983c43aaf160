//! A component of the spectral mixture: an envelope times an oscillation.
//!
//! One row of inputs meets all others at once, so that exponentials and cosines are worked out
//! several at a time.

use super::cosine::Cosine;
use bochner_numerics::Real;
use bochner_numerics::elementary::{exp_in_place, sin_cos};
use bochner_numerics::scaling::bounded;

/// One term of the sum, at frequencies around `mean`.
pub(super) struct Component<'a, T> {
    pub(super) weight: T,
    pub(super) mean: &'a [T],
    pub(super) variance: &'a [T],
    pub(super) cosine: Cosine,
}

/// The envelope and the oscillation of a term at N differences.
pub(super) struct Parts<T> {
    /// The length of a row: N, or one if there are no differences.
    count: usize,
    /// `[N]`.
    envelope: Vec<T>,
    /// The oscillation, `[N]`.
    cosine: Vec<T>,
    /// Its factors' phases, their sines and cosines, `[factors, N]`.
    phases: Vec<T>,
    sines: Vec<T>,
    cosines: Vec<T>,
}

impl<T: Real> Parts<T> {
    /// Room for `count` differences of a width.
    pub(super) fn new(cosine: Cosine, width: usize, count: usize) -> Self {
        let zeros = |rows| vec![T::zero(); rows * count];
        let factors = cosine.factors(width);
        Self {
            count: count.max(1),
            envelope: zeros(1),
            cosine: zeros(1),
            phases: zeros(factors),
            sines: zeros(factors),
            cosines: zeros(factors),
        }
    }

    fn of(&mut self, component: &Component<T>, t: &[T]) {
        let (turn, count) = (T::of(2.0) * T::PI(), self.count);
        self.envelope.fill(T::zero());
        self.phases.fill(T::zero());
        for (n, t) in t.chunks_exact(count).enumerate() {
            let (mean, variance) = (component.mean[n], component.variance[n]);
            let phases = &mut self.phases[component.cosine.factor(n) * count..][..count];
            for ((sum, phase), &t) in self.envelope.iter_mut().zip(phases).zip(t) {
                *sum += t * t * variance;
                *phase += bounded(t * mean);
            }
        }
        // The constant factors come last: times a parameter they could overflow where a difference is zero.
        let steepness = -turn * T::PI();
        self.envelope.iter_mut().for_each(|x| *x *= steepness);
        // A phase that overflows has no digits left, but a cosine, which the envelope's zero multiplies.
        self.phases.iter_mut().for_each(|x| *x = bounded(*x * turn));
        exp_in_place(&mut self.envelope);
        sin_cos(&self.phases, &mut self.sines, &mut self.cosines);
        self.cosine.fill(T::one());
        for cosines in self.cosines.chunks_exact(count) {
            multiply(&mut self.cosine, cosines);
        }
    }

    /// Replaces the sines by the oscillation's derivatives along the phases: by products of all
    /// before and all after, for the product of all may vanish where that of the others does not.
    fn derive(&mut self) {
        let count = self.count;
        let mut others = vec![T::one(); self.envelope.len()];
        let factors = self.sines.chunks_exact_mut(count);
        for (sines, cosines) in factors.zip(self.cosines.chunks_exact(count)) {
            sines.iter_mut().for_each(|sine| *sine = -*sine);
            multiply(sines, &others);
            multiply(&mut others, cosines);
        }
        others.fill(T::one());
        let factors = self.sines.chunks_exact_mut(count);
        for (slopes, cosines) in factors.zip(self.cosines.chunks_exact(count)).rev() {
            multiply(slopes, &others);
            multiply(&mut others, cosines);
        }
    }
}

fn multiply<T: Real>(product: &mut [T], by: &[T]) {
    product.iter_mut().zip(by).for_each(|(x, &y)| *x *= y);
}

impl<T: Real> Component<'_, T> {
    /// Adds the term at the differences `t`, `[d, N]`, to as many sums.
    pub(super) fn add_values(&self, t: &[T], parts: &mut Parts<T>, sums: &mut [T]) {
        parts.of(self, t);
        for ((sum, &envelope), &cosine) in sums.iter_mut().zip(&parts.envelope).zip(&parts.cosine) {
            *sum += self.weight * envelope * cosine;
        }
    }

    /// Adds the gradients of `cotangents` times the term at the differences `t`: those along the
    /// differences, and those along this component's own parameters.
    pub(super) fn pull_back(
        &self,
        cotangents: &[T],
        t: &[T],
        parts: &mut Parts<T>,
        along: &mut Along<T>,
    ) {
        parts.of(self, t);
        parts.derive();
        let (turn, count) = (T::of(2.0) * T::PI(), parts.count);
        multiply(&mut parts.envelope, cotangents);
        let damped = &parts.envelope;
        let pairs = damped.iter().zip(&parts.cosine);
        *along.weight += pairs.map(|(&damped, &cosine)| damped * cosine).sum::<T>();
        let steps = t.chunks_exact(count).zip(along.t.chunks_exact_mut(count));
        for (n, (t, along_t)) in steps.enumerate() {
            let slopes = &parts.sines[self.cosine.factor(n) * count..][..count];
            let (mut along_mean, mut along_variance) = (T::zero(), T::zero());
            for (j, (&t, along_t)) in t.iter().zip(along_t).enumerate() {
                // Bounded where a cotangent may be large enough for an infinity to meet a zero or another one.
                let whole = bounded(damped[j] * self.weight);
                let along_phase = bounded(whole * slopes[j] * turn);
                let along_exponent = bounded(bounded(-whole * parts.cosine[j] * turn * turn) * t);
                let along_both = bounded(along_phase * self.mean[n])
                    + bounded(along_exponent * self.variance[n]);
                *along_t += bounded(along_both);
                along_mean += bounded(along_phase * t);
                along_variance += bounded(along_exponent * t);
            }
            along.mean[n] += along_mean;
            along.variance[n] += along_variance / T::of(2.0);
        }
    }
}

/// Destinations to which the gradients of one component at N differences are added.
pub(super) struct Along<'a, T> {
    /// `[d, N]`.
    pub(super) t: &'a mut [T],
    pub(super) weight: &'a mut T,
    pub(super) mean: &'a mut [T],
    pub(super) variance: &'a mut [T],
}
