//! Whether the set-up is good enough for a set to be judged.

use crate::Results;
use crate::plan::{Choices, Plan};
use crate::suite::Card;

/// Whether the baseline reaches the set's gate in validation, where it has one; `None` before it is finished.
pub(crate) fn passes(card: &Card, plan: &Plan, results: &Results, set: &str) -> Option<bool> {
    let Some(set) = card.set(set).filter(|set| set.gate.is_some()) else {
        return Some(true);
    };
    let baseline = plan.claimed(set.title, card.baseline)?;
    Choices::Of(results).reaches(card, set, baseline)
}
