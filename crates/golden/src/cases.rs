//! The table of kinds: names, outputs, and the functions that compute them.

mod attention;
mod bipolar;
mod causal;
mod copula;
mod density;
mod features;
mod graph;
mod interpret;
mod kernel_matrix;
mod mechanism;
mod operations;
mod pipeline;
mod sums;
mod time;
mod transformer;

use crate::case::{Case, Done};
use crate::case_file::CaseFile;
use crate::error::Fault;
use bochner_numerics::Real;
use bochner_spectral::Stationarity;

/// Computes the outputs of a case, and the gradients where there is a cotangent.
pub(super) type Function<T> = fn(&Case<T>) -> Done;

/// One kind of case.
pub(super) struct Kind {
    pub(super) name: &'static str,
    /// The outputs that files hold. A cotangent belongs to one of them.
    pub(super) outputs: &'static [&'static str],
    pub(super) double: Function<f64>,
    pub(super) single: Function<f32>,
}

/// The kinds whose files need not hold all outputs that are listed.
pub(super) const PARTIAL: [&str; 2] = ["magnitude", "functional_time"];

/// Makes the table of one line a kind: its name, its outputs, and its function for both precisions.
macro_rules! table {
    ($($name:literal $($output:literal)+ => $($function:ident)::+;)+) => {
        &[$(Kind {
            name: $name,
            outputs: &[$($output),+],
            double: $($function)::+::<f64>,
            single: $($function)::+::<f32>,
        }),+]
    };
}

static TABLE: &[Kind] = table! {
    "attention" "output" => attention::attention;
    "quadratic_vs_linear" "output" => attention::both_forms;
    "bipolar_attention" "output" => mechanism::bipolar;
    "cat" "output" => mechanism::cat;
    "primal" "output" "loss" => mechanism::primal;
    "pipeline" "output" "weights" "z" "w1" "w2" "kl" => pipeline::pipeline;
    "shiftmax" "weights" "gamma" => bipolar::rows;
    "ternary_neuron" "spikes" "membrane" "held" => bipolar::neuron;
    "feature_map" "phi" "f" => features::by_points;
    "features_random" "phi" "f" => features::at_random;
    "functional_time" "phi" "kernel" "output" => time::functional_time;
    "kernel_matrix" "kernel" => kernel_matrix::kernel_matrix;
    "implicit_density" "w" => density::implicit;
    "inference_network" "z" "h" "hidden" "mu" "log_sigma" => density::inference;
    "copula_density" "log_density" => copula::density;
    "copula_joint_density" "log_density" => copula::joint_density;
    "copula_factor" "corr" "normalised" "half_neg_log_det" => copula::factor;
    "mikan_posterior" "z" "x" => copula::posterior;
    "kl_mean_field" "kl" => copula::mean_field_kl;
    "kl_copula" "kl" => copula::joint_kl;
    "elbo" "elbo" => copula::elbo;
    "magnitude" "magnitude" => operations::magnitude;
    "learnable_query" "output" "weights" => operations::learnable_query;
    "ksvd" "objective" => operations::kernel_svd;
    "label_smoothed_cross_entropy" "loss" "row" => operations::cross_entropy;
    "sinusoidal_positions" "encoding" => operations::positions;
    "encoder_layer" "output" => transformer::encoder_layer;
    "decoder_layer" "output" => transformer::decoder_layer;
    "npt_block" "output" => transformer::npt_block;
    "head_diversity" "divergence" => interpret::diversity;
    "similarity_magnitude_trace" "log10_similarity" "log10_magnitude" "log10_key_magnitude" => interpret::trace;
    "inter_modality_flow" "attention" "residual" "rollout" "norm_weighted" "uniform" => interpret::flow;
    "depth_threshold" "threshold" => interpret::threshold;
    "separation_rank" "rank" => interpret::separation;
    "partial_correlation" "partial" "z" "statistic" "p_value" "covariance" "correlation" => causal::partial_correlation;
    "sem_from_attention" "g" "g_z" => causal::sem;
    "gat_classic" "output" "alpha" "score" => graph::classic;
    "gat_kernel" "output" "alpha" "score" => graph::kernel;
};

/// The kind of a case.
///
/// # Errors
/// [`Fault::NotServed`] if no function computes it, or not its variant.
pub(super) fn find(file: &CaseFile) -> Result<&'static Kind, Fault> {
    let name = file.word("case")?;
    let kind = TABLE.iter().find(|kind| kind.name == name);
    let is_served = name != "attention" || attention::variant(file)?.is_some();
    kind.filter(|_| is_served).ok_or_else(|| Fault::NotServed {
        case: name.to_owned(),
    })
}

/// The points' setting `stationarity`, where it must not be `none`.
fn is_stationary<T: Real>(c: &Case<T>) -> Result<bool, Fault> {
    Ok(c.setting::<Stationarity>("stationarity")? == Stationarity::Stationary)
}

/// A parameter's name with parts of it replaced one after the other.
fn renamed(name: &str, parts: &[(&str, &str)]) -> String {
    let rename = |name: String, (ours, theirs): &(&str, &str)| name.replace(ours, theirs);
    parts.iter().fold(name.to_owned(), rename)
}
