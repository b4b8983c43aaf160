//! The five propositions of the paper, measured on random cases.
//!
//! Each file holds one proposition in the form in which it is true, and computes both of its sides
//! with the crates' own functions: what is checked is what the models run on. Where the printed
//! form is false, its counterexample is measured as well.

mod proposition_1_decomposition;
mod proposition_2_graph_attention;
mod proposition_3_random_features;
mod proposition_4_uniform_bound;
mod proposition_5_vanishing_p;

use crate::study::{SEED, Study};
use bochner_report::Scale;
use serde::Serialize;

/// The numbers of random cases and draws.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Effort {
    /// Random cases of each proposition; their dimensions run through 1 to 64.
    pub cases: usize,
    /// Draws of each case where a probability is measured.
    pub draws: usize,
    /// Draws of the counterexample to Proposition 4.
    pub counterexample: usize,
}

impl Effort {
    /// The effort of a scale.
    pub const fn of(scale: Scale) -> Self {
        let (cases, draws, counterexample) = match scale {
            Scale::Smoke => (64, 1, 2_000),
            Scale::Desk => (1024, 4, 100_000),
            Scale::Paper => (4096, 16, 1_000_000),
        };
        Self {
            cases,
            draws,
            counterexample,
        }
    }
}

/// The suite.
pub(crate) static PROPOSITIONS: Study = Study {
    name: "propositions",
    title: "The propositions",
    part: "proposition",
    opening,
    parts: &[
        |scale| proposition_1_decomposition::measure(&Effort::of(scale)),
        |scale| proposition_2_graph_attention::measure(&Effort::of(scale)),
        |scale| proposition_3_random_features::measure(&Effort::of(scale)),
        |scale| proposition_4_uniform_bound::measure(&Effort::of(scale)),
        |scale| proposition_5_vanishing_p::measure(&Effort::of(scale)),
    ],
};

fn opening(scale: Scale) -> String {
    format!(
        "{} random cases of each proposition, in dimensions 1 to 64, in double precision, seed \
         {SEED}. Both sides of every statement are computed by the crates' own public functions. \
         Identities must hold to the tolerance of all double precision tests, 1e-9.",
        Effort::of(scale).cases
    )
}
