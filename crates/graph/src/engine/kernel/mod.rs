//! The kernel score: two similarities and three magnitudes.

mod differences;
mod gaussian;
mod magnitudes;
mod pull_back;
mod similarities;

use super::Call;
use super::preactivation::Preactivation;
use super::rows::{LANES, row};
use super::scorer::{Arriving, Scorer};
use crate::score::{Half, PointsOfHeads};
use crate::{Error, Points, Score};
use bochner_kernels::feature_map;
use bochner_numerics::elementary::{SquaredNorms, exp_in_place, ln_in_place};
use bochner_numerics::instructions::Arithmetic;
use bochner_numerics::{Buffers, Real, parallel};
use magnitudes::Magnitudes;
use ndarray::{Array2, ArrayView2};

/// The parameters of the score.
#[derive(Clone, Copy)]
struct Parameters<'a, T> {
    a: ArrayView2<'a, T>,
    similarity: Similarity<'a, T>,
    /// The exponent of the norms; without, there are no magnitudes.
    p: Option<f64>,
}

/// The kernel that compares nodes with $a$.
#[derive(Clone, Copy)]
enum Similarity<'a, T> {
    Squared { points: Points<'a, T>, floor: f64 },
    Gaussian,
}

impl<'a, T: Real> Parameters<'a, T> {
    fn of(call: &Call<'_, 'a, T>) -> Self {
        match call.settings.score {
            Score::Kernel {
                a,
                points,
                p,
                floor,
            } => Self {
                a,
                similarity: Similarity::Squared { points, floor },
                p: Some(p),
            },
            Score::Gaussian { a, p } => Self {
                a,
                similarity: Similarity::Gaussian,
                p,
            },
            _ => unreachable!("prepared for a kernel score"),
        }
    }

    /// $a$ and the slope times $a$ of one head, `[2, 2F]`.
    fn directions(&self, head: usize, slope: T) -> Array2<T> {
        let a = self.a.row(head);
        Array2::from_shape_fn(
            (2, a.len()),
            |(class, n)| {
                if class == 0 { a[n] } else { slope * a[n] }
            },
        )
    }
}

/// Numbers of the nodes of one side for the two values of c, `[N, 2H]`: the numbers for $c = 1$ stand
/// before those for the slope.
#[derive(Debug)]
struct Side<T> {
    /// $f(q_i, c a)$, or $f(c a, k_j)$, of a squared kernel.
    f: Vec<T>,
    /// The logarithms of the similarities.
    logarithms: Vec<f64>,
}

/// The values that are kept between the passes.
#[derive(Debug)]
pub(crate) struct Prepared<T> {
    u: Preactivation<T>,
    /// The features of $a$ and of the slope times $a$ for each head, `[2, 2R]`, of a squared kernel.
    features: Vec<Array2<T>>,
    magnitudes: Magnitudes,
    targets: Side<T>,
    sources: Side<T>,
    /// The logarithms of the sources' similarities with their magnitudes.
    source_scores: Vec<f64>,
}

impl<T: Real> Prepared<T> {
    pub(super) fn new(call: &Call<T>, edge: Option<Vec<T>>) -> Result<Self, Error> {
        let own = Parameters::of(call);
        let features = own.features(call)?;
        let magnitudes = Magnitudes::new(call, &own);
        let targets = own.side(call, Half::Target, &features)?;
        let sources = own.side(call, Half::Source, &features)?;
        Ok(Self {
            u: Preactivation::new(call, &super::elements(own.a), edge),
            features,
            source_scores: source_scores(&sources, &magnitudes, call.shape.heads),
            magnitudes,
            targets,
            sources,
        })
    }
}

impl<T: Real> Parameters<'_, T> {
    /// The features of $a$ and of the slope times $a$ for each head.
    fn features(&self, call: &Call<T>) -> Result<Vec<Array2<T>>, Error> {
        let Similarity::Squared { points, .. } = &self.similarity else {
            return Ok(Vec::new());
        };
        let buffers = Buffers::default();
        let of_head = |head| {
            let (directions, points) = (self.directions(head, call.slope()), points.head(head));
            let mut phi = Array2::zeros((directions.nrows(), points.features()));
            feature_map(directions.view(), &points, phi.view_mut(), &buffers)?;
            Ok(phi)
        };
        let features = (0..call.shape.heads).map(of_head);
        features.collect()
    }

    fn side(&self, call: &Call<T>, half: Half, features: &[Array2<T>]) -> Result<Side<T>, Error> {
        Ok(match &self.similarity {
            Similarity::Gaussian => Side {
                f: Vec::new(),
                logarithms: gaussian::of_nodes(call, self.a, half),
            },
            Similarity::Squared { points, floor } => {
                let f = similarities::of_nodes(call, points, half, features)?;
                let mut logarithms = vec![0.0; f.len()];
                parallel::for_each_chunk(&mut logarithms, LOGARITHMS, |i, logarithms| {
                    log_similarities(&f[i * LOGARITHMS..], *floor, logarithms);
                });
                Side { f, logarithms }
            }
        })
    }
}

/// Logarithms of a piece of work.
const LOGARITHMS: usize = 4096;

/// $\log(f^2 + e)$ of the first similarities.
fn log_similarities<T: Real>(f: &[T], floor: f64, out: &mut [f64]) {
    let pairs = out.iter_mut().zip(f);
    if floor == 0.0 {
        // The square of a small number may be too small.
        pairs.for_each(|(out, f)| *out = f.abs().as_f64());
        ln_in_place(out);
        out.iter_mut().for_each(|out| *out *= 2.0);
    } else {
        pairs.for_each(|(out, f)| *out = f.as_f64() * f.as_f64() + floor);
        ln_in_place(out);
    }
}

/// The logarithms with $\tfrac12 |k_j|_p^2$, for both values of c.
fn source_scores<T>(sources: &Side<T>, magnitudes: &Magnitudes, heads: usize) -> Vec<f64> {
    let mut scores = sources.logarithms.clone();
    let nodes = LOGARITHMS.div_ceil(heads);
    parallel::for_each_chunk(&mut scores, nodes * 2 * heads, |i, scores| {
        let mut squares = magnitudes.keys[i * nodes * heads..][..scores.len() / 2].to_vec();
        exp_in_place(&mut squares);
        let squares = squares.chunks_exact(heads);
        for (scores, squares) in scores.chunks_exact_mut(2 * heads).zip(squares) {
            let (one, slope) = scores.split_at_mut(heads);
            for ((one, slope), square) in one.iter_mut().zip(slope).zip(squares) {
                *one += 0.5 * square;
                *slope += 0.5 * square;
            }
        }
    });
    scores
}

/// The kernel score.
pub(super) struct Kernel<'a, 'b, T> {
    own: &'a Prepared<T>,
    parameters: Parameters<'b, T>,
    targets: &'a [T],
    heads: usize,
    width: usize,
    slope: f64,
    /// The amount by which the magnitude of $a$ raises the scores of each head's edges with $c = 1$ above
    /// those of the others. Where a target has no such edge it would only blur the differences of
    /// the others.
    gaps: Vec<f64>,
}

impl<'a, 'b, T: Real> Kernel<'a, 'b, T> {
    pub(super) fn new(call: &'a Call<'_, 'b, T>, own: &'a Prepared<T>) -> Self {
        let slope = call.settings.slope;
        let gap = |log: &f64| (1.0 - slope * slope) * log.exp();
        Self {
            own,
            parameters: Parameters::of(call),
            targets: &call.targets,
            heads: call.shape.heads,
            width: call.shape.width,
            slope,
            gaps: own.magnitudes.a.iter().map(gap).collect(),
        }
    }

    fn any_is_one(&self, edges: &Arriving, head: usize) -> bool {
        let mut ends = edges.sources.iter().zip(edges.places.clone());
        ends.any(|(&source, place)| self.is_one(edges.target, source, place, head))
    }

    #[inline(always)]
    fn is_one(&self, target: usize, source: u32, place: usize, head: usize) -> bool {
        let head = [head, self.heads];
        self.own.u.value(target, source as usize, place, head) >= T::zero()
    }

    /// Writes the scores of at most [`LANES`] heads: the first and how many, of how many in all.
    #[inline(always)]
    fn write_heads(&self, edges: &Arriving, [first, count, heads]: [usize; 3], out: &mut [f64]) {
        let u_of = |source: u32, place: usize, u: &mut [T]| {
            let at = [edges.target, source as usize, place];
            self.own.u.write_heads(at, [first, heads], u);
        };
        let of = |logarithms: &'a [f64], node: usize| {
            let both = row(logarithms, node, 2 * heads).split_at(heads);
            (&both.0[first..][..count], &both.1[first..][..count])
        };
        let ends = || edges.sources.iter().zip(edges.places.clone());
        let (mut u, mut gaps) = ([T::zero(); LANES], [0.0; LANES]);
        let (u, gaps) = (&mut u[..count], &mut gaps[..count]);
        for (&source, place) in ends() {
            u_of(source, place, u);
            for ((gap, &u), &whole) in gaps.iter_mut().zip(&*u).zip(&self.gaps[first..]) {
                *gap = if u >= T::zero() { whole } else { *gap };
            }
        }
        let (target_one, target_slope) = of(&self.own.targets.logarithms, edges.target);
        for (score, (&source, place)) in out.chunks_exact_mut(heads).zip(ends()) {
            u_of(source, place, u);
            let (source_one, source_slope) = of(&self.own.source_scores, source as usize);
            for (i, score) in score[first..][..count].iter_mut().enumerate() {
                let one = target_one[i] + source_one[i];
                // Where another edge has c = 1, the magnitude of a lowers the scores of those with c < 1.
                let slope = target_slope[i] - gaps[i] + source_slope[i];
                *score = if u[i] >= T::zero() { one } else { slope };
            }
        }
    }

    /// Adds what the edges' attributes contribute.
    fn add_terms(&self, edges: &Arriving, terms: &[T], out: &mut [f64]) {
        let ends = edges.sources.iter().zip(edges.places.clone());
        for (score, (&source, place)) in out.chunks_exact_mut(self.heads).zip(ends) {
            let term = row(terms, place, self.heads);
            for (head, (score, t)) in score.iter_mut().zip(term).enumerate() {
                let one = self.is_one(edges.target, source, place, head);
                *score += if one { 1.0 } else { self.slope } * t.as_f64();
            }
        }
    }
}

impl<T: Real> Scorer<T> for Kernel<'_, '_, T> {
    /// Magnitudes are of any size, and only their differences count.
    type Score = f64;

    #[inline(always)]
    fn write<A: Arithmetic>(&self, edges: &Arriving, heads: usize, out: &mut [f64]) {
        let own = self.own;
        if own.magnitudes.overflow {
            out.fill(f64::INFINITY);
            return;
        }
        for first in (0..heads).step_by(LANES) {
            let count = LANES.min(heads - first);
            self.write_heads(edges, [first, count, heads], out);
        }
        if let Some(terms) = &own.u.edge {
            self.add_terms(edges, terms, out);
        }
    }

    #[cold]
    fn differences(&self, edges: &Arriving, head: usize) -> Vec<f64> {
        self.exact_differences(edges, head)
    }

    /// $\tfrac12 |q_i|_p^2$, which is the same for all edges of a target, and the magnitude of $a$ at
    /// the edge of the target whose exponent is the largest.
    fn left_out(&self, edges: &Arriving) -> Option<Vec<f64>> {
        let p = self.parameters.p?;
        let q = row(self.targets, edges.target, self.heads * self.width);
        let norms = SquaredNorms::new(q, self.width, p);
        let logarithms = norms.logarithms().into_iter().enumerate();
        let magnitudes = logarithms.map(|(head, log)| {
            let one = self.any_is_one(edges, head);
            let c = if one { 1.0 } else { self.slope };
            let a = c * c * self.own.magnitudes.a[head].exp();
            (0.5 * log.exp() + a).min(f64::MAX)
        });
        Some(magnitudes.collect())
    }
}
