//! A component of the spectral mixture: an envelope times an oscillation.

use super::cosine::Cosine;
use bochner_numerics::Real;

/// One term of the sum, at frequencies around `mean`.
pub(super) struct Component<'a, T> {
    pub(super) weight: T,
    pub(super) mean: &'a [T],
    pub(super) variance: &'a [T],
    pub(super) cosine: Cosine,
}

impl<T: Real> Component<'_, T> {
    /// The term at the difference `t`; `phases` is scratch.
    pub(super) fn value(&self, t: &[T], phases: &mut [T]) -> T {
        self.turn(t, phases);
        self.weight * self.envelope(t) * self.cosine.value(phases)
    }

    fn envelope(&self, t: &[T]) -> T {
        let terms = t.iter().zip(self.variance).map(|(&t, &v)| t * t * v);
        let exponent: T = terms.sum();
        (-T::of(2.0) * T::PI() * T::PI() * exponent).exp()
    }

    fn turn(&self, t: &[T], phases: &mut [T]) {
        let turn = T::of(2.0) * T::PI();
        for ((phase, &t), &mean) in phases.iter_mut().zip(t).zip(self.mean) {
            *phase = turn * t * mean;
        }
    }

    /// Adds the gradients of `cotangent` times the term at the difference `t`: that along the
    /// difference, and those along this component's own parameters.
    pub(super) fn pull_back(&self, cotangent: T, t: &[T], phases: &mut [T], along: &mut Along<T>) {
        self.turn(t, phases);
        let turn = T::of(2.0) * T::PI();
        let damped = cotangent * self.envelope(t);
        let cosine = self.cosine.derive(phases);
        *along.weight += damped * cosine;
        let whole = damped * self.weight;
        for (n, &t) in t.iter().enumerate() {
            let along_phase = whole * phases[n] * turn;
            let along_exponent = -whole * cosine * turn * turn * t;
            along.t[n] += along_phase * self.mean[n] + along_exponent * self.variance[n];
            along.mean[n] += along_phase * t;
            along.variance[n] += along_exponent * t / T::of(2.0);
        }
    }
}

/// Where the gradients of one pair and one component are added.
pub(super) struct Along<'a, T> {
    pub(super) t: &'a mut [T],
    pub(super) weight: &'a mut T,
    pub(super) mean: &'a mut [T],
    pub(super) variance: &'a mut [T],
}
