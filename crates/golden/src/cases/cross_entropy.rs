//! `label_smoothed_cross_entropy`: the loss of a classification.

use crate::case_file::CaseFile;
use crate::comparison::Computed;
use crate::error::Fault;
use bochner_numerics::Real;
use bochner_ops::{CrossEntropy, Operation, Slot};
use ndarray::{Array1, Array2, Ix1};

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
    let (inputs, mut mean) = ([logits.view().into_dyn()], Vec::new());
    let saved = loss.forward(&inputs, vec![Slot::new(&mut mean, 1)]);
    let saved = saved.map_err(Fault::refused)?;
    let mut computed = Computed::default();
    computed.output("loss", &Array1::from(mean));
    computed.output("row", &of_rows);
    if let Some(cotangent) = file.ranked_cotangent::<T, Ix1>()? {
        let mut gradient = Vec::new();
        let place = Slot::new(&mut gradient, logits.len());
        let pulled = loss.backward(
            &inputs,
            &saved,
            &[cotangent.view().into_dyn()],
            vec![Some(place)],
        );
        pulled.map_err(Fault::refused)?;
        let gradient = Array2::from_shape_vec(logits.dim(), gradient);
        computed.gradient("logits", &gradient.map_err(Fault::refused)?);
    }
    Ok(computed)
}
