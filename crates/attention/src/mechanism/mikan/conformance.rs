//! Examples of MIKAN's settings, and its plain reference.

use super::*;
use crate::conformance::*;

impl Conformance for Mikan {
    fn examples() -> Vec<Self> {
        let mut usual = Self::default();
        // A floor that finite differences can see across.
        (usual.p, usual.points, usual.floor) = (3.0, 4, 1e-2);
        let changed = |own: &Self, change: &dyn Fn(&mut Self)| {
            let mut own = own.clone();
            change(&mut own);
            own
        };
        let mut all = Vec::new();
        for copula in [Copula::Independent, Copula::Free, Copula::Amortised] {
            for stationarity in [Stationarity::Stationary, Stationarity::Nonstationary] {
                let own = Self {
                    copula,
                    stationarity,
                    ..usual.clone()
                };
                all.push(changed(&own, &|own| own.p = 2.0));
                all.push(changed(&own, &|own| own.draws = 3));
                all.push(changed(&own, &|own| {
                    own.posterior = Posterior::Unconditional
                }));
                all.push(own);
            }
        }
        for (p, beta) in [(0.5, 0.1), (1.0, 0.1), (2.0, 0.0)] {
            all.push(changed(&usual, &|own| (own.p, own.beta) = (p, beta)));
        }
        // An average over draws takes a causal mask, but has no decoder. With a free copula one number drawn lies
        // so close to zero that finite differences step over it, and there points jump.
        all.push(changed(&usual, &|own| {
            (own.copula, own.draws) = (Copula::Independent, 2);
            own.posterior = Posterior::Unconditional;
        }));
        let mut released = all.clone();
        released
            .iter_mut()
            .for_each(|own| own.preset = Preset::Released);
        all.append(&mut released);
        all.retain(|own| Mechanism::<f64>::validate(own).is_ok());
        all
    }

    fn refused() -> Vec<(&'static str, Self)> {
        type Change = fn(&mut Mikan);
        let changes: [(&'static str, Change); 8] = [
            ("p", |own| own.p = 0.0),
            ("p", |own| own.p = -1.0),
            ("floor", |own| own.floor = -1e-9),
            ("prior_std", |own| own.prior_std = 0.0),
            ("beta", |own| own.beta = -1.0),
            ("slope", |own| own.slope = -0.1),
            ("points", |own| own.points = 1_000_000_000_000),
            ("draws", |own| own.draws = 1_000_000_000_000),
        ];
        let of = |(name, change): (&'static str, Change)| {
            let mut own = Self::default();
            change(&mut own);
            (name, own)
        };
        changes.map(of).into()
    }

    fn extreme(&self, rng: &mut dyn RngCore) -> Self {
        let mut own = self.clone();
        (own.p, own.floor) = self.squared().extreme(rng);
        own
    }

    /// The draw is the mechanism's own, which has tests of its own.
    fn reference(
        &self,
        inputs: &Streams<f64>,
        parameters: &[f64],
        pass: &Pass,
    ) -> Result<Reference, Error> {
        let of = |eps| {
            let drawn = self.draw(inputs, parameters, eps)?;
            let points = self.frequencies(&drawn);
            let entropy = drawn.latent.as_ref().and_then(|latent| latent.entropy());
            let mut penalty = drawn.kl * self.beta;
            if let Some(entropy) = entropy {
                penalty += entropy;
            }
            let attended = self.squared().reference(inputs, &points, pass)?;
            Ok(Reference {
                penalty,
                ..attended
            })
        };
        let passes = self.noise(inputs, pass)?.into_iter().map(of);
        Ok(Reference::mean(&passes.collect::<Result<Vec<_>, Error>>()?))
    }
}
