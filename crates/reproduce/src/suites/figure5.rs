//! Figure 5: what MIKAN has learnt on Cora: its spectral points, the correlation of its heads, and how they differ.

use crate::check::{self, Check};
use crate::claim::{Claim, Criterion};
use crate::plan::{Arm, Role};
use crate::report::Document;
use crate::sections::{self, Column, Columns};
use crate::suite::{At, Card, Cut, Direction, Metric, Model, NO_CUT, Set, Shown, Source, Suite};
use crate::trial::nodes::Prepared;
use crate::trial::nodes::heads::{CORRELATION, DEVIATION, GROWTH, KURTOSIS, REJECTED};
use crate::{Account, Error, Number, Scale};
use bochner_datasets::{DataStore, PlanetoidSet, Protocol};

/// The suite.
pub const FIGURE_5: Figure5 = Figure5;

/// Figure 5.
#[derive(Clone, Copy, Debug)]
pub struct Figure5;

static CARD: Card = Card {
    name: "figure5",
    table: "Figure 5",
    title: "Figure 5, spectral points and heads on Cora",
    sets: &[Set::new("cora", "Cora", 2_708, Scale::Smoke)],
    models: &[
        Model::new("IKAN", &[]),
        Model::new("MIKAN", &["IKAN"]).judged(),
    ],
    metric: Metric {
        direction: Direction::Smaller,
        shown: Shown::ErrorAsAccuracy,
        ..Metric::ACCURACY
    },
    baseline: "IKAN",
    against: "IKAN",
    published: &[],
    cuts: &[
        NO_CUT,
        Cut::new("points", "the spectral points were cut to 32"),
    ],
    repeats: false,
    opening: "What the first layer has learnt after the last epoch of training, which GAT's rule ends. The spectral points \
              of all heads together are compared with the Gaussian of their mean and covariance by the energy distance and a \
              permutation test; the correlation is that of the copula, the mean absolute value over pairs of heads of the \
              mean over the latent dimensions; the deviation is that of an edge's weight over the heads, mean over the edges.",
    scopes: [
        "Scale smoke tests the machinery with one seed, 16 spectral points and 30 epochs.",
        "Scale desk has ten seeds, 64 spectral points and at most 1,000 epochs with patience 100.",
        "Scale paper has 100 seeds and 64 spectral points.",
    ],
    smoke: "One seed, 16 spectral points, 30 epochs.",
    decided: &[
        "The paper shows t-SNE, which has no numbers to compare; the pictures here are on principal axes.",
        "MIKAN without correlation of the heads is IKAN: the two differ by the copula alone, so IKAN is the control.",
        "p is 2 for both.",
    ],
};

static CLAIMS: [Claim; 3] = [
    Claim::new(
        "a, b",
        "MIKAN's spectral density is not Gaussian: the energy test rejects it at 1 % in most runs",
        Criterion::InMost {
            set: "Cora",
            model: "MIKAN",
            measure: REJECTED,
            least: 1.0,
        },
    ),
    Claim::new(
        "c",
        "the covariance of the copula is not the identity: in most runs the correlation exceeds twice its value before \
         training",
        Criterion::InMost {
            set: "Cora",
            model: "MIKAN",
            measure: GROWTH,
            least: 2.0,
        },
    ),
    Claim::new(
        "d",
        "MIKAN's weights differ more across heads than IKAN's, by 2 standard errors",
        Criterion::More {
            set: "Cora",
            measure: DEVIATION,
            model: "MIKAN",
            than: "IKAN",
            control: None,
        },
    ),
];

impl Suite for Figure5 {
    fn card(&self) -> &'static Card {
        &CARD
    }

    fn arms(&self, at: &At<'_>) -> Vec<Arm> {
        let seeds = match at.scale {
            Scale::Smoke => 1,
            Scale::Desk => 10,
            Scale::Paper => 100,
        };
        let arm = |model| {
            let settings = super::nodes::settings(at, model, Some(2.0));
            let runs = (0..seeds).map(|seed| (0, seed));
            Arm::new(at, model, Protocol::Fixed, runs, &settings).with_role(Role::Claimed)
        };
        vec![arm("IKAN"), arm("MIKAN")]
    }

    fn load(&self, set: &Set, _arms: &[Arm], files: &DataStore) -> Result<Box<dyn Source>, Error> {
        let data = bochner_datasets::nodes::load(set.name.parse::<PlanetoidSet>()?, files)?;
        Ok(Box::new(Prepared::of(&data)?.looked_at()))
    }

    fn claims(&self) -> &'static [Claim] {
        &CLAIMS
    }

    fn checks(&self, account: &Account<'_>, _files: &DataStore) -> Vec<Check> {
        let (plan, results) = (account.plan, account.results);
        let mikan = plan.arms.iter().filter(|arm| arm.model == "MIKAN");
        vec![
            check::all_finished(plan, results),
            check::each(
                "points and correlations of MIKAN are measured",
                results,
                mikan,
                |row| {
                    let missing = [REJECTED, CORRELATION, DEVIATION].into_iter();
                    let missing: Vec<&str> = missing
                        .filter(|name| !row.measures.contains_key(*name))
                        .collect();
                    (!missing.is_empty()).then(|| missing.join(", "))
                },
            ),
        ]
    }

    fn report(&self, account: &Account<'_>, document: &mut Document) {
        document.heading("What was measured");
        document.text("Means over the seeds; *rejected at 1 %* is the share of runs in which the test rejects a Gaussian.");
        let measures = [REJECTED, KURTOSIS, CORRELATION, GROWTH, DEVIATION]
            .map(|name| (name, Column::Measure(name)));
        sections::own_numbers(document, account, &[NAMES, &measures, ACCURACY].concat());
        sections::heads_along_edges(document, account);
        account.conditions(document);
    }
}

const NAMES: Columns<'static> = &[("set", Column::Set), ("model", Column::Model)];

const ACCURACY: Columns<'static> = &[
    ("V", Column::Ours(Number::V)),
    ("R-number", Column::Ours(Number::R)),
    ("epochs", Column::Epochs),
    ("n", Column::N),
];
