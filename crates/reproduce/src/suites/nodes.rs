//! Table 5: the classes of nodes of three citation graphs.
//!
//! The paper says "ten-fold cross validations" and quotes the line of GAT, which is that of a hundred
//! runs on the split that the graphs were published with. So everything runs on that split, and runs
//! differ in their seeds; all models of a seed start from it. Accuracies are kept as error rates.
//!
//! The comparisons are named here, before anything is run: IKAN-direct and MIKAN, each against GAT, on
//! Cora and Citeseer, and only if our GAT is the published one. All else is reported, not judged.

use super::{chosen, edges};
use crate::Error;
use crate::suite::{Source, Suite};
use crate::trial::nodes::{NodeSettings, PLANTED, Prepared};
use bochner_datasets::{DataStore, PlanetoidSet, Protocol};
use bochner_graph::{AttentionKind, EdgeKernel};
use bochner_models::node_classifier::{
    Architecture, AttentionLayers, Dropout, NodeClassifierConfig, TrainingConfig,
};
use bochner_report::check::Check;
use bochner_report::claim::{Claim, Hypothesis};
use bochner_report::plan::{Arm, ChosenBy, Role};
use bochner_report::sections::{self, Column, Columns, OWN, Section};
use bochner_report::suite::{At, Card, Direction, Line, Metric, Model, Set, Shown, about, line};
use bochner_report::{Number, Scale};
use bochner_spectral::{Copula, Direct, Implicit, Stationarity};
use std::num::NonZeroUsize;

/// The suite.
pub static NODES: Suite = Suite::new(&CARD, load, CHECKS);

/// The graphs that claims are judged on.
const JUDGED: [&str; 2] = ["Cora", "Citeseer"];

/// The seed on which norms are chosen: none of those that are compared.
const CHOICE_SEED: u64 = 1000;

/// The norms that validation chooses among, in increasing order.
const CANDIDATES: [f64; 3] = [1.5, 2.0, 3.0];

/// The validation accuracy on Cora that 30 epochs must exceed; the largest class has 30.2 %.
const LEARNT: f64 = 60.0;

/// Epochs in a row without progress on the validation part, in all published runs of GAT.
const PATIENCE: NonZeroUsize = NonZeroUsize::new(100).unwrap();

const GAT: &[&str] = &["GAT"];

static CARD: Card = Card {
    name: "nodes",
    table: "Table 5",
    title: "Table 5, node classification",
    sets: &[
        Set::new("cora", "Cora", 2_708, Scale::Smoke),
        Set::new("citeseer", "Citeseer", 3_327, Scale::Desk),
        Set::new("pubmed", "Pubmed", 19_717, Scale::Paper),
    ],
    models: &[
        Model::new("GAT", &[]),
        Model::new("GCN", GAT),
        Model::new("RBF-only", GAT),
        Model::new("IKA-S", GAT),
        Model::new("IKA-NS", GAT).after("IKA-S", "a second set of spectral points"),
        Model::new("IKAN", GAT).after("IKA-NS", "a norm of its own"),
        Model::new("IKAN-direct", GAT).judged(),
        Model::new("MIKAN", GAT)
            .after("IKAN", "the copula")
            .judged(),
    ],
    metric: Metric {
        direction: Direction::Smaller,
        shown: Shown::ErrorAsAccuracy,
        ..Metric::ACCURACY
    },
    baseline: "GAT",
    against: "GAT",
    published: &PUBLISHED,
    opening: "Accuracies in per cent on the 1,000 test nodes of the split that the graphs were published with; runs \
              differ in their seeds. The **V-number** is the accuracy in the epoch that the rule of graph attention \
              networks keeps, which looks at 500 validation nodes; GAT's published numbers are of this kind. The \
              **R-number** is the best accuracy over all epochs on the test nodes: the test part chose the epoch, so it \
              is optimistic. What is claimed here rests on V-numbers.",
    scopes: [
        "Scale smoke tests the machinery with one seed, 16 spectral points and 30 epochs. Its numbers say nothing about \
         the method and are not comparable with the paper's.",
        "Scale desk has 20 seeds and at most 1,000 epochs with patience 100, on Cora and Citeseer. Twenty seeds can \
         hardly show the published gains of 0.3 and 0.4, which are smaller than two of their own standard errors.",
        "Scale paper has 100 seeds on three graphs, with patience 100.",
    ],
    smoke: "One seed, 16 spectral points, p = 2, 30 epochs.",
    decided: &[
        "The paper says \"ten-fold cross validations\" and quotes the line of GAT, which is that of a hundred seeds on \
         the published split; so everything runs on that split.",
        "GAT is set up as it was published: features divided by their sum, self loops, 8 heads of width 8 side by side, \
         an ELU, one output head (8 on Pubmed, averaged), dropout 0.6 on the inputs of both layers, on the weights and on \
         the transformed features, half the squared norm of all variables times 5e-4 (Pubmed: 1e-3), Adam with 0.005 \
         (Pubmed: 0.01). The kernel forms differ from it in how edges are weighed, in both layers, and in nothing else; \
         their own parameters count in the norm.",
        "No settings of the paper for graphs are known. The posterior's prior has standard deviation 0.1, the divergence \
         weight 0.1 over the number of training nodes; the inference network is fed the means of the transformed features \
         over all nodes.",
        "p is chosen among 1.5, 2 and 3 by the validation accuracy of one run on seed 1000, which is not compared, and \
         is 2 for IKA-S and IKA-NS.",
        "GCN has its published settings (16 hidden, dropout 0.5, 5e-4 on the first layer, 0.01), but ends by GAT's rule.",
        "Training ends when neither validation loss nor validation accuracy has been as good as ever for 100 epochs; \
         kept is the last epoch in which both were.",
        "All runs of a graph are on one split, so SE is the spread over seeds; it says nothing about other splits.",
    ],
    arms,
    claims,
    pictures: &[Section::Written(|account, document| {
        for (_, caption, pictures) in edges::pictures_along_edges(account, document) {
            document.pictures(caption, pictures);
        }
    })],
    tables: &[
        Section::Published(
            "Mean ± standard deviation over the seeds. With an asterisk: quoted from the paper, which quotes them itself; \
             nothing was run.",
            BESIDE_PAPER,
        ),
        Section::Numbers(
            "Our numbers",
            "R - V is the optimism; epochs are those that were trained.",
            &[OWN, RUNS],
        ),
        Section::Written(sections::comparisons),
        Section::Written(|account, document| {
            let text = "Validation accuracy (and loss) of one run on seed 1000, in the epoch that was kept; of equal \
                        accuracies the smaller loss decides.";
            sections::chosen_norms(account, document, ChosenBy::Value, text);
        }),
        Section::Written(|account, document| {
            edges::heads_along_edges(account, document, "After the last epoch");
        }),
    ],
    ..Card::EMPTY
};

const CHECKS: &[Check] = &[Check::Rows(
    "on Cora, the validation accuracy exceeds 60 %",
    |arm| arm.set == "Cora",
    |row| {
        let found = row.validation.map_or(0.0, |error| CARD.metric.show(error));
        (found <= LEARNT).then(|| format!("{found:.1} %"))
    },
)];

/// The line of GAT is that of a hundred runs on the fixed split; the paper's own lines are probably ten runs on it. In
/// the text of the table that was at hand the last two lines are one; they were assigned to the models by their order.
#[rustfmt::skip]
static PUBLISHED: [Line; 7] = [
    line("DeepWalk", &[about(67.2, -1.0), about(43.2, -1.0), about(65.3, -1.0)]),
    line("ICA", &[about(75.1, -1.0), about(69.1, -1.0), about(73.9, -1.0)]),
    line("Chebyshev", &[about(81.2, -1.0), about(69.8, -1.0), about(74.4, -1.0)]),
    line("GCN", &[about(81.5, -1.0), about(70.3, -1.0), about(79.0, -1.0)]),
    line("GAT", &[about(83.0, 0.7), about(72.5, 0.7), about(79.0, 0.3)]),
    line("IKAN-direct", &[about(83.3, 0.7), about(72.8, 1.0), about(79.2, 0.4)]),
    line("MIKAN", &[about(83.4, 0.6), about(72.9, 0.8), about(79.1, 0.6)]),
];

const OTHERWISE: &str = "our GAT is not the published one, so a difference to it means nothing";

fn arms(at: &At<'_>) -> Vec<Arm> {
    let due: &[&str] = at.of_scale([
        &["GAT", "IKAN-direct", "MIKAN"][..],
        &["GAT", "GCN", "IKAN-direct", "MIKAN"],
        &[
            "GAT",
            "GCN",
            "RBF-only",
            "IKA-S",
            "IKA-NS",
            "IKAN",
            "IKAN-direct",
            "MIKAN",
        ],
    ]);
    // At scale `desk` 20, twice the paper's number: ten can hardly show a gain of 0.3.
    let seeds = at.of_scale([1, 20, 100]);
    let arm = |model, p, seeds: std::ops::Range<u64>| {
        let runs = seeds.map(|seed| (0, seed));
        Arm::new(at, model, Protocol::Fixed, runs, &settings(at, model, p))
    };
    let mut arms = Vec::new();
    for &model in due {
        let candidate = |p| {
            let arm = arm(model, Some(p), CHOICE_SEED..CHOICE_SEED + 1);
            arm.among(format!("p = {p}"), Role::OwnChoice)
        };
        let p = match (model, at.scale) {
            ("GAT" | "GCN" | "RBF-only", _) => Some(None),
            ("IKA-S" | "IKA-NS", _) | (_, Scale::Smoke) => Some(Some(2.0)),
            _ => {
                let candidates = CANDIDATES.map(candidate).to_vec();
                let best = chosen(at, &mut arms, candidates, ChosenBy::Value);
                best.map(|best| Some(CANDIDATES[best]))
            }
        };
        arms.extend(p.map(|p| arm(model, p, 0..seeds)));
    }
    arms
}

fn claims() -> Vec<Claim> {
    let better = |name, text, model| {
        let on = JUDGED.map(|set| Hypothesis::better(model, "GAT", set));
        Claim::all(name, text, on.to_vec()).needs("C0", OTHERWISE)
    };
    let bands = [("Cora", 82.0, 84.0), ("Citeseer", 71.5, 73.5)];
    let within = bands.map(|(set, low, high)| {
        [
            Hypothesis::above("GAT", low, set),
            Hypothesis::above("GAT", high, set).reversed(),
        ]
    });
    vec![
    Claim::all(
        "C0",
        "our GAT is the published one: between 82 and 84 % on Cora, between 71.5 and 73.5 % on Citeseer",
        within.concat(),
    )
    .one_sided(),
    better(
        "C1 (IKAN-direct)",
        "IKAN-direct is better than GAT on Cora and on Citeseer",
        "IKAN-direct",
    ),
    better(
        "C1 (MIKAN)",
        "MIKAN is better than GAT on Cora and on Citeseer",
        "MIKAN",
    ),
]
}

fn load(set: &Set, _arms: &[Arm], files: &DataStore) -> Result<Box<dyn Source>, Error> {
    let data = bochner_datasets::nodes::load(set.name.parse::<PlanetoidSet>()?, files)?;
    Ok(Box::new(Prepared::of(&data)?))
}

const BESIDE_PAPER: Columns<'static> = &[
    ("paper", Column::Paper),
    ("ours (V)", Column::Ours(Number::V)),
    ("V - paper", Column::Difference(Number::V)),
    ("ours (R)", Column::Ours(Number::R)),
    ("verdict", Column::Verdict),
];

const RUNS: Columns<'static> = &[
    ("epochs", Column::Epochs),
    ("n", Column::N),
    ("s per run", Column::Seconds),
];

/// The settings of a unit. What is common to all models with attention is GAT's, on Pubmed with its own numbers. GCN
/// has its own, except for the rule that ends training: that is GAT's.
pub(super) fn settings(at: &At<'_>, model: &str, p: Option<f64>) -> NodeSettings {
    let pubmed = at.set.title == "Pubmed";
    // Patience ends a run long before 100,000, the limit in GAT's own code.
    let (points, epochs) = at.of_scale([(16, 30), (64, 1000), (64, 100_000)]);
    let [inputs, classes] = match at.set.name.parse::<PlanetoidSet>() {
        Ok(set) => [set.features(), set.classes()],
        Err(_) => [PLANTED.features, PLANTED.classes],
    };
    let gat = Architecture::Attention(AttentionLayers {
        output_heads: if pubmed { 8 } else { 1 },
        ..AttentionLayers::new(attention(model, points, p))
    });
    let everywhere = Dropout::everywhere(0.6);
    let (architecture, dropout, l2, learning_rate) = match model {
        "GCN" => (
            Architecture::convolution(16),
            Dropout::of_inputs(0.5),
            5e-4,
            0.01,
        ),
        _ if pubmed => (gat, everywhere, 1e-3, 0.01),
        _ => (gat, everywhere, 5e-4, 0.005),
    };
    NodeSettings {
        model: NodeClassifierConfig {
            inputs,
            classes,
            architecture,
            dropout,
        },
        p,
        points: p.map(|_| points),
        training: TrainingConfig {
            learning_rate,
            l2,
            ..TrainingConfig::default()
        },
        epochs,
        patience: PATIENCE,
    }
}

/// The way in which a model weighs edges, with the norm `p`; other settings have their usual values.
fn attention(model: &str, points: usize, p: Option<f64>) -> AttentionKind {
    let with_p = |kernel: EdgeKernel| {
        kernel
            .with_p(p.unwrap_or(2.0))
            .expect("a kernel with points, and p > 0")
    };
    let implicit = |copula, stationarity| {
        let source = Implicit {
            points,
            copula,
            stationarity,
            ..Implicit::default()
        };
        with_p(source.into())
    };
    let direct = Direct {
        points,
        ..Direct::default()
    };
    let (none, pairs) = (Copula::Independent, Stationarity::Nonstationary);
    AttentionKind::Kernel(match model {
        "RBF-only" => EdgeKernel::RbfOnly,
        "IKA-S" => implicit(none, Stationarity::Stationary),
        "IKA-NS" | "IKAN" => implicit(none, pairs),
        "IKAN-direct" => with_p(direct.into()),
        "MIKAN" => implicit(Copula::Amortised, pairs),
        _ => return AttentionKind::Classic,
    })
}
