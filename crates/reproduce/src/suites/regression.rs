//! Table 4: regression on five data sets.
//!
//! The comparisons are named here, before anything is run: IKAN-direct and MIKAN, each against
//! the Transformer, on each of the five sets. All other models are reported, not judged: the other
//! attention models against the Transformer, and the pairs in which one thing is added.

mod tables;

use super::folds;
use crate::Error;
use crate::mechanisms::{
    EIGHT_HEADS, OF_OTHER_PAPERS, PRIMAL_PARAMETERS, RELEASED, TRANSFORMER, mechanism,
};
use crate::released::{heads, norm};
use crate::suite::{Source, Suite};
use crate::trial::gaussian_process::{Covariance, ProcessSettings};
use crate::trial::regressor::{AttentionSettings, without_order};
use crate::trial::rows::{RowSource, inputs};
use bochner_attention::Preset;
use bochner_datasets::{DataStore, Protocol};
use bochner_report::check::{Check, falls_below};
use bochner_report::claim::{Claim, Hypothesis, Shown};
use bochner_report::plan::{Arm, Role};
use bochner_report::sections::{self, BESIDE_R, Column, Columns, OWN, Section};
use bochner_report::suite::{At, Card, Line, Metric, Model, Set, about, line};
use bochner_report::{Scale, Settings};

/// The suite.
pub static REGRESSION: Suite = Suite {
    admits,
    ..Suite::new(&CARD, load, CHECKS)
};

const SETS: [&str; 5] = ["CO2", "Passenger", "Housing", "Concrete", "Parkinsons"];
/// The sets whose released splits are known; the released code reads a table of Parkinsons that is not public.
const WITH_CODE: [&str; 4] = ["CO2", "Passenger", "Housing", "Concrete"];
/// The error of predicting the mean of Passenger, recomputed from the data.
const PASSENGER_MEAN: f64 = 0.462;

/// Gaussian processes share neither architecture nor initial values with attention.
const ATTENTION: &[&str] = &[TRANSFORMER, EIGHT_HEADS];

static CARD: Card = Card {
    name: "regression",
    table: "Table 4",
    title: "Table 4, regression",
    sets: &[
        Set::new("co2", "CO2", 527, Scale::Smoke),
        Set::new("passenger", "Passenger", 144, Scale::Smoke),
        Set::new("housing", "Housing", 506, Scale::Smoke),
        Set::new("concrete", "Concrete", 1_030, Scale::Smoke),
        Set::new("parkinsons", "Parkinsons", 5_875, Scale::Smoke),
    ],
    models: &[
        Model::new("GP (RBF)", &[]),
        Model::new("GP (SM)", &[]).after("GP (RBF)", "a spectral mixture"),
        Model::new(TRANSFORMER, &[]),
        Model::new(EIGHT_HEADS, &[TRANSFORMER]),
        Model::new("RBF-only", ATTENTION),
        Model::new("Expsin", ATTENTION),
        Model::new("Linear", ATTENTION),
        Model::new("IKA-S", ATTENTION),
        Model::new("IKA-NS", ATTENTION).after("IKA-S", "a second set of spectral points"),
        Model::new("IKAN", ATTENTION).after("IKA-NS", "a norm of its own"),
        Model::new("IKAN-direct", ATTENTION).judged(),
        Model::new("MIKAN", ATTENTION)
            .after("IKAN", "the copula")
            .judged(),
        Model::new("Performer", ATTENTION).on_request(),
        Model::new("CAT", ATTENTION).on_request(),
        Model::new("bipolar", ATTENTION).on_request(),
        Model::new("Primal", ATTENTION).on_request(),
        Model::new(PRIMAL_PARAMETERS, ATTENTION).on_request(),
    ],
    metric: Metric::RMSE,
    baseline: TRANSFORMER,
    against: "the Transformer",
    // The best over all epochs on the test part, as the released code reports them. In the text of the table
    // that was at hand the lines 1 to 3 and 4 to 5 are merged cell by cell; the values were assigned to the
    // models by their order.
    published: &PUBLISHED,
    opening: "Root mean square errors in units of the target scaled to [-1, 1]; smaller is better. The **R-number** \
              is the best error over all epochs on the test part: the test part chose the epoch, so it is optimistic, \
              and it is what the paper publishes. The **V-number** is the test error in the epoch that is best on a \
              separate validation part. Published numbers are compared with R-numbers only; what is claimed here rests \
              on V-numbers.",
    scopes: [
        "Scale smoke tests the machinery on a few splits with small models and short training. Its numbers say nothing \
         about the method and are not comparable with the paper's.",
        "Scale desk runs real data with reduced models: 32 spectral points and 500 epochs instead of 64 and 1,000, and \
         every 5th row of Parkinsons, which makes it another data set. **Absolute numbers are not comparable with the \
         paper's**; only the signs and orderings named under each claim are judged.",
        "Scale paper is the full protocol. P10: ten folds, one for testing, the next for validation, eight for \
         training. R90: the ten random 90/10 splits of the released code, which have no validation part and so no \
         V-number.",
    ],
    smoke: "Two splits, 16 spectral points, 15 epochs; of Parkinsons every 10th row. The protocol asks for Passenger \
            alone at this scale; the other sets run where they can be had.",
    decided: &[
        "The Gaussian processes have a constant mean and are trained on the training rows alone, one step up their \
         evidence an epoch. The components of the spectral mixture start apart; in the released code they start equal \
         and stay so. Marked with an asterisk, numbers are quoted from the paper and nothing was run.",
        "The whole set is one sequence: the inputs of validation and test rows are keys and values during training, as \
         in the released code; their targets are not used.",
        "The Transformer has 4 heads (8 on CO2), IKAN-direct and MIKAN 8 and their norms p, as in the released code. \
         What that lacks is chosen here: the others have 8 heads, IKA-S and IKA-NS p = 2, and IKAN the p of MIKAN, so \
         that the two differ by the copula alone.",
        "Models follow the paper's equations, those marked *released* the authors' code. The Transformer is the same in \
         both.",
        "SE is too small, since folds share training rows; SE' corrects for it.",
        "Performer, CAT, bipolar attention and Primal-Attention run on request with 8 heads, in folds; none is judged. CAT and \
         Primal, whose weights come from the data, see the order of rows and run on CO2 and Passenger alone.",
    ],
    arms,
    claims,
    names: &[
        ("set", Column::Set),
        ("model", Column::Model),
        ("splits", Column::Splits),
    ],
    pictures: &[Section::Written(|account, document| {
        sections::pictures_of_the_first_split(account, document, is_process);
    })],
    tables: &[
        Section::Published(
            "Mean ± population standard deviation over the splits, R-numbers in both columns. The last column judges each \
             row by itself; the claims above are judged over all sets. Below scale paper the difference is no measure of \
             agreement: models, training and splits are smaller or other than the paper's.",
            BESIDE_R,
        ),
        Section::Numbers(
            "Our numbers",
            "Every model has its V-number, R-number and last error; R - V is the optimism.",
            &[OWN, RUNS],
        ),
        Section::Written(sections::comparisons),
        Section::Written(tables::order_of_rows),
        Section::Written(tables::norms_of_each_split),
    ],
    ..Card::EMPTY
};

const RUNS: Columns<'static> = &[("n", Column::N), ("s per split", Column::Seconds)];

const CHECKS: &[Check] = &[
    // Gaussian processes start near their best; their errors need not fall.
    Check::Rows(
        "the training error of attention models falls by half",
        |arm| !is_process(arm.model),
        |row| falls_below(row, 0.5),
    ),
    Check::Rows(
        "on Passenger, the V-number is below the mean's 0.462",
        |arm| arm.set == "Passenger",
        |row| {
            let v = row.v_number.unwrap_or(f64::INFINITY);
            (v >= PASSENGER_MEAN).then(|| format!("{v:.3}"))
        },
    ),
    Check::Run(
        "the presets `paper` and `released` differ",
        tables::presets_differ,
    ),
];

#[rustfmt::skip]
static PUBLISHED: [Line; 5] = [
    line("GP (RBF)", &[about(0.060, 0.003), about(0.174, 0.052), about(0.234, 0.045), about(0.178, 0.012), about(0.075, 0.006)]),
    line("GP (SM)", &[about(0.057, 0.002), about(0.171, 0.048), about(0.191, 0.044), about(0.170, 0.021), about(0.072, 0.004)]),
    line("Transformer", &[about(0.057, 0.002), about(0.153, 0.043), about(0.126, 0.038), about(0.120, 0.017), about(0.040, 0.005)]),
    line("IKAN-direct", &[about(0.055, 0.002), about(0.110, 0.039), about(0.118, 0.038), about(0.111, 0.018), about(0.018, 0.004)]),
    line("MIKAN", &[about(0.055, 0.002), about(0.142, 0.044), about(0.108, 0.029), about(0.108, 0.015), about(0.037, 0.004)]),
];

/// Splits, spectral points, epochs, and every how many rows of the set are used.
fn size(at: &At<'_>) -> [usize; 4] {
    let thinned = |every| match at.set.title {
        "Parkinsons" => every,
        _ => 1,
    };
    at.of_scale([
        [2, 16, 15, thinned(10)],
        [10, 32, 500, thinned(5)],
        [10, 64, 1000, 1],
    ])
}

/// The models that are run on a set: those that the released code has where the comparison is with published
/// numbers, and on the largest set.
fn models(at: &At<'_>, protocol: Protocol) -> Vec<&'static str> {
    let reduced = [TRANSFORMER, "IKAN-direct", "MIKAN"];
    let all = || {
        CARD.models
            .iter()
            .map(|model| model.name)
            .filter(|name| *name != EIGHT_HEADS && !CARD.is_on_request(name))
    };
    let with_eight = |mut models: Vec<&'static str>| {
        if heads(TRANSFORMER, at.set.title) != heads(EIGHT_HEADS, at.set.title) {
            let place = models.iter().position(|model| *model == TRANSFORMER);
            models.insert(place.map_or(0, |place| place + 1), EIGHT_HEADS);
        }
        models
    };
    match (at.scale, at.set.title) {
        (Scale::Smoke, "Passenger") | (Scale::Desk, "Passenger" | "CO2" | "Housing") => {
            all().collect()
        }
        (Scale::Desk, "Concrete") => [&["GP (RBF)", "GP (SM)"], &reduced[..]].concat(),
        (Scale::Smoke | Scale::Desk, _) => reduced.to_vec(),
        (Scale::Paper, set) if protocol == Protocol::P10 && set != "Parkinsons" => {
            with_eight(all().collect())
        }
        (Scale::Paper, _) => with_eight(reduced.to_vec()),
    }
}

/// The settings of a unit, with the norm `p` where the model has one.
fn settings(at: &At<'_>, model: &str, preset: Preset, p: Option<f64>) -> Settings {
    let [_, points, epochs, every] = size(at);
    let process = |covariance| Settings::of(&ProcessSettings::new(covariance, epochs, every));
    match model {
        "GP (RBF)" => process(Covariance::Rbf),
        "GP (SM)" => process(Covariance::SpectralMixture { components: 5 }),
        _ => {
            let attention = mechanism(model, preset, p, points);
            let (inputs, points) = (inputs(at.set), p.map(|_| points));
            let mut settings = AttentionSettings::new(inputs, attention, p, points, epochs);
            settings.model.heads = heads(model, at.set.title);
            settings.every = every;
            Settings::of(&settings)
        }
    }
}

fn arms(at: &At<'_>) -> Vec<Arm> {
    let ([splits, .., every], released) = (size(at), WITH_CODE.contains(&at.set.title));
    let paper = at.scale == Scale::Paper && released;
    let protocols = &[Protocol::P10, Protocol::R90][..1 + usize::from(paper)];
    let both = match at.scale {
        Scale::Smoke => at.set.title == "Passenger",
        Scale::Desk => matches!(at.set.title, "Passenger" | "Housing"),
        Scale::Paper => released,
    };
    let readings = &[(Preset::Paper, None), (Preset::Released, Some(RELEASED))];
    let arm = |model, (preset, tag), protocol, p| {
        let settings = settings(at, model, preset, p);
        Arm {
            comparable: every == 1,
            ..Arm::new(at, model, protocol, folds(splits), &settings).with_tag(tag)
        }
    };
    let mut arms = Vec::new();
    for &protocol in protocols {
        let (judged, others): (Vec<&str>, _) = models(at, protocol)
            .iter()
            .partition(|model| is_judged(model));
        arms.extend(
            others
                .iter()
                .map(|&m| arm(m, readings[0], protocol, norm(m, at.set.title))),
        );
        for &reading in &readings[..1 + usize::from(both)] {
            let judged = judged.iter();
            arms.extend(judged.map(|&m| arm(m, reading, protocol, norm(m, at.set.title))));
        }
    }
    let fits = |model: &&str| admits(at.set, model).is_ok();
    let others = [&OF_OTHER_PAPERS[..], &[PRIMAL_PARAMETERS]].concat();
    let others = others.into_iter().filter(fits);
    arms.extend(others.map(|model| arm(model, readings[0], Protocol::P10, None)));
    for model in ["IKAN-direct", "MIKAN"].into_iter().filter(|_| paper) {
        let candidates = [1.0, 1.5, 1.8, 2.0, 3.0].into_iter();
        arms.extend(
            candidates
                .filter(|p| Some(*p) != norm(model, at.set.title))
                .map(|p| {
                    let arm = arm(model, readings[0], Protocol::P10, Some(p));
                    arm.among(format!("p = {p}"), Role::Compared)
                }),
        );
    }
    arms
}

fn claims() -> Vec<Claim> {
    let on_two = |name, text, model| {
        let on = SETS.map(|set| Hypothesis::better(model, TRANSFORMER, set));
        Claim::at_least(2, name, text, on.to_vec())
    };
    let direct = "IKAN-direct";
    vec![
    on_two(
        "C1",
        "IKAN-direct has smaller errors than the Transformer on at least 2 of the 5 sets",
        direct,
    ),
    on_two(
        "C2",
        "MIKAN has smaller errors than the Transformer on at least 2 of the 5 sets",
        "MIKAN",
    ),
    Claim::all(
        "C3",
        "on Parkinsons, IKAN-direct's error is below 0.6 of the Transformer's and below MIKAN's",
        vec![
            Hypothesis::below_share(direct, 0.6, TRANSFORMER, "Parkinsons"),
            Hypothesis::better(direct, "MIKAN", "Parkinsons"),
        ],
    )
    .from(Scale::Paper, "only the full Parkinsons set at scale paper can tell"),
    Claim::shown(
        "C4",
        "run as released on the released splits (not known of Parkinsons), each best test error is within 2 published \
         standard deviations of the published mean",
        Shown::NearPublished {
            models: vec![
                (TRANSFORMER, None),
                (direct, Some(RELEASED)),
                ("MIKAN", Some(RELEASED)),
            ],
            sets: WITH_CODE.to_vec(),
            protocol: Protocol::R90,
        },
    )
    .from(Scale::Paper, "absolute errors are comparable at scale paper only"),
]
}

fn admits(set: &Set, model: &str) -> Result<(), Error> {
    without_order(&mechanism(model, Preset::Paper, None, 1), set.name.parse()?)
}

fn load(set: &Set, arms: &[Arm], files: &DataStore) -> Result<Box<dyn Source>, Error> {
    Ok(Box::new(RowSource::load(set, arms, files, None)?))
}

fn is_process(model: &str) -> bool {
    model.starts_with("GP")
}

fn is_judged(model: &str) -> bool {
    CARD.model(model).is_some_and(|model| model.judged)
}
