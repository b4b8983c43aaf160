//! The draws of a pass, and attention by one of them.

use super::{Mikan, ONE_DRAW};
use crate::Settings;
use crate::error::Error;
use crate::mechanism::squared::{Sets, SquaredKernel, shown};
use crate::mechanism::{Inspection, Mechanism, Pass, Streams};
use bochner_engine::shared_heads;
use bochner_numerics::Real;
use bochner_spectral::{Drawn, Features, Implicit, Posterior, Source};
use ndarray::{Array4, Axis};

impl Mikan {
    pub(super) fn squared(&self) -> SquaredKernel {
        SquaredKernel {
            p: self.p,
            floor: self.floor,
            preset: self.preset,
            form: self.form,
        }
    }

    pub(super) fn source(&self) -> Implicit {
        Implicit {
            points: self.points,
            prior_std: self.prior_std,
            slope: self.slope,
            copula: self.copula,
            preset: self.preset,
            stationarity: self.stationarity,
            posterior: self.posterior,
        }
    }

    /// The spectral points for given noise `eps: [B, M, R, d]`.
    pub(super) fn draw<T: Real>(
        &self,
        inputs: &Streams<T>,
        parameters: &[T],
        eps: Array4<T>,
    ) -> Result<Drawn<T>, Error> {
        Mechanism::<T>::validate(self)?;
        let (batch, heads, queries, _) = inputs.q().dim();
        inputs
            .mask
            .check([batch, heads, queries, inputs.k().dim().2])?;
        if inputs.mask.is_packed() && self.posterior == Posterior::Inferred {
            return Err(Error::Unsupported {
                what: "packed sequences with points that are inferred from each sequence",
                instead: "a padded batch with key lengths",
            });
        }
        Mechanism::<T>::card(self).admit(inputs)?;
        shared_heads(inputs.k().dim().1, heads)?;
        Ok(with_features(inputs, |features| {
            self.source().draw(features, parameters, eps)
        })?)
    }

    pub(super) fn frequencies<T: Real>(&self, drawn: &Drawn<T>) -> Sets<T> {
        self.squared().frequencies(drawn.points.clone()).into()
    }

    /// The settings of attention by what was drawn.
    pub(super) fn settings_of<T: Real>(
        &self,
        drawn: &Drawn<T>,
        inputs: &Streams<T>,
        pass: &Pass,
    ) -> Result<Settings<T>, Error> {
        let points = self.frequencies(drawn);
        let settings = self.squared().settings(inputs, &points, pass)?;
        inputs.complete(settings, pass)
    }

    pub(super) fn inspect_draw<T: Real>(
        &self,
        inputs: &Streams<T>,
        flat: &[T],
        pass: &Pass,
        eps: Array4<T>,
    ) -> Result<Inspection<T>, Error> {
        let drawn = self.draw(inputs, flat, eps)?;
        let latent = drawn.latent.as_ref();
        let weights = inputs.weights(&self.settings_of(&drawn, inputs, pass)?)?;
        Ok(Inspection {
            points: Some(shown(&self.frequencies(&drawn))),
            correlation: latent.map_or(Ok(None), |latent| latent.correlation())?,
            ..Inspection::of(weights)
        })
    }

    /// The noise of each draw of a pass. Examples share it in evaluation: what one gives does not depend on its place in
    /// the batch.
    pub(super) fn noise<T: Real>(
        &self,
        inputs: &Streams<T>,
        pass: &Pass,
    ) -> Result<Vec<Array4<T>>, Error> {
        let [q, ..] = inputs.get::<3>()?;
        let (source, batch) = (self.source(), q.dim().0);
        let (examples, draws) = match pass {
            Pass::Training { .. } => (batch, 1),
            Pass::Evaluation { .. } => (1, self.draws),
        };
        // One stream, so that the first draw is the only one of a single draw.
        let mut stream = pass.seed().stream("spectral noise");
        let draw = |_| {
            let noise = source.noise(examples, inputs.size(), &mut stream);
            let (_, heads, points, width) = noise.dim();
            let all = noise.broadcast((batch, heads, points, width));
            all.expect("one example or all").to_owned()
        };
        Ok((0..draws).map(draw).collect())
    }

    /// The noise of the one draw of a pass.
    pub(super) fn single_noise<T: Real>(
        &self,
        inputs: &Streams<T>,
        pass: &Pass,
    ) -> Result<Array4<T>, Error> {
        let mut noise = self.noise(inputs, pass)?;
        if noise.len() > 1 {
            let what = "decoding, or drawing points, with an average over several draws";
            return Err(ONE_DRAW.refusal(what));
        }
        Ok(noise.remove(0))
    }
}

/// Calls `f` with the queries and keys that the inference network averages over: the points of a head follow from what
/// it attends with and to.
pub(super) fn with_features<T: Real, R>(
    inputs: &Streams<T>,
    f: impl FnOnce(&Features<T>) -> R,
) -> R {
    let (q, k) = (inputs.q(), inputs.k());
    let ((batch, heads, queries, _), (_, key_heads, keys, _)) = (q.dim(), k.dim());
    let read: Vec<usize> = (0..heads).map(|m| m * key_heads / heads).collect();
    let repeated = (key_heads != heads).then(|| k.select(Axis(1), &read));
    let q_kept = inputs.mask.kept_queries(batch, queries);
    let k_kept = inputs.mask.kept_keys(batch, keys);
    f(&Features {
        q,
        k: repeated.as_ref().map_or(k, |k| k.view()),
        q_kept: q_kept.as_ref().map(|kept| kept.view()),
        k_kept: k_kept.as_ref().map(|kept| kept.view()),
    })
}
