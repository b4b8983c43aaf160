//! Polynomials through counts, in exact arithmetic.

use std::fmt;

/// How often each of three variables is multiplied.
pub(super) type Powers = [usize; 3];

/// A polynomial in three variables with rational coefficients.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Polynomial {
    /// The coefficients that are not zero, by their powers.
    terms: Vec<(Powers, Ratio)>,
}

impl Polynomial {
    /// The polynomial of the lowest degrees through the values at all points of a grid.
    ///
    /// There is always one; whether the values *are* a polynomial shows at other points.
    ///
    /// # Panics
    /// If an axis has the same node twice.
    pub(super) fn through(nodes: [&[usize]; 3], value: impl Fn([usize; 3]) -> u64) -> Self {
        let [a, b, c] = nodes;
        // Coefficients along the last axis, then of those along the one before, and so on.
        let along = |nodes: &[usize], of: &dyn Fn(usize) -> Vec<Ratio>| -> Vec<Vec<Ratio>> {
            let columns: Vec<Vec<Ratio>> = nodes.iter().map(|&node| of(node)).collect();
            let lengths = columns.first().map_or(0, Vec::len);
            let row = |i: usize| columns.iter().map(|column| column[i]).collect::<Vec<_>>();
            let fitted: Vec<Vec<Ratio>> = (0..lengths).map(|i| fit(nodes, &row(i))).collect();
            // Powers of this axis outermost.
            (0..nodes.len())
                .map(|power| {
                    fitted
                        .iter()
                        .map(|coefficients| coefficients[power])
                        .collect()
                })
                .collect()
        };
        let last = |x: usize, y: usize| {
            let values: Vec<Ratio> = c.iter().map(|&z| Ratio::of(value([x, y, z]))).collect();
            fit(c, &values)
        };
        let middle = |x: usize| along(b, &|y| last(x, y)).concat();
        let mut terms = Vec::new();
        for (i, plane) in along(a, &middle).into_iter().enumerate() {
            for (place, coefficient) in plane.into_iter().enumerate() {
                if coefficient.numerator != 0 {
                    terms.push(([i, place / c.len(), place % c.len()], coefficient));
                }
            }
        }
        terms.sort_by_key(|(powers, _)| std::cmp::Reverse(*powers));
        Self { terms }
    }

    /// Whether its value at a point is exactly this.
    pub(super) fn is(&self, point: [usize; 3], value: u64) -> bool {
        let value = Ratio::of(value);
        let terms = self.terms.iter().map(|(powers, coefficient)| {
            let factors = point.iter().zip(powers);
            let monomial: i128 = factors.map(|(&x, &n)| (x as i128).pow(n as u32)).product();
            coefficient.times(Ratio::new(monomial, 1))
        });
        terms.fold(Ratio::of(0), Ratio::plus) == value
    }

    /// The powers that occur.
    pub(super) fn powers(&self) -> impl Iterator<Item = Powers> + '_ {
        self.terms.iter().map(|(powers, _)| *powers)
    }

    /// The polynomial as text, with names for the variables; "0" if there are no terms.
    pub(super) fn written(&self, names: [&str; 3]) -> String {
        let terms = self.terms.iter().enumerate();
        let terms: Vec<String> = terms
            .map(|(i, (powers, coefficient))| {
                let sign = match (i, coefficient.numerator < 0) {
                    (0, false) => "",
                    (0, true) => "-",
                    (_, false) => " + ",
                    (_, true) => " - ",
                };
                let size = Ratio::new(coefficient.numerator.abs(), coefficient.denominator);
                let product = monomial(*powers, names);
                match (size == Ratio::of(1), product.is_empty()) {
                    (true, false) => format!("{sign}{product}"),
                    (_, true) => format!("{sign}{size}"),
                    _ => format!("{sign}{size} {product}"),
                }
            })
            .collect();
        if terms.is_empty() {
            return "0".to_owned();
        }
        terms.concat()
    }
}

/// A product of powers, such as `T^2 R`.
pub(super) fn monomial(powers: Powers, names: [&str; 3]) -> String {
    let factors = names.iter().zip(powers).filter(|(_, n)| *n > 0);
    let factors: Vec<String> = factors
        .map(|(name, n)| match n {
            1 => (*name).to_owned(),
            n => format!("{name}^{n}"),
        })
        .collect();
    factors.join(" ")
}

/// The coefficients of the polynomial through values at the nodes: Newton's divided differences,
/// multiplied out.
fn fit(nodes: &[usize], values: &[Ratio]) -> Vec<Ratio> {
    let mut differences = values.to_vec();
    for order in 1..nodes.len() {
        for i in (order..nodes.len()).rev() {
            let step = Ratio::new(nodes[i] as i128 - nodes[i - order] as i128, 1);
            differences[i] = differences[i].minus(differences[i - 1]).over(step);
        }
    }
    let mut coefficients = vec![Ratio::of(0); nodes.len()];
    for (node, difference) in nodes.iter().zip(&differences).rev() {
        // Multiply by (x - node) and add the difference.
        let shift = Ratio::new(-(*node as i128), 1);
        for power in (0..nodes.len()).rev() {
            let below = match power {
                0 => *difference,
                _ => coefficients[power - 1],
            };
            coefficients[power] = coefficients[power].times(shift).plus(below);
        }
    }
    coefficients
}

/// A fraction in lowest terms, its denominator positive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Ratio {
    numerator: i128,
    denominator: i128,
}

impl Ratio {
    fn new(numerator: i128, denominator: i128) -> Self {
        assert_ne!(denominator, 0, "a node twice");
        let sign = denominator.signum();
        let common = divisor(numerator.abs(), denominator.abs()).max(1) * sign;
        Self {
            numerator: numerator / common,
            denominator: denominator / common,
        }
    }

    fn of(value: u64) -> Self {
        Self::new(i128::from(value), 1)
    }

    fn plus(self, other: Self) -> Self {
        Self::new(
            self.numerator * other.denominator + other.numerator * self.denominator,
            self.denominator * other.denominator,
        )
    }

    fn minus(self, other: Self) -> Self {
        self.plus(Self::new(-other.numerator, other.denominator))
    }

    fn times(self, other: Self) -> Self {
        Self::new(
            self.numerator * other.numerator,
            self.denominator * other.denominator,
        )
    }

    fn over(self, other: Self) -> Self {
        self.times(Self::new(other.denominator, other.numerator))
    }
}

fn divisor(a: i128, b: i128) -> i128 {
    if b == 0 { a } else { divisor(b, a % b) }
}

impl fmt::Display for Ratio {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.denominator {
            1 => write!(f, "{}", self.numerator),
            denominator => write!(f, "{}/{denominator}", self.numerator),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NODES: [&[usize]; 3] = [&[128, 256, 512], &[8, 16], &[32, 64, 128]];

    fn value([t, r, d]: [usize; 3]) -> u64 {
        (16 * t * t * r + t * t / 16 + 4 * t * d * d + 3 * d - r + 7) as u64
    }

    #[test]
    fn a_polynomial_is_found_again_exactly() {
        let found = Polynomial::through(NODES, value);
        let text = found.written(["T", "R", "d"]);
        assert_eq!(text, "16 T^2 R + 1/16 T^2 + 4 T d^2 - R + 3 d + 7");
        assert!(found.is([384, 12, 96], value([384, 12, 96])));
        assert!(!found.is([384, 12, 96], value([384, 12, 96]) + 1));
        assert_eq!(found.powers().next(), Some([2, 1, 0]));
    }

    #[test]
    fn what_is_no_polynomial_shows_at_other_points() {
        let cubic = |[t, r, d]: [usize; 3]| value([t, r, d]) + (t * t * t) as u64;
        let found = Polynomial::through(NODES, cubic);
        assert!(found.is([256, 8, 64], cubic([256, 8, 64])), "a node");
        assert!(!found.is([384, 8, 64], cubic([384, 8, 64])), "no node");
        let none = Polynomial::through(NODES, |_| 0);
        assert_eq!(none.written(["T", "R", "d"]), "0");
    }
}
