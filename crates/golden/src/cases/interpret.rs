//! `head_diversity`, `similarity_magnitude_trace`: read-outs of attention.

use super::attention::{GivenPoints, magnitude, mask};
use crate::case_file::CaseFile;
use crate::comparison::Computed;
use crate::error::Fault;
use bochner_interpret::{Similarity, head_diversity, similarity_magnitude_trace};
use bochner_numerics::Real;
use ndarray::Array4;

/// The divergence between the heads of each example.
pub(super) fn diversity<T: Real>(file: &CaseFile) -> Result<Computed, Fault> {
    let weights: Array4<T> = file.array("weights")?;
    let divergence = head_diversity(weights.view(), file.mask("q_mask")?.view());
    let mut computed = Computed::default();
    computed.output("divergence", &divergence.map_err(Fault::refused)?);
    Ok(computed)
}

/// The similarity and the magnitude of each head.
pub(super) fn trace<T: Real>(file: &CaseFile) -> Result<Computed, Fault> {
    let (q, k): (Array4<T>, Array4<T>) = (file.array("q")?, file.array("k")?);
    let mut mask = mask(file)?;
    if file.word("mask")?.starts_with("lengths") {
        mask = mask.with_query_lengths(file.lengths("q_lengths")?);
    }
    // All others of these cases have a squared kernel.
    let points = match file.word("variant")? {
        "softmax" => None,
        _ => Some((GivenPoints::read(file)?, file.number("floor")?)),
    };
    let similarity = match &points {
        None => Similarity::Rbf,
        Some((points, floor)) => Similarity::Squared {
            points: points.points(),
            floor: *floor,
        },
    };
    let by = (&similarity, magnitude(file)?);
    let seen = similarity_magnitude_trace(q.view(), k.view(), by, &mask);
    let seen = seen.map_err(Fault::refused)?;
    let mut computed = Computed::default();
    computed.output("log10_similarity", &seen.log10_similarity);
    computed.output("log10_magnitude", &seen.log10_magnitude);
    computed.output("log10_key_magnitude", &seen.log10_key_magnitude);
    Ok(computed)
}
