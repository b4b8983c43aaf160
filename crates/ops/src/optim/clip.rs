//! Clipping gradients by their norm.

use crate::rows::first_not_finite;
use bochner_numerics::{ArgumentError, Real, argument, parallel};

/// Scales gradients so that their joint norm is at most `max_norm`; returns the norm before.
///
/// $$ g \leftarrow g \cdot \min\left(1, \frac{c}{\lVert g \rVert_2 + 10^{-6}}\right) $$
///
/// * $g$: all gradients, as one vector
/// * $c$: `max_norm`, positive; infinity only measures
///
/// # Errors
/// [`ArgumentError::NotFinite`] names the first gradient, counted from 0, that holds NaN or infinity;
/// [`ArgumentError::OutOfRange`] unless `max_norm` is positive. Nothing is changed then.
///
/// # Numerics
/// The norm is summed in double precision, scaled by the largest element, so that it does not underflow. A
/// norm that is larger than all numbers is infinity; the gradients are scaled by it all the same.
///
/// ```
/// let (mut x, mut y) = ([3.0_f32], [0.0, 4.0]);
/// let norm = bochner_ops::clip_by_norm(&mut [&mut x, &mut y], 0.5)?;
/// assert_eq!(norm, 5.0);
/// assert!((x[0] - 0.3).abs() < 1e-6 && (y[1] - 0.4).abs() < 1e-6);
/// # Ok::<(), bochner_numerics::ArgumentError>(())
/// ```
pub fn clip_by_norm<T: Real>(
    gradients: &mut [&mut [T]],
    max_norm: f64,
) -> Result<f64, ArgumentError> {
    let mut norm = GradientNorm::new(max_norm)?;
    for (i, gradient) in gradients.iter().enumerate() {
        if norm.find_largest(gradient).is_some() {
            let name = format!("gradient {i}");
            argument::finite(name, &[gradient.len()], gradient.iter())?;
        }
    }
    for gradient in gradients.iter() {
        norm.add_squares(gradient);
    }
    if let Some(factor) = norm.factor::<T>() {
        for gradient in gradients.iter_mut() {
            gradient.iter_mut().for_each(|g| *g *= factor);
        }
    }
    Ok(norm.value())
}

/// The joint norm of gradients that are visited one after the other, as [`clip_by_norm`] takes it: first
/// [`find_largest`](Self::find_largest) of all, then [`add_squares`](Self::add_squares) of all, then
/// [`factor`](Self::factor).
#[derive(Clone, Debug)]
pub struct GradientNorm {
    max_norm: f64,
    largest: f64,
    /// The sum of the squares, each divided by that of the largest element.
    squares: f64,
}

impl GradientNorm {
    /// The norm of nothing yet.
    ///
    /// # Errors
    /// [`ArgumentError::OutOfRange`] unless `max_norm` is positive.
    pub fn new(max_norm: f64) -> Result<Self, ArgumentError> {
        argument::in_range(max_norm > 0.0, "max_norm", max_norm, "above 0")?;
        let (largest, squares) = (0.0, 0.0);
        Ok(Self {
            max_norm,
            largest,
            squares,
        })
    }

    /// Takes the largest element into account, or returns the place of the first that is not finite.
    pub fn find_largest<T: Real>(&mut self, gradient: &[T]) -> Option<usize> {
        let largest = parallel::max_norm(gradient);
        if !largest.is_finite() {
            return first_not_finite(gradient);
        }
        self.largest = self.largest.max(largest.as_f64());
        None
    }

    /// Adds the squares of a gradient's elements.
    pub fn add_squares<T: Real>(&mut self, gradient: &[T]) {
        if self.largest > 0.0 {
            let scaled = gradient.iter().map(|g| (g.as_f64() / self.largest).powi(2));
            self.squares += scaled.sum::<f64>();
        }
    }

    /// The norm.
    pub fn value(&self) -> f64 {
        self.largest * self.squares.sqrt()
    }

    /// The factor of all gradients, where they have to be scaled.
    pub fn factor<T: Real>(&self) -> Option<T> {
        let norm = self.value();
        let factor = if norm.is_finite() {
            self.max_norm / (norm + 1e-6)
        } else {
            self.max_norm / self.largest / self.squares.sqrt()
        };
        (factor < 1.0).then(|| T::of(factor))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn huge_and_tiny_gradients_have_a_norm() {
        for scale in [1e-300, 1e300] {
            let mut g = [3.0 * scale, 4.0 * scale];
            let norm = clip_by_norm(&mut [&mut g], f64::INFINITY).unwrap();
            assert!((norm / scale - 5.0).abs() < 1e-12);
            assert_eq!(g, [3.0 * scale, 4.0 * scale]);
        }
        assert_eq!(clip_by_norm(&mut [&mut [0.0_f64; 3]], 1.0), Ok(0.0));
        // The largest element counts wherever it stands.
        for [x, y] in [[3e200, 4e-200], [4e-200, 3e200]] {
            let norm = clip_by_norm(&mut [&mut [x], &mut [y]], f64::INFINITY);
            assert_eq!(norm, Ok(3e200));
        }
    }

    #[test]
    fn gradients_whose_norm_overflows_are_clipped_and_not_cleared() {
        let mut gradient = [1.7e308_f64, -1.7e308, 1.7e308, 1.7e308];
        let norm = clip_by_norm(&mut [&mut gradient], 1.0);
        assert_eq!(norm, Ok(f64::INFINITY));
        for (g, want) in gradient.iter().zip([0.5, -0.5, 0.5, 0.5]) {
            assert!((g - want).abs() < 1e-12, "{g}");
        }
    }

    #[test]
    fn the_norm_is_joint_and_cut_to_the_maximum() {
        let (mut x, mut y) = ([2.0, -3.0], [6.0]);
        assert_eq!(clip_by_norm(&mut [&mut x, &mut y], 7.1), Ok(7.0));
        assert_eq!((x, y), ([2.0, -3.0], [6.0]));
        assert_eq!(clip_by_norm(&mut [&mut x, &mut y], 3.5), Ok(7.0));
        for (got, want) in x.iter().chain(&y).zip([1.0, -1.5, 3.0]) {
            assert!((got - want * 7.0 / 7.000001_f64).abs() < 1e-15);
        }
    }

    #[test]
    fn what_is_not_finite_changes_nothing() {
        let (mut x, mut y) = ([100.0_f32, 1.0], [1.0, f32::NAN]);
        let error = clip_by_norm(&mut [&mut x, &mut y], 1.0).unwrap_err();
        assert!(
            error.to_string().contains("`gradient 1` is NaN at [1]"),
            "{error}"
        );
        assert_eq!(x, [100.0, 1.0]);
        for wrong in [0.0, -1.0, f64::NAN] {
            assert!(clip_by_norm(&mut [&mut x], wrong).is_err());
        }
    }
}
