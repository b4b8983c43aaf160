//! The two forms of attention by features, and which one is faster.

use crate::score::LinearForm;
use crate::{Blocks, Error, Settings};
use bochner_numerics::{Real, argument};
use serde::{Deserialize, Serialize};

/// In which form attention is computed; of a squared kernel and of random features there are two.
///
/// A squared kernel of R frequencies is an inner product of R (2R + 1) features,
/// $f(q, k)^2 = \psi(q) \cdot \psi(k)$, and random features are m or 2m features to begin with, so that the
/// sums over the keys can be taken before any query is looked at. In exact arithmetic both forms give the same
/// numbers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Form {
    /// The form that [`Settings::form_for`] expects to be faster, for each example by its own length, padding aside;
    /// for a [`Decoder`](crate::Decoder), which does not know how long a sequence will be, [`Form::Quadratic`].
    ///
    /// The outputs of a squared kernel lose no accuracy: a head in which some query's mean similarity is below 1/64,
    /// where the linear-time form would be off by more than 64 of the type's epsilons times the largest value, is
    /// computed again pair by pair. In the other heads gradients along queries and keys may be off by 512 epsilons,
    /// $64^{3/2}$, times the largest value, cotangent and frequency, and gradients along values by 64 epsilons times the
    /// largest cotangent; gradients along frequencies sum these up over all positions. With random features that are all
    /// positive both forms are as accurate; with features of either sign
    /// ([`Trigonometric`](crate::RandomFeatureMap::Trigonometric)) neither is where they cancel.
    #[default]
    Automatic,
    /// Pair by pair, in O(Tq Tk (R + dv)) time and O(T (R + dv)) memory: for everything.
    Quadratic,
    /// [`Form::Quadratic`] in blocks of this size instead of [`Blocks::of`] the type.
    Blocked(Blocks),
    /// Key by key, then query by query: of a squared kernel in O(T R² dv) time and O(T (R + dv) + R² dv) memory, of
    /// random features in O(T m dv) time and O(T dv + m dv) memory.
    ///
    /// For squared kernels with a floor of at least 1e-6 and for random features, under key lengths and plain
    /// causality. What needs the pairs is refused: a matrix, a window, a prefix, causal blocks, packed sequences, a
    /// bias, and dropout.
    ///
    /// The error of a squared kernel is one of rounding, but absolute in $f^2$, about 1e-7 of the largest
    /// $e^{m_j} f_{ij}^2$ of a row in `f32`, where that of the quadratic form is relative to each
    /// pair's own. It shows where all kept keys of a query lie near zeros of f: there the
    /// normaliser is little more than its floor part, below which it is never let fall, and an
    /// output may be off by the type's machine epsilon over the floor times the largest value. A
    /// gradient there is off by epsilon / floor^(3/2) times the largest value and cotangent.
    LinearTime,
}

/// The smallest floor at which the linear-time form's rounding errors are still small beside it.
const LOWEST_FLOOR: f64 = 1e-6;

/// Checks the floor of a squared kernel in linear time.
pub(crate) fn check_floor(floor: f64) -> Result<(), Error> {
    let name = "floor of the linear-time form";
    Ok(argument::in_range(
        floor >= LOWEST_FLOOR,
        name,
        floor,
        "at least 1e-6",
    )?)
}

/// The smallest floor at which it is chosen without being asked for.
const LOWEST_AUTOMATIC_FLOOR: f64 = 1e-5;

impl<T: Real> Settings<T> {
    /// The form in which attention from `queries` to `keys` positions with values of
    /// `value_width` numbers is computed: any but [`Form::Automatic`].
    ///
    /// # Errors
    /// If the linear-time form is asked for where there is none: [`Error::Argument`] for a floor
    /// below 1e-6, [`Error::Unsupported`] for everything else. [`Error::Argument`] for empty blocks.
    ///
    /// # Numerics
    /// [`Form::Automatic`] compares counts of operations,
    /// $n_{pairs} (4R + 2 \max(d_v, 16) + 24)$ with $(T_q + T_k) (2 d_v + 20) R (2R + 1)$, where 20
    /// is 7 for $d_v < 16$ (if causal, plus 300 pairs a query), and takes the linear-time form only at
    /// a floor of at least 1e-5. At R = 16 and $d_v$ = 64 it wins from 720 positions on, if causal from
    /// 2050; at R = 64 and $d_v$ = 8 from 1220.
    pub fn form_for(&self, queries: usize, keys: usize, value_width: usize) -> Result<Form, Error> {
        match self.form {
            Form::Quadratic => Ok(Form::Quadratic),
            Form::Blocked(blocks) => blocks.checked().map(Form::Blocked),
            Form::LinearTime => self.check_linear_time().map(|_| Form::LinearTime),
            Form::Automatic => Ok(match self.check_linear_time() {
                Ok(LinearForm::Squared { floor, .. }) if floor < LOWEST_AUTOMATIC_FLOOR => {
                    Form::Quadratic
                }
                Ok(kernel) if self.gain(kernel, queries, keys, value_width) > 1.0 => {
                    Form::LinearTime
                }
                _ => Form::Quadratic,
            }),
        }
    }

    /// The form of a decoder that is asked for one: where that is [`Form::Automatic`], the settings' own.
    ///
    /// Where the settings leave it open too, random features keep sums, which are as large as some dozens of positions. The
    /// sums of a squared kernel are as large as R² positions, and have to be asked for.
    pub(crate) fn decoding_form(&self, asked: Form) -> Form {
        let form = match asked {
            Form::Automatic => self.form,
            asked => asked,
        };
        match (form, self.check_linear_time()) {
            (Form::Automatic, Ok(LinearForm::Features { .. })) => Form::LinearTime,
            _ => form,
        }
    }

    /// What the linear-time form needs to know of the kernel, if there is such a form.
    fn check_linear_time(&self) -> Result<LinearForm, Error> {
        let unsupported = |what, instead| Err(Error::Unsupported { what, instead });
        let Some(kernel) = self.linear_form() else {
            return unsupported(
                "the linear-time form of a kernel without spectral points",
                "a squared kernel, random features, or Form::Quadratic",
            );
        };
        if self.mask.is_by_pairs() {
            return unsupported(
                "the linear-time form with a matrix, a window or another mask of single pairs",
                "key lengths and causality, or Form::Quadratic",
            );
        }
        if self.bias.is_some() {
            return unsupported(
                "the linear-time form with a bias",
                "no bias, or Form::Quadratic",
            );
        }
        if self.has_dropout() {
            return unsupported(
                "the linear-time form with dropout on pairs",
                "no dropout, or Form::Quadratic",
            );
        }
        if let LinearForm::Squared { floor, .. } = kernel {
            check_floor(floor)?;
        }
        Ok(kernel)
    }

    /// How many times less work the linear-time form is.
    fn gain(&self, kernel: LinearForm, queries: usize, keys: usize, value_width: usize) -> f64 {
        let (queries, keys) = (queries as f64, keys as f64);
        let width = value_width as f64;
        // The numbers of an operand, and of features.
        let (operand, features) = match kernel {
            LinearForm::Squared { points, .. } => {
                let points = points as f64;
                (2.0 * points, points * (2.0 * points + 1.0))
            }
            LinearForm::Features { features } => (features as f64, features as f64),
        };
        let pair = 2.0 * operand + 2.0 * width.max(REGISTER) + PAIR;
        let feature = if width < REGISTER { NARROW } else { WIDE };
        let position = features * (2.0 * width + feature);
        let linear = (queries + keys) * position;
        if self.mask.is_causal() {
            let seen = queries.min(keys);
            let pairs = seen * (keys - seen / 2.0);
            pairs * pair / (linear + seen * DIAGONAL * pair)
        } else {
            queries * keys * pair / linear
        }
    }
}

/// What a pair costs beside its two products, and a feature of narrow and of wide values beside its
/// own, measured in the time of one operation of a product.
const PAIR: f64 = 24.0;
const NARROW: f64 = 7.0;
const WIDE: f64 = 20.0;

/// Values of fewer numbers are narrow: they leave a register partly empty.
const REGISTER: f64 = 16.0;

/// What a causal query costs more, measured in pairs: those of its diagonal block, whether it keeps
/// them or not, and sums that are taken twice so that parts can start at the same time.
const DIAGONAL: f64 = 300.0;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Magnitude, Mask, Points};
    use ndarray::Array4;

    fn chosen(mask: &Mask, floor: f64, length: usize) -> Form {
        let w = Array4::<f32>::zeros((1, 1, 16, 2));
        let settings = Settings {
            magnitude: Magnitude::Norm { p: 2.0 },
            ..Settings::squared(Points::Stationary { w: w.view() }, floor, mask)
        };
        settings.form_for(length, length, 64).unwrap()
    }

    #[test]
    fn long_sequences_are_attended_to_in_linear_time() {
        for mask in [Mask::none(), Mask::none().with_causality()] {
            let lengths = [64, 512, 1024, 2048, 4096, 16_384];
            let forms = lengths.map(|length| chosen(&mask, 1e-5, length));
            assert_eq!(forms[0], Form::Quadratic);
            assert_eq!(forms[5], Form::LinearTime);
            assert!(forms.is_sorted_by_key(|&form| form == Form::LinearTime));
        }
    }

    #[test]
    fn nothing_is_chosen_that_has_to_be_asked_for() {
        assert_eq!(chosen(&Mask::none(), 1e-5, 16_384), Form::LinearTime);
        assert_eq!(chosen(&Mask::none(), 9e-6, 16_384), Form::Quadratic);
        let matrix = ndarray::Array2::from_elem((2, 2), true);
        let mask = Mask::none().with_matrix(matrix.view());
        assert_eq!(chosen(&mask, 1e-5, 16_384), Form::Quadratic);
    }
}
