//! Biases: numbers that are added to the logits of pairs.

use crate::mask::{HeadMask, Pattern};
use crate::{Error, Mask};
use bochner_numerics::{Real, argument};
use ndarray::{Array2, Array4, ArrayD, ArrayView2, ArrayView4, IxDyn, s};
use std::ops::Range;
use std::sync::Arc;

/// A bias $b_{ij}$ of each pair, added to the logarithm of its unnormalised weight.
///
/// It comes after the score and the weights of the keys and before the normaliser, so that every kernel's weights
/// are multiplied by $e^{b_{ij}}$. Query i stands at key $i + T_k - T_q$, as masks have it. Clones share
/// their numbers.
///
/// ```
/// use bochner_engine::{Bias, Mask, Settings, Wanted, attend, attend_vjp};
/// use bochner_engine::ndarray::{Array2, Array4};
///
/// let x = Array4::from_shape_fn((1, 2, 5, 4), |(_, m, t, n)| ((m + 2 * t + n) as f64).sin());
/// // One number for each head and each distance up to 2.
/// let table = Array2::zeros((2, 5));
/// let bias = Some(Bias::relative(table.view())?);
/// let settings = Settings { bias, ..Settings::softmax(&Mask::none()) };
/// let (_, saved) = attend(&settings, x.view(), x.view(), x.view())?;
/// let (cotangent, wanted) = (Array4::ones((1, 2, 5, 4)), Wanted { bias: true, ..Wanted::default() });
/// let gradients = attend_vjp(&settings, &saved, x.view(), x.view(), x.view(), cotangent.view(), wanted)?;
/// assert_eq!(gradients.bias.unwrap().shape(), [2, 5]);
/// # Ok::<(), bochner_engine::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
#[doc(alias = "attn_bias")]
pub struct Bias<T>(Numbers<T>);

#[derive(Clone, Debug, PartialEq)]
enum Numbers<T> {
    /// A number for each pair, and the pairs whose number is not minus infinity.
    Pairs(Arc<Array4<T>>, Option<Arc<Pattern>>),
    /// The slopes of ALiBi.
    Slopes,
    /// A table `[M, n]`, and the column of each distance of query and key from -reach to reach.
    Table(Arc<Array2<T>>, Arc<Vec<u32>>),
}

impl<T: Real> Bias<T> {
    /// Returns a bias with a number for each pair, `[1 or B, 1 or M, Tq, Tk]`; minus infinity hides a pair.
    ///
    /// # Errors
    /// [`Error::Argument`] for NaN or plus infinity.
    pub fn fixed(values: ArrayView4<T>) -> Result<Self, Error> {
        let none = T::neg_infinity();
        // Rows are read as slices, in whatever order the memory of a view is.
        let values = values.as_standard_layout();
        let finite = values.mapv(|b| if b == none { T::zero() } else { b });
        argument::finite("bias", finite.shape(), &finite)?;
        let hides = values.iter().any(|&b| b == none);
        let kept =
            hides.then(|| Arc::new(Pattern::from_matrices(values.mapv(|b| b != none).view())));
        Ok(Self(Numbers::Pairs(Arc::new(finite), kept)))
    }

    /// Returns $b_{ij} = -s_m |i + T_k - T_q - j|$ with the slopes of [`alibi_slopes`]. It has no gradient; learnt
    /// slopes are a [`Score`](crate::Score).
    ///
    /// # Reference
    /// Press et al. 2022, ALiBi.
    pub fn alibi() -> Self {
        Self(Numbers::Slopes)
    }

    /// Returns $b_{ij} = r_{m, \mathrm{clip}(i + T_k - T_q - j, -K, K) + K}$, r `[M, 2 K + 1]`.
    ///
    /// # Errors
    /// [`Error::Argument`] for an even number of columns, NaN or infinity.
    #[doc(alias = "relative_position_bias")]
    pub fn relative(table: ArrayView2<T>) -> Result<Self, Error> {
        let columns = table.ncols();
        let odd = "odd: one column for each distance from -K to K";
        argument::in_range(
            columns % 2 == 1,
            "columns of a relative bias",
            columns as f64,
            odd,
        )?;
        let reach = columns / 2;
        Self::by_distance(table, reach, |distance| (distance + reach as i64) as usize)
    }

    /// Returns $b_{ij} = r_{m, c(i + T_k - T_q - j)}$, r `[M, n]`, with the column `c` of each distance from `-reach`
    /// to `reach`, to which larger distances are clipped. T5's buckets are such columns.
    ///
    /// # Errors
    /// [`Error::Argument`] for a column that the table does not have, NaN or infinity.
    #[doc(alias = "t5_bias")]
    pub fn by_distance(
        table: ArrayView2<T>,
        reach: usize,
        column: impl Fn(i64) -> usize,
    ) -> Result<Self, Error> {
        let reach = reach as i64;
        let columns = (-reach..=reach).map(|distance| {
            let column = column(distance);
            argument::index("columns of the bias", column, table.ncols()).map(|()| column as u32)
        });
        let columns = Arc::new(columns.collect::<Result<_, _>>()?);
        argument::finite("bias", table.shape(), table)?;
        let table = Arc::new(table.as_standard_layout().into_owned());
        Ok(Self(Numbers::Table(table, columns)))
    }

    pub(crate) fn check(&self, [b, m, queries, keys]: [usize; 4]) -> Result<(), Error> {
        match &self.0 {
            Numbers::Pairs(values, _) => {
                let (examples, heads, ..) = values.dim();
                let one_or = |given, all| if given == 1 { 1 } else { all };
                let shape = [one_or(examples, b), one_or(heads, m), queries, keys];
                argument::shape("bias", &shape, values.shape())?;
            }
            Numbers::Table(table, _) => {
                argument::shape("bias", &[m, table.ncols()], table.shape())?;
            }
            Numbers::Slopes => {}
        }
        Ok(())
    }

    /// Returns the bias of a pair `[example, head, query, key]` of so many heads, queries and keys; minus infinity where it
    /// hides the pair.
    ///
    /// # Panics
    /// If there is no such pair.
    pub fn at(
        &self,
        [example, head, i, j]: [usize; 4],
        heads: usize,
        [queries, keys]: [usize; 2],
    ) -> T {
        if self
            .pattern()
            .is_some_and(|kept| !kept.of_head(example, head).keeps(i, j))
        {
            return T::neg_infinity();
        }
        let rows = HeadMask {
            mask: Mask::NONE,
            example,
            head,
            queries,
            keys,
            patterns: &[],
            seen: None,
        };
        let mut number = [T::zero()];
        HeadBias::new(self, rows, heads).add_to(i, j..j + 1, T::one(), &mut number);
        number[0]
    }

    /// Whether the bias follows from positions alone, so that a decoder can obey it.
    pub fn follows_from_positions(&self) -> bool {
        !matches!(self.0, Numbers::Pairs(..))
    }

    /// The pattern of the pairs that the bias keeps, if it hides any.
    pub(crate) fn pattern(&self) -> Option<&Arc<Pattern>> {
        match &self.0 {
            Numbers::Pairs(_, kept) => kept.as_ref(),
            _ => None,
        }
    }

    /// Returns zero gradients, shaped as the numbers; `None` for fixed slopes.
    pub fn zero_gradients(&self) -> Option<ArrayD<T>> {
        match &self.0 {
            Numbers::Pairs(values, _) => Some(ArrayD::zeros(IxDyn(values.shape()))),
            Numbers::Table(table, _) => Some(ArrayD::zeros(IxDyn(table.shape()))),
            Numbers::Slopes => None,
        }
    }
}

/// Returns the slopes of ALiBi's heads: $2^{-8 m / M}$, m from 1 to M, where M is a power of two; otherwise those of
/// the next lower power of two, and then every second one of the next higher.
pub fn alibi_slopes(heads: usize) -> Vec<f64> {
    slopes(heads).collect()
}

/// The slopes of [`alibi_slopes`], one after the other.
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
#[derive(Clone, Copy, Debug)]
pub(crate) struct HeadBias<'a, T> {
    bias: &'a Bias<T>,
    slope: f64,
    rows: HeadMask<'a>,
}

impl<'a, T: Real> HeadBias<'a, T> {
    pub(crate) fn new(bias: &'a Bias<T>, rows: HeadMask<'a>, heads: usize) -> Self {
        let slope = match &bias.0 {
            Numbers::Slopes => slopes(heads).nth(rows.head).expect("one a head"),
            _ => 0.0,
        };
        Self { bias, slope, rows }
    }

    /// The bias of the same head for other rows.
    pub(crate) fn with_rows(self, rows: HeadMask<'a>) -> Self {
        Self { rows, ..self }
    }

    /// The sizes of the head's gradients: the numbers for each query, and for all queries together.
    pub(crate) fn gradient_sizes(self) -> (usize, usize) {
        match &self.bias.0 {
            Numbers::Pairs(values, _) => (values.dim().3, 0),
            Numbers::Table(table, _) => (0, table.ncols()),
            Numbers::Slopes => (0, 0),
        }
    }

    /// The position of a query among the keys.
    fn position(self, i: usize) -> i64 {
        (i + self.rows.keys) as i64 - self.rows.queries as i64
    }

    /// Adds the bias of a query and some keys times a factor.
    pub(crate) fn add_to(self, i: usize, keys: Range<usize>, factor: T, out: &mut [T]) {
        let HeadMask { example, head, .. } = self.rows;
        match &self.bias.0 {
            Numbers::Pairs(values, _) => {
                let (examples, heads, ..) = values.dim();
                let row = values.slice(s![example % examples, head % heads, i, ..]);
                let row = row.to_slice().expect("an owned row-major array");
                let pairs = out.iter_mut().zip(&row[keys]);
                pairs.for_each(|(x, &b)| *x += factor * b);
            }
            Numbers::Slopes => {
                let first = T::of((self.position(i) - keys.start as i64) as f64);
                let slope = factor * T::of(-self.slope);
                let distances = out.iter_mut().zip(0_u32..);
                distances.for_each(|(x, n)| *x += slope * (first - T::of(n.into())).abs());
            }
            Numbers::Table(table, columns) => {
                let row = table.row(head % table.nrows());
                let (row, position) = (row.to_slice().expect("row-major"), self.position(i));
                let pairs = out.iter_mut().zip(keys);
                pairs.for_each(|(x, j)| *x += factor * row[column(columns, position, j)]);
            }
        }
    }

    /// Adds the gradients of the biases of a query and some keys: those of a row of pairs, or of a table.
    pub(crate) fn pull_back(
        self,
        i: usize,
        keys: Range<usize>,
        given: &[T],
        row: &mut [T],
        all: &mut [T],
    ) {
        match &self.bias.0 {
            Numbers::Pairs(..) => row[keys].copy_from_slice(given),
            Numbers::Slopes => {}
            Numbers::Table(_, columns) => {
                let (pairs, position) = (given.iter().zip(keys), self.position(i));
                pairs.for_each(|(&x, j)| all[column(columns, position, j)] += x);
            }
        }
    }
}

/// Returns the column of a distance.
#[inline]
fn column(columns: &[u32], position: i64, j: usize) -> usize {
    let reach = (columns.len() / 2) as i64;
    columns[((position - j as i64).clamp(-reach, reach) + reach) as usize] as usize
}
