//! Attention along edges as its formulas read, one edge and head at a time.

use crate::conformance::case::{Case, Kind};
use bochner_graph::Merge;
use ndarray::{Array2, ArrayView2, s};

fn leaky(u: f64, slope: f64) -> f64 {
    if u >= 0.0 { u } else { slope * u }
}

/// The square of the p-norm.
fn squared_norm(x: &[f64], p: f64) -> f64 {
    let sum: f64 = x.iter().map(|x| x.abs().powf(p)).sum();
    sum.powf(2.0 / p)
}

fn dot(x: &[f64], y: &[f64]) -> f64 {
    x.iter().zip(y).map(|(x, y)| x * y).sum()
}

/// The mean of the cosines over all pairs of frequencies.
fn kernel(x: &[f64], y: &[f64], w: &[ArrayView2<f64>]) -> f64 {
    let count = w[0].nrows();
    let mut sum = 0.0;
    for r in 0..count {
        for first in w {
            for second in w {
                let angle = dot(first.row(r).as_slice().unwrap(), x)
                    - dot(second.row(r).as_slice().unwrap(), y);
                sum += angle.cos();
            }
        }
    }
    sum / (count * w.len() * w.len()) as f64
}

struct Head<'a> {
    case: &'a Case<f64>,
    head: usize,
    width: usize,
}

impl Head<'_> {
    fn features<'a>(&self, of: &'a Array2<f64>, node: usize) -> &'a [f64] {
        let row = of.row(node).to_slice().unwrap();
        &row[self.head * self.width..][..self.width]
    }

    /// The transformed attributes of an edge, without any if edges have none.
    fn transformed(&self, edge: usize) -> Vec<f64> {
        let own = self.case.attributes.iter();
        let transformed = own.flat_map(|own| {
            let width = own.weight.ncols() / self.case.a.nrows();
            let all = own.values.row(edge).dot(&own.weight);
            all.to_vec()[self.head * width..][..width].to_vec()
        });
        transformed.collect()
    }

    fn term(&self, edge: usize) -> f64 {
        let b = self.case.attributes.as_ref().and_then(|own| own.b.as_ref());
        b.map_or(0.0, |b| {
            dot(
                &self.transformed(edge),
                b.row(self.head).as_slice().unwrap(),
            )
        })
    }

    fn score(&self, edge: usize, source: usize, target: usize) -> f64 {
        let case = self.case;
        let (x, y) = (
            self.features(&case.targets, target),
            self.features(&case.sources, source),
        );
        let a = case.a.row(self.head).to_vec();
        let (zeros, term, slope) = (vec![0.0; self.width], self.term(edge), case.slope);
        let (q, k) = ([x, &zeros].concat(), [&zeros, y].concat());
        if case.kind == Kind::Dynamic {
            let z = self
                .transformed(edge)
                .into_iter()
                .chain(std::iter::repeat(0.0));
            let sums = x.iter().zip(y).zip(z).map(|((x, y), z)| x + y + z);
            let activated: Vec<f64> = sums.map(|u| leaky(u, slope)).collect();
            return dot(&a, &activated);
        }
        let u = dot(&a, &q) + dot(&a, &k) + term;
        let c = if u >= 0.0 { 1.0 } else { slope };
        let w1 = case.w1.slice(s![self.head, .., ..]);
        let w2 = case.w2.slice(s![self.head, .., ..]);
        let ca: Vec<f64> = a.iter().map(|a| c * a).collect();
        let magnitudes = |p| {
            let all = 2.0 * c * c * squared_norm(&a, p) + squared_norm(&q, p) + squared_norm(&k, p);
            all / 2.0
        };
        if let Kind::Gaussian { p } = case.kind {
            let similarity = |x: &[f64]| {
                let squares = x.iter().zip(&ca).map(|(x, ca)| (x - ca) * (x - ca));
                -squares.sum::<f64>() / 2.0
            };
            return similarity(&q) + similarity(&k) + p.map_or(0.0, magnitudes) + c * term;
        }
        let (w, p, floor) = match case.kind {
            Kind::Stationary { p, floor } => (vec![w1], p, floor),
            Kind::Nonstationary { p, floor } => (vec![w1, w2], p, floor),
            _ => return leaky(u, slope),
        };
        let log = |f: f64| (f * f + floor).ln();
        log(kernel(&q, &ca, &w)) + log(kernel(&ca, &k, &w)) + magnitudes(p) + c * term
    }
}

/// The scores `[E, H]`.
pub(crate) fn scores(case: &Case<f64>) -> Array2<f64> {
    let (heads, edges) = (case.a.nrows(), case.graph.edges());
    let width = case.targets.ncols() / heads;
    Array2::from_shape_fn((edges.len(), heads), |(edge, head)| {
        let (source, target) = edges[edge];
        Head { case, head, width }.score(edge, source, target)
    })
}

/// The weights `[E, H]`.
pub(crate) fn weights(case: &Case<f64>) -> Array2<f64> {
    let (scores, edges) = (scores(case), case.graph.edges());
    let of_targets = |x: f64| Array2::from_elem((case.graph.targets(), scores.ncols()), x);
    let (mut largest, mut sums) = (of_targets(f64::NEG_INFINITY), of_targets(0.0));
    for ((edge, head), &score) in scores.indexed_iter() {
        let largest = &mut largest[[edges[edge].1, head]];
        *largest = largest.max(score);
    }
    let relative = Array2::from_shape_fn(scores.raw_dim(), |(edge, head)| {
        (scores[[edge, head]] - largest[[edges[edge].1, head]]).exp()
    });
    for ((edge, head), x) in relative.indexed_iter() {
        sums[[edges[edge].1, head]] += x;
    }
    Array2::from_shape_fn(scores.raw_dim(), |(edge, head)| {
        relative[[edge, head]] / sums[[edges[edge].1, head]]
    })
}

/// The output.
pub(crate) fn output(case: &Case<f64>) -> Array2<f64> {
    let (weights, heads) = (weights(case), case.a.nrows());
    let mut output = Array2::<f64>::zeros(case.targets.raw_dim());
    let width = output.ncols() / heads;
    for (edge, (source, target)) in case.graph.edges().into_iter().enumerate() {
        for n in 0..output.ncols() {
            let element = (edge * heads + n / width) as u64;
            let factor = case.dropout.map_or(1.0, |dropout| dropout.factor(element));
            let value = (source * output.ncols() + n) as u64;
            let kept = case
                .value_dropout
                .map_or(1.0, |dropout| dropout.factor(value));
            let value = kept * case.sources[[source, n]];
            output[[target, n]] += factor * weights[[edge, n / width]] * value;
        }
    }
    match case.merge {
        Merge::Concatenate => output,
        Merge::Average => Array2::from_shape_fn((output.nrows(), width), |(i, n)| {
            (0..heads)
                .map(|head| output[[i, head * width + n]])
                .sum::<f64>()
                / heads as f64
        }),
    }
}
