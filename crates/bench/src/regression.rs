//! Epochs of the paper's regressor on one sequence as long as each of its data sets.

use crate::Error;
use crate::workload::{Against, Pass, Run, Workload};
use bochner_attention::{IkanDirect, Mikan, RbfOnly, Softmax, Variant};
use bochner_models::regressor::{LookAhead, RegressorConfig, Task, Trainer, TrainingConfig};
use bochner_numerics::{Seed, standard_normal};
use ndarray::{Array1, Array2};
use serde_json::json;

/// Rows and inputs of Passenger, Housing, CO2, Concrete and Parkinsons.
const SETS: [[usize; 2]; 5] = [[144, 1], [506, 13], [527, 1], [1030, 8], [5875, 20]];

const WIDTH: usize = 64;
const POINTS: usize = 64;

/// The exponent of the norm of the spectral kinds, which is one that needs powers.
const P: f64 = 3.0;

/// Regressors, `(N, inputs, width, heads, R)`.
pub(crate) fn workloads() -> Vec<Workload> {
    let kinds = [
        ("regressor-transformer", "transformer", 4, 0),
        ("regressor-transformer", "transformer", 8, 0),
        ("regressor-rbf-only", "rbf_only", 8, 0),
        ("regressor-ikan-direct", "ikan_direct", 8, POINTS),
        ("regressor-mikan", "mikan", 8, POINTS),
    ];
    let of = |[rows, inputs]: [usize; 2]| {
        kinds.map(|(name, peer, heads, points)| {
            let shape = [rows, inputs, WIDTH, heads, points];
            workload(name, peer, shape)
        })
    };
    SETS.into_iter().flat_map(of).collect()
}

fn workload(name: &'static str, peer: &'static str, shape: [usize; 5]) -> Workload {
    let (label, script) = ("the formulas, eager", "regression_epoch");
    let cases = [json!({ "impl": peer, "shape": shape, "p": P })];
    let bytes = 4.0 * (shape[0] * (shape[1] + 1)) as f64;
    let pass = Pass {
        against: vec![Against::new(label, script, cases, "epoch", None)],
        ..Pass::new("epoch", operations(peer, shape), bytes)
    };
    let start = move || Ok(vec![epochs(peer, shape)?]);
    Workload::new(name, shape, vec![pass], start)
}

/// A training step is three forward passes, evaluation one more where points are drawn; for attention
/// the backward pass also computes again what the forward pass did.
fn operations(peer: &str, [rows, inputs, width, heads, points]: [usize; 5]) -> f64 {
    let evaluation = usize::from(peer == "mikan");
    let own = width / heads;
    let maps = (3 + evaluation) * (6 * width * width + inputs * width + width);
    let factor = if points == 0 { own } else { 2 * points };
    let features = 4 * (3 + evaluation) * points * width;
    let by_pairs = rows * ((4 + evaluation) * factor + (3 + evaluation) * own);
    let by_rows = (6 + 2 * evaluation) * points * (2 * points + 1) * (own + 1);
    let pairs = heads
        * if points == 0 {
            by_pairs
        } else {
            by_pairs.min(by_rows)
        };
    2.0 * rows as f64 * (maps + features + pairs) as f64
}

fn attention(peer: &str, points: usize) -> Variant {
    match peer {
        "transformer" => Softmax::default().into(),
        "rbf_only" => RbfOnly {}.into(),
        "ikan_direct" => Variant::from(IkanDirect {
            p: P,
            points,
            ..Default::default()
        }),
        _ => Variant::from(Mikan {
            p: P,
            points,
            ..Default::default()
        }),
    }
}

fn epochs(peer: &str, [rows, inputs, width, heads, points]: [usize; 5]) -> Result<Run, Error> {
    let mut stream = Seed::new(2).stream("data");
    let x = Array2::from_shape_simple_fn((rows, inputs), || standard_normal(&mut stream));
    let y = Array1::from_shape_simple_fn(rows, || standard_normal(&mut stream));
    let train = (0..rows).filter(|row| row % 10 != 0).collect();
    let config = RegressorConfig {
        width,
        heads,
        ..RegressorConfig::new(inputs, attention(peer, points))
    };
    let task = Task::new(x, y, train)?;
    let trainer = Trainer::new(&config, &TrainingConfig::regression(), task, Seed::new(1))?;
    let mut trainer = LookAhead::new(trainer);
    Ok(Box::new(move || {
        trainer.epoch()?;
        trainer.predict()?;
        Ok(())
    }))
}
