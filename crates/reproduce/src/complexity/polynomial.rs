//! Polynomials through counts.

use ndarray::{Array3, ArrayViewMut1, Axis};

/// The exponents of three variables.
pub(super) type Powers = [usize; 3];

/// A polynomial in three variables.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Polynomial {
    /// The coefficients that are not zero, by their powers, the largest first.
    terms: Vec<(Powers, f64)>,
}

impl Polynomial {
    /// The polynomial of the lowest degrees through the values at all points of a grid.
    ///
    /// There is always one. The values are a polynomial if they equal it at other points too.
    ///
    /// # Numerics
    /// Exact, if all differences of nodes are powers of two and the values are below 2^40: only additions,
    /// multiplications by nodes and divisions by such differences are done.
    pub(super) fn through(nodes: [&[usize]; 3], value: impl Fn([usize; 3]) -> u64) -> Self {
        let size = nodes.map(<[usize]>::len);
        let mut coefficients = Array3::from_shape_fn(size, |(x, y, z)| {
            value([nodes[0][x], nodes[1][y], nodes[2][z]]) as f64
        });
        for (axis, nodes) in nodes.into_iter().enumerate() {
            for lane in coefficients.lanes_mut(Axis(axis)) {
                fit(nodes, lane);
            }
        }
        let terms = coefficients.indexed_iter().filter(|(_, c)| **c != 0.0);
        let mut terms: Vec<(Powers, f64)> = terms.map(|((x, y, z), &c)| ([x, y, z], c)).collect();
        terms.reverse();
        Self { terms }
    }

    /// The value at a point.
    pub(super) fn at(&self, point: [usize; 3]) -> f64 {
        let term = |(powers, coefficient): &(Powers, f64)| {
            let factors = point.iter().zip(powers);
            let factors = factors.map(|(&x, &n)| (x as f64).powi(n as i32));
            coefficient * factors.product::<f64>()
        };
        self.terms.iter().map(term).sum()
    }

    /// The powers that occur.
    pub(super) fn powers(&self) -> impl Iterator<Item = Powers> + '_ {
        self.terms.iter().map(|(powers, _)| *powers)
    }

    /// The polynomial as text, with names for the variables; "0" without terms.
    pub(super) fn written(&self, names: [&str; 3]) -> String {
        let mut text = String::new();
        for &(powers, coefficient) in &self.terms {
            text += match (text.is_empty(), coefficient < 0.0) {
                (true, false) => "",
                (true, true) => "-",
                (false, false) => " + ",
                (false, true) => " - ",
            };
            let product = monomial(powers, names);
            text += &match (coefficient.abs(), product.is_empty()) {
                (1.0, false) => product,
                (size, true) => size.to_string(),
                (size, false) => format!("{size} {product}"),
            };
        }
        match text.is_empty() {
            true => "0".to_owned(),
            false => text,
        }
    }
}

/// A product of powers, such as `T^2 R`.
pub(super) fn monomial(powers: Powers, names: [&str; 3]) -> String {
    let factors = names.iter().zip(powers).filter(|(_, n)| *n > 0);
    let factors = factors.map(|(name, n)| match n {
        1 => (*name).to_owned(),
        n => format!("{name}^{n}"),
    });
    factors.collect::<Vec<_>>().join(" ")
}

/// Replaces values at nodes by the coefficients of the polynomial through them: Newton's divided differences, multiplied
/// out.
fn fit(nodes: &[usize], mut values: ArrayViewMut1<'_, f64>) {
    for order in 1..nodes.len() {
        for i in (order..nodes.len()).rev() {
            let step = nodes[i] as f64 - nodes[i - order] as f64;
            values[i] = (values[i] - values[i - 1]) / step;
        }
    }
    for first in (0..nodes.len().saturating_sub(1)).rev() {
        for i in first..nodes.len() - 1 {
            values[i] -= nodes[first] as f64 * values[i + 1];
        }
    }
}
