//! `label_smoothed_cross_entropy`: the loss of a classification.

use crate::case_file::CaseFile;
use crate::comparison::Computed;
use crate::error::Fault;
use bochner_numerics::Real;
use bochner_ops::{CrossEntropy, apply, apply_vjp};
use ndarray::{Array1, Array2, Axis, Ix1};

/// The loss, that of each row, and the gradient of the loss.
pub(super) fn label_smoothed<T: Real>(file: &CaseFile) -> Result<Computed, Fault> {
    let logits: Array2<T> = file.array("logits")?;
    let targets: Array1<i64> = file.integers("target")?;
    let kept = file.flags("keep")?;
    let rows = targets.iter().enumerate().zip(&kept);
    let labelled = rows.filter(|(_, kept)| **kept).map(|((row, &target), _)| {
        let label = usize::try_from(target).map_err(Fault::refused)?;
        Ok((row, label))
    });
    let loss = CrossEntropy {
        labelled: labelled.collect::<Result<_, Fault>>()?,
        smoothing: file.number("smoothing")?,
    };

    let mut of_rows = Array1::<f64>::zeros(logits.nrows());
    let found = loss.of_rows(logits.view()).map_err(Fault::refused)?;
    for (&(row, _), found) in loss.labelled.iter().zip(found) {
        of_rows[row] = found;
    }
    let inputs = [logits.view().into_dyn()];
    let (mut mean, saved) = apply(&loss, &inputs).map_err(Fault::refused)?;
    let mut computed = Computed::default();
    // The files have an array of one number where the operation has a number.
    computed.output("loss", &mean.remove(0).insert_axis(Axis(0)));
    computed.output("row", &of_rows);
    if let Some(cotangent) = file.ranked_cotangent::<T, Ix1>()? {
        let along = [cotangent.index_axis(Axis(0), 0).into_dyn()];
        let gradients = apply_vjp(&loss, &inputs, &saved, &along, &[true]);
        for gradient in gradients.map_err(Fault::refused)?.iter().flatten() {
            computed.gradient("logits", gradient);
        }
    }
    Ok(computed)
}
