//! Student's t copula: its density and gradients.

use crate::Error;
use crate::density::{normal_scores, turned, unit_rows};
use crate::distributions::gaussian::GaussianCopula;
use crate::distributions::marginal::{LogTails, Marginal};
use crate::distributions::special::{digamma, ln_gamma, neg_ln_beta};
use crate::distributions::univariate::Univariate;
use crate::factor::{half_neg_log_det, normalise_vjp};
use crate::triangular::{solve_columns, solve_columns_transposed};
use bochner_numerics::{argument, parallel};
use ndarray::{Array1, Array2, ArrayView1, ArrayView2, Axis};
use serde::{Deserialize, Serialize};

/// The dependence of variables with a joint t distribution, whatever their marginals.
///
/// $$\log c(u) = \log t_{\nu,R}(y) - \sum_m \log t_\nu(y_m), \qquad y_m = T_\nu^{-1}(u_m)$$
///
/// *where* $T_\nu$ is the distribution function of Student's t with $\nu$ degrees of freedom and *R* a correlation
/// matrix. Unlike the Gaussian copula it has dependence in the tails: large values come together
/// ([`tail_dependence`](Self::tail_dependence)). It approaches the Gaussian copula for many degrees of freedom.
///
/// # Reference
/// Demarta and McNeil, *The t copula and related copulas*, International Statistical Review 2005.
///
/// # Example
///
/// ```
/// use bochner_copula::ndarray::array;
/// use bochner_copula::{GaussianCopula, StudentsTCopula};
/// use bochner_numerics::Seed;
///
/// let normal = GaussianCopula::from_correlation(array![[1.0, 0.6], [0.6, 1.0]].view())?;
/// let copula = StudentsTCopula::new(normal, 4.0)?;
/// let u = copula.sample(2000, &mut Seed::new(1).stream("scores"));
/// let fitted = StudentsTCopula::fit(u.view())?;
/// assert!((fitted.correlation()[[0, 1]] - 0.6).abs() < 0.05);
/// assert!((2.0..8.0).contains(&fitted.freedom()));
/// # Ok::<(), bochner_copula::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "Parameters", into = "Parameters")]
pub struct StudentsTCopula {
    normal: GaussianCopula,
    freedom: f64,
}

/// The serialised form.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Parameters {
    normal: GaussianCopula,
    freedom: f64,
}

impl TryFrom<Parameters> for StudentsTCopula {
    type Error = Error;

    fn try_from(parameters: Parameters) -> Result<Self, Error> {
        Self::new(parameters.normal, parameters.freedom)
    }
}

impl From<StudentsTCopula> for Parameters {
    fn from(copula: StudentsTCopula) -> Self {
        let StudentsTCopula { normal, freedom } = copula;
        Self { normal, freedom }
    }
}

impl StudentsTCopula {
    /// The t copula with the correlation matrix of a Gaussian copula.
    ///
    /// # Errors
    /// [`Error::Argument`] unless the degrees of freedom are positive and finite.
    pub fn new(normal: GaussianCopula, freedom: f64) -> Result<Self, Error> {
        let holds = freedom > 0.0 && freedom.is_finite();
        argument::in_range(holds, "freedom", freedom, "above 0 and finite")?;
        Ok(Self::of_parts(normal, freedom))
    }

    pub(crate) fn of_parts(normal: GaussianCopula, freedom: f64) -> Self {
        Self { normal, freedom }
    }

    /// The number of coordinates, *M*.
    pub fn dimension(&self) -> usize {
        self.normal.dimension()
    }

    /// The Gaussian copula with the same correlation matrix.
    pub fn normal(&self) -> &GaussianCopula {
        &self.normal
    }

    /// The correlation matrix *R*, `[M, M]`.
    pub fn correlation(&self) -> ArrayView2<'_, f64> {
        self.normal.correlation()
    }

    /// The degrees of freedom $\nu$.
    pub fn freedom(&self) -> f64 {
        self.freedom
    }

    /// Kendall's tau of every pair of coordinates, `[M, M]`: that of the Gaussian copula.
    pub fn kendall_tau(&self) -> Array2<f64> {
        self.normal.kendall_tau()
    }

    /// The probability that one coordinate is extreme if the other is, in the limit, for every pair, `[M, M]`.
    ///
    /// $$\lambda = 2 T_{\nu+1}\big(-\sqrt{(\nu + 1)(1 - r) / (1 + r)}\big)$$
    pub fn tail_dependence(&self) -> Array2<f64> {
        let t = standard_t(self.freedom + 1.0);
        self.correlation().mapv(|r| {
            let r = r.clamp(-1.0, 1.0);
            let bound = -((self.freedom + 1.0) * (1.0 - r) / (1.0 + r)).sqrt();
            2.0 * t.log_tails(bound).lower.exp()
        })
    }

    /// The logarithm of the density at uniform scores.
    ///
    /// # Shapes
    /// `u: [n, M]` to `[n]`.
    ///
    /// # Errors
    /// [`Error::Argument`] for another number of coordinates, [`Error::Score`] for a score not strictly
    /// between 0 and 1.
    pub fn log_density(&self, u: ArrayView2<f64>) -> Result<Array1<f64>, Error> {
        Ok(self.log_density_at_scores(normal_scores(u, self.dimension())?))
    }

    /// The density at uniform scores, `exp` of [`log_density`](Self::log_density).
    ///
    /// # Shapes
    /// `u: [n, M]` to `[n]`.
    ///
    /// # Errors
    /// The errors of [`log_density`](Self::log_density).
    pub fn density(&self, u: ArrayView2<f64>) -> Result<Array1<f64>, Error> {
        Ok(self.log_density(u)?.mapv_into(f64::exp))
    }

    /// The logarithm of the density at normal scores.
    pub(crate) fn log_density_at_scores(&self, scores: Array2<f64>) -> Array1<f64> {
        let t = standard_t(self.freedom);
        self.log_density_at(by_columns(scores, |x| t.at_scores(x)))
    }

    /// The logarithm of the density at scores of the t distribution.
    pub(crate) fn log_density_at(&self, y: Array2<f64>) -> Array1<f64> {
        let (freedom, dimension) = (self.freedom, self.dimension() as f64);
        let half = 0.5 * freedom;
        // The logarithm of Gamma(half + s) / Gamma(half).
        let ratio = |s: f64| neg_ln_beta(half, s) + ln_gamma(s);
        let factor = self.normal.factor();
        let determinant = half_neg_log_det(factor.insert_axis(Axis(0)));
        let determinant = determinant.expect("a checked factor")[0];
        let constant = determinant + ratio(0.5 * dimension) - dimension * ratio(0.5);
        let mut values = vec![0.0; y.nrows()];
        parallel::for_each_chunk(&mut values, ROWS, |block, values| {
            let rows = values.len();
            let y = turned(y.view(), block * ROWS..block * ROWS + rows);
            let mut e = y.clone();
            solve_columns(factor, &mut e);
            let (alone, together) = (ln_ones_and_squares(&y, rows, freedom), squares(&e, rows));
            for (row, (value, (alone, square))) in values
                .iter_mut()
                .zip(alone.into_iter().zip(together))
                .enumerate()
            {
                let of_row = |x: &[f64]| x[row..].iter().step_by(rows).copied().collect();
                let (mut alone, mut together) = (alone, (square / freedom).ln_1p());
                if !(alone.is_finite() && together.is_finite()) {
                    let (y, e): (Vec<f64>, Vec<f64>) = (of_row(&y), of_row(&e));
                    alone = y.iter().map(|y| ln_one_and_square(*y, freedom)).sum();
                    together = ln_one_and_square(norm(&e), freedom);
                }
                let exponents = (freedom + 1.0) * alone - (freedom + dimension) * together;
                *value = if exponents.is_nan() {
                    f64::NEG_INFINITY
                } else {
                    constant + 0.5 * exponents
                };
            }
        });
        values.into()
    }
}

/// The number of rows computed together.
const ROWS: usize = 256;

/// `sum_m ln(1 + y_m^2 / freedom)` of the columns of `y: [M, rows]`, infinite or NaN where a square overflows. One logarithm
/// serves many factors.
fn ln_ones_and_squares(y: &[f64], rows: usize, freedom: f64) -> Vec<f64> {
    const LARGE: f64 = 1e140;
    // Products less one, which keep the digits of small squares.
    let (mut sums, mut products) = (vec![0.0; rows], vec![0.0; rows]);
    let share = 1.0 / freedom;
    for y in y.chunks_exact(rows) {
        let mut largest = 0.0_f64;
        for (product, y) in products.iter_mut().zip(y) {
            let square = y * y * share;
            *product += square * (1.0 + *product);
            largest = largest.max(*product);
        }
        if largest > LARGE {
            for (sum, product) in sums.iter_mut().zip(&mut products) {
                *sum += std::mem::take(product).ln_1p();
            }
        }
    }
    let pairs = sums.iter_mut().zip(products);
    pairs.for_each(|(sum, product): (&mut f64, f64)| *sum += product.ln_1p());
    sums
}

/// The squared norms of the columns of `e: [M, rows]`.
fn squares(e: &[f64], rows: usize) -> Vec<f64> {
    let mut sums = vec![0.0; rows];
    for e in e.chunks_exact(rows) {
        let pairs = sums.iter_mut().zip(e);
        pairs.for_each(|(sum, e)| *sum += e * e);
    }
    sums
}

/// The norm of a vector, without overflow.
fn norm(e: &[f64]) -> f64 {
    e.iter().fold(0.0, |norm: f64, e| norm.hypot(*e))
}

/// The vector-Jacobian product of the logarithm of the t copula's density.
///
/// $$\bar u_{im} = \frac{g_i}{t_\nu(y_{im})} \Big(\frac{(\nu + 1) y_{im}}{\nu + y_{im}^2} - \kappa_i w_{im}\Big), \qquad
///   \bar{\hat L} = \mathrm{lower}\Big(\sum_i g_i \kappa_i w_i e_i^\top\Big) -
///     \sum_i g_i \mathrm{diag}(1 / \hat L_{mm})$$
///
/// $$\bar\nu = \sum_i g_i \Big(\frac{\partial \log c}{\partial \nu}\Big|\_y + \sum_m
///   \frac{\partial \log c}{\partial y_{im}} \frac{\partial y_{im}}{\partial \nu}\Big)$$
///
/// *where* $e = \hat L^{-1} y$, $w = \hat L^{-\top} e$ and $\kappa = (\nu + M) / (\nu + |e|^2)$.
///
/// # Shapes
/// `u: [n, M]`, `factor: [M, M]`, `cotangent` (*g*): `[n]`.
///
/// # Errors
/// [`Error::Score`], [`Error::Argument`] for shapes that do not fit or degrees of freedom that are not positive, and
/// the errors of [`normalise`](crate::normalise).
///
/// # Numerics
/// The distribution function of Student's t has no derivative along $\nu$ in closed form. The derivative of a score is a
/// difference quotient of fourth order, of the logarithms of tail probabilities. Their rounding errors of 1e-14 become
/// about 1e-11 in the derivative along $\ln \nu$.
pub fn students_t_log_density_vjp(
    u: ArrayView2<f64>,
    factor: ArrayView2<f64>,
    freedom: f64,
    cotangent: ArrayView1<f64>,
) -> Result<StudentsTGradients, Error> {
    let lh = unit_rows(factor)?;
    let scores = normal_scores(u, lh.nrows())?;
    argument::positive("freedom", freedom)?;
    argument::shape("cotangent", &[u.nrows()], cotangent.shape())?;
    let t = standard_t(freedom);
    let y = by_columns(scores, |x| t.at_scores(x));
    let mut e = y.t().as_standard_layout().into_owned();
    solve_columns(lh.view(), e.as_slice_mut().expect("in row-major order"));
    let e = e.reversed_axes();
    let mut w = e.t().as_standard_layout().into_owned();
    solve_columns_transposed(lh.view(), w.as_slice_mut().expect("in row-major order"));
    let mut w = w.reversed_axes();
    for ((mut w, e), g) in w.rows_mut().into_iter().zip(e.rows()).zip(cotangent) {
        w *= g * (freedom + lh.nrows() as f64) / (freedom + e.dot(&e));
    }
    let mut to_lh = w.t().dot(&e);
    let total = cotangent.sum();
    to_lh
        .diag_mut()
        .zip_mut_with(&lh.diag(), |bar, l| *bar -= total / l);
    let wide = factor.to_owned().insert_axis(Axis(0));
    let to_factor = normalise_vjp(wide.view(), to_lh.insert_axis(Axis(0)).view())?;
    let mut to_freedom = 0.0;
    for ((y, e), g) in y.rows().into_iter().zip(e.rows()).zip(cotangent) {
        to_freedom += g * slope_along_freedom(y, e, freedom);
    }
    let shifts = by_columns(y.clone(), |y| {
        y.iter_mut()
            .for_each(|y| *y = shift_along_freedom(*y, freedom));
    });
    let mut to_u = y;
    let rows = to_u.rows_mut().into_iter().zip(w.rows());
    for (((mut row, w), shifts), g) in rows.zip(shifts.rows()).zip(cotangent) {
        for ((y, w), shift) in row.iter_mut().zip(w).zip(shifts) {
            let along_y = g * (freedom + 1.0) * *y / (freedom + *y * *y) - w;
            to_freedom += along_y * shift;
            *y = along_y * (-t.log_density(*y)).exp();
        }
    }
    Ok(StudentsTGradients {
        u: to_u,
        factor: to_factor.index_axis_move(Axis(0), 0),
        freedom: to_freedom,
    })
}

/// The gradients of the logarithm of the t copula's density.
#[derive(Clone, Debug, PartialEq)]
pub struct StudentsTGradients {
    /// Along the uniform scores, `[n, M]`.
    pub u: Array2<f64>,
    /// Along the factor, `[M, M]`.
    pub factor: Array2<f64>,
    /// Along the degrees of freedom.
    pub freedom: f64,
}

/// The derivative of the logarithm of the density along the degrees of freedom for held scores of the t distribution.
fn slope_along_freedom(y: ArrayView1<f64>, e: ArrayView1<f64>, freedom: f64) -> f64 {
    let dimension = y.len() as f64;
    let part = |size: f64, exponent: f64| {
        exponent / (freedom * (freedom / (size * size) + 1.0)) - ln_one_and_square(size, freedom)
    };
    let alone: f64 = y.iter().map(|y| part(*y, freedom + 1.0)).sum();
    let together = part(norm(&e.to_vec()), freedom + dimension);
    let constant = digamma(0.5 * (freedom + dimension))
        + (dimension - 1.0) * digamma(0.5 * freedom)
        - dimension * digamma(0.5 * (freedom + 1.0));
    0.5 * (constant + together - alone)
}

/// The derivative of a score of the t distribution along the degrees of freedom for a held probability.
fn shift_along_freedom(y: f64, freedom: f64) -> f64 {
    const STEP: f64 = 1e-3;
    if y == 0.0 {
        return 0.0;
    }
    // The tail beyond the score, whose logarithm keeps its digits.
    let at = |freedom: f64| standard_t(freedom).log_tails(-y.abs()).lower;
    let difference =
        |steps: f64| at(freedom * (1.0 + steps * STEP)) - at(freedom * (1.0 - steps * STEP));
    let slope = (8.0 * difference(1.0) - difference(2.0)) / (12.0 * STEP * freedom);
    let ratio = (at(freedom) - standard_t(freedom).log_density(y)).exp();
    y.signum() * slope * ratio
}

/// `ln(1 + y^2 / freedom)` without overflow.
fn ln_one_and_square(y: f64, freedom: f64) -> f64 {
    let s = y.abs() / freedom.sqrt();
    if s < 1e8 {
        (s * s).ln_1p()
    } else {
        2.0 * s.ln()
    }
}

/// The standard t distribution.
pub(crate) fn standard_t(freedom: f64) -> Univariate {
    Univariate::StudentsT {
        location: 0.0,
        scale: 1.0,
        freedom,
    }
}

/// The distribution of the square by whose root normal numbers are divided to become those of Student's t.
pub(crate) fn mixing(freedom: f64) -> Univariate {
    Univariate::Gamma {
        shape: 0.5 * freedom,
        rate: 0.5 * freedom,
    }
}

/// The normal scores of scores of the t distribution.
pub(crate) fn to_normal_scores(y: Array2<f64>, freedom: f64) -> Array2<f64> {
    let t = standard_t(freedom);
    by_columns(y, |y| {
        y.iter_mut()
            .for_each(|y| *y = LogTails::score(t.log_tails(*y)));
    })
}

/// Applies a function to each column, on all threads.
pub(crate) fn by_columns(x: Array2<f64>, f: impl Fn(&mut [f64]) + Send + Sync) -> Array2<f64> {
    let shape = (x.ncols(), x.nrows());
    let mut turned: Vec<f64> = x.t().iter().copied().collect();
    parallel::for_each_chunk(&mut turned, shape.1.max(1), |_, column| f(column));
    let turned = Array2::from_shape_vec(shape, turned).expect("as many as there were");
    turned.reversed_axes().as_standard_layout().into_owned()
}
