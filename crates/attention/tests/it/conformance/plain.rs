//! Attention by some settings, without a mechanism around it.

use bochner_attention::engine::{Gradients, Saved, Wanted};
use bochner_attention::{Error, Settings, engine};
use bochner_numerics::Real;
use ndarray::{Array4, ArrayView4};

/// Attention together with what it was given, for its backward pass.
#[derive(Debug)]
pub(crate) struct Attended<T: Real> {
    pub(crate) output: Array4<T>,
    settings: Settings<T>,
    given: [Array4<T>; 3],
    saved: Saved<T>,
}

pub(crate) fn attend<T: Real>(
    q: ArrayView4<T>,
    k: ArrayView4<T>,
    v: ArrayView4<T>,
    settings: &Settings<T>,
) -> Result<Attended<T>, Error> {
    let (output, saved) = engine::attend(settings, q, k, v)?;
    let given = [q, k, v].map(|x| x.to_owned());
    let settings = settings.clone();
    let output = output.into_owned();
    Ok(Attended {
        output,
        settings,
        given,
        saved,
    })
}

/// All gradients that there are.
pub(crate) fn attend_vjp<T: Real>(
    Attended {
        settings,
        given: [q, k, v],
        saved,
        ..
    }: &Attended<T>,
    cotangent: ArrayView4<T>,
) -> Result<Gradients<T>, Error> {
    let numbers = settings
        .bias
        .as_ref()
        .and_then(|bias| bias.zero_gradients());
    let wanted = Wanted {
        kernel: true,
        bias: numbers.is_some(),
        sink: settings.sink.is_some(),
    };
    let (q, k, v) = (q.view(), k.view(), v.view());
    Ok(engine::attend_vjp(
        settings, saved, q, k, v, cotangent, wanted,
    )?)
}

pub(crate) fn weights<T: Real>(
    q: ArrayView4<T>,
    k: ArrayView4<T>,
    settings: &Settings<T>,
) -> Result<Array4<T>, Error> {
    Ok(engine::weights(settings, q, k)?)
}
