//! The parts that pages are put together from.

mod adequacy;
mod averages;
mod choice;
mod comparison;
pub mod heads;
mod pictures;
mod tables;

pub(crate) use adequacy::{alarms, gates};
pub use averages::averaged_over_sets;
pub(crate) use averages::behind_verdicts;
pub(crate) use choice::waiting;
pub use choice::{chosen_norms, chosen_settings};
pub use comparison::comparisons;
pub use pictures::pictures_of_the_first_split;
pub use tables::{
    BESIDE_BOTH, BESIDE_R, Column, Columns, NAMES, OWN, at_last, measures, row_of, table,
};

use crate::Account;
use crate::document::Document;

/// A part of a page.
#[derive(Clone, Copy, Debug)]
pub enum Section {
    /// Our numbers, arm by arm: the heading and the explanation, either of which may be empty, and the columns behind those
    /// that name the arm.
    Numbers(&'static str, &'static str, &'static [Columns<'static>]),
    /// The paper's numbers beside ours, set by set, with a line for each published model that was not run: the
    /// explanation, and the columns behind those that name the arm.
    Published(&'static str, Columns<'static>),
    /// Whatever the function writes.
    Written(fn(&Account<'_>, &mut Document)),
}

impl Section {
    /// Writes the part.
    pub(crate) fn write(&self, account: &Account<'_>, document: &mut Document) {
        match *self {
            Self::Numbers(heading, text, columns) => {
                document.headed(heading, text);
                let columns = [&[account.card.names], columns].concat().concat();
                table(account, document, &columns);
            }
            Self::Published(text, columns) => {
                document.headed("Paper and ours", text);
                tables::against_paper(account, document, &[account.card.names, columns].concat());
            }
            Self::Written(write) => write(account, document),
        }
    }
}

/// Instead of a finding on a set that the baseline is not good enough on.
const NOT_ADEQUATE: &str = "set-up not adequate";

/// The content of a cell without value.
pub const NOTHING: &str = "-";
