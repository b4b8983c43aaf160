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
