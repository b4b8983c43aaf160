//! One kind of attention, put together from its parts.

use crate::error::{self, period, positive};
use crate::similarity::PointsOfHeads;
use crate::{Error, Form, Magnitude, Mask, Points, Similarity};
use bochner_numerics::{DropoutMask, Real};
use ndarray::{Array4, Axis};

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
    pub dropout: Option<DropoutMask>,
    /// In which form attention is computed. [`Form::Automatic`] takes the linear-time form of a
    /// squared kernel where that is faster; it rounds otherwise ([`Form::LinearTime`]).
    pub form: Form,
}

impl<'a, T: Real> Settings<'a, T> {
    /// A similarity with the magnitude of softmax attention ($p = 2$), without dropout, in whichever
    /// form is faster.
    ///
    /// ```
    /// use bochner_attention::{Magnitude, Mask, Settings, Similarity, attend};
    /// use ndarray::Array4;
    ///
    /// let x = Array4::from_shape_fn((1, 2, 5, 4), |(_, m, t, n)| ((m + 2 * t + n) as f32).sin());
    /// let (all, causal) = (Mask::none(), Mask::none().with_causality());
    /// let softmax = Settings::new(Similarity::Rbf, &all);
    /// let rbf = Settings { magnitude: Magnitude::None, ..softmax.with_mask(&causal) };
    /// assert_eq!(attend(x.view(), x.view(), x.view(), &rbf)?.output.shape(), x.shape());
    /// # Ok::<(), bochner_attention::Error>(())
    /// ```
    pub fn new(similarity: Similarity<'a, T>, mask: &'a Mask) -> Self {
        Self {
            similarity,
            magnitude: Magnitude::Norm { p: 2.0 },
            mask,
            dropout: None,
            form: Form::Automatic,
        }
    }

    /// The same with another mask, which need not live as long as the first.
    pub fn with_mask<'b>(&self, mask: &'b Mask) -> Settings<'b, T>
    where
        'a: 'b,
    {
        Settings {
            similarity: self.similarity.reborrow(),
            magnitude: self.magnitude,
            mask,
            dropout: self.dropout,
            form: self.form,
        }
    }
}

/// [`Settings`] that own their spectral points and wait for a mask.
#[derive(Clone, Debug)]
pub struct OwnedSettings<T> {
    similarity: OwnedSimilarity<T>,
    magnitude: Magnitude,
    dropout: Option<DropoutMask>,
    form: Form,
}

/// A [`Similarity`] that owns its points.
#[derive(Clone, Debug)]
enum OwnedSimilarity<T> {
    Rbf,
    Expsin { period: f64 },
    Linear,
    Squared { points: Vec<Array4<T>>, floor: f64 },
}

impl<T: Real> OwnedSettings<T> {
    /// A copy; all but the mask.
    pub fn new(settings: &Settings<T>) -> Self {
        let similarity = match settings.similarity {
            Similarity::Rbf => OwnedSimilarity::Rbf,
            Similarity::Expsin { period } => OwnedSimilarity::Expsin { period },
            Similarity::Linear => OwnedSimilarity::Linear,
            Similarity::Squared { points, floor } => OwnedSimilarity::Squared {
                points: points.sets().map(|w| w.to_owned()).collect(),
                floor,
            },
        };
        Self {
            similarity,
            magnitude: settings.magnitude,
            dropout: settings.dropout,
            form: settings.form,
        }
    }

    /// The settings with a mask.
    pub fn with_mask<'a>(&'a self, mask: &'a Mask) -> Settings<'a, T> {
        Settings {
            similarity: match &self.similarity {
                OwnedSimilarity::Rbf => Similarity::Rbf,
                OwnedSimilarity::Expsin { period } => Similarity::Expsin { period: *period },
                OwnedSimilarity::Linear => Similarity::Linear,
                OwnedSimilarity::Squared { points, floor } => Similarity::Squared {
                    points: Points::of_sets(points),
                    floor: *floor,
                },
            },
            magnitude: self.magnitude,
            mask,
            dropout: self.dropout,
            form: self.form,
        }
    }

    /// Example `b` gets the spectral points that `indices[b]` had, if they have any of their own.
    pub(crate) fn reorder(&mut self, indices: &[usize]) {
        if let OwnedSimilarity::Squared { points, .. } = &mut self.similarity {
            for w in points.iter_mut().filter(|w| w.len_of(Axis(0)) > 1) {
                *w = w.select(Axis(0), indices);
            }
        }
    }
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
                error::floor(*floor)?;
                points.validate(batch, heads, width)
            }
        }
    }
}
