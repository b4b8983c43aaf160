//! What becomes of models that see the order of rows when the rows are read in another order.

use super::tables::{Column, Columns, cells};
use crate::report::Document;
use crate::trial::regressor::PERMUTED;
use crate::{Account, Number};

/// The error of each model that sees the order of rows, beside that with the rows permuted. Nothing is written where no model
/// does.
pub fn order_of_rows(document: &mut Document, account: &Account<'_>) {
    let arms = account.plan.compared();
    let arms = arms.filter(|arm| account.results.measure(arm, PERMUTED).is_some());
    let rows: Vec<_> = arms
        .filter_map(|arm| cells(account, arm, COLUMNS))
        .collect();
    if rows.is_empty() {
        return;
    }
    document.heading("Models that see the order of rows");
    document.text(
        "These models see the order of the rows, and are run on series alone. The control is the test error of the model after \
         the last epoch when it reads the rows in an order that is drawn for each split.",
    );
    let head: Vec<&str> = COLUMNS.iter().map(|(name, _)| *name).collect();
    document.table(&head, rows);
}

const COLUMNS: Columns<'static> = &[
    ("set", Column::Set),
    ("model", Column::Model),
    ("last", Column::Ours(Number::Last)),
    (PERMUTED, Column::Measure(PERMUTED)),
    ("n", Column::N),
];
