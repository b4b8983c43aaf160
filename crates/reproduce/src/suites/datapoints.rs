//! Attention between datapoints: looking targets up in copies of rows, and regression beside models of single rows.

use super::{folds, seeds};
use crate::Error;
use crate::mechanisms::{TRANSFORMER, clipped, mechanism};
use crate::suite::{Source, Suite};
use crate::trial::datapoints::{
    AGREES, CORRUPTED, Copies, DrawnCopies, FOLLOWED, Learnt, NptSettings, STILL,
};
use crate::trial::gaussian_process::{Covariance, ProcessSettings};
use crate::trial::regressor::AttentionSettings;
use crate::trial::rows::{RowSource, inputs};
use bochner_attention::Preset;
use bochner_datasets::{DataStore, Protocol};
use bochner_models::datapoints::{self as tables, Between, NptConfig};
use bochner_report::Scale;
use bochner_report::check::Check;
use bochner_report::claim::{Claim, Hypothesis};
use bochner_report::plan::Arm;
use bochner_report::sections::{Column, Columns, OWN, Section, comparisons, measures};
use bochner_report::suite::{At, Card, Metric, Model, Set};

/// The suite.
pub static DATAPOINTS: Suite = Suite::new(&CARD, load, CHECKS);

const NPT: &str = "NPT";
const PER_ROW: &str = "per row";
const RBF: &str = "GP (RBF)";
const MIXTURE: &str = "GP (SM)";
const LOOK_UP: &str = "look-up";
const ADD_ONE: &str = "add one";

static CARD: Card = Card {
    name: "datapoints",
    table: "Kossen et al. 2021, section 4",
    title: "Attention between datapoints",
    sets: &[
        Set::new("look-up", LOOK_UP, 32, Scale::Smoke),
        Set::new("add-one", ADD_ONE, 32, Scale::Desk),
        Set::new("housing", "Housing", 506, Scale::Desk),
        Set::new("concrete", "Concrete", 1_030, Scale::Desk),
    ],
    models: &[
        Model::new(PER_ROW, &[]),
        Model::new(NPT, &[PER_ROW, TRANSFORMER, RBF, MIXTURE]).judged(),
        Model::new(TRANSFORMER, &[PER_ROW]),
        Model::new(RBF, &[PER_ROW]),
        Model::new(MIXTURE, &[PER_ROW]),
    ],
    metric: Metric::RMSE,
    baseline: PER_ROW,
    against: "the network of single rows",
    opening: "A non-parametric Transformer (**NPT**) reads a whole table, targets included, and fills in what is hidden. In \
              the look-up task every row has a copy; one of the two shows its target, which is independent of the features, \
              the other hides it. The **error** there is the mean squared error over the variance of the targets on tables \
              drawn anew: 1 for a network that knows the mean alone. On Housing and Concrete it is the root mean square error \
              in units of the target scaled to [-1, 1]. The **V-number** is the test error in the epoch that is best on a \
              separate validation part, the **R-number** the best test error over all epochs.",
    scopes: [
        "Scale smoke tests the machinery on a few small tables.",
        "Scale desk has 256 tables of 16 pairs of rows with 4 features and three seeds for the look-up task, and ten folds of \
         Housing and Concrete.",
        "Scale paper has 512 tables of 64 pairs, ten seeds, and twice the width.",
    ],
    smoke: "Tables of 4 pairs with 2 features, one seed, few epochs.",
    decided: &[
        "The paper's look-up task is made of the Protein data set, with the targets of copies hidden. Ours has independent \
         normal numbers throughout, so that nothing but the copy tells the target, and new tables for validation and test.",
        "*Per row* is the same network, with the same parameters, in which a row attends to itself instead of to all rows.",
        "An intervention shifts the visible target of one row by 1.5. Corruption rotates the features of visible rows, each \
         column by another number of rows, so that no row has a copy.",
        "On Housing and Concrete known targets are hidden with the rate 0.15 and features masked with the rate 0.15, as in the \
         paper; the Transformer and the Gaussian processes are those of Table 4. Only what is \
         said of the look-up task and its add-one variant is judged.",
        "We train with Adam, the rate 0.001 and gradients cut at norm 1; the paper takes LAMB with Lookahead and many more \
         steps.",
    ],
    arms: |at| match at.set.title {
        LOOK_UP => copies(at, 0.0),
        ADD_ONE => copies(at, 1.0),
        _ => regression(at),
    },
    claims,
    tables: &[
        Section::Numbers("Errors", "", &[OWN, RUNS]),
        Section::Numbers(
            "What the look-up rests on",
            "On the test tables, after the last epoch: what happens to predictions when the visible target of a row is shifted \
             by 1.5, and the error over the targets' variance when the features of visible rows are rotated.",
            &[MEASURES],
        ),
        Section::Written(comparisons),
    ],
    ..Card::EMPTY
};

const RUNS: Columns<'static> = &[("n", Column::N), ("s per unit", Column::Seconds)];
const MEASURES: Columns<'static> = &measures([FOLLOWED, STILL, CORRUPTED]);

const CHECKS: &[Check] = &[Check::Rows(
    "a shift of a target reaches its copy, and does not without attention between rows",
    |arm| is_look_up(arm.set),
    |row| {
        let followed = row.measure(FOLLOWED);
        let fits = match row.unit.variant == NPT {
            true => followed.abs() > 0.0,
            false => followed == 0.0,
        };
        (!fits).then(|| format!("{followed:.3}"))
    },
)];

fn claims() -> Vec<Claim> {
    let at_most = |name, text, set| {
        let error = Hypothesis::above(NPT, 0.05, set).reversed();
        Claim::all(name, text, vec![error]).one_sided()
    };
    let most = |name, text, set, measure, least| {
        let most = Hypothesis::in_most(measure, NPT, least, set);
        Claim::all(name, text, vec![most]).one_sided()
    };
    let single = [LOOK_UP, ADD_ONE].map(|set| Hypothesis::above(PER_ROW, 0.9, set));
    vec![
    at_most(
        "look-up",
        "NPT looks targets up: its error is at most 0.05 of the targets' variance",
        LOOK_UP,
    ),
    Claim::all(
        "single rows",
        "without attention between rows the same network cannot: its error is at least 0.9 of the variance",
        single.to_vec(),
    )
    .one_sided(),
    most(
        "interventions",
        "in most runs the prediction of a copy follows a shift of the target that it looks up, to within 0.05 of the shift",
        LOOK_UP,
        AGREES,
        0.95,
    ),
    most(
        "others",
        "in most runs other predictions move by at most 0.05 of that shift",
        LOOK_UP,
        STILL,
        0.95,
    ),
    most(
        "corruption",
        "in most runs the error without copies is at least half the targets' variance",
        LOOK_UP,
        CORRUPTED,
        0.5,
    ),
    at_most(
        "add one",
        "NPT learns to add one to what it looks up: its error is at most 0.05 of the targets' variance",
        ADD_ONE,
    ),
    most(
        "add one: interventions",
        "in most runs the prediction of a copy follows a shift there, too, to within 0.05 of the shift",
        ADD_ONE,
        AGREES,
        0.95,
    ),
    most(
        "add one: others",
        "in most runs other predictions move there by at most 0.05 of that shift",
        ADD_ONE,
        STILL,
        0.95,
    ),
    most(
        "add one: corruption",
        "in most runs the error without copies is at least half the targets' variance there, too",
        ADD_ONE,
        CORRUPTED,
        0.5,
    ),
]
}

fn load(set: &Set, arms: &[Arm], files: &DataStore) -> Result<Box<dyn Source>, Error> {
    if is_look_up(set.title) {
        return Ok(Box::new(DrawnCopies));
    }
    Ok(Box::new(RowSource::load(set, arms, files, None)?))
}

fn is_look_up(set: &str) -> bool {
    [LOOK_UP, ADD_ONE].contains(&set)
}

/// A model of tables of numbers. Its blocks attend between rows and columns in turn; instead of rows between nothing in
/// the network of single rows.
fn npt(model: &str, inputs: usize, width: usize, dropout: f64) -> NptConfig {
    let first = match model {
        PER_ROW => Between::Nothing,
        _ => Between::Datapoints,
    };
    NptConfig {
        columns: vec![tables::Column::Number; inputs + 1],
        width,
        heads: 4,
        blocks: [first, Between::Attributes].repeat(2),
        attention: None,
        normalised: Default::default(),
        dropout,
        epsilon: 1e-12,
    }
}

fn copies(at: &At<'_>, added: f32) -> Vec<Arm> {
    let (n, tables, pairs, features, width, epochs) = at.of_scale([
        (1, 8, 4, 2, 8, 3),
        (3, 256, 16, 4, 16, 40),
        (10, 512, 64, 4, 32, 100),
    ]);
    let arm = |model| {
        let settings = NptSettings {
            model: npt(model, features, width, 0.0),
            training: clipped(1e-3, 1.0),
            epochs,
            learnt: Learnt::Copies(Copies {
                tables,
                pairs,
                features,
                added,
            }),
        };
        Arm::new(at, model, Protocol::Fixed, seeds(n), &settings)
    };
    vec![arm(PER_ROW), arm(NPT)]
}

fn regression(at: &At<'_>) -> Vec<Arm> {
    if at.scale == Scale::Smoke {
        return Vec::new();
    }
    let (width, epochs) = at.of_scale([(16, 500), (16, 500), (32, 1000)]);
    let inputs = inputs(at.set);
    let attention = mechanism(TRANSFORMER, Preset::Paper, None, 1);
    let mut transformer = AttentionSettings::new(inputs, attention, None, None, epochs);
    transformer.model.heads = 4;
    let npt = |model| {
        let settings = NptSettings {
            model: npt(model, inputs, width, 0.1),
            training: clipped(1e-3, 1.0),
            epochs,
            learnt: Learnt::Rows {
                target_rate: 0.15,
                feature_rate: 0.15,
            },
        };
        Arm::new(at, model, Protocol::P10, folds(10), &settings)
    };
    let process = |model, covariance| {
        let settings = ProcessSettings::new(covariance, epochs, 1);
        Arm::new(at, model, Protocol::P10, folds(10), &settings)
    };
    vec![
        npt(PER_ROW),
        npt(NPT),
        Arm::new(at, TRANSFORMER, Protocol::P10, folds(10), &transformer),
        process(RBF, Covariance::Rbf),
        process(MIXTURE, Covariance::SpectralMixture { components: 5 }),
    ]
}
