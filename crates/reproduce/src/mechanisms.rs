//! The attention mechanisms of the tables, by the names that tables give them: the paper's nine, IKAN-direct in linear
//! time, and those that tables have on request.

use bochner_attention::{
    Copula, Form, IkanDirect, Mikan, Performer, Posterior, Preset, Primal, Softmax, Variant, find,
    mechanism::{DirectInit, PrimalTrace, PrimalWeights},
};
use bochner_models::encoder::{EncoderConfig, EncoderLayerConfig, NormPlacement};
use bochner_models::training::TrainingConfig;

/// Softmax attention.
pub const TRANSFORMER: &str = "Transformer";
/// Softmax attention with 8 heads where other models have fewer; who builds the model sets the number.
pub const EIGHT_HEADS: &str = "Transformer (8 heads)";

/// The mechanisms of other papers, which tables run on request.
pub const OF_OTHER_PAPERS: [&str; 4] = ["Performer", "CAT", "bipolar", "Primal"];
/// The tag of arms that read a method as the authors' released code does.
pub const RELEASED: &str = "released";
/// Primal-Attention whose weights are parameters, so that it does not see the order of rows.
pub const PRIMAL_PARAMETERS: &str = "Primal (parameters)";

/// The mechanism of a name in a reading of the method, with the norm `p` and so many spectral points where it has
/// them. Everything not given is the mechanism's own default; a name that is not listed here is that of the registry.
///
/// # Panics
/// If no mechanism has the name. Falling back to another mechanism would report results under the wrong name.
pub fn mechanism(name: &str, preset: Preset, p: Option<f64>, points: usize) -> Variant {
    let start = match preset {
        Preset::Paper => DirectInit::NearSoftmax,
        Preset::Released => DirectInit::KaimingUniform,
    };
    let implicit = |mikan: Mikan| {
        let p = p.unwrap_or(mikan.p);
        Variant::from(Mikan { p, points, ..mikan })
    };
    let primal = |rank, weights| {
        let usual = Primal::default();
        Variant::from(Primal {
            rank,
            weights,
            ..usual
        })
    };
    match name {
        "IKA-S" => implicit(Mikan::ika_s()),
        "IKA-NS" => implicit(Mikan::ika_ns()),
        "IKAN" => implicit(Mikan::ikan()),
        "Performer" => {
            // The squared kernels have two features for each spectral point, a sine and a cosine.
            let points = 2 * points;
            let usual = Performer::default();
            Performer { points, ..usual }.into()
        }
        "Primal" => {
            // Query and key together get one projection for each spectral point; its weights come from five times as
            // many rows.
            let (rank, trace) = ((points / 2).max(1), PrimalTrace::Data);
            let weights = PrimalWeights::Data {
                rows: 5 * rank,
                trace,
            };
            primal(rank, weights)
        }
        PRIMAL_PARAMETERS => primal((points / 2).max(1), PrimalWeights::Parameters),
        "IKAN-direct" | LINEAR_TIME => {
            let usual = IkanDirect::default();
            let direct = IkanDirect {
                p: p.unwrap_or(usual.p),
                points,
                preset,
                start,
                form: match name {
                    LINEAR_TIME => Form::LinearTime,
                    _ => usual.form,
                },
                ..usual
            };
            direct.into()
        }
        "MIKAN" => implicit(Mikan {
            preset,
            ..Mikan::default()
        }),
        TRANSFORMER | EIGHT_HEADS => Softmax::default().into(),
        _ => find(&name.to_lowercase()).unwrap_or_else(|| panic!("no mechanism is called {name}")),
    }
}

/// IKAN-direct in the form that takes linear time, which rounds otherwise.
pub const LINEAR_TIME: &str = "IKAN-direct, linear time";

/// The mechanism as a decoder can have it: spectral points that are inferred from a sequence would show every position
/// the future, so that they have a posterior of their own, and a copula that does not follow from a sequence.
pub fn in_decoder(mechanism: &Variant) -> Variant {
    match mechanism {
        Variant::Mikan(mikan) => Mikan {
            posterior: Posterior::Unconditional,
            copula: match mikan.copula {
                Copula::Independent => Copula::Independent,
                _ => Copula::Free,
            },
            ..mikan.clone()
        }
        .into(),
        other => other.clone(),
    }
}

/// A pre-LN encoder of this width, with so many heads, whose feed-forward parts are twice as wide.
pub(crate) fn encoder(
    layers: usize,
    [width, heads]: [usize; 2],
    dropout: f64,
    attention: Variant,
) -> EncoderConfig {
    let layer = EncoderLayerConfig {
        width,
        heads,
        hidden: 2 * width,
        attention,
        dropout,
        norm: NormPlacement::Pre,
        ..EncoderLayerConfig::default()
    };
    EncoderConfig::new(layers, layer)
}

/// Adam with this learning rate, and gradients of at most this norm.
pub(crate) fn clipped(learning_rate: f64, norm: f64) -> TrainingConfig {
    TrainingConfig {
        learning_rate,
        clip_norm: Some(norm),
        ..TrainingConfig::default()
    }
}
