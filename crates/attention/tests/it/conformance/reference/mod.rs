//! The mechanisms once more, plain and slow, and with at most one error planted in them.

mod direct;
mod joint;
mod joint_gradient;
mod pairs;

use crate::conformance::common::{Case, Formula, Kernel, Source, Traits};
use bochner_attention::Magnitude;
use direct::Direct;
use joint::Joint;

/// Number of distinct frequencies.
const R: usize = 4;
const P: f64 = 1.5;
/// High enough for finite differences to see across.
const FLOOR: f64 = 1e-2;

/// One thing done wrong.
///
/// They are matched, never compared: a fault that no property is said to catch is then dead code,
/// and the compiler says so.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Fault {
    /// `true` means *may not attend*.
    MaskInverted,
    /// Masked keys get no weight, but count in the sum that weights are divided by.
    MaskedInNormaliser,
    /// Masked weights are multiplied by zero, and zero times NaN is NaN.
    MaskMultiplied,
    /// A causal mask aligns the first query with the first key, not the last with the last.
    CausalFromTheStart,
    /// Rows without a kept key are divided by their sum, zero.
    EmptyRowDivided,
    /// 1/R is missing in f.
    PointsNotAveraged,
    /// 1/4 is missing in f.
    FourCosinesNotAveraged,
    /// The similarity is the kernel itself.
    KernelNotSquared,
    /// The floor is missing.
    NoFloor,
    /// The key's magnitude is missing.
    NoKeyMagnitude,
    /// The query's magnitude stands where the key's belongs.
    QueryMagnitude,
    /// The p-norm is not squared.
    NormNotSquared,
    /// Weights that stay are not divided by the rate at which they do.
    DropoutNotRescaled,
    /// The gradient is that of all weights.
    DropoutNotInGradient,
    /// The derivative of the square lacks its 2.
    SquareWithoutTwo,
    /// The gradient of the magnitude is missing.
    MagnitudeNotInGradient,
    /// The factor scales each head's own noise and mixes none.
    HeadsNotMixed,
    /// The factor's rows are not divided by their norms.
    FactorNotNormalised,
    /// The divergence has the wrong sign.
    DivergenceNegated,
    /// The copula's part of the divergence has the wrong sign.
    DependenceNegated,
    /// The posterior's deviation is taken for its variance.
    DeviationAsVariance,
    /// Padded keys are part of the mean that the posterior is inferred from.
    PaddingInNetwork,
    /// Under a causal mask the posterior is inferred from all keys.
    FutureInNetwork,
}

/// A mechanism with spectral points as parameters.
pub(crate) fn direct(fault: Option<Fault>) -> Case<f64> {
    let mechanism = Source::Test(Box::new(Direct { fault }));
    let name = format!("direct, planted: {fault:?}");
    Case::new(name, mechanism, traits(false, false))
}

/// A mechanism with spectral points drawn jointly over the heads.
pub(crate) fn joint(fault: Option<Fault>) -> Case<f64> {
    let mechanism = Source::TestLatent(Box::new(Joint { fault }));
    let name = format!("joint, planted: {fault:?}");
    // Whoever lets the future in does not say so.
    let inferred = !matches!(fault, Some(Fault::FutureInNetwork));
    Case::new(name, mechanism, traits(true, inferred))
}

fn traits(latent: bool, inferred: bool) -> Traits {
    Traits {
        latent,
        inferred,
        averaged: false,
        released: false,
        formula: Formula {
            kernel: Kernel::Squared { floor: FLOOR },
            magnitude: Magnitude::Norm { p: P },
        },
    }
}
