//! Differences of scores where a similarity is exactly zero or a magnitude overflows.

use super::Kernel;
use crate::engine::scorer::Arriving;
use bochner_numerics::Real;

/// The score of one edge in parts.
#[derive(Clone, Copy)]
struct Parts {
    /// The number of the two similarities that are zero. In the limit $e \to 0+$ an edge with fewer zeros
    /// outweighs any other.
    zeros: usize,
    /// The logarithms of the others, and what the edge's attributes add.
    rest: f64,
    /// $\log \tfrac12 |k_j|_p^2$.
    key: f64,
    /// Whether $c = 1$, which adds the [gap](Gap).
    is_one: bool,
}

/// $\log (1 - \text{slope}^2) |a|_p^2$: by how much the magnitude of $a$ raises the score of edges
/// with $c = 1$ above that of the others.
#[derive(Clone, Copy)]
struct Gap(f64);

impl Gap {
    /// By how much the magnitudes of `edge` exceed those of `other`.
    fn difference(self, edge: Parts, other: Parts) -> f64 {
        let sign = f64::from(edge.is_one) - f64::from(other.is_one);
        let gap = if sign == 0.0 {
            f64::NEG_INFINITY
        } else {
            self.0
        };
        let unit = edge.key.max(other.key).max(gap);
        if unit == f64::NEG_INFINITY {
            return 0.0;
        }
        let [edge, other, gap] = [edge.key, other.key, gap].map(|log| (log - unit).exp());
        let in_units = edge - other + sign * gap;
        // The unit may be infinite, and nothing times it is still nothing.
        if in_units == 0.0 {
            0.0
        } else {
            in_units * unit.exp()
        }
    }
}

impl<T: Real> Kernel<'_, '_, T> {
    /// The differences of one head's scores to the largest.
    pub(super) fn exact_differences(&self, edges: &Arriving, head: usize) -> Vec<f64> {
        let sources = edges.sources.iter().zip(edges.places.clone());
        let parts: Vec<Parts> = sources
            .map(|(&source, place)| self.parts(edges.target, source as usize, place, head))
            .collect();
        let gap = Gap(self.own.magnitudes.a[head] + (1.0 - self.slope * self.slope).ln());
        let fewest = parts.iter().map(|parts| parts.zeros).min().unwrap_or(0);
        let counted = parts.iter().filter(|parts| parts.zeros == fewest);
        let loudest = counted.copied().reduce(|best, edge| {
            if gap.difference(edge, best) > 0.0 {
                edge
            } else {
                best
            }
        });
        let relative = |edge: &Parts| match loudest {
            Some(loudest) if edge.zeros == fewest => edge.rest + gap.difference(*edge, loudest),
            _ => f64::NEG_INFINITY,
        };
        let scores: Vec<f64> = parts.iter().map(relative).collect();
        let most = scores.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        scores.iter().map(|score| score - most).collect()
    }

    fn parts(&self, target: usize, source: usize, place: usize, head: usize) -> Parts {
        let (own, heads) = (self.own, self.heads);
        let is_one = own.u.value(target, source, place, [head, heads]) >= T::zero();
        let (class, c) = if is_one { (0, 1.0) } else { (1, self.slope) };
        let at = |node: usize| node * 2 * heads + class * heads + head;
        let logarithms = [
            own.targets.logarithms[at(target)],
            own.sources.logarithms[at(source)],
        ];
        let term = own.u.edge.as_ref();
        let term = term.map_or(0.0, |edge| edge[place * heads + head].as_f64());
        Parts {
            zeros: logarithms.iter().filter(|log| log.is_infinite()).count(),
            rest: logarithms.iter().filter(|log| log.is_finite()).sum::<f64>() + c * term,
            key: own.magnitudes.keys[source * heads + head] - std::f64::consts::LN_2,
            is_one,
        }
    }
}
