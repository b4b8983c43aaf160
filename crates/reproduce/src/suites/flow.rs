//! Inter-modality flow: what four reconstructions of it have in common.

use crate::Error;
use crate::study::case::{Case, each, larger};
use crate::study::{Finding, Measure, Study};
use bochner_interpret::{Modality, inter_modality_flow};
use bochner_numerics::Tolerance;
use bochner_report::Scale;
use bochner_report::statistics::mean;
use ndarray::{Array1, Array4, Axis};
use rand::seq::SliceRandom;

/// The suite.
pub static FLOW: Study = Study {
    name: "flow",
    title: "Inter-modality flow, four reconstructions",
    part: "statement",
    opening,
    parts: &[invariants, padding, ratio],
};

/// The readings, as the crate has them.
const READINGS: [&str; 4] = ["attention", "with residual", "rollout", "weighted by norms"];

fn opening(_: Scale) -> String {
    "The equation of Xue et al. was not found; these are four readings of what the quantity is for, and what is \
     tested is what any of them must obey. Softmax of random logits in 1 to 3 layers of 1 to 3 heads, over 2 to 24 \
     tokens of two modalities."
        .to_owned()
}

fn cases(scale: Scale) -> usize {
    match scale {
        Scale::Smoke => 200,
        _ => 5_000,
    }
}

/// Logits, values, and the modality of each token.
struct Example {
    logits: Array4<f64>,
    values: Array4<f64>,
    kinds: Vec<Modality>,
}

type Flows = [Array1<f64>; 4];

impl Example {
    /// At least one token of each modality.
    fn random(case: &mut Case) -> Self {
        let (layers, heads) = (case.count(1, 3), case.count(1, 3));
        let [vision, text] = [(); 2].map(|()| case.count(1, 12));
        let mut kinds = [vec![Modality::Vision; vision], vec![Modality::Text; text]].concat();
        kinds.shuffle(case.stream());
        Self::of(case, [layers, heads], kinds)
    }

    fn of(case: &mut Case, [layers, heads]: [usize; 2], kinds: Vec<Modality>) -> Self {
        let tokens = kinds.len();
        let shaped = |case: &mut Case, width: usize, std: f64| {
            let rows = case.normal(layers * heads * tokens, width, std);
            let shape = (layers, heads, tokens, width);
            rows.into_shape_with_order(shape).expect("as many numbers")
        };
        let logits = shaped(case, tokens, 1.5);
        let values = shaped(case, 4, 1.0);
        Self {
            logits,
            values,
            kinds,
        }
    }

    fn flows(&self) -> Result<Flows, Error> {
        flows(&softmax(&self.logits), &self.values, &self.kinds)
    }

    /// The flows after `bonus` is added to the logits of pairs of different modalities, or of one.
    fn with_bonus(&self, bonus: f64, crossing: bool) -> Result<Flows, Error> {
        let mut logits = self.logits.clone();
        for ((.., i, j), logit) in logits.indexed_iter_mut() {
            if (self.kinds[i] != self.kinds[j]) == crossing {
                *logit += bonus;
            }
        }
        flows(&softmax(&logits), &self.values, &self.kinds)
    }
}

fn softmax(logits: &Array4<f64>) -> Array4<f64> {
    let weights = logits.mapv(f64::exp);
    let sums = weights.sum_axis(Axis(3)).insert_axis(Axis(3));
    weights / sums
}

fn flows(a: &Array4<f64>, v: &Array4<f64>, kinds: &[Modality]) -> Result<Flows, Error> {
    let flow = inter_modality_flow(a.view(), Some(v.view()), kinds)?;
    let weighted = flow.norm_weighted.expect("values were given");
    Ok([flow.attention, flow.residual, flow.rollout, weighted])
}

/// The largest difference of two flows.
fn apart(a: &Array1<f64>, b: &Array1<f64>) -> f64 {
    a.iter()
        .zip(b)
        .map(|(a, b)| (a - b).abs())
        .fold(0.0, larger)
}

fn other(kind: Modality) -> Modality {
    match kind {
        Modality::Vision => Modality::Text,
        Modality::Text => Modality::Vision,
        Modality::Padding => Modality::Padding,
    }
}

const INVARIANTS: [&str; 6] = [
    "outside 0 to 1",
    "change by the order of tokens",
    "change by the names of the modalities",
    "flow between blocks that do not attend to each other",
    "fall by a bonus to crossing logits",
    "rise by a bonus to logits within a modality",
];

fn invariants(scale: Scale) -> Result<Finding, Error> {
    let violations = each(1, cases(scale), violations)?;
    let bound = Tolerance::outputs::<f64>().relative;
    let mut measures = Vec::new();
    for (n, reading) in READINGS.into_iter().enumerate() {
        for (i, invariant) in INVARIANTS.into_iter().enumerate() {
            let what = format!("{reading}: {invariant}");
            let seen = violations.iter().map(|case| case.0[n][i]);
            measures.push(Measure::largest(what, seen).at_most(bound));
        }
    }
    for (what, of) in [
        ("rollout of one layer less the flow with residual", 0),
        ("uniform attention less 2 n_v n_t / (n_v + n_t)^2", 1),
        ("all mass crosses: attention less 1", 2),
    ] {
        let seen = violations.iter().map(|case| case.1[of]);
        measures.push(Measure::largest(what, seen).at_most(bound));
    }
    let what = "control, one token under the other name: share of cases that change";
    let moved = violations.iter().map(|case| case.1[3] > 1e-3);
    measures.push(Measure::share(what, moved).at_least(0.9));
    Ok(Finding {
        number: 1,
        title: "what every reading obeys",
        statement: "Each flow lies in 0 to 1, does not depend on the order of tokens or on the names of the \
                    modalities, is zero between blocks, does not fall where crossing logits get a bonus and does not \
                    rise where others do. Control: one token under the other name changes the flow.",
        cases: violations.len(),
        measures,
        ..Finding::default()
    })
}

/// Violations of each reading, and of what belongs to one reading alone.
type Violations = ([[f64; INVARIANTS.len()]; 4], [f64; 4]);

fn violations(mut case: Case) -> Result<Violations, Error> {
    let example = Example::random(&mut case);
    let kinds = &example.kinds;
    let before = example.flows()?;

    let mut order: Vec<usize> = (0..kinds.len()).collect();
    order.shuffle(case.stream());
    let turned = Example {
        logits: example
            .logits
            .select(Axis(2), &order)
            .select(Axis(3), &order),
        values: example.values.select(Axis(2), &order),
        kinds: order.iter().map(|&i| kinds[i]).collect(),
    };
    let turned = turned.flows()?;
    let swapped: Vec<Modality> = kinds.iter().copied().map(other).collect();
    let a = softmax(&example.logits);
    let swapped = flows(&a, &example.values, &swapped)?;
    let apart_only = example.with_bonus(f64::NEG_INFINITY, true)?;
    let bonus = case.real(0.1, 2.0);
    let (raised, lowered) = (
        example.with_bonus(bonus, true)?,
        example.with_bonus(bonus, false)?,
    );

    let mut seen = [[0.0; INVARIANTS.len()]; 4];
    for n in 0..4 {
        let outside = |x: &f64| (-x).max(x - 1.0).max(0.0);
        let fall = |from: &Array1<f64>, to: &Array1<f64>| {
            from.iter()
                .zip(to)
                .map(|(from, to)| (from - to).max(0.0))
                .fold(0.0, larger)
        };
        seen[n] = [
            before[n].iter().map(outside).fold(0.0, larger),
            apart(&before[n], &turned[n]),
            apart(&before[n], &swapped[n]),
            apart_only[n].iter().copied().fold(0.0, larger),
            fall(&before[n], &raised[n]),
            fall(&lowered[n], &before[n]),
        ];
    }
    let uniform = inter_modality_flow(Array4::<f64>::ones(a.raw_dim()).view(), None, kinds)?;
    let crossing = example.with_bonus(f64::NEG_INFINITY, false)?;
    let mut relabelled = kinds.clone();
    relabelled[0] = other(relabelled[0]);
    let relabelled = flows(&a, &example.values, &relabelled)?;
    let own = [
        (before[2][0] - before[1][0]).abs(),
        (uniform.attention[0] - uniform.uniform).abs(),
        (crossing[0][0] - 1.0).abs(),
        apart(&before[0], &relabelled[0]),
    ];
    Ok((seen, own))
}

fn padding(scale: Scale) -> Result<Finding, Error> {
    let changes = each(2, cases(scale), |mut case| {
        let example = Example::random(&mut case);
        let before = example.flows()?;
        let tokens = example.kinds.len();
        let more = case.count(1, 5);
        let longer = tokens + more;
        let [layers, heads] = [example.logits.dim().0, example.logits.dim().1];
        let a = softmax(&example.logits);
        // Whatever stands in the rows and columns of padding, it does not count.
        let padded = Array4::from_shape_fn((layers, heads, longer, longer), |(l, h, i, j)| match i
            < tokens
            && j < tokens
        {
            true => a[[l, h, i, j]],
            false => f64::NAN,
        });
        let values = Array4::from_shape_fn((layers, heads, longer, 4), |(l, h, i, c)| {
            if i < tokens {
                example.values[[l, h, i, c]]
            } else {
                f64::NAN
            }
        });
        let mut kinds = example.kinds.clone();
        kinds.resize(longer, Modality::Padding);
        let after = flows(&padded, &values, &kinds)?;
        let change = before
            .iter()
            .zip(&after)
            .map(|(a, b)| apart(a, b))
            .fold(0.0, larger);
        // Padding that is called text counts.
        let wrong: Vec<Modality> = (0..longer)
            .map(|i| {
                if i < tokens {
                    example.kinds[i]
                } else {
                    Modality::Text
                }
            })
            .collect();
        let filled = padded.mapv(|x| if x.is_nan() { 1.0 / longer as f64 } else { x });
        let values = values.mapv(|x| if x.is_nan() { 1.0 } else { x });
        let counted = apart(&before[0], &flows(&filled, &values, &wrong)?[0]);
        Ok((change, counted))
    })?;
    Ok(Finding {
        number: 2,
        title: "padding does not count",
        statement: "1 to 5 padded tokens, with NaN in their rows, columns and values, change no flow. Control: the \
                    tokens taken for text, with uniform weights, do.",
        cases: changes.len(),
        measures: vec![
            Measure::largest("largest change", changes.iter().map(|case| case.0)).at_most(0.0),
            Measure::share(
                "control: share of cases that change",
                changes.iter().map(|case| case.1 > 1e-3),
            )
            .at_least(0.9),
        ],
        ..Finding::default()
    })
}

/// Numbers of vision and text tokens; the first are those of the paper.
const SPLITS: [(usize, usize); 4] = [(147, 14), (49, 14), (30, 30), (5, 40)];

fn ratio(scale: Scale) -> Result<Finding, Error> {
    let examples = match scale {
        Scale::Smoke => 20,
        _ => 400,
    };
    let mut measures = Vec::new();
    for (place, (vision, text)) in SPLITS.into_iter().enumerate() {
        let uniform = 2.0 * (vision * text) as f64 / ((vision + text) as f64).powi(2);
        let ratios = each(3 + place, examples, |mut case| {
            let kinds = [vec![Modality::Vision; vision], vec![Modality::Text; text]].concat();
            let example = Example::of(&mut case, [1, 2], kinds);
            let [plain, bonus] = [example.flows()?, example.with_bonus(1.0, true)?];
            Ok([plain, bonus].map(|flows| flows.map(|flow| flow[0] / uniform)))
        })?;
        let what = format!("{vision} and {text} tokens: ");
        measures.push(Measure::shown(format!("{what}the uniform value"), uniform));
        for (n, reading) in READINGS.into_iter().enumerate() {
            let of = |which: usize| ratios.iter().map(|case| case[which][n]).collect::<Vec<_>>();
            let measure = Measure::mean(format!("{what}{reading} over it"), &of(0))?;
            measures.push(match n {
                0 | 3 => measure.within(0.95, 1.05),
                _ => measure,
            });
            if n == 0 {
                let what = format!("control, {what}attention over it with a bonus of 1");
                measures.push(Measure::shown(what, mean(&of(1))?).at_least(1.1));
            }
        }
    }
    Ok(Finding {
        number: 3,
        title: "the ratio to the uniform value",
        statement: "Attention that does not look at modalities, over vision and text tokens in several proportions: \
                    the share that crosses depends on the proportion, its ratio to the uniform value is 1 ± 0.05, for \
                    attention and weighted by norms. With the residual stream half of the mass stays, and the ratio \
                    is about a half. Control: with a bonus of 1 to crossing logits the ratio is above 1.1.",
        cases: examples,
        measures,
        ..Finding::default()
    })
}
