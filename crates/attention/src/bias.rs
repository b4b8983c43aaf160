//! What is added to the logits of pairs.

use crate::Error;
use crate::engine::Rows;
use bochner_numerics::{Real, argument};
use ndarray::{Array2, Array4, ArrayD, ArrayView2, ArrayView3, ArrayView4, Axis, IxDyn};
use std::ops::Range;
use std::sync::Arc;

/// A bias $b_{ij}$ of each pair: what is added to the logarithm of its unnormalised weight.
///
/// It comes after the similarity and the magnitude and before the normaliser, so that every kernel's weights
/// are multiplied by $e^{b_{ij}}$. Query i stands at key $i + T_k - T_q$, as masks have it. Clones share
/// their numbers.
///
/// ```
/// use bochner_attention::{Bias, Mask, Settings, attend, attend_vjp};
/// use bochner_attention::ndarray::{Array2, Array4};
///
/// let x = Array4::from_shape_fn((1, 2, 5, 4), |(_, m, t, n)| ((m + 2 * t + n) as f64).sin());
/// // One number for each head and each distance up to 2.
/// let table = Array2::zeros((2, 5));
/// let bias = Some(Bias::relative(table.view())?);
/// let settings = Settings { bias, ..Settings::softmax(&Mask::none()) };
/// let attended = attend(x.view(), x.view(), x.view(), &settings)?;
/// let gradients = attend_vjp(&attended, Array4::ones((1, 2, 5, 4)).view())?;
/// assert_eq!(gradients.bias.unwrap().shape(), [2, 5]);
/// # Ok::<(), bochner_attention::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Bias<T>(Kind<T>);

#[derive(Clone, Debug, PartialEq)]
enum Kind<T> {
    Fixed {
        values: Arc<Array4<T>>,
        /// The mask of entries that are minus infinity.
        mask: Option<crate::Mask>,
        with_gradient: bool,
    },
    /// The slope of the one head that a call is about, if it is not about all.
    Alibi(Option<f64>),
    Relative(Arc<Array2<T>>),
}

impl<T: Real> Bias<T> {
    /// A number for each pair, `[1 or B, 1 or M, Tq, Tk]`; minus infinity is a mask.
    ///
    /// # Errors
    /// [`Error::Argument`] for NaN or infinity.
    pub fn fixed(values: ArrayView4<T>) -> Result<Self, Error> {
        let none = T::neg_infinity();
        // Rows are read as slices, in whatever order the memory of a view is.
        let values = values.as_standard_layout();
        let finite = values.mapv(|b| if b == none { T::zero() } else { b });
        argument::finite("bias", finite.shape(), &finite)?;
        let is_mask = values.iter().any(|&b| b == none);
        let mask =
            is_mask.then(|| crate::Mask::none().with_matrices(values.mapv(|b| b != none).view()));
        Ok(Self(Kind::Fixed {
            values: Arc::new(finite),
            mask,
            with_gradient: false,
        }))
    }

    /// [`Bias::fixed`] for all examples alike, `[1 or M, Tq, Tk]`. Its gradient has an axis of one example.
    ///
    /// # Errors
    /// The errors of [`Bias::fixed`].
    pub fn of_heads(values: ArrayView3<T>) -> Result<Self, Error> {
        Self::fixed(values.insert_axis(Axis(0)))
    }

    /// The bias with a gradient. Only a fixed bias does without: its gradient takes as much memory as all
    /// pairs.
    pub fn with_gradient(self) -> Self {
        match self.0 {
            Kind::Fixed { values, mask, .. } => Self(Kind::Fixed {
                values,
                mask,
                with_gradient: true,
            }),
            _ => self,
        }
    }

    /// $b_{ij} = -s_m |i + T_k - T_q - j|$ with the slopes of [`alibi_slopes`].
    ///
    /// # Reference
    /// Press et al. 2022, ALiBi.
    pub fn alibi() -> Self {
        Self(Kind::Alibi(None))
    }

    /// $b_{ij} = r_{m, \mathrm{clip}(i + T_k - T_q - j, -K, K) + K}$, r `[M, 2 K + 1]`.
    ///
    /// # Errors
    /// [`Error::Argument`] for an even number of columns, NaN or infinity.
    pub fn relative(table: ArrayView2<T>) -> Result<Self, Error> {
        let columns = table.ncols();
        let odd = "odd: one column for each distance from -K to K";
        argument::in_range(
            columns % 2 == 1,
            "columns of a relative bias",
            columns as f64,
            odd,
        )?;
        argument::finite("bias", table.shape(), table)?;
        Ok(Self(Kind::Relative(Arc::new(
            table.as_standard_layout().into_owned(),
        ))))
    }

    pub(crate) fn validate(&self, [b, m, queries, keys]: [usize; 4]) -> Result<(), Error> {
        match &self.0 {
            Kind::Fixed { values, .. } => {
                let (examples, heads, ..) = values.dim();
                let one_or = |given, all| if given == 1 { 1 } else { all };
                let shape = [one_or(examples, b), one_or(heads, m), queries, keys];
                argument::shape("bias", &shape, values.shape())?;
            }
            Kind::Relative(table) => argument::shape("bias", &[m, table.ncols()], table.shape())?,
            Kind::Alibi(_) => {}
        }
        Ok(())
    }

    /// Whether what is added follows from positions alone.
    pub(crate) fn is_of_positions(&self) -> bool {
        !matches!(self.0, Kind::Fixed { .. })
    }

    /// The mask that the bias is, if it is one.
    pub(crate) fn mask(&self) -> Option<&crate::Mask> {
        match &self.0 {
            Kind::Fixed { mask, .. } => mask.as_ref(),
            _ => None,
        }
    }

    /// The bias of one of several heads.
    pub(crate) fn of_head(&self, head: usize, heads: usize) -> Self {
        match &self.0 {
            Kind::Alibi(None) => Self(Kind::Alibi(Some(alibi_slopes(heads)[head]))),
            Kind::Relative(table) => {
                let row = table.row(head).insert_axis(Axis(0)).to_owned();
                Self(Kind::Relative(Arc::new(row)))
            }
            _ => self.clone(),
        }
    }

    /// $b_{ij}$ of an example and a head, of so many queries and keys, where no mask bars it.
    #[cfg(feature = "conformance")]
    pub(crate) fn at(
        &self,
        [example, head, i, j]: [usize; 4],
        heads: usize,
        [queries, keys]: [usize; 2],
    ) -> f64 {
        let away = (i + keys) as i64 - queries as i64 - j as i64;
        match &self.0 {
            Kind::Fixed { values, .. } => {
                let (examples, own, ..) = values.dim();
                values[[example % examples, head % own, i, j]].as_f64()
            }
            Kind::Alibi(_) => -alibi_slopes(heads)[head] * away.abs() as f64,
            Kind::Relative(table) => {
                let reach = (table.ncols() / 2) as i64;
                table[[head, (away.clamp(-reach, reach) + reach) as usize]].as_f64()
            }
        }
    }

    /// Zero gradients, shaped as the numbers; `None` where there is nothing to learn.
    pub(crate) fn zero_gradients(&self) -> Option<ArrayD<T>> {
        match &self.0 {
            Kind::Fixed {
                values,
                with_gradient: true,
                ..
            } => Some(ArrayD::zeros(IxDyn(values.shape()))),
            Kind::Relative(table) => Some(ArrayD::zeros(IxDyn(table.shape()))),
            _ => None,
        }
    }

    /// The gradients of one head's numbers: how many there are for each query, and for all together.
    pub(crate) fn gradient_sizes(&self) -> (usize, usize) {
        match &self.0 {
            Kind::Fixed {
                values,
                with_gradient: true,
                ..
            } => (values.dim().3, 0),
            Kind::Relative(table) => (0, table.ncols()),
            _ => (0, 0),
        }
    }
}

/// The slopes of ALiBi's heads: $2^{-8 m / M}$, m from 1 to M, where M is a power of two; otherwise those of
/// the next lower power of two, and then every second one of the next higher.
pub fn alibi_slopes(heads: usize) -> Vec<f64> {
    slopes(heads).collect()
}

/// [`alibi_slopes`], one after the other.
fn slopes(heads: usize) -> impl Iterator<Item = f64> {
    let of = |count: usize| (1..=count).map(move |m| (-8.0 * m as f64 / count as f64).exp2());
    let lower = if heads.is_power_of_two() {
        heads
    } else {
        heads.next_power_of_two() / 2
    };
    of(lower).chain(of(2 * lower).step_by(2)).take(heads)
}

/// The bias of one head.
#[derive(Debug)]
pub(crate) struct HeadBias<'a, T> {
    bias: &'a Bias<T>,
    slope: f64,
    rows: Rows<'a>,
}

impl<T> Clone for HeadBias<'_, T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for HeadBias<'_, T> {}

impl<'a, T: Real> HeadBias<'a, T> {
    pub(crate) fn new(bias: &'a Bias<T>, rows: Rows<'a>, heads: usize) -> Self {
        let slope = match bias.0 {
            Kind::Alibi(slope) => {
                slope.unwrap_or_else(|| slopes(heads).nth(rows.head).expect("one a head"))
            }
            _ => 0.0,
        };
        Self { bias, slope, rows }
    }

    /// The bias of the same head for other rows.
    pub(crate) fn with_rows(self, rows: Rows<'a>) -> Self {
        Self { rows, ..self }
    }

    pub(crate) fn row(self, i: usize) -> RowBias<'a, T> {
        let Rows {
            example,
            head,
            queries,
            keys,
            ..
        } = self.rows;
        let position = (i + keys) as i64 - queries as i64;
        match &self.bias.0 {
            Kind::Fixed { values, .. } => {
                let (examples, heads, queries, keys) = values.dim();
                let row = ((example % examples) * heads + head % heads) * queries + i;
                let data = values.as_slice().expect("an owned row-major array");
                RowBias::Fixed(&data[row * keys..][..keys])
            }
            Kind::Alibi(_) => RowBias::Alibi {
                slope: self.slope,
                position,
            },
            Kind::Relative(table) => {
                let row = head % table.nrows();
                let data = table.as_slice().expect("an owned row-major array");
                RowBias::Relative {
                    table: &data[row * table.ncols()..][..table.ncols()],
                    position,
                }
            }
        }
    }

    pub(crate) fn gradient_sizes(self) -> (usize, usize) {
        self.bias.gradient_sizes()
    }
}

/// The bias of one query.
#[derive(Clone, Copy, Debug)]
pub(crate) enum RowBias<'a, T> {
    Fixed(&'a [T]),
    Alibi { slope: f64, position: i64 },
    Relative { table: &'a [T], position: i64 },
}

impl<T: Real> RowBias<'_, T> {
    /// Adds the bias of some keys.
    pub(crate) fn add_to(self, keys: Range<usize>, out: &mut [f64]) {
        match self {
            Self::Fixed(row) => {
                let pairs = out.iter_mut().zip(&row[keys]);
                pairs.for_each(|(x, b)| *x += b.as_f64());
            }
            Self::Alibi { slope, position } => {
                let pairs = out.iter_mut().zip(keys);
                pairs.for_each(|(x, j)| *x -= slope * (position - j as i64).abs() as f64);
            }
            Self::Relative { table, position } => {
                let pairs = out.iter_mut().zip(keys);
                pairs.for_each(|(x, j)| *x += table[column(table, position, j)].as_f64());
            }
        }
    }

    /// Adds the gradients of some keys' biases, those of a row of pairs or of a table.
    pub(crate) fn pull_back(self, keys: Range<usize>, given: &[T], row: &mut [T], all: &mut [T]) {
        match self {
            Self::Relative { table, position } => {
                let pairs = given.iter().zip(keys);
                pairs.for_each(|(&x, j)| all[column(table, position, j)] += x);
            }
            _ if row.is_empty() => {}
            _ => row[keys].copy_from_slice(given),
        }
    }
}

/// The column of a distance.
fn column<T>(table: &[T], position: i64, j: usize) -> usize {
    let reach = (table.len() / 2) as i64;
    ((position - j as i64).clamp(-reach, reach) + reach) as usize
}
