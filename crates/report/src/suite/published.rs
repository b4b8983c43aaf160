//! The published values.

/// A published value, as it is shown.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Published {
    /// The mean over the runs.
    pub mean: f64,
    /// The number after ±; absent where the paper prints none.
    pub deviation: Option<f64>,
}

/// A line of a published table.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Line {
    /// The model.
    pub model: &'static str,
    /// One value for each set of the card.
    pub values: &'static [Published],
}

/// A line of a published table.
pub const fn line(model: &'static str, values: &'static [Published]) -> Line {
    Line { model, values }
}

/// A mean, and the deviation if it is not negative.
pub const fn about(mean: f64, deviation: f64) -> Published {
    Published {
        mean,
        deviation: if deviation < 0.0 {
            None
        } else {
            Some(deviation)
        },
    }
}
