//! Position biases: terms that a layer adds to the logits of pairs by their positions.

use crate::{Bias, Error};
use bochner_numerics::{ArgumentError, Real, argument};
use ndarray::ArrayView2;
use serde::{Deserialize, Serialize};

/// The bias of a layer's logits, by the positions of query and key.
///
/// ```
/// use bochner_attention::{MultiHead, MultiHeadConfig, PositionBias};
/// use bochner_numerics::Seed;
/// use bochner_attention::prelude::*;
///
/// let position_bias = PositionBias::Learned { reach: 3 };
/// let config = MultiHeadConfig { heads: 2, position_bias, ..Default::default() };
/// let mut rng = Seed::new(1).stream("initial values");
/// let layer: MultiHead<usize, f32> = MultiHead::try_new(&Cpu::default(), 8, config, &mut rng)?;
/// // A number for each head and each distance from -3 to 3.
/// assert_eq!(layer.position_bias.unwrap().shape(), &(2, 7));
/// # Ok::<(), bochner_attention::Error>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, remote = "Self")]
pub enum PositionBias {
    /// No bias.
    #[default]
    None,
    /// [`Bias::alibi`].
    Alibi,
    /// [`Bias::relative`] with a table `[M, 2 reach + 1]` that is trained from zero.
    Learned {
        /// The largest distance K that has a number of its own.
        reach: usize,
    },
}

bochner_numerics::checked_when_read!(PositionBias, |bias| bias.validate());

impl PositionBias {
    /// Refuses a table that is too large for the memory of any machine.
    pub(super) fn validate(self) -> Result<(), ArgumentError> {
        let Self::Learned { reach } = self else {
            return Ok(());
        };
        argument::in_range(reach <= 1 << 24, "reach", reach as f64, "at most 2^24")
    }

    /// The shape of the table, if there is one.
    pub(super) fn table(self, heads: usize) -> Option<[usize; 2]> {
        match self {
            Self::Learned { reach } => Some([heads, reach.saturating_mul(2).saturating_add(1)]),
            _ => None,
        }
    }

    /// The bias, given the numbers of the table if there is one.
    pub(super) fn bias<T: Real>(
        self,
        heads: usize,
        table: Option<&[T]>,
    ) -> Result<Option<Bias<T>>, Error> {
        match (self, self.table(heads)) {
            (Self::None, _) => Ok(None),
            (_, None) => Ok(Some(Bias::alibi())),
            (_, Some(shape)) => {
                let table = table.unwrap_or_default();
                argument::shape("position_bias", &[shape[0] * shape[1]], &[table.len()])?;
                let table =
                    ArrayView2::from_shape(shape, table).expect("as many as the shape says");
                Ok(Some(Bias::relative(table)?))
            }
        }
    }
}
