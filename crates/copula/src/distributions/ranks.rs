//! Statistics of ranks: uniform scores and Kendall's tau.

use crate::Error;
use bochner_numerics::{argument, parallel};
use ndarray::{Array2, ArrayView1, ArrayView2, Axis};

/// The uniform scores of observations: their ranks over `n + 1`, ties sharing their mean rank.
///
/// $$u_{im} = \frac{\mathrm{rank}\_m(x_{im})}{n + 1}$$
///
/// # Shapes
/// `x: [n, M]`, one observation a row, to `[n, M]`, strictly between 0 and 1.
///
/// # Errors
/// [`Error::Argument`] for observations without entries or that are not finite.
///
/// # Reference
/// Genest, Ghoudi, Rivest, *A semiparametric estimation procedure of dependence parameters in
/// multivariate families of distributions*, Biometrika 1995.
///
/// # Example
///
/// ```
/// use bochner_copula::ndarray::array;
/// use bochner_copula::pseudo_observations;
///
/// let u = pseudo_observations(array![[9.0], [-1.0], [9.0]].view())?;
/// assert_eq!(u, array![[2.5 / 4.0], [0.25], [2.5 / 4.0]]);
/// # Ok::<(), bochner_copula::Error>(())
/// ```
pub fn pseudo_observations(x: ArrayView2<f64>) -> Result<Array2<f64>, Error> {
    argument::not_empty("x", x.shape())?;
    argument::finite("x", x.shape(), x)?;
    let mut u = Array2::zeros(x.dim());
    let columns = parallel::map(x.ncols(), |column| Ranked::new(x.column(column)));
    for (ranked, mut u) in columns.iter().zip(u.axis_iter_mut(Axis(1))) {
        ranked.uniform_scores(|i, score| u[i] = score);
    }
    Ok(u)
}

/// Kendall's tau-b of paired observations: the balance of concordant pairs, corrected for ties.
///
/// $$\tau_b = \frac{n_c - n_d}{\sqrt{(n_0 - n_x)(n_0 - n_y)}}, \qquad n_0 = \tfrac12 n (n - 1)$$
///
/// *where* $n_c$ and $n_d$ count the concordant and the discordant pairs, $n_x$ and $n_y$ those
/// tied in one of the two.
///
/// # Shapes
/// `x` and `y`: `[n]`.
///
/// # Errors
/// [`Error::Argument`] if the lengths differ or a value is not finite, [`Error::TooFew`] below two
/// observations, [`Error::Constant`] (column 0 for `x`, 1 for `y`).
///
/// # Numerics
/// The pairs are counted in integers, in `n log n` steps: the discordant pairs are the exchanges of a
/// stable sort.
///
/// # Reference
/// Knight, *A computer method for calculating Kendall's tau with ungrouped data*, JASA 1966.
pub fn kendall_tau_b(x: ArrayView1<f64>, y: ArrayView1<f64>) -> Result<f64, Error> {
    argument::shape("y", x.shape(), y.shape())?;
    argument::finite("x", x.shape(), x)?;
    argument::finite("y", y.shape(), y)?;
    let n = x.len();
    if n < 2 {
        return Err(Error::TooFew { got: n });
    }
    let (x, y) = (Ranked::new(x), Ranked::new(y));
    for (column, ranked) in [&x, &y].into_iter().enumerate() {
        if ranked.distinct == 1 {
            return Err(Error::Constant { column });
        }
    }
    Ok(x.tau_b(&y, &mut Scratch::default()))
}

/// A column sorted once, for its rank correlations with any number of others.
pub(crate) struct Ranked {
    /// The indices of the observations in ascending order.
    order: Vec<u32>,
    /// The place of each observation's value among the distinct values.
    ranks: Vec<u32>,
    /// The number of distinct values.
    pub(crate) distinct: usize,
    /// The number of pairs of observations with the same value.
    tied: u64,
}

/// Memory for the ranks of a pair of columns, used again for the next pair.
#[derive(Default)]
pub(crate) struct Scratch {
    ranks: Vec<u32>,
    spare: Vec<u32>,
}

impl Ranked {
    /// Sorts a column of finite values.
    pub(crate) fn new(x: ArrayView1<f64>) -> Self {
        let mut sorted: Vec<(f64, u32)> = x.iter().copied().zip(0..).collect();
        sorted.sort_unstable_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
        let mut ranks = vec![0; x.len()];
        let (mut distinct, mut tied) = (0, 0);
        // Zeros of both signs are equal.
        for group in sorted.chunk_by(|a, b| a.0 == b.0) {
            group
                .iter()
                .for_each(|&(_, i)| ranks[i as usize] = distinct);
            distinct += 1;
            tied += pairs(group.len());
        }
        Self {
            order: sorted.into_iter().map(|(_, i)| i).collect(),
            ranks,
            distinct: distinct as usize,
            tied,
        }
    }

    /// The number of observations.
    pub(crate) fn len(&self) -> usize {
        self.order.len()
    }

    /// Whether ties are so frequent that the column is no sample of a continuous distribution: in more than one pair
    /// of a hundred, and with fewer than nine distinct values for ten observations.
    pub(crate) fn is_discrete(&self) -> bool {
        let n = self.order.len();
        100 * self.tied > pairs(n) && 10 * self.distinct < 9 * n
    }

    /// Kendall's tau-b of two columns that are not constant.
    pub(crate) fn tau_b(&self, other: &Self, scratch: &mut Scratch) -> f64 {
        let n = self.order.len();
        let Scratch { ranks, spare } = scratch;
        ranks.clear();
        ranks.extend(self.order.iter().map(|&i| other.ranks[i as usize]));
        spare.resize(n, 0);
        let mut tied_in_both = 0;
        if self.tied > 0 {
            // Within ties of one column, the other's order must not count.
            let mut rest = &mut ranks[..];
            for group in self.order.chunk_by(|&i, &j| self.rank(i) == self.rank(j)) {
                let (group, after) = rest.split_at_mut(group.len());
                rest = after;
                group.sort_unstable();
                let runs = group.chunk_by(|a, b| a == b);
                tied_in_both += runs.map(|run| pairs(run.len())).sum::<u64>();
            }
        }
        let bits = usize::BITS - other.distinct.leading_zeros();
        let discordant = exchanges(ranks, spare, bits);
        let all = pairs(n);
        let balance =
            (all + tied_in_both) as f64 - (self.tied + other.tied) as f64 - 2.0 * discordant as f64;
        let (by_x, by_y) = ((all - self.tied) as f64, (all - other.tied) as f64);
        (balance / by_x.sqrt() / by_y.sqrt()).clamp(-1.0, 1.0)
    }

    /// Hands each observation its mean rank over `n + 1`.
    pub(crate) fn uniform_scores(&self, mut set: impl FnMut(usize, f64)) {
        let mut before = 0;
        for tied in self.order.chunk_by(|&i, &j| self.rank(i) == self.rank(j)) {
            let rank = before as f64 + 0.5 * (tied.len() + 1) as f64;
            let score = rank / (self.order.len() + 1) as f64;
            tied.iter().for_each(|&i| set(i as usize, score));
            before += tied.len();
        }
    }

    fn rank(&self, observation: u32) -> u32 {
        self.ranks[observation as usize]
    }
}

/// The number of pairs among `n`.
fn pairs(n: usize) -> u64 {
    n as u64 * (n as u64).saturating_sub(1) / 2
}

/// The number of pairs in descending order, among numbers that differ in their lowest `bits` alone.
///
/// A radix sort from the highest bit: a number whose bit is 0 is exchanged with those before it whose bit is 1. Unlike
/// a merge it has no branch that depends on the numbers. The order of `x` is lost.
fn exchanges(x: &mut [u32], spare: &mut [u32], bits: u32) -> u64 {
    const FEW: usize = 24;
    if x.len() <= FEW || bits == 0 {
        let later = |i: usize| x[i + 1..].iter().map(|y| u64::from(*y < x[i])).sum::<u64>();
        return if bits == 0 {
            0
        } else {
            (0..x.len()).map(later).sum()
        };
    }
    let bit = bits - 1;
    let zeros = x.iter().filter(|&&x| (x >> bit) & 1 == 0).count();
    let (mut ones, mut count) = (0, 0);
    let mut places = [0, zeros];
    for &number in x.iter() {
        let one = ((number >> bit) & 1) as usize;
        count += (1 - one as u64) * ones;
        ones += one as u64;
        spare[places[one]] = number;
        places[one] += 1;
    }
    let (low, high) = spare.split_at_mut(zeros);
    let (spare_low, spare_high) = x.split_at_mut(zeros);
    count + exchanges(low, spare_low, bit) + exchanges(high, spare_high, bit)
}
