//! Proposition 2: graph attention is a product of two RBF similarities and a magnitude, with a
//! slope chosen pair by pair.

use super::Effort;
use crate::Error;
use crate::study::case::{Case, each, largest, largest_difference, normalised};
use crate::study::{Finding, Measure};
use bochner_attention::magnitude::log_norm_sq;
use bochner_kernels::{Kernel, Lengthscale, Rbf, RbfConfig};
use bochner_numerics::Tolerance;
use ndarray::{Array1, Array2, array, concatenate, s};

/// LeakyReLU's slope below zero, as GAT has it.
const SLOPE: f64 = 0.2;

const STATEMENT: &str = "With q_i = [W h_i, 0], k_j = [0, W h_j], a in R^(2F), e_ij = a.(q_i + k_j) \
    and c_ij = 1 if e_ij >= 0, else 0.2, chosen for each pair: exp(LeakyReLU(e_ij)) = \
    exp(-|q_i - c a|^2 / 2) exp(-|c a - k_j|^2 / 2) exp((2 |c a|^2 + |q_i|^2 + |k_j|^2) / 2). With \
    one constant c, as printed, it is false.";

/// The errors of one case.
struct Errors {
    pairs: f64,
    rows: f64,
    /// With c = 1 for all pairs: the largest error of a weight.
    constant: f64,
    /// With c = 1 for all pairs: the largest difference between two queries' weights.
    constant_rows: f64,
    /// In graph attention itself: the largest difference between two queries' weights.
    rows_differ: f64,
}

pub(super) fn measure(effort: &Effort) -> Result<Finding, Error> {
    let errors = each(2, effort.cases, errors)?;
    let of = |error: fn(&Errors) -> f64| largest(errors.iter().map(error));
    let wrong = errors.iter().filter(|e| e.constant > 0.01).count() as f64;
    let rounding = Tolerance::outputs::<f64>().relative;
    let shown = |what: &str, error: fn(&Errors) -> f64| Measure::shown(what, of(error));
    let share = "constant c = 1: share of cases with a weight off by more than 0.01";
    let constant_rows = "constant c = 1: largest difference of two queries' weights";
    let rows_differ = "graph attention: largest difference of two queries' weights";
    let measures = vec![
        shown("largest relative error, pair by pair", |e| e.pairs).at_most(rounding),
        shown("largest error of the weights", |e| e.rows).at_most(rounding),
        Measure::shown(share, wrong / errors.len() as f64).at_least(0.5),
        shown("constant c = 1: largest error of a weight", |e| e.constant).at_least(0.01),
        shown(constant_rows, |e| e.constant_rows).at_most(rounding),
        shown(rows_differ, |e| e.rows_differ).at_least(0.01),
    ];
    Ok(Finding {
        number: 2,
        title: "graph attention decomposes, with c chosen for each pair",
        statement: STATEMENT,
        cases: effort.cases,
        measures,
        remarks: vec![
            "Similarities by `Rbf::gram` with lengthscale 1, norms by `log_norm_sq`; F from 1 to \
             64, complete graphs of 2 to 10 nodes."
                .to_owned(),
            by_hand()?,
        ],
        charts: Vec::new(),
    })
}

/// The smallest counterexample to a constant c.
fn by_hand() -> Result<String, Error> {
    let graph = Graph::new(array![[1.0], [-2.0]], array![1.0, 1.0])?;
    let classic = normalised(&graph.classic());
    let constant = normalised(&graph.kernel(|_| 1.0)?);
    Ok(format!(
        "Counterexample to a constant c: F = 1, a = (1, 1), two nodes with W h = 1 and -2. Graph \
         attention gives the first node weights ({:.3}, {:.3}) and the second ({:.3}, {:.3}); with \
         c = 1 for all pairs both get ({:.3}, {:.3}): the attention would not depend on the query.",
        classic[[0, 0]],
        classic[[0, 1]],
        classic[[1, 0]],
        classic[[1, 1]],
        constant[[0, 0]],
        constant[[0, 1]],
    ))
}

fn errors(mut case: Case) -> Result<Errors, Error> {
    let (nodes, features) = (case.count(2, 10), case.width);
    let std = case.real(0.1, 1.0);
    let wh = case.normal(nodes, features, std);
    let std = case.real(0.3, 2.0) / (features as f64).sqrt();
    let a = case.normal(1, 2 * features, std).row(0).to_owned();
    let graph = Graph::new(wh, a)?;
    let (classic, kernel) = (graph.classic(), graph.kernel(slope)?);
    let pairs = classic
        .iter()
        .zip(&kernel)
        .map(|(l, r)| (r - l).exp_m1().abs());
    let weights = normalised(&classic);
    let constant = normalised(&graph.kernel(|_| 1.0)?);
    Ok(Errors {
        pairs: largest(pairs),
        rows: largest_difference(&normalised(&kernel), &weights),
        constant: largest_difference(&constant, &weights),
        constant_rows: between_rows(&constant),
        rows_differ: between_rows(&weights),
    })
}

fn slope(e: f64) -> f64 {
    if e >= 0.0 { 1.0 } else { SLOPE }
}

/// The largest difference from the first row.
fn between_rows(weights: &Array2<f64>) -> f64 {
    let first = weights.slice(s![..1, ..]);
    largest((weights - &first).mapv(f64::abs))
}

/// A complete graph, seen by the two sides of the proposition.
struct Graph {
    q: Array2<f64>,
    k: Array2<f64>,
    a: Array1<f64>,
    rbf: Rbf<f64>,
}

impl Graph {
    fn new(wh: Array2<f64>, a: Array1<f64>) -> Result<Self, Error> {
        let zeros = Array2::zeros(wh.dim());
        let beside = |left: &Array2<f64>, right: &Array2<f64>| {
            concatenate![ndarray::Axis(1), left.view(), right.view()]
        };
        let lengthscale = Lengthscale::Shared(1.0);
        Ok(Self {
            q: beside(&wh, &zeros),
            k: beside(&zeros, &wh),
            a,
            rbf: RbfConfig { lengthscale }.build()?,
        })
    }

    /// $e_{ij} = a \cdot (q_i + k_j)$.
    fn score(&self, i: usize, j: usize) -> f64 {
        self.a.dot(&(&self.q.row(i) + &self.k.row(j)))
    }

    /// The logarithms of graph attention's unnormalised weights.
    fn classic(&self) -> Array2<f64> {
        let nodes = self.q.nrows();
        Array2::from_shape_fn((nodes, nodes), |(i, j)| {
            let e = self.score(i, j);
            slope(e) * e
        })
    }

    /// The weights as similarities times magnitudes, with `c` of each score.
    fn kernel(&self, c: impl Fn(f64) -> f64) -> Result<Array2<f64>, Error> {
        let nodes = self.q.nrows();
        let squares = |x: &Array2<f64>| log_norm_sq(x.view(), 2.0).map(|logs| logs.mapv(f64::exp));
        let (of_q, of_k) = (squares(&self.q)?, squares(&self.k)?);
        let mut logs = Array2::zeros((nodes, nodes));
        for ((i, j), log) in logs.indexed_iter_mut() {
            let ca = &self.a * c(self.score(i, j));
            let to_query = self.rbf.value(self.q.row(i), ca.view())?.ln();
            let to_key = self.rbf.value(ca.view(), self.k.row(j))?.ln();
            let of_ca = squares(&ca.insert_axis(ndarray::Axis(0)))?[0];
            *log = to_query + to_key + (2.0 * of_ca + of_q[i] + of_k[j]) / 2.0;
        }
        Ok(logs)
    }
}
