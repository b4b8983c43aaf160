//! Checking numerics: the table of tolerances and central finite differences.
//!
//! The module is public because the tests of every crate use it, and so can whoever writes one more
//! operation with its own gradient. `random` and `assert_gradient` need the feature `ndarray`.

#[cfg(feature = "ndarray")]
mod arrays;

#[cfg(feature = "ndarray")]
pub use arrays::{assert_gradient, random};

use crate::Real;

/// The largest distance between two numbers that should be equal, by type.
///
/// With $E = \max|\text{expected}|$, the bound on the largest absolute error is
/// `relative * max(E, floor) + absolute`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Tolerance {
    /// Part of the bound that grows with the expected values.
    pub relative: f64,
    /// Smallest size of the expected values that counts.
    pub floor: f64,
    /// Part of the bound that is always there.
    pub absolute: f64,
}

impl Tolerance {
    /// The bound on outputs: `1e-9 (1 + E)` in `f64`, `2e-4 max(E, 0.01)` in `f32`.
    pub fn outputs<T: Real>() -> Self {
        Self::pick::<T>(2e-4)
    }

    /// The bound on gradients: `1e-9 (1 + E)` in `f64`, `2e-3 max(E, 0.01)` in `f32`.
    pub fn gradients<T: Real>() -> Self {
        Self::pick::<T>(2e-3)
    }

    fn pick<T: Real>(single: f64) -> Self {
        match T::NAME {
            "f64" => Self {
                relative: 1e-9,
                floor: 0.0,
                absolute: 1e-9,
            },
            _ => Self {
                relative: single,
                floor: 0.01,
                absolute: 0.0,
            },
        }
    }

    /// The largest absolute error allowed when `expected` was to come out.
    pub fn bound(&self, expected: impl IntoIterator<Item = f64>) -> f64 {
        let largest = expected.into_iter().map(f64::abs).fold(0.0, f64::max);
        self.relative * largest.max(self.floor) + self.absolute
    }
}

/// The gradient of `f` at `x` by central differences, in `f64`.
///
/// $$\frac{4 D(h) - D(2 h)}{3}, \qquad D(h) = \frac{f(x + h e_i) - f(x - h e_i)}{2 h}$$
///
/// # Numerics
/// The step $h$ is `2e-4 * max(1, |x_i|)`; the error is of order $h^4$, and a relative error of 1e-8
/// is within reach for smooth functions.
///
/// ```
/// use bochner_numerics::{finite_difference, relative_error};
///
/// let gradient = finite_difference(&[2.0, 3.0], |x| x[0] * x[0] * x[1]);
/// assert!(relative_error(&gradient, &[12.0, 4.0]) < 1e-8);
/// ```
pub fn finite_difference(x: &[f64], mut f: impl FnMut(&[f64]) -> f64) -> Vec<f64> {
    let mut point = x.to_vec();
    let mut central = |i: usize, h: f64| {
        point[i] = x[i] + h;
        let up = f(&point);
        point[i] = x[i] - h;
        let down = f(&point);
        point[i] = x[i];
        (up - down) / (2.0 * h)
    };
    (0..x.len())
        .map(|i| {
            let h = 2e-4 * x[i].abs().max(1.0);
            (4.0 * central(i, h / 2.0) - central(i, h)) / 3.0
        })
        .collect()
}

/// `max |a - b| / max(|a|, |b|, tiny)`, the largest taken over each whole array: the relative
/// error of a gradient as a vector.
///
/// NaN, an infinity or a difference in length gives infinity.
pub fn relative_error(a: &[f64], b: &[f64]) -> f64 {
    if a.len() != b.len() || !a.iter().chain(b).all(|x| x.is_finite()) {
        return f64::INFINITY;
    }
    let scale = largest(a.iter().chain(b)).max(1e-12);
    let off: Vec<f64> = a.iter().zip(b).map(|(x, y)| x - y).collect();
    largest(&off) / scale
}

/// The largest absolute value: 0 of no numbers, and NaN if one is NaN, which `f64::max` would pass over.
///
/// ```
/// use bochner_numerics::check::largest;
///
/// assert_eq!(largest(&[1.0, -3.0]), 3.0);
/// assert!(largest(&[f64::NAN, 1.0]).is_nan());
/// ```
pub fn largest<'a>(values: impl IntoIterator<Item = &'a f64>) -> f64 {
    let larger = |most: f64, x: &f64| {
        if most >= x.abs() || most.is_nan() {
            most
        } else {
            x.abs()
        }
    };
    values.into_iter().fold(0.0, larger)
}
