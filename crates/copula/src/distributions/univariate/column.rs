//! Quantiles of many normal scores, by interpolation where that is as accurate.

use super::Univariate;
use super::quantile::at_score;
use crate::distributions::marginal::Marginal;
use std::f64::consts::PI;

/// The number of nodes of a polynomial.
const NODES: usize = 13;

/// The number of scores from which a polynomial pays for its nodes.
const FEWEST: usize = 2 * NODES;

/// The error of a normal score that interpolation may have.
const TOLERANCE: f64 = 1e-11;

/// The width of the narrowest piece.
const NARROWEST: f64 = 1.0 / 64.0;

/// Replaces normal scores by quantiles.
///
/// The quantile is an analytic function of the score, so that polynomials converge fast: pieces of the score's axis are
/// halved until the polynomial holds at points between its nodes. Where few scores fall, or where none holds, each
/// quantile is solved for.
pub(super) fn at_scores(univariate: &Univariate, scores: &mut [f64]) {
    let is_solved = matches!(
        univariate,
        Univariate::Gamma { .. }
            | Univariate::Beta { .. }
            | Univariate::StudentsT { .. }
            | Univariate::InverseGamma { .. }
            | Univariate::Chi { .. }
            | Univariate::FisherSnedecor { .. }
            | Univariate::KernelDensity(_)
    );
    if !is_solved || scores.len() < FEWEST {
        scores
            .iter_mut()
            .for_each(|x| *x = at_score(univariate, *x));
        return;
    }
    let mut sorted: Vec<(f64, usize)> = scores.iter().copied().zip(0..).collect();
    sorted.sort_unstable_by(|a, b| a.0.total_cmp(&b.0));
    let scale = Scale::new(univariate);
    for piece in sorted.chunk_by(|a, b| a.0.floor() == b.0.floor()) {
        scale.fill(piece, piece[0].0.floor(), 1.0, scores);
    }
}

/// The scale on which quantiles are interpolated.
struct Scale<'a> {
    univariate: &'a Univariate,
    kind: Kind,
}

#[derive(Clone, Copy)]
enum Kind {
    Linear,
    Logarithm,
    Logit,
}

impl<'a> Scale<'a> {
    fn new(univariate: &'a Univariate) -> Self {
        let kind = match univariate.support() {
            (0.0, 1.0) => Kind::Logit,
            (0.0, _) => Kind::Logarithm,
            _ => Kind::Linear,
        };
        Self { univariate, kind }
    }

    fn transformed(&self, z: f64) -> f64 {
        match self.kind {
            Kind::Linear => z,
            Kind::Logarithm => z.ln(),
            Kind::Logit => z.ln() - (-z).ln_1p(),
        }
    }

    fn quantile(&self, t: f64) -> f64 {
        match self.kind {
            Kind::Linear => t,
            Kind::Logarithm => t.exp(),
            Kind::Logit => 1.0 / (1.0 + (-t).exp()),
        }
    }

    /// Writes the quantiles of sorted scores that lie in an interval.
    fn fill(&self, piece: &[(f64, usize)], low: f64, width: f64, quantiles: &mut [f64]) {
        if piece.len() < FEWEST || width < NARROWEST {
            for &(x, place) in piece {
                quantiles[place] = at_score(self.univariate, x);
            }
            return;
        }
        if let Some(polynomial) = self.polynomial(low, width) {
            for &(x, place) in piece {
                quantiles[place] = self.quantile(polynomial.at(x));
            }
            return;
        }
        let half = 0.5 * width;
        let (left, right) = piece.split_at(piece.partition_point(|p| p.0 < low + half));
        self.fill(left, low, half, quantiles);
        self.fill(right, low + half, half, quantiles);
    }

    /// The polynomial on an interval, if it holds between its nodes.
    fn polynomial(&self, low: f64, width: f64) -> Option<Chebyshev> {
        let at_node = |x| self.transformed(at_score(self.univariate, x));
        let polynomial = Chebyshev::new(low, width, at_node);
        let holds = |share: f64| {
            let x = low + share * width;
            let score = self
                .univariate
                .log_tails(self.quantile(polynomial.at(x)))
                .score();
            (score - x).abs() <= TOLERANCE * (1.0 + x.abs())
        };
        [0.02, 0.17, 0.44, 0.71, 0.93]
            .into_iter()
            .all(holds)
            .then_some(polynomial)
    }
}

/// A polynomial through the values at Chebyshev's nodes of an interval.
struct Chebyshev {
    centre: f64,
    half: f64,
    coefficients: [f64; NODES],
}

impl Chebyshev {
    fn new(low: f64, width: f64, value: impl Fn(f64) -> f64) -> Self {
        let (centre, half) = (low + 0.5 * width, 0.5 * width);
        let angle = |k: usize| PI * (k as f64 + 0.5) / NODES as f64;
        let values: [f64; NODES] = std::array::from_fn(|k| value(centre + half * angle(k).cos()));
        let coefficient = |j: usize| {
            let terms = values.iter().enumerate();
            let sum: f64 = terms.map(|(k, v)| v * (j as f64 * angle(k)).cos()).sum();
            sum * if j == 0 { 1.0 } else { 2.0 } / NODES as f64
        };
        Self {
            centre,
            half,
            coefficients: std::array::from_fn(coefficient),
        }
    }

    /// Clenshaw's recurrence.
    fn at(&self, x: f64) -> f64 {
        let t = (x - self.centre) / self.half;
        let (mut a, mut b) = (0.0, 0.0);
        for c in self.coefficients[1..].iter().rev() {
            (a, b) = (2.0 * t * a - b + c, a);
        }
        t * a - b + self.coefficients[0]
    }
}
