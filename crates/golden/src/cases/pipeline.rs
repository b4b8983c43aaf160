//! `pipeline`: from queries, keys and noise to the output, through the mechanism that users train.

use super::attention::mask;
use super::reshaped;
use crate::case_file::CaseFile;
use crate::comparison::Computed;
use crate::error::Fault;
use bochner_attention::{
    Copula, Magnitude, Mask, Mechanism, Mikan, Pass, Preset, Stationarity,
    kernels::{self, Points},
    mechanism::{Cotangents, Drawn, MikanGradients, ParameterSpec, Streams},
    weights,
};
use bochner_numerics::{Real, Seed};
use ndarray::{Array1, Array4, ArrayD, ArrayView1, Ix4};

/// IKAN, or MIKAN with either parametrisation of its copula.
pub(super) fn pipeline<T: Real>(file: &CaseFile) -> Result<Computed, Fault> {
    let [q, k, v, eps]: [Array4<T>; 4] = [
        file.array("q")?,
        file.array("k")?,
        file.array("v")?,
        file.array("eps")?,
    ];
    let mikan = mechanism(file, eps.dim().2)?;
    let mask = &with_query_lengths(file, mask(file)?, q.dim().2)?;
    let inputs = Streams::new([q.view(), k.view(), v.view()], mask);
    let specs = Mechanism::<T>::parameters(&mikan, inputs.size());
    let parameters = flat_parameters::<T>(file, &specs)?;
    // The noise is given, so that nothing is drawn.
    let pass = Pass::Evaluation { seed: Seed::new(0) };
    let forward = mikan.forward_with(&inputs, &parameters, &pass, eps);
    let forward = forward.map_err(Fault::refused)?;
    let drawn = mikan.draw_of(&forward).map_err(Fault::refused)?;
    let mut computed = Computed::default();
    computed.output("output", &forward.output);
    let latent = drawn.latent.as_ref();
    computed.output("z", &latent.expect("an implicit source has a latent").z);
    for (name, points) in ["w1", "w2"].iter().zip(&drawn.points) {
        computed.output(name, points);
    }
    computed.output("kl", &drawn.kl);
    computed.output("weights", &weights_of(&mikan, &inputs, drawn)?);
    if let Some(g) = file.ranked_cotangent::<T, Ix4>()? {
        let penalty = Array1::zeros(g.dim().0);
        let cotangent = Cotangents {
            output: g.view(),
            penalty: penalty.view(),
        };
        let g = mikan.backward_with(&inputs, &parameters, &pass, &forward, cotangent);
        record(&g.map_err(Fault::refused)?, &specs, &mut computed);
    }
    Ok(computed)
}

fn mechanism(file: &CaseFile, points: usize) -> Result<Mikan, Fault> {
    let copula = match file.choice("variant", &["ikan", "mikan"])? {
        "ikan" => {
            file.choice("parametrisation", &["none"])?;
            Copula::Independent
        }
        _ => match file.choice("parametrisation", &["free", "amortised"])? {
            "free" => Copula::Free,
            _ => Copula::Amortised,
        },
    };
    let stationarity = match super::is_stationary(file)? {
        true => Stationarity::Stationary,
        false => Stationarity::Nonstationary,
    };
    Ok(Mikan {
        p: file.number("p")?,
        points,
        floor: file.number("floor")?,
        prior_std: file.number("prior_std")?,
        slope: file.number("slope")?,
        beta: 1.0,
        copula,
        preset: Preset::Paper,
        stationarity,
        ..Mikan::default()
    })
}

/// The key lengths count for the queries' mean too.
fn with_query_lengths(file: &CaseFile, mask: Mask, queries: usize) -> Result<Mask, Fault> {
    if !file.word("mask")?.starts_with("lengths") {
        return Ok(mask);
    }
    let lengths = file.lengths("lengths")?.into_iter();
    Ok(mask.with_query_lengths(lengths.map(|length| length.min(queries)).collect()))
}

/// The format's name of one of the mechanism's parameters.
fn name_in_file(parameter: &str) -> String {
    let renamed = [
        ("inference.", "inf."),
        ("density", "net"),
        ("copula.raw", "raw"),
        ("copula.w", "wc"),
        ("copula.b", "bc"),
    ];
    let mut renamed = renamed
        .iter()
        .filter_map(|(ours, theirs)| Some(format!("{theirs}{}", parameter.strip_prefix(ours)?)));
    let renamed = renamed.next().unwrap_or_else(|| parameter.to_owned());
    renamed.replace(".weight", ".w").replace(".bias", ".b")
}

fn flat_parameters<T: Real>(file: &CaseFile, specs: &[ParameterSpec]) -> Result<Vec<T>, Fault> {
    let mut flat = Vec::new();
    for spec in specs {
        let name = name_in_file(&spec.name);
        let array: ArrayD<T> = file.floats(&name)?;
        if array.shape() != spec.shape {
            return Err(Fault::Shape {
                tensor: format!("in.{name}"),
                expected: format!("{:?}", spec.shape),
                got: array.shape().to_vec(),
            });
        }
        flat.extend(array.iter().copied());
    }
    Ok(flat)
}

fn weights_of<T: Real>(
    mikan: &Mikan,
    inputs: &Streams<T>,
    drawn: &Drawn<T>,
) -> Result<Array4<T>, Fault> {
    let points = Points::of_sets(&drawn.points);
    let settings = kernels::squared(points, mikan.floor, inputs.mask);
    let settings = settings.with_key_weight(Magnitude::Norm { p: mikan.p });
    weights(&settings, inputs.q(), inputs.k()).map_err(Fault::refused)
}

fn record<T: Real>(g: &MikanGradients<T>, specs: &[ParameterSpec], computed: &mut Computed) {
    computed.gradient("q", &g.gradients.streams[0]);
    computed.gradient("k", &g.gradients.streams[1]);
    computed.gradient("v", &g.gradients.streams[2]);
    computed.gradient("eps", &g.eps);
    let mut rest = g.gradients.parameters.as_slice();
    for spec in specs {
        let (own, after) = rest.split_at(spec.count());
        rest = after;
        let own = ArrayView1::from(own).to_owned().into_dyn();
        computed.gradient(&name_in_file(&spec.name), &reshaped(own, &spec.shape));
    }
}
