//! A check of citation graphs: Proposition 2 on their edges.

use crate::Error;
use crate::trial::nodes::Prepared;
use bochner_datasets::{DataStore, PlanetoidSet, nodes};
use bochner_graph::{Features, Merge, Score, Settings, attend};
use bochner_numerics::check::largest;
use bochner_numerics::{Seed, Tolerance, standard_normal};
use bochner_report::check::Mark;
use ndarray::{Array2, ArrayView2};

/// On Cora's edges, graph attention by its formula and its kernel form with the exact Gaussian agree to rounding.
pub(crate) fn identity(files: &DataStore) -> Mark {
    let difference = || {
        let cora = nodes::load(PlanetoidSet::Cora, files)?;
        largest_difference(&Prepared::of(&cora)?)
    };
    match difference() {
        Ok(found) if found <= Tolerance::outputs::<f64>().relative => {
            Mark::Passed(format!("weights within {found:.0e}"))
        }
        Ok(found) => Mark::Failed(format!("weights differ by {found:.1e}")),
        Err(error) => Mark::Failed(error.to_string()),
    }
}

/// The numbers are those of GAT's first layer.
const HEADS: usize = 8;
const WIDTH: usize = 8;

/// The largest difference between weights of classic graph attention and those of the kernel form with
/// exact Gaussian similarities and the magnitudes of p = 2 (Proposition 2), for a random layer on a
/// graph.
fn largest_difference(prepared: &Prepared) -> Result<f64, Error> {
    let mut stream = Seed::new(5).stream("a layer");
    let mut normal = |shape: (usize, usize), std: f64| {
        Array2::from_shape_simple_fn(shape, || std * standard_normal::<f64>(&mut stream))
    };
    let features = prepared.task.features();
    // Scores of either sign that differ by about 1.
    let weight = normal((features.columns(), HEADS * WIDTH), 4.0);
    let a = normal((HEADS, 2 * WIDTH), 0.25);
    let h = Features::Sparse(features).product(weight.mapv(|x| x as f32).view())?;
    let h = h.mapv(f64::from);
    let a = a.view();
    let classic = weights(prepared, h.view(), Score::Classic { a })?;
    let p = Some(2.0);
    let kernel = weights(prepared, h.view(), Score::Gaussian { a, p })?;
    let differences = classic.iter().zip(&kernel).map(|(c, k)| c - k);
    Ok(largest(&differences.collect::<Vec<_>>()))
}

/// The weights of all edges and heads.
fn weights(
    prepared: &Prepared,
    h: ArrayView2<f64>,
    score: Score<'_, f64>,
) -> Result<Array2<f64>, Error> {
    let settings = Settings {
        score,
        slope: 0.2,
        edges: None,
        merge: Merge::Concatenate,
        dropout: None,
        value_dropout: None,
    };
    let graph = prepared.task.graph();
    let attended = attend(graph, h, h, &settings)?;
    Ok(attended.weights().weights)
}
