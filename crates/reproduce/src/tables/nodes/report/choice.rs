//! The norm p that validation chose.

use super::super::{accuracy, title};
use super::{Account, NOTHING};
use crate::report::Document;

/// Nothing unless there was a choice.
pub(super) fn write(document: &mut Document, account: &Account<'_>) {
    let candidates = account.plan.candidates();
    let arms = candidates.arms();
    let groups = arms.chunk_by(|a, b| (a.set, a.model) == (b.set, b.model));
    let rows = groups.filter_map(|arms| {
        let chosen = account.plan.arm(arms[0].set, arms[0].model)?.p?;
        let seen = arms.iter().map(|arm| {
            let row = account.results.row(&arm.units[0])?;
            let (p, loss) = (arm.p?, row.validation_loss?);
            Some(format!(
                "{p}: {:.1} % ({loss:.3})",
                accuracy(row.validation?)
            ))
        });
        let seen: Vec<String> = seen.map(|seen| seen.unwrap_or(NOTHING.into())).collect();
        Some(vec![
            title(arms[0].set).to_owned(),
            arms[0].model.name().to_owned(),
            seen.join(", "),
            chosen.to_string(),
        ])
    });
    let rows: Vec<Vec<String>> = rows.collect();
    if rows.is_empty() {
        return;
    }
    document.heading("The norm p chosen by validation");
    document.text(
        "Validation accuracy (and loss) of one run on seed 1000, in the epoch that was kept; of equal \
         accuracies the smaller loss decides.",
    );
    document.table(&["set", "model", "p: validation", "chosen"], rows);
}
