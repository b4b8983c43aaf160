//! Every setting of attention without a mechanism around it.

use crate::conformance::common::*;
pub(crate) use bochner_attention::engine::Gradients;
use bochner_attention::engine::{Saved, Wanted};
use bochner_attention::{
    Error, Form, Magnitude, Mask, Settings, engine,
    kernels::{self, Points, RandomFeatureMap, Trained},
};
use bochner_numerics::Real;
use bochner_numerics::{DropoutMask, Seed};
use ndarray::{Array4, ArrayView4, Axis};

pub(crate) const FLOOR: f64 = 1e-3;
pub(crate) const PERIOD: f64 = 2.7;
const R: usize = 3;

/// Settings whose parts can be looked at: what a formula needs to know.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Plain<'a, T> {
    pub(crate) similarity: Similarity<'a, T>,
    pub(crate) magnitude: Magnitude,
    pub(crate) mask: &'a Mask,
    pub(crate) dropout: Option<DropoutMask>,
    pub(crate) form: Form,
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum Similarity<'a, T> {
    Softmax,
    Rbf,
    Expsin {
        period: f64,
    },
    Linear,
    Squared {
        points: Points<'a, T>,
        floor: f64,
    },
    /// Frequencies of one set, `[1, M, m, d]`.
    Features {
        w: ArrayView4<'a, T>,
        map: RandomFeatureMap,
        trained: Trained,
    },
}

impl<'a, T: Real> Plain<'a, T> {
    pub(crate) fn settings(&self) -> Settings<T> {
        let Self { mask, .. } = *self;
        let settings = match self.similarity {
            Similarity::Softmax => Settings::softmax(mask),
            Similarity::Rbf => kernels::rbf(mask),
            Similarity::Expsin { period } => kernels::expsin(period, mask),
            Similarity::Linear => kernels::linear(mask),
            Similarity::Squared { points, floor } => kernels::squared(points, floor, mask),
            Similarity::Features { w, map, trained } => {
                kernels::random_features(w.index_axis(Axis(0), 0), map, trained, mask)
            }
        };
        let settings = match self.magnitude {
            Magnitude::None => settings,
            magnitude => settings.with_key_weight(magnitude),
        };
        Settings {
            dropout: self.dropout,
            form: self.form,
            ..settings
        }
    }
}

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

/// Spectral points: one set for all examples, and one for each.
pub(crate) struct PointSets {
    pub(crate) shared: [Array4<f64>; 2],
    pub(crate) own: [Array4<f64>; 2],
}

impl PointSets {
    pub(crate) fn new() -> Self {
        let sets =
            |count, names: [&str; 2]| names.map(|name| random((count, HEADS, R, WIDTH), name));
        Self {
            shared: sets(1, ["shared w1", "shared w2"]),
            own: sets(BATCH, ["own w1", "own w2"]),
        }
    }

    pub(crate) fn similarity(&self, name: &str) -> Similarity<'_, f64> {
        match name {
            "softmax" => Similarity::Softmax,
            "rbf" => Similarity::Rbf,
            "expsin" => Similarity::Expsin { period: PERIOD },
            "linear" => Similarity::Linear,
            "stationary, shared" => stationary(&self.shared),
            "stationary, own" => stationary(&self.own),
            "non-stationary, shared" => nonstationary(&self.shared),
            "non-stationary, own" => nonstationary(&self.own),
            "features, positive" => features(&self.shared, RandomFeatureMap::Positive, Trained::No),
            "features, hyperbolic" => {
                features(&self.shared, RandomFeatureMap::Hyperbolic, Trained::Yes)
            }
            "features, relu" => {
                let map = RandomFeatureMap::Relu { epsilon: 0.1 };
                features(&self.shared, map, Trained::Yes)
            }
            _ => panic!("no similarity is called {name}"),
        }
    }
}

/// The kernels to which a magnitude or a bias can be added, except bipolar attention. Its gradients are surrogates,
/// which finite differences do not show, and its rows sum to less than one. It is tested as a mechanism, and in
/// `bipolar.rs`.
pub(crate) const SIMILARITIES: [&str; 8] = [
    "softmax",
    "rbf",
    "expsin",
    "linear",
    "stationary, shared",
    "stationary, own",
    "non-stationary, shared",
    "non-stationary, own",
];

/// The kernels that have their magnitude in their features; trigonometric ones, which cancel, are in `performer.rs`.
pub(crate) const FEATURES: [&str; 3] = [
    "features, positive",
    "features, hyperbolic",
    "features, relu",
];

pub(crate) fn features<'a>(
    [w, _]: &'a [Array4<f64>; 2],
    map: RandomFeatureMap,
    trained: Trained,
) -> Similarity<'a, f64> {
    let w = w.view();
    Similarity::Features { w, map, trained }
}

pub(crate) fn stationary([w, _]: &[Array4<f64>; 2]) -> Similarity<'_, f64> {
    Similarity::Squared {
        points: Points::Stationary { w: w.view() },
        floor: FLOOR,
    }
}

pub(crate) fn nonstationary([w1, w2]: &[Array4<f64>; 2]) -> Similarity<'_, f64> {
    let (w1, w2) = (w1.view(), w2.view());
    Similarity::Squared {
        points: Points::Nonstationary { w1, w2 },
        floor: FLOOR,
    }
}

pub(crate) fn dropout(rate: f64, purpose: &str) -> Option<DropoutMask> {
    Some(DropoutMask::new(rate, Seed::new(12).child(purpose)).unwrap())
}

pub(crate) fn magnitudes() -> Vec<Magnitude> {
    let norms = [0.5, 1.0, 1.5, 2.0, 3.0].map(|p| Magnitude::Norm { p });
    let others = [Magnitude::None, Magnitude::Released { p: 1.5 }];
    others.into_iter().chain(norms).collect()
}

/// Calls `check` with every similarity, every magnitude that it can have, every mask, and with and without
/// dropout.
pub(crate) fn for_all_settings(
    queries: usize,
    keys: usize,
    mut check: impl FnMut(&Plain<f64>, &Example<f64>, &str),
) {
    let (example, sets) = (Example::new(queries, keys), PointSets::new());
    for kernel in SIMILARITIES.into_iter().chain(FEATURES) {
        let magnitudes = match FEATURES.contains(&kernel) {
            true => vec![Magnitude::None],
            false => magnitudes(),
        };
        for magnitude in magnitudes {
            for (name, mask) in masks(queries, keys) {
                for dropout in [None, dropout(0.3, "weights")] {
                    let settings = with(sets.similarity(kernel), magnitude, &mask, dropout);
                    let label = format!("{kernel}, {magnitude:?}, mask: {name}, {dropout:?}");
                    check(&settings, &example, &label);
                }
            }
        }
    }
}

/// Calls `check` with all settings that have a linear-time form, in that form.
pub(crate) fn for_all_settings_in_linear_time(
    queries: usize,
    keys: usize,
    mut check: impl FnMut(&Plain<f64>, &Example<f64>, &str),
) {
    let form = Form::LinearTime;
    for_all_settings(queries, keys, |settings, example, label| {
        let settings = Plain { form, ..*settings };
        if settings
            .settings()
            .form_for(queries, keys, [WIDTH, VALUE_WIDTH])
            .is_ok()
        {
            check(&settings, example, &format!("{label}, in linear time"));
        }
    });
}

pub(crate) fn with<'a, T>(
    similarity: Similarity<'a, T>,
    magnitude: Magnitude,
    mask: &'a Mask,
    dropout: Option<DropoutMask>,
) -> Plain<'a, T> {
    Plain {
        similarity,
        magnitude,
        mask,
        dropout,
        form: Form::Automatic,
    }
}
