//! The table of cases: what each is called, what its gradients are of, and who computes it.

mod attention;
mod copula;
mod feature_map;
mod magnitude;

use super::case_file::CaseFile;
use super::comparison::Computed;
use super::error::Fault;
use bochner_numerics::Real;
use ndarray::{ArrayD, Axis, IxDyn};

/// Computes the outputs of a case, and the gradients where there is a cotangent.
pub(super) type Function = fn(&CaseFile) -> Result<Computed, Fault>;

/// The same function in both precisions.
pub(super) struct Compute {
    pub(super) double: Function,
    pub(super) single: Function,
}

/// One line of the table.
pub(super) struct Entry {
    pub(super) name: &'static str,
    /// The output that the cotangent multiplies.
    pub(super) cotangent_of: &'static str,
    /// `None`: not served yet.
    pub(super) compute: Option<Compute>,
}

const fn served(
    name: &'static str,
    cotangent_of: &'static str,
    double: Function,
    single: Function,
) -> Entry {
    Entry {
        name,
        cotangent_of,
        compute: Some(Compute { double, single }),
    }
}

const fn not_served(name: &'static str, cotangent_of: &'static str) -> Entry {
    Entry {
        name,
        cotangent_of,
        compute: None,
    }
}

static TABLE: [Entry; 17] = [
    served(
        "attention",
        "output",
        attention::attention::<f64>,
        attention::attention::<f32>,
    ),
    not_served("quadratic_vs_linear", "output"),
    served(
        "feature_map",
        "phi",
        feature_map::feature_map::<f64>,
        feature_map::feature_map::<f32>,
    ),
    not_served("kernel_matrix", "kernel"),
    served(
        "magnitude",
        "magnitude",
        magnitude::magnitude::<f64>,
        magnitude::magnitude::<f32>,
    ),
    not_served("implicit_density", "w"),
    not_served("inference_network", "z"),
    not_served("copula_density", "log_density"),
    not_served("copula_joint_density", "log_density"),
    served(
        "copula_factor",
        "corr",
        copula::factor::<f64>,
        copula::factor::<f32>,
    ),
    served(
        "mikan_posterior",
        "z",
        copula::posterior::<f64>,
        copula::posterior::<f32>,
    ),
    not_served("kl_mean_field", "kl"),
    not_served("kl_copula", "kl"),
    not_served("elbo", "elbo"),
    not_served("pipeline", "output"),
    not_served("gat_classic", "output"),
    not_served("gat_kernel", "output"),
];

/// The line of a case.
pub(super) fn find(name: &str) -> Option<&'static Entry> {
    TABLE.iter().find(|entry| entry.name == name)
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

/// The same elements in another shape.
fn reshaped<T: Real>(x: ArrayD<T>, shape: &[usize]) -> ArrayD<T> {
    let x = x.as_standard_layout().into_owned();
    x.into_shape_with_order(IxDyn(shape))
        .expect("the same number of elements")
}
