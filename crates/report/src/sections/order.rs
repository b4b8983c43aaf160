//! Models that see the order of rows, with the rows read in another order.

use super::tables::{Column, Columns, cells};
use crate::document::Document;
use crate::{Account, Number};

/// The error of each model that sees the order of rows, beside the measure `permuted`, its error with the rows permuted. Nothing is written where no model
/// does.
pub fn order_of_rows(document: &mut Document, account: &Account<'_>, permuted: &'static str) {
    let measured = Column::Measure(permuted);
    let columns = [COLUMNS, &[(permuted, measured), ("n", Column::N)]].concat();
    let arms = account.plan.compared();
    let arms = arms.filter(|arm| account.results.measure(arm, permuted).is_some());
    let rows: Vec<_> = arms
        .filter_map(|arm| cells(account, arm, &columns))
        .collect();
    if rows.is_empty() {
        return;
    }
    document.heading("Models that see the order of rows");
    document.text(
        "These models see the order of the rows, and are run on series alone. The control is the test error of the model after \
         the last epoch when it reads the rows in an order that is drawn for each split.",
    );
    let head: Vec<&str> = columns.iter().map(|(name, _)| *name).collect();
    document.table(&head, rows);
}

const COLUMNS: Columns<'static> = &[
    ("set", Column::Set),
    ("model", Column::Model),
    ("last", Column::Ours(Number::Last)),
];
