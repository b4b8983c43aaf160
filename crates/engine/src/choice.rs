//! The form and the blocks of the computation that settings take, and which form is faster.

use crate::settings::Kernel;
use crate::{Blocks, Error, Form, Settings, check_floor};
use bochner_numerics::{Panels, Real};

/// The smallest floor at which it is chosen without being asked for.
const LOWEST_AUTOMATIC_FLOOR: f64 = 1e-5;

/// The sums of the linear-time form.
#[derive(Clone, Copy, Debug)]
pub(crate) enum LinearForm {
    /// Sums of a squared kernel, with the width of its operands.
    Squared { operand: usize, floor: f64 },
    /// Sums of a number of features.
    Features { features: usize },
    /// The state of a scan.
    Scan,
}

impl<T: Real> Settings<T> {
    /// Returns the form in which attention from `queries` to `keys` positions is computed, with queries and keys of
    /// `widths[0]` numbers and values of `widths[1]`: any but [`Form::Automatic`].
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
    pub fn form_for(&self, queries: usize, keys: usize, widths: [usize; 2]) -> Result<Form, Error> {
        match self.form {
            Form::Pairwise => Ok(Form::Pairwise),
            Form::Blocked(blocks) => blocks.checked().map(Form::Blocked),
            Form::LinearTime => self.linear_form(widths[0]).map(|_| Form::LinearTime),
            Form::Automatic => Ok(match self.linear_form(widths[0]) {
                Ok(LinearForm::Squared { floor, .. }) if floor < LOWEST_AUTOMATIC_FLOOR => {
                    Form::Pairwise
                }
                Ok(kernel) if self.gain(kernel, queries, keys, widths[1]) > 1.0 => Form::LinearTime,
                _ => Form::Pairwise,
            }),
        }
    }

    /// Returns the form of a decoder that is asked for one: where that is [`Form::Automatic`], the settings' own.
    ///
    /// Where the settings leave it open too, features keep sums, which are as large as some dozens of positions. The
    /// sums of a squared kernel are as large as R² positions, and have to be asked for.
    pub fn decoding_form(&self, asked: Form) -> Form {
        let form = match asked {
            Form::Automatic => self.form,
            asked => asked,
        };
        match (form, self.linear_form(1)) {
            (Form::Automatic, Ok(LinearForm::Features { .. } | LinearForm::Scan)) => {
                Form::LinearTime
            }
            _ => form,
        }
    }

    /// Returns the sums of the linear-time form, if there is such a form.
    pub(crate) fn linear_form(&self, width: usize) -> Result<LinearForm, Error> {
        let unsupported = |what, instead| Err(Error::Unsupported { what, instead });
        let kernel = match &self.kernel {
            Kernel::Scan(_) => return Ok(LinearForm::Scan),
            Kernel::Features(map) => LinearForm::Features {
                features: map.features(),
            },
            Kernel::Pairs(kernel) => match kernel.square() {
                Some(square) => LinearForm::Squared {
                    operand: kernel.operand_width(width),
                    floor: square.floor,
                },
                None => {
                    return unsupported(
                        "the linear-time form of a kernel that is not a product of features",
                        "a squared kernel, a feature map, or Form::Pairwise",
                    );
                }
            },
        };
        if self.mask.needs_pairs() {
            return unsupported(
                "the linear-time form with a matrix, a window or another mask of single pairs",
                "key lengths and causality, or Form::Pairwise",
            );
        }
        if self.bias.is_some() || self.sink.is_some() {
            return unsupported(
                "the linear-time form with a bias or a sink",
                "neither, or Form::Pairwise",
            );
        }
        if self.dropout.is_some() {
            return unsupported(
                "the linear-time form with dropout on pairs",
                "no dropout, or Form::Pairwise",
            );
        }
        if let LinearForm::Squared { floor, .. } = kernel {
            check_floor(floor)?;
        }
        Ok(kernel)
    }

    /// Returns the blocks in which attention goes through `queries` positions.
    pub(crate) fn blocks(&self, queries: usize) -> Result<Blocks, Error> {
        let panel = Panels::<T>::ALIGNMENT;
        let blocks = match self.form {
            Form::Blocked(blocks) => blocks.checked()?,
            _ => Blocks::of::<T>(),
        };
        Ok(Blocks {
            queries: blocks.queries.min(queries),
            keys: blocks.keys.div_ceil(panel).saturating_mul(panel),
        })
    }

    /// Returns how many times less work the linear-time form is.
    fn gain(&self, kernel: LinearForm, queries: usize, keys: usize, value_width: usize) -> f64 {
        let (queries, keys) = (queries as f64, keys as f64);
        let width = value_width as f64;
        let (operand, features) = match kernel {
            LinearForm::Squared { operand, .. } => {
                let operand = operand as f64;
                (operand, operand * (operand + 1.0) / 2.0)
            }
            LinearForm::Features { features } => (features as f64, features as f64),
            LinearForm::Scan => return f64::INFINITY,
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

/// The cost of a pair beside its two products, and of a feature of narrow and of wide values beside its
/// own, measured in the time of one operation of a product.
const PAIR: f64 = 24.0;
const NARROW: f64 = 7.0;
const WIDE: f64 = 20.0;

/// Values of fewer numbers are narrow: they leave a register partly empty.
const REGISTER: f64 = 16.0;

/// The additional cost of a causal query, measured in pairs: those of its diagonal block, whether it keeps
/// them or not, and sums that are taken twice so that parts can start at the same time.
const DIAGONAL: f64 = 300.0;
