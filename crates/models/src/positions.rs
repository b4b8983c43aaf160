//! Positions of vectors in their sequences.

use crate::Error;
use bochner_numerics::{ArgumentError, Real, argument};
use ndarray::Array2;
use serde::{Deserialize, Serialize};

/// The base of the wavelengths of [`Positions::Sinusoidal`].
const BASE: f64 = 10_000.0;

/// The most positions of a table, which is built when its model is.
const MOST: usize = 1 << 24;

/// The positions that are added to the vectors of a sequence to tell them apart.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, remote = "Self")]
pub enum Positions {
    /// No positions: without another source of order, attention sees a set of vectors.
    #[default]
    None,
    /// [`sinusoidal_positions`] with the base 10,000.
    Sinusoidal {
        /// The number of positions in the table, which is the longest sequence; at most 2^24.
        longest: usize,
    },
}

bochner_numerics::checked_when_read!(Positions);

impl Positions {
    /// Refuses a table without positions, or with more than fit into memory.
    pub(crate) fn validate(&self) -> Result<(), ArgumentError> {
        match *self {
            Self::Sinusoidal { longest } => argument::at_most("longest", longest, MOST),
            Self::None => Ok(()),
        }
    }

    /// The table of the positions, row by row; `None` if nothing is added.
    ///
    /// # Errors
    /// [`Error::Argument`] for a table without positions or with too many.
    pub(crate) fn table<T: Real>(self, width: usize) -> Result<Option<Vec<T>>, Error> {
        self.validate()?;
        let Self::Sinusoidal { longest } = self else {
            return Ok(None);
        };
        let positions: Vec<usize> = (0..longest).collect();
        let table = sinusoidal_positions(&positions, width, BASE)?;
        Ok(Some(table.into_raw_vec_and_offset().0))
    }
}

/// Sines and cosines of the positions at wavelengths in a geometric progression.
///
/// $$P_{t, 2i} = \sin\frac{t}{b^{2i/d}}, \qquad P_{t, 2i+1} = \cos\frac{t}{b^{2i/d}}$$
///
/// *where*
///
/// * $t$: `positions`, counted from 0
/// * $d$: `width`; the last column of an odd width is a sine
/// * $b$: `base`, 10,000 in the paper
///
/// # Shapes
/// `positions: [T]` to `[T, width]`.
///
/// # Errors
/// [`ArgumentError`] for no position, the width 0, or a base that is not finite and above 0.
///
/// # Numerics
/// The angles are computed in double precision, whatever the type of the result: in single precision the
/// position 10,000 would be off by half a thousandth of a turn.
///
/// # Reference
/// Vaswani et al., *Attention Is All You Need*, 2017, section 3.5, which interleaves sines and cosines.
///
/// ```
/// use bochner_models::positions::sinusoidal_positions;
///
/// let encoded = sinusoidal_positions::<f32>(&[0, 1, 2], 4, 10_000.0)?;
/// assert_eq!(encoded.row(0).to_vec(), [0.0, 1.0, 0.0, 1.0]);
/// assert_eq!(encoded[[2, 0]], 2.0_f32.sin());
/// # Ok::<(), bochner_models::Error>(())
/// ```
pub fn sinusoidal_positions<T: Real>(
    positions: &[usize],
    width: usize,
    base: f64,
) -> Result<Array2<T>, ArgumentError> {
    argument::not_empty("positions", &[positions.len(), width])?;
    argument::positive("base", base)?;
    let slowness = |column: usize| base.powf((column - column % 2) as f64 / width as f64);
    let slownesses: Vec<f64> = (0..width).map(slowness).collect();
    let encoded = Array2::from_shape_fn((positions.len(), width), |(row, column)| {
        let angle = positions[row] as f64 / slownesses[column];
        let of = if column.is_multiple_of(2) {
            f64::sin
        } else {
            f64::cos
        };
        T::of(of(angle))
    });
    Ok(encoded)
}
