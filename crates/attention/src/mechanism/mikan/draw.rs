//! The draw of a pass, and attention by it.

use super::Mikan;
use crate::Settings;
use crate::error::Error;
use crate::mechanism::squared::{Sets, SquaredKernel};
use crate::mechanism::{Mechanism, Pass, Streams};
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

    /// The noise of a pass. Examples share it in evaluation: what one gives does not depend on its place in the batch.
    pub(super) fn noise<T: Real>(
        &self,
        inputs: &Streams<T>,
        pass: &Pass,
    ) -> Result<Array4<T>, Error> {
        let [q, ..] = inputs.get::<3>()?;
        let batch = q.dim().0;
        let examples = match pass {
            Pass::Training { .. } => batch,
            Pass::Evaluation { .. } => 1,
        };
        let mut stream = pass.seed().stream("spectral noise");
        let noise = self.source().noise(examples, inputs.size(), &mut stream);
        let (_, heads, points, width) = noise.dim();
        let all = noise.broadcast((batch, heads, points, width));
        Ok(all.expect("one example or all").to_owned())
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
