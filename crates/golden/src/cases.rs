//! The table of cases: what each is called, what its gradients are of, and who computes it.

mod attention;
mod bipolar;
mod cat;
mod causal;
mod copula;
mod copula_density;
mod cross_entropy;
mod density;
mod depth;
mod divergence;
mod feature_map;
mod features_random;
mod flow;
mod forms;
mod functional_time;
mod graph;
mod heads;
mod interpret;
mod kernel_matrix;
mod learnable_query;
mod magnitude;
mod pipeline;
mod primal;
mod transformer;

use super::case_file::CaseFile;
use super::comparison::Computed;
use super::error::Fault;
use bochner_numerics::Real;
use ndarray::{ArrayD, Axis, IxDyn};

/// Computes the outputs of a case, and the gradients where there is a cotangent.
pub(super) type Function = fn(&CaseFile) -> Result<Computed, Fault>;

/// A function of a kind of case, compiled for double and for single precision.
pub(super) struct Compute {
    pub(super) double: Function,
    pub(super) single: Function,
}

/// Whether the variant that a file names is computed.
type Serves = fn(&CaseFile) -> Result<bool, Fault>;

/// One line of the table.
pub(super) struct Entry {
    pub(super) name: &'static str,
    /// The outputs that the cotangent may multiply.
    pub(super) cotangent_of: &'static [&'static str],
    /// Whether the file's entry `variant` is computed; `None` where no variant is told apart.
    serves: Option<Serves>,
    /// The outputs that every file of this case holds.
    pub(super) outputs: &'static [&'static str],
    pub(super) compute: Compute,
}

/// A line without its function.
struct Case {
    name: &'static str,
    cotangent_of: &'static [&'static str],
    serves: Option<Serves>,
    outputs: &'static [&'static str],
}

impl Case {
    /// The cotangent belongs to the first of the outputs.
    const fn of(name: &'static str, outputs: &'static [&'static str]) -> Self {
        Self {
            name,
            cotangent_of: outputs.split_at(1).0,
            serves: None,
            outputs,
        }
    }

    /// The cotangent belongs to any one of the outputs.
    const fn of_any(name: &'static str, outputs: &'static [&'static str]) -> Self {
        Self {
            cotangent_of: outputs,
            ..Self::of(name, outputs)
        }
    }

    const fn where_known(self, serves: Serves) -> Self {
        let serves = Some(serves);
        Self { serves, ..self }
    }

    const fn by(self, double: Function, single: Function) -> Entry {
        Entry {
            name: self.name,
            cotangent_of: self.cotangent_of,
            serves: self.serves,
            outputs: self.outputs,
            compute: Compute { double, single },
        }
    }

    /// For a case whose files need not hold the outputs listed.
    const fn optional(self) -> Self {
        Self {
            outputs: &[],
            ..self
        }
    }
}

static TABLE: [Entry; 38] = [
    Case::of("attention", &["output"])
        .where_known(|file| Ok(attention::mechanism(file)?.is_some()))
        .by(attention::attention::<f64>, attention::attention::<f32>),
    Case::of("quadratic_vs_linear", &["output"])
        .by(forms::both_forms::<f64>, forms::both_forms::<f32>),
    Case::of("bipolar_attention", &["output"])
        .by(bipolar::attention::<f64>, bipolar::attention::<f32>),
    Case::of("shiftmax", &["weights", "gamma"])
        .by(bipolar::of_rows::<f64>, bipolar::of_rows::<f32>),
    Case::of("ternary_neuron", &["spikes", "membrane", "held"])
        .by(bipolar::neuron::<f64>, bipolar::neuron::<f32>),
    Case::of("cat", &["output"]).by(cat::cat::<f64>, cat::cat::<f32>),
    Case::of("feature_map", &["phi", "f"]).by(
        feature_map::feature_map::<f64>,
        feature_map::feature_map::<f32>,
    ),
    Case::of_any("features_random", &["phi", "f"]).by(
        features_random::features_random::<f64>,
        features_random::features_random::<f32>,
    ),
    Case::of("kernel_matrix", &["kernel"]).by(
        kernel_matrix::kernel_matrix::<f64>,
        kernel_matrix::kernel_matrix::<f32>,
    ),
    Case::of("magnitude", &["magnitude"])
        .optional()
        .by(magnitude::magnitude::<f64>, magnitude::magnitude::<f32>),
    Case::of("implicit_density", &["w"]).by(density::implicit::<f64>, density::implicit::<f32>),
    Case::of(
        "inference_network",
        &["z", "h", "hidden", "mu", "log_sigma"],
    )
    .by(density::inference::<f64>, density::inference::<f32>),
    Case::of("copula_density", &["log_density"]).by(
        copula_density::density::<f64>,
        copula_density::density::<f32>,
    ),
    Case::of("copula_joint_density", &["log_density"])
        .by(copula_density::joint::<f64>, copula_density::joint::<f32>),
    Case::of("copula_factor", &["corr", "normalised", "half_neg_log_det"])
        .by(copula::factor::<f64>, copula::factor::<f32>),
    Case::of("mikan_posterior", &["z", "x"]).by(copula::posterior::<f64>, copula::posterior::<f32>),
    Case::of("kl_mean_field", &["kl"])
        .by(divergence::mean_field::<f64>, divergence::mean_field::<f32>),
    Case::of("kl_copula", &["kl"]).by(divergence::joint::<f64>, divergence::joint::<f32>),
    Case::of("elbo", &["elbo"]).by(divergence::elbo::<f64>, divergence::elbo::<f32>),
    Case::of("pipeline", &["output", "weights", "z", "w1", "w2", "kl"])
        .by(pipeline::pipeline::<f64>, pipeline::pipeline::<f32>),
    Case::of_any("primal", &["output", "loss"]).by(primal::primal::<f64>, primal::primal::<f32>),
    Case::of("ksvd", &["objective"]).by(primal::kernel_svd::<f64>, primal::kernel_svd::<f32>),
    Case::of("learnable_query", &["output", "weights"]).by(
        learnable_query::learnable_query::<f64>,
        learnable_query::learnable_query::<f32>,
    ),
    Case::of_any("functional_time", &["phi", "kernel", "output"])
        .optional()
        .by(
            functional_time::functional_time::<f64>,
            functional_time::functional_time::<f32>,
        ),
    Case::of("encoder_layer", &["output"]).by(transformer::layer::<f64>, transformer::layer::<f32>),
    Case::of("npt_block", &["output"])
        .by(transformer::npt_block::<f64>, transformer::npt_block::<f32>),
    Case::of("decoder_layer", &["output"]).by(
        transformer::decoder_layer::<f64>,
        transformer::decoder_layer::<f32>,
    ),
    Case::of("label_smoothed_cross_entropy", &["loss", "row"]).by(
        cross_entropy::label_smoothed::<f64>,
        cross_entropy::label_smoothed::<f32>,
    ),
    Case::of("sinusoidal_positions", &["encoding"])
        .by(transformer::positions::<f64>, transformer::positions::<f32>),
    Case::of("head_diversity", &["divergence"])
        .by(interpret::diversity::<f64>, interpret::diversity::<f32>),
    Case::of(
        "similarity_magnitude_trace",
        &["log10_similarity", "log10_magnitude", "log10_key_magnitude"],
    )
    .by(interpret::trace::<f64>, interpret::trace::<f32>),
    Case::of(
        "inter_modality_flow",
        &[
            "attention",
            "residual",
            "rollout",
            "norm_weighted",
            "uniform",
        ],
    )
    .by(flow::flow::<f64>, flow::flow::<f32>),
    Case::of(
        "partial_correlation",
        &[
            "partial",
            "z",
            "statistic",
            "p_value",
            "covariance",
            "correlation",
        ],
    )
    .by(
        causal::partial_correlation::<f64>,
        causal::partial_correlation::<f32>,
    ),
    Case::of("sem_from_attention", &["g", "g_z"]).by(causal::sem::<f64>, causal::sem::<f32>),
    Case::of("depth_threshold", &["threshold"])
        .by(depth::threshold::<f64>, depth::threshold::<f32>),
    Case::of("separation_rank", &["rank"]).by(depth::separation, depth::separation),
    Case::of("gat_classic", &["output", "alpha", "score"])
        .by(graph::classic::<f64>, graph::classic::<f32>),
    Case::of("gat_kernel", &["output", "alpha", "score"])
        .by(graph::kernel::<f64>, graph::kernel::<f32>),
];

/// The line of a case; `None` if no function computes its kind.
pub(super) fn find(file: &CaseFile) -> Result<Option<&'static Entry>, Fault> {
    let name = file.word("case")?;
    let Some(entry) = TABLE.iter().find(|entry| entry.name == name) else {
        return Ok(None);
    };
    let served = entry.serves.map_or(Ok(true), |serves| serves(file))?;
    Ok(served.then_some(entry))
}

/// The points' setting `stationarity`, where it must not be `none`.
fn is_stationary(file: &CaseFile) -> Result<bool, Fault> {
    let word = file.choice("stationarity", &["stationary", "nonstationary"])?;
    Ok(word == "stationary")
}

/// Sums a gradient over the axes along which its input was repeated.
fn sum_to_shape<T: Real>(mut gradient: ArrayD<T>, shape: &[usize]) -> ArrayD<T> {
    while gradient.ndim() > shape.len() {
        gradient = gradient.sum_axis(Axis(0));
    }
    for (axis, &length) in shape.iter().enumerate() {
        if length == 1 && gradient.shape()[axis] != 1 {
            gradient = gradient.sum_axis(Axis(axis)).insert_axis(Axis(axis));
        }
    }
    gradient
}

/// An array's elements in another shape.
fn reshaped<T: Real>(x: ArrayD<T>, shape: &[usize]) -> ArrayD<T> {
    let x = x.as_standard_layout().into_owned();
    x.into_shape_with_order(IxDyn(shape))
        .expect("the same number of elements")
}
