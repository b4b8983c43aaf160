//! Shapes whose last axis a layer works on.

use dfdx::shapes::{Dim, Shape};

/// A shape of one to four axes that ends with the axis `I`.
pub trait EndsWith<I: Dim>: Shape {
    /// The shape with `O` in the place of `I`.
    type With<O: Dim>: Shape;

    /// Replaces the last axis.
    fn with_last<O: Dim>(self, last: O) -> Self::With<O>;
}

impl<I: Dim> EndsWith<I> for (I,) {
    type With<O: Dim> = (O,);

    fn with_last<O: Dim>(self, last: O) -> (O,) {
        (last,)
    }
}

impl<A: Dim, I: Dim> EndsWith<I> for (A, I) {
    type With<O: Dim> = (A, O);

    fn with_last<O: Dim>(self, last: O) -> (A, O) {
        (self.0, last)
    }
}

impl<A: Dim, B: Dim, I: Dim> EndsWith<I> for (A, B, I) {
    type With<O: Dim> = (A, B, O);

    fn with_last<O: Dim>(self, last: O) -> (A, B, O) {
        (self.0, self.1, last)
    }
}

impl<A: Dim, B: Dim, C: Dim, I: Dim> EndsWith<I> for (A, B, C, I) {
    type With<O: Dim> = (A, B, C, O);

    fn with_last<O: Dim>(self, last: O) -> (A, B, C, O) {
        (self.0, self.1, self.2, last)
    }
}
