//! `learnable_query`: attention of queries that are parameters.

use crate::case_file::CaseFile;
use crate::comparison::Computed;
use crate::error::Fault;
use bochner_attention::{LearnableQuery, Mask, QueryScale};
use bochner_numerics::Real;
use ndarray::{Array3, Array4, Ix4};

/// Outputs, weights and gradients.
pub(super) fn learnable_query<T: Real>(file: &CaseFile) -> Result<Computed, Fault> {
    let q: Array3<T> = file.array("q")?;
    let [k, v]: [Array4<T>; 2] = [file.array("k")?, file.array("v")?];
    let mut mask = Mask::none();
    if file.choice("mask", &["none", "lengths"])? == "lengths" {
        mask = mask.with_key_lengths(file.lengths("lengths")?);
    }
    let scale = match file.choice("scale", &["none", "inverse_sqrt"])? {
        "none" => QueryScale::None,
        _ => QueryScale::InverseSqrt,
    };
    let layer = LearnableQuery { scale };
    let pooled = layer.attend(q.view(), k.view(), v.view(), &mask);
    let pooled = pooled.map_err(Fault::refused)?;
    let mut computed = Computed::default();
    computed.output("output", &pooled.output);
    if file.asks_for("weights") {
        let weights = layer.weights(q.view(), k.view(), &mask);
        computed.output("weights", &weights.map_err(Fault::refused)?);
    }
    if let Some(g) = file.ranked_cotangent::<T, Ix4>()? {
        let g = pooled.vjp(g.view()).map_err(Fault::refused)?;
        computed.gradient("q", &g.queries);
        computed.gradient("k", &g.k);
        computed.gradient("v", &g.v);
    }
    Ok(computed)
}
