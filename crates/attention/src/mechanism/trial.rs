//! Mechanisms under the conformance checks of the engine.

use super::{Pass, Streams, Variant};
use crate::Error;
use bochner_engine::conformance::Trial;
use bochner_numerics::{Real, Seed};
use bochner_spectral::Size;

/// Returns the trial of a mechanism: its settings and its initial parameters, for
/// [`check`](bochner_engine::conformance::check) and [`agree`](bochner_engine::conformance::agree).
///
/// Sizes are those of [`Trial`], 2 heads and width 4.
///
/// # Errors
/// [`Error::Unsupported`] for a mechanism that is not [`attend`](crate::attend()) with some settings; the errors of
/// [`Mechanism::initial`](super::Mechanism::initial).
pub fn trial<T: Real>(variant: &Variant) -> Result<Trial<T>, Error> {
    let (size, mechanism) = (Size { heads: 2, width: 4 }, variant.shared());
    let mut rng = Seed::new(0).stream("initial values");
    let initial = mechanism.get::<T>().initial(size, &mut rng)?;
    let settings = move |mask: &_, learnt: &[T]| {
        let none = Streams::none(1, size);
        let inputs = Streams::unseen(&none, mask);
        let settings = mechanism
            .get::<T>()
            .kernel(&inputs, learnt, &Pass::evaluation());
        settings.expect("made before for the same sizes")
    };
    let none = Streams::none(1, size);
    let inputs = Streams::unseen(&none, crate::Mask::CAUSAL);
    let mechanism = variant.mechanism::<T>();
    mechanism.settings(&inputs, &initial, &Pass::evaluation())?;
    let pulled = variant.shared();
    Ok(Trial {
        pull: Box::new(move |all| pulled.get::<T>().pull_parameters(size, all)),
        ..Trial::with_learnt(initial, settings)
    })
}
