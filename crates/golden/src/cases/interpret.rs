//! `head_diversity`, `similarity_magnitude_trace`, `inter_modality_flow`, `depth_threshold` and `separation_rank`:
//! read-outs of attention.

use super::attention::{magnitude, mask, points};
use crate::case::{Case, Done, record};
use crate::error::Fault;
use bochner_attention::kernels::Points;
use bochner_interpret::{
    DepthFit, Error, Modality, ModularNetwork, Readout, Similarity, depth_threshold,
    head_diversity, inter_modality_flow, similarity_magnitude_trace,
};
use bochner_numerics::Real;
use ndarray::{Array1, Array3, Array4};

/// The divergence between the heads of each example.
pub(super) fn diversity<T: Real>(c: &Case<T>) -> Done {
    let weights: Array4<T> = c.array("weights")?;
    let divergence = head_diversity(weights.view(), c.mask("q_mask")?.view())?;
    c.output("divergence", divergence);
    Ok(())
}

/// The similarity and the magnitude of each head.
pub(super) fn trace<T: Real>(c: &Case<T>) -> Done {
    let [q, k]: [Array4<T>; 2] = c.arrays(["q", "k"])?;
    let mut mask = mask(c)?;
    if c.word("mask")?.starts_with("lengths") {
        mask = mask.with_query_lengths(c.counts("q_lengths")?);
    }
    // All others of these cases have a squared kernel.
    let points = match c.word("variant")? {
        "softmax" => Vec::new(),
        _ => points(c)?,
    };
    let similarity = match points.is_empty() {
        true => Similarity::Rbf,
        false => Similarity::Squared {
            points: Points::of_sets(&points),
            floor: c.number("floor")?,
        },
    };
    let by = (&similarity, magnitude(c)?);
    let seen = similarity_magnitude_trace(q.view(), k.view(), by, &mask)?;
    record!(c.output, seen => log10_similarity, log10_magnitude, log10_key_magnitude);
    Ok(())
}

/// The share of attention that crosses between vision and text.
pub(super) fn flow<T: Real>(c: &Case<T>) -> Done {
    let [a, v]: [Array4<T>; 2] = c.arrays(["a", "v"])?;
    let kinds = c.counts("kind")?.into_iter();
    let kinds = kinds.map(|kind| match kind {
        0 => Ok(Modality::Vision),
        1 => Ok(Modality::Text),
        2 => Ok(Modality::Padding),
        other => {
            let allowed = "one of 0 (vision), 1 (text) and 2 (padding)";
            let got = format!("an array with {other}");
            Err(Fault::wrong("in.kind", allowed, got))
        }
    });
    let kinds: Vec<Modality> = kinds.collect::<Result<_, _>>()?;
    let flow = inter_modality_flow(a.view(), Some(v.view()), &kinds)?;
    c.output("norm_weighted", flow.norm_weighted.into_iter().flatten());
    c.output("uniform", [flow.uniform]);
    record!(c.output, flow => attention, residual, rollout);
    Ok(())
}

/// The threshold of depth, the published fit and its inverses; computed in double precision from inputs of either.
pub(super) fn threshold<T: Real>(c: &Case<T>) -> Done {
    let fit = DepthFit::default();
    let of = |output: &str, input: &str, f: &dyn Fn(f64) -> Result<f64, Error>| -> Done {
        let input: Array1<T> = c.array(input)?;
        let values = input.iter().map(|x| f(x.as_f64()));
        c.output(output, values.collect::<Result<Vec<f64>, _>>()?);
        Ok(())
    };
    of("threshold", "width", &depth_threshold)?;
    of("depth_at_width", "width", &|x| fit.depth_at(x))?;
    of("width_at_depth", "depth", &|x| fit.width_at(x))?;
    of("parameters_at_depth", "depth", &|x| fit.parameters_at(x))?;
    of("depth_of_parameters", "parameters", &|x| fit.depth_of(x))?;
    of("width_of_parameters", "parameters", &|x| fit.width_of(x))
}

/// The exact rank of a network's values, and the values where the file holds them.
pub(super) fn separation<T: Real>(c: &Case<T>) -> Done {
    let four = |name| c.integers(name);
    let [q, k, v, o]: [Array4<i64>; 4] = [four("wq")?, four("wk")?, four("wv")?, four("wo")?];
    let [a, b]: [Array3<i64>; 2] = [c.integers("xa")?, c.integers("xb")?];
    let read = Readout {
        token: c.count("token")?,
        component: c.count("component")?,
    };
    let prime = c.count("prime")? as u64;
    let network = ModularNetwork::new(prime, [q.view(), k.view(), v.view()], o.view())?;
    let seen = network.separation_rank(a.view(), b.view(), read)?;
    c.output("rank", [seen.rank as f64]);
    if c.asks_for("grid") {
        let grid = network.grid(a.view(), b.view(), read)?;
        c.output("grid", grid.mapv(|x| x as f64));
    }
    Ok(())
}
