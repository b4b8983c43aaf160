//! One kind of attention, put together from its parts.

use crate::error::{non_negative, period, positive};
use crate::{Error, Form, Magnitude, Mask, Similarity};
use bochner_numerics::{Dropout, Real};

/// One kind of attention, with everything but the queries, keys and values.
///
/// Checked where it is used ([`attend`](crate::attend), [`Settings::form_for`]).
#[derive(Clone, Copy, Debug)]
pub struct Settings<'a, T> {
    /// How alike a query and a key are.
    pub similarity: Similarity<'a, T>,
    /// What a key's size adds.
    pub magnitude: Magnitude,
    /// Which keys count.
    pub mask: &'a Mask,
    /// Dropout on the normalised weights.
    pub dropout: Option<Dropout>,
    /// In which form a squared kernel is computed; of the others there is one.
    pub form: Form,
}

impl<T: Real> Settings<'_, T> {
    pub(crate) fn validate(&self, batch: usize, heads: usize, width: usize) -> Result<(), Error> {
        match self.magnitude {
            Magnitude::None => {}
            Magnitude::Norm { p } | Magnitude::Released { p, .. } => positive("p", p)?,
        }
        match &self.similarity {
            Similarity::Rbf if matches!(self.magnitude, Magnitude::Released { .. }) => {
                Err(Error::Unsupported {
                    what: "the released code's magnitude with an RBF similarity",
                    instead: "another similarity, or Magnitude::Norm",
                })
            }
            Similarity::Rbf | Similarity::Linear => Ok(()),
            Similarity::Expsin { period: p } => period(*p),
            Similarity::Squared { points, floor } => {
                non_negative("floor", *floor)?;
                points.validate(batch, heads, width)
            }
        }
    }
}
