//! `attention`: every variant over every mask.

use super::is_stationary;
use crate::case_file::CaseFile;
use crate::comparison::Computed;
use crate::error::Fault;
use bochner_attention::{
    AttentionGradients, Magnitude, Mask, Points, PointsGradients, Settings, attend, attend_vjp,
    weights,
};
use bochner_numerics::Real;
use ndarray::{Array4, Axis, Ix3, Ix4};

/// Outputs, weights and gradients of one variant.
pub(super) fn attention<T: Real>(file: &CaseFile) -> Result<Computed, Fault> {
    let kernel = kernel(file)?;
    let q: Array4<T> = file.array("q")?;
    let (k, v): (Array4<T>, Array4<T>) = (file.array("k")?, file.array("v")?);
    let points = match kernel {
        Kernel::Squared => Some(GivenPoints::read(file)?),
        _ => None,
    };
    let mask = mask(file)?;
    let settings = match (&points, kernel) {
        (Some(points), _) => points.settings(file.number("floor")?, &mask),
        (None, Kernel::Expsin) => Settings::expsin(1.0, &mask),
        (None, Kernel::Linear) => Settings::linear(&mask),
        (None, _) => Settings::rbf(&mask),
    };
    let settings = match kernel {
        Kernel::Softmax => Settings::softmax(&mask),
        _ => Settings {
            magnitude: magnitude(file)?,
            ..settings
        },
    };
    let (q, k, v) = (q.view(), k.view(), v.view());
    let attended = attend(q, k, v, &settings).map_err(Fault::refused)?;
    let mut computed = Computed::default();
    computed.output("output", &attended.output);
    if file.asks_for("weights") {
        let weights = weights(q, k, &settings).map_err(Fault::refused)?;
        computed.output("weights", &weights);
    }
    if let Some(g) = file.ranked_cotangent::<T, Ix4>()? {
        let g = attend_vjp(&attended, g.view()).map_err(Fault::refused)?;
        record(&g, points.as_ref(), &mut computed);
    }
    Ok(computed)
}

/// Records the gradients of attention.
pub(super) fn record<T: Real>(
    g: &AttentionGradients<T>,
    points: Option<&GivenPoints<T>>,
    computed: &mut Computed,
) {
    computed.gradient("q", &g.q);
    computed.gradient("k", &g.k);
    computed.gradient("v", &g.v);
    if let (Some(points), Some(g)) = (points, &g.points) {
        points.gradients(g, computed);
    }
}

#[derive(Clone, Copy)]
enum Kernel {
    Softmax,
    Rbf,
    Expsin,
    Linear,
    Squared,
}

/// The values of the entry `variant` that are computed here.
pub(super) const VARIANTS: [&str; 9] = [
    "softmax",
    "rbf_only",
    "expsin",
    "linear",
    "ika_s",
    "ika_ns",
    "ikan",
    "ikan_direct",
    "mikan",
];

fn kernel(file: &CaseFile) -> Result<Kernel, Fault> {
    Ok(match file.choice("variant", &VARIANTS)? {
        "softmax" => Kernel::Softmax,
        "rbf_only" => Kernel::Rbf,
        "expsin" => Kernel::Expsin,
        "linear" => Kernel::Linear,
        _ => Kernel::Squared,
    })
}

/// The magnitude that the entry `p` asks for.
pub(super) fn magnitude(file: &CaseFile) -> Result<Magnitude, Fault> {
    Ok(match file.number_or_none("p")? {
        None => Magnitude::None,
        Some(p) => Magnitude::Norm { p },
    })
}

/// The mask that the entries `mask` and `causal` and the inputs ask for.
pub(super) fn mask(file: &CaseFile) -> Result<Mask, Fault> {
    let kinds = ["none", "lengths", "causal", "matrix", "lengths_causal"];
    let kind = file.choice("mask", &kinds)?;
    let causal = kind.ends_with("causal");
    if (file.choice("causal", &["true", "false"])? == "true") != causal {
        return Err(file.wrong("causal", "what `mask` implies"));
    }
    let mut mask = Mask::none();
    if kind.starts_with("lengths") {
        mask = mask.with_key_lengths(file.lengths("lengths")?);
    }
    if kind == "matrix" {
        mask = mask.with_matrix(file.mask("mask")?.view());
    }
    Ok(if causal { mask.with_causality() } else { mask })
}

/// The spectral points, `[1 or B, M, R, d]`.
pub(super) struct GivenPoints<T> {
    w1: Array4<T>,
    w2: Option<Array4<T>>,
    shared: bool,
}

impl<T: Real> GivenPoints<T> {
    pub(super) fn read(file: &CaseFile) -> Result<Self, Fault> {
        let shared = file.choice("points", &["shared", "per_example"])? == "shared";
        let read = |name| -> Result<Array4<T>, Fault> {
            if shared {
                Ok(file.array::<T, Ix3>(name)?.insert_axis(Axis(0)))
            } else {
                file.array(name)
            }
        };
        let stationary = is_stationary(file)?;
        Ok(Self {
            w1: read("w1")?,
            w2: (!stationary).then(|| read("w2")).transpose()?,
            shared,
        })
    }

    pub(super) fn settings(&self, floor: f64, mask: &Mask) -> Settings<T> {
        let w1 = self.w1.view();
        let points = match &self.w2 {
            None => Points::Stationary { w: w1 },
            Some(w2) => Points::Nonstationary { w1, w2: w2.view() },
        };
        Settings::squared(points, floor, mask)
    }

    fn gradients(&self, gradients: &PointsGradients<T>, computed: &mut Computed) {
        let mut record = |name, gradient: &Array4<T>| {
            if self.shared {
                computed.gradient(name, &gradient.index_axis(Axis(0), 0).to_owned());
            } else {
                computed.gradient(name, gradient);
            }
        };
        record("w1", &gradients.w1);
        if let Some(w2) = &gradients.w2 {
            record("w2", w2);
        }
    }
}
