//! Positions that are encoded into queries and keys.

use bochner_numerics::elementary::sin_cos;
use bochner_numerics::{ArgumentError, Real, argument};
use serde::{Deserialize, Serialize};
use std::fmt::Debug;

/// A map that encodes the positions of queries and keys into their coordinates, before these are compared.
///
/// The map of each row is linear, so that its gradient needs nothing but the positions. [`Rotary`] is one; a type of
/// your own needs three functions:
///
/// ```
/// use bochner_engine::PositionCode;
/// use bochner_numerics::ArgumentError;
///
/// /// Changes the sign of every row at an odd position.
/// #[derive(Debug)]
/// struct Alternating;
///
/// impl PositionCode<f64> for Alternating {
///     fn check(&self, _width: usize) -> Result<(), ArgumentError> {
///         Ok(())
///     }
///
///     fn encode(&self, positions: &[usize], width: usize, rows: &mut [f64]) {
///         for (row, t) in rows.chunks_exact_mut(width).zip(positions.iter().cycle()) {
///             row.iter_mut().for_each(|x| *x *= if t % 2 == 0 { 1.0 } else { -1.0 });
///         }
///     }
///
///     fn encode_vjp(&self, positions: &[usize], width: usize, cotangents: &mut [f64]) {
///         self.encode(positions, width, cotangents);
///     }
/// }
///
/// let mut rows = [1.0, 2.0, 3.0, 4.0];
/// Alternating.encode(&[4, 5], 2, &mut rows);
/// assert_eq!(rows, [1.0, 2.0, -3.0, -4.0]);
/// ```
pub trait PositionCode<T>: Debug + Send + Sync {
    /// Checks the settings, and that the code can encode rows of this width.
    ///
    /// # Errors
    /// An [`ArgumentError`] that names the setting or the width.
    fn check(&self, width: usize) -> Result<(), ArgumentError>;

    /// Encodes the positions into rows of queries or keys, in place.
    ///
    /// # Shapes
    /// `positions: [T]`, `rows: [n, T, width]`: the heads of one sequence, or of several with the same positions.
    fn encode(&self, positions: &[usize], width: usize, rows: &mut [T]);

    /// The vector-Jacobian product of [`encode`](Self::encode): turns the cotangents of encoded rows into those of the
    /// rows before, in place.
    ///
    /// # Shapes
    /// As in [`encode`](Self::encode).
    fn encode_vjp(&self, positions: &[usize], width: usize, cotangents: &mut [T]);
}

/// Rotary position embeddings (RoPE): pairs of coordinates turn by angles that grow with the position.
///
/// $$\begin{pmatrix} y_a \\\\ y_b \end{pmatrix} =
/// \begin{pmatrix} \cos\theta & -\sin\theta \\\\ \sin\theta & \cos\theta \end{pmatrix}
/// \begin{pmatrix} x_a \\\\ x_b \end{pmatrix}, \qquad \theta = s t b^{-2j/r}$$
///
/// *where*
///
/// * $t$: the row's position, counted from 0
/// * $j$: the pair, $0 \le j < r/2$; its coordinates $(a, b)$ are $(j, j + r/2)$ or $(2j, 2j + 1)$, see [`RotaryPairing`]
/// * $r$: the number of columns that turn, `width`; the columns behind them stay as they are
/// * $b$: `base`; $s$: `scale`
///
/// The inner product of a query and a key, and their distance, then depend on the difference of their positions alone.
///
/// # Numerics
/// Angles, sines and cosines are computed in double precision whatever the type of the rows. An angle has a relative
/// error of 2 ulp: at position $10^6$ it is off by less than $5 \cdot 10^{-10}$. Position 0 changes nothing. The gradient is the
/// inverse rotation.
///
/// # Reference
/// Su et al., *RoFormer: Enhanced Transformer with Rotary Position Embedding*, 2021, equation 34. `scale`: Chen et al.,
/// *Extending Context Window of Large Language Models via Positional Interpolation*, 2023.
///
/// ```
/// use bochner_engine::{PositionCode, Rotary};
///
/// let rotary = Rotary::default();
/// // A query at position 5 and a key at position 2; then both 1000 positions later.
/// let product = |shift: usize| {
///     let (mut q, mut k) = ([0.3, -0.2, 0.5, 0.1], [0.7, 0.4, -0.6, 0.2]);
///     rotary.encode(&[5 + shift], 4, &mut q);
///     rotary.encode(&[2 + shift], 4, &mut k);
///     q.iter().zip(&k).map(|(q, k)| q * k).sum::<f64>()
/// };
/// assert!((product(0) - product(1000)).abs() < 1e-12);
/// ```
#[doc(alias = "rope")]
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(
    default,
    deny_unknown_fields,
    rename_all = "kebab-case",
    remote = "Self"
)]
pub struct Rotary {
    /// The base $b$ of the wavelengths. Defaults to 10,000.
    #[doc(alias = "theta")]
    pub base: f64,
    /// The number of columns that turn, from the first on; even. `None`, the default, turns all columns.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub width: Option<usize>,
    /// The coordinates that turn together. Defaults to halves.
    pub pairing: RotaryPairing,
    /// The factor $s$ of positions. Defaults to 1; a smaller one fits longer sequences into the angles of training.
    pub scale: f64,
}

bochner_numerics::checked_when_read!(Rotary);

/// The pairs of coordinates that [`Rotary`] turns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RotaryPairing {
    /// A coordinate of the first half and the one as far into the second half, as in GPT-NeoX and Llama.
    #[default]
    Halves,
    /// Neighbours, as in the RoFormer paper and GPT-J.
    Interleaved,
}

impl Default for Rotary {
    fn default() -> Self {
        Self {
            base: 10_000.0,
            width: None,
            pairing: RotaryPairing::Halves,
            scale: 1.0,
        }
    }
}

/// The number of pairs whose angles are computed together.
const BLOCK: usize = 32;

impl Rotary {
    /// Checks everything but the width of the rows.
    fn validate(&self) -> Result<(), ArgumentError> {
        argument::positive("base", self.base)?;
        argument::positive("scale", self.scale)?;
        match self.width {
            Some(width) => even("width", width),
            None => Ok(()),
        }
    }

    /// Turns all rows forward, or backward for a direction of -1.
    fn turn<T: Real>(&self, positions: &[usize], width: usize, rows: &mut [T], direction: f64) {
        if rows.is_empty() {
            return;
        }
        let turned = self.width.unwrap_or(width);
        assert!(turned <= width, "`PositionCode::check` admits this width");
        let sequence = positions.len() * width;
        assert!(
            rows.len().is_multiple_of(sequence),
            "rows of whole sequences"
        );
        for first in (0..turned / 2).step_by(BLOCK) {
            let pairs = BLOCK.min(turned / 2 - first);
            let slowness = |j: usize| self.base.powf(-2.0 * (first + j) as f64 / turned as f64);
            let frequencies: [f64; BLOCK] = std::array::from_fn(|j| self.scale * slowness(j));
            for (row, &position) in positions.iter().enumerate() {
                let (mut sin, mut cos) = ([0.0; BLOCK], [0.0; BLOCK]);
                let angles = frequencies.map(|frequency| position as f64 * frequency);
                sin_cos(&angles[..pairs], &mut sin[..pairs], &mut cos[..pairs]);
                let sin: [T; BLOCK] = sin.map(|sin| T::of(direction * sin));
                let cos: [T; BLOCK] = cos.map(T::of);
                let place = row * width..row * width + turned;
                for rows in rows.chunks_exact_mut(sequence) {
                    let row = &mut rows[place.clone()];
                    self.pairing
                        .turn(row, first, [&sin[..pairs], &cos[..pairs]]);
                }
            }
        }
    }
}

impl RotaryPairing {
    /// Turns the pairs of a row from `first` on.
    #[inline]
    fn turn<T: Real>(self, row: &mut [T], first: usize, [sin, cos]: [&[T]; 2]) {
        let pairs = first..first + sin.len();
        match self {
            Self::Halves => {
                let (a, b) = row.split_at_mut(row.len() / 2);
                let (a, b) = (&mut a[pairs.clone()], &mut b[pairs]);
                for (((a, b), &sin), &cos) in a.iter_mut().zip(b).zip(sin).zip(cos) {
                    (*a, *b) = (*a * cos - *b * sin, *a * sin + *b * cos);
                }
            }
            Self::Interleaved => {
                let (pairs, _) = row[2 * pairs.start..2 * pairs.end].as_chunks_mut::<2>();
                for (([a, b], &sin), &cos) in pairs.iter_mut().zip(sin).zip(cos) {
                    (*a, *b) = (*a * cos - *b * sin, *a * sin + *b * cos);
                }
            }
        }
    }
}

impl<T: Real> PositionCode<T> for Rotary {
    /// # Errors
    /// [`ArgumentError`] for a base or a scale that is not finite and above 0, and for an odd number of columns to turn,
    /// none or more than there are.
    fn check(&self, width: usize) -> Result<(), ArgumentError> {
        self.validate()?;
        let turned = self.width.unwrap_or(width);
        even("width of queries and keys with rotary positions", turned)?;
        let allowed = format!("at most {width}, the width of queries and keys");
        argument::in_range(
            turned <= width,
            "width of rotary positions",
            turned as f64,
            allowed,
        )
    }

    fn encode(&self, positions: &[usize], width: usize, rows: &mut [T]) {
        self.turn(positions, width, rows, 1.0);
    }

    fn encode_vjp(&self, positions: &[usize], width: usize, cotangents: &mut [T]) {
        self.turn(positions, width, cotangents, -1.0);
    }
}

/// Refuses a number of columns that are not pairs.
fn even(name: &'static str, width: usize) -> Result<(), ArgumentError> {
    let pairs = width > 0 && width.is_multiple_of(2);
    let allowed = "even and at least 2: coordinates turn in pairs";
    argument::in_range(pairs, name, width as f64, allowed)
}
