//! Whether the set-up is good enough for a set to be judged.

use crate::plan::Plan;
use crate::suite::Card;
use crate::{Number, Results};

/// Whether the baseline reaches the set's gate in validation, where it has one; `None` before it is finished.
pub(crate) fn passes(card: &Card, plan: &Plan, results: &Results, set: &str) -> Option<bool> {
    let Some(gate) = card.set(set).and_then(|set| set.gate) else {
        return Some(true);
    };
    let baseline = plan.claimed(set, card.baseline)?;
    let reached = results.mean(baseline, Number::Validation)?;
    Some(card.metric.show(reached) >= gate)
}
