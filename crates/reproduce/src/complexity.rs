//! Table 1: the complexity of the attention weights, counted exactly and timed.
//!
//! A complexity is a statement about numbers of operations, so they are counted
//! ([`bochner_numerics::operations`]): of a whole layer, projections included, for every mechanism
//! of the registry. Polynomials in T, R and d are put through the counts on a grid; they must give
//! the counts at other points too, without tolerance, and every one of their terms that grows with T
//! must be bounded by a term that the paper prints. The clock comes second, at the larger scales:
//! slopes of the logarithms of time and length.

pub(crate) mod clock;
mod counts;
mod forward;
mod polynomial;
mod timing;

use crate::Error;
use crate::study::Study;
use bochner_attention::{Card, Form, IkanDirect, Variant, card::Cost, registry};
use bochner_report::Scale;

/// The suite.
pub(crate) static COMPLEXITY: Study = Study {
    name: "complexity",
    title: "Table 1, complexity",
    part: "statement",
    opening,
    parts: &[
        |_| counts::layers(),
        |_| counts::linear_time(),
        |_| counts::copula(),
        timing::growth,
    ],
};

fn opening(_: Scale) -> String {
    format!(
        "Operations of one forward pass on one sequence: T tokens, width d over M = {} heads, R spectral points. A \
         multiply-add is a multiplication or division with the addition that goes with it; additions on their own are \
         not counted. The polynomials go through the counts on a grid. Counts are those without a mask.",
        counts::HEADS
    )
}

/// The mechanisms that Table 1 states a cost for.
fn mechanisms() -> impl Iterator<Item = (Variant, Card, Cost)> {
    let with_cost = |variant: Variant| {
        let card = variant.card();
        card.cost.map(|cost| (variant, card, cost))
    };
    registry().into_iter().filter_map(with_cost)
}

/// IKAN-direct in linear time: the squared kernel by sums over the keys.
fn in_linear_time(points: usize) -> Variant {
    let form = Form::LinearTime;
    let usual = IkanDirect::default();
    Variant::from(IkanDirect {
        points,
        form,
        ..usual
    })
}

/// The mechanism with another number of spectral points, if it has any; pair by pair, as Table 1
/// counts, whatever is faster.
fn with_points(variant: &Variant, points: usize) -> Result<Variant, Error> {
    if variant.card().points.is_none() {
        return Ok(variant.clone());
    }
    let sized = variant.with_points(points)?;
    Ok(sized.with_form(Form::Pairwise)?)
}
