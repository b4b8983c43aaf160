//! Sparse regression by inducing points: the variational bound of Titsias, its gradient, and predictions.

mod inducing;
mod posterior;

pub use inducing::inducing_points;
pub use posterior::SparsePosterior;

use crate::evidence::check_inputs;
use crate::fit::{Climbs, Slope, Spreads};
use crate::{Error, Evidence, Fit, FitConfig, GaussianProcess, Step};
use bochner_dense::Cholesky;
use bochner_kernels::{Along, Kernel};
use bochner_numerics::{Mat, MatMut, argument, matmul, parallel};
use ndarray::{Array1, Array2, ArrayView1, ArrayView2, ArrayViewMut2, s};
use std::f64::consts::TAU;
use std::ops::{ControlFlow, Range};

/// A Gaussian process that sees its observations through $m$ inducing points, for tens of thousands of
/// observations.
///
/// The values of the function at the inducing points stand in for the observations. Their distribution, the
/// inducing points and the hyper-parameters are chosen by a lower bound on the evidence, so that more inducing
/// points only come closer to the exact process.
///
/// # Example
/// ```
/// use bochner_gp::ndarray::{Array, Axis};
/// use bochner_gp::{FitConfig, SparseProcess, inducing_points, rbf_process};
/// use bochner_numerics::Seed;
///
/// let x = Array::linspace(0.0, 20.0, 400);
/// let y = x.mapv(f64::sin);
/// let x = x.insert_axis(Axis(1));
/// let inducing = inducing_points(x.view(), 20, Seed::new(1))?;
/// let mut process = SparseProcess::new(rbf_process(x.view(), y.view())?, inducing)?;
/// let config = FitConfig { steps: 20, noise_floor: 1e-4, ..FitConfig::default() };
/// let before = process.bound(x.view(), y.view())?.log_likelihood;
/// let fit = process.fit(x.view(), y.view(), &config)?;
/// assert!(fit.evidence().log_likelihood > before);
/// let predicted = process.condition(x.view(), y.view())?.predict(x.view())?;
/// assert!((&predicted.mean - &y).iter().all(|off| off.abs() < 0.1));
/// # Ok::<(), bochner_gp::Error>(())
/// ```
///
/// # Reference
/// Titsias, *Variational learning of inducing variables in sparse Gaussian processes*, AISTATS 2009.
#[doc(alias = "SGPR")]
#[derive(Clone, Debug)]
pub struct SparseProcess {
    process: GaussianProcess,
    inducing: Array2<f64>,
}

/// The bound on the evidence with its gradient.
#[derive(Clone, Debug, PartialEq)]
pub struct SparseGradient {
    /// The bound. Its jitter is that of the inducing points' covariance matrix.
    pub bound: Evidence,
    /// The derivatives along the hyper-parameters, in the order of [`GaussianProcess::parameters`].
    pub parameters: Vec<f64>,
    /// The derivatives along the [`GaussianProcess::coordinates`].
    pub coordinates: Vec<f64>,
    /// The derivatives along the inducing points, `[m, d]`.
    pub inducing: Array2<f64>,
}

impl SparseProcess {
    /// A process with these inducing points, `[m, d]`.
    ///
    /// # Errors
    /// [`Error::Argument`] if there are none, or if one is not finite.
    pub fn new(process: GaussianProcess, inducing: Array2<f64>) -> Result<Self, Error> {
        argument::not_empty("inducing", inducing.shape())?;
        argument::finite("inducing", inducing.shape(), &inducing)?;
        let inducing = inducing.as_standard_layout().into_owned();
        Ok(Self { process, inducing })
    }

    /// The process whose hyper-parameters and priors hold.
    pub fn process(&self) -> &GaussianProcess {
        &self.process
    }

    /// The inducing points, `[m, d]`.
    pub fn inducing(&self) -> ArrayView2<'_, f64> {
        self.inducing.view()
    }

    /// The lower bound on the evidence.
    ///
    /// $$F = \ln \mathcal N(y \mid m, Q + D) - \frac12 \sum_i \frac{k(x_i, x_i) - Q_{ii}}{D_{ii}}, \qquad
    /// Q = K_{xz} (K_{zz} + j I)^{-1} K_{zx}$$
    ///
    /// *where* $z$ are the inducing points, $D$ is diagonal with the noise $\sigma^2 + v_i$ of each observation and
    /// $j$ the jitter.
    ///
    /// # Shapes
    /// `x: [n, d]`, `y: [n]`.
    ///
    /// # Errors
    /// [`Error::InducingPoints`] for more inducing points than observations; [`Error::Argument`] for data of other
    /// shapes or that are not finite, with the row and column; [`Error::Kernel`], [`Error::Covariance`] and
    /// [`Error::NotPositiveDefinite`] as for [`GaussianProcess::evidence`].
    ///
    /// # Numerics
    /// $O(n m^2)$ time, split among the threads of rayon's current pool with the same result for any number of
    /// them; $O(n m / 16 + 16 m^2)$ memory for each thread.
    ///
    /// # Reference
    /// Titsias, 2009, equation 9.
    pub fn bound(&self, x: ArrayView2<f64>, y: ArrayView1<f64>) -> Result<Evidence, Error> {
        Ok(Summary::new(&self.process, self.inducing.view(), x, y)?.bound())
    }

    /// The [`bound`](Self::bound) with its gradient along all hyper-parameters and inducing points.
    ///
    /// # Errors
    /// The errors of [`bound`](Self::bound).
    pub fn bound_gradient(
        &self,
        x: ArrayView2<f64>,
        y: ArrayView1<f64>,
    ) -> Result<SparseGradient, Error> {
        let summary = Summary::new(&self.process, self.inducing.view(), x, y)?;
        summary.gradient(&self.process, self.inducing.view(), x, y)
    }

    /// Maximises the [`bound`](Self::bound) over hyper-parameters and inducing points as
    /// [`GaussianProcess::fit`] maximises the evidence.
    ///
    /// # Errors
    /// The errors of [`bound`](Self::bound) and of [`GaussianProcess::fit`].
    pub fn fit(
        &mut self,
        x: ArrayView2<f64>,
        y: ArrayView1<f64>,
        config: &FitConfig,
    ) -> Result<Fit, Error> {
        self.check(x, y)?;
        let spreads = Spreads::new(x, y);
        let mut slope = |process: &GaussianProcess, inducing: ArrayView2<f64>| {
            let summary = Summary::new(process, inducing, x, y)?;
            let gradient = summary.gradient(process, inducing, x, y)?;
            Ok(Slope {
                evidence: gradient.bound,
                coordinates: gradient.coordinates,
                inducing: gradient.inducing.iter().copied().collect(),
            })
        };
        let mut observe = |_: &GaussianProcess, _: &Step| ControlFlow::Continue(());
        let climbs = Climbs {
            spreads: &spreads,
            config,
            slope: &mut slope,
            observe: &mut observe,
        };
        let mut moved = self.clone();
        let fit = climbs.run(&mut moved.process, &mut moved.inducing)?;
        *self = moved;
        Ok(fit)
    }

    fn check(&self, x: ArrayView2<f64>, y: ArrayView1<f64>) -> Result<(), Error> {
        check(&self.process, self.inducing.view(), x, y)
    }
}

fn check(
    process: &GaussianProcess,
    inducing: ArrayView2<f64>,
    x: ArrayView2<f64>,
    y: ArrayView1<f64>,
) -> Result<(), Error> {
    process.check_observations(x, y)?;
    check_inputs(inducing)?;
    let (inducing, rows) = (inducing.dim(), x.nrows());
    argument::shape(
        "inducing",
        &[inducing.0, x.ncols()],
        &[inducing.0, inducing.1],
    )?;
    if inducing.0 > rows {
        let inducing = inducing.0;
        return Err(Error::InducingPoints { inducing, rows });
    }
    Ok(())
}

/// The number of pieces into which the observations are split, whatever the number of threads.
const PIECES: usize = 16;

/// The number of rows of a Gram matrix that are in memory at a time.
const ROWS: usize = 512;

/// The pieces of the observations.
fn pieces(rows: usize) -> (usize, impl Fn(usize) -> Range<usize> + Sync) {
    let size = rows.div_ceil(PIECES).max(ROWS);
    (rows.div_ceil(size), move |i| {
        i * size..rows.min((i + 1) * size)
    })
}

fn blocks(piece: Range<usize>) -> impl Iterator<Item = Range<usize>> {
    let end = piece.end;
    piece
        .step_by(ROWS)
        .map(move |start| start..end.min(start + ROWS))
}

/// Everything about the observations that the bound and predictions need, in the basis in which the values at the
/// inducing points are independent: $a_i = L^{-1} k_z(x_i)$ with $L L^\top = K_{zz} + j I$.
#[derive(Clone, Debug)]
struct Summary {
    jitter: f64,
    /// $L^{-\top}$, row by row.
    whiten: Array2<f64>,
    /// The factor of $B = I + C$.
    precision: Cholesky,
    /// $C = \sum_i a_i a_i^\top / D_{ii}$.
    squares: Array2<f64>,
    /// $w = B^{-1} d$ with $d = \sum_i a_i r_i / D_{ii}$.
    weights: Vec<f64>,
    /// $d^\top w$.
    explained: f64,
    /// $\sum_i r_i^2 / D_{ii}$, $\sum_i \ln D_{ii}$ and $\sum_i k(x_i, x_i) / D_{ii}$.
    sums: [f64; 3],
    observations: usize,
}

/// The contribution of a piece of the observations to the [`Summary`].
struct Piece {
    squares: Array2<f64>,
    products: Vec<f64>,
    sums: [f64; 3],
}

/// $1 / D_{ii}$.
fn weight(process: &GaussianProcess, i: usize) -> f64 {
    let known = process.observation_noise.as_ref().map_or(0.0, |v| v[i]);
    (process.noise + known).recip()
}

fn mat(x: &Array2<f64>) -> Mat<'_, f64> {
    Mat::new(
        x.as_slice().expect("in row-major order"),
        x.nrows(),
        x.ncols(),
    )
}

fn add_product(alpha: f64, a: Mat<f64>, b: Mat<f64>, to: &mut Array2<f64>) {
    let (rows, columns) = to.dim();
    let out = to.as_slice_mut().expect("in row-major order");
    matmul(alpha, a, b, 1.0, MatMut::new(out, rows, columns));
}

fn product(a: Mat<f64>, b: Mat<f64>) -> Array2<f64> {
    let mut out = Array2::zeros((a.shape().0, b.shape().1));
    add_product(1.0, a, b, &mut out);
    out
}

impl Summary {
    fn new(
        process: &GaussianProcess,
        inducing: ArrayView2<f64>,
        x: ArrayView2<f64>,
        y: ArrayView1<f64>,
    ) -> Result<Self, Error> {
        check(process, inducing, x, y)?;
        let m = inducing.nrows();
        let gram = process.kernel.gram(inducing, inducing)?;
        let (factor, jitter) = process.jitter.factorise(gram.view(), 0.0)?;
        let mut whiten = Array2::eye(m);
        factor.whiten(whiten.view_mut())?;
        let (count, range) = pieces(x.nrows());
        let each = parallel::map(count, |i| {
            Piece::new(process, inducing, &whiten, (x, y), range(i))
        });
        let (mut squares, mut products, mut sums) = (Array2::zeros((m, m)), vec![0.0; m], [0.0; 3]);
        for piece in each {
            let piece = piece?;
            squares += &piece.squares;
            products
                .iter_mut()
                .zip(piece.products)
                .for_each(|(sum, p)| *sum += p);
            sums.iter_mut()
                .zip(piece.sums)
                .for_each(|(sum, p)| *sum += p);
        }
        let misfit = sums[0];
        let allowed = "finite: scale `y` down, or give the process more noise";
        argument::in_range(misfit.is_finite(), "the misfit of y", misfit, allowed)?;
        let precision = Cholesky::shifted(squares.view(), 1.0)?;
        let mut weights = products.clone();
        let row = ArrayViewMut2::from_shape((1, m), &mut weights);
        precision.solve(row.expect("one row of m entries"))?;
        let explained = products.iter().zip(&weights).map(|(d, w)| d * w).sum();
        Ok(Self {
            jitter,
            whiten,
            precision,
            squares,
            weights,
            explained,
            sums,
            observations: y.len(),
        })
    }

    fn bound(&self) -> Evidence {
        let [misfit, noise, variances] = self.sums;
        let missed = variances - self.squares.diag().sum();
        let constant = self.observations as f64 * TAU.ln();
        let twice =
            constant + noise + self.precision.log_determinant() + misfit - self.explained + missed;
        Evidence {
            log_likelihood: -0.5 * twice,
            jitter: self.jitter,
            observations: self.observations,
        }
    }

    /// The gradient. With $S = I - B^{-1} - w w^\top$ the cotangents are
    /// $\dot k_i = L^{-\top} (S a_i + r_i w) / D_{ii}$ for the row $k_z(x_i)$ and
    /// $\dot K_{zz} = \frac12 L^{-\top} (S - C) L^{-1}$.
    fn gradient(
        &self,
        process: &GaussianProcess,
        inducing: ArrayView2<f64>,
        x: ArrayView2<f64>,
        y: ArrayView1<f64>,
    ) -> Result<SparseGradient, Error> {
        let m = self.weights.len();
        let mut spread = Array2::eye(m) - self.precision.inverse();
        for ((i, j), entry) in spread.indexed_iter_mut() {
            *entry -= self.weights[i] * self.weights[j];
        }
        // Rows of a times this are rows of the cotangent.
        let pull = product(mat(&spread), mat(&self.whiten).t());
        let inner = (&spread - &self.squares) * 0.5;
        let along_inducing = product(
            mat(&self.whiten),
            mat(&product(mat(&inner), mat(&self.whiten).t())),
        );
        let whole = (process.kernel).gram_vjp(inducing, inducing, along_inducing.view())?;
        let mut along = Gradients {
            mean: 0.0,
            noise: 0.0,
            kernel: whole.parameters,
            inducing: whole.x + whole.y,
        };
        let (count, range) = pieces(x.nrows());
        let each = parallel::map(count, |i| {
            self.piece_gradient(process, inducing, &pull, (x, y), range(i))
        });
        for piece in each {
            along.add(piece?);
        }
        let mut parameters = vec![along.mean, along.noise];
        parameters.extend(along.kernel);
        Ok(SparseGradient {
            bound: self.bound(),
            coordinates: process.along_coordinates(&parameters),
            parameters,
            inducing: along.inducing,
        })
    }

    fn piece_gradient(
        &self,
        process: &GaussianProcess,
        inducing: ArrayView2<f64>,
        pull: &Array2<f64>,
        (x, y): (ArrayView2<f64>, ArrayView1<f64>),
        piece: Range<usize>,
    ) -> Result<Gradients, Error> {
        let kernel = &process.kernel;
        let mut along = Gradients::none(kernel.parameters().len(), inducing.dim());
        let weights = Array1::from(self.weights.clone());
        // L^{-T} w, the weights of the kernel's values in the mean.
        let means = self.whiten.dot(&weights);
        for rows in blocks(piece) {
            let x = x.slice(s![rows.clone(), ..]);
            let gram = standard(kernel.gram(x, inducing)?);
            let whitened = product(mat(&gram), mat(&self.whiten));
            let mut cotangent = product(mat(&whitened), mat(pull));
            let diagonal = kernel.diagonal(x)?;
            let mut along_diagonal = Array1::zeros(rows.len());
            for (at, i) in rows.clone().enumerate() {
                let (beta, residual) = (weight(process, i), y[i] - process.mean);
                let (k, mut g) = (gram.row(at), cotangent.row_mut(at));
                let mean = k.dot(&means);
                let slope = 0.5 * (beta.recip() - residual * residual - diagonal[at] + k.dot(&g))
                    + residual * mean;
                along.noise -= beta * beta * slope;
                along.mean += beta * (residual - mean);
                g.zip_mut_with(&means, |g, w| *g = beta * (*g + residual * w));
                along_diagonal[at] = -0.5 * beta;
            }
            let block = kernel.gram_vjp_along(Along::Everything, x, inducing, cotangent.view())?;
            let diagonal = kernel.diagonal_vjp(x, along_diagonal.view())?;
            for (sum, (a, b)) in along
                .kernel
                .iter_mut()
                .zip(block.parameters.iter().zip(diagonal))
            {
                *sum += a + b;
            }
            along.inducing += &block.y;
        }
        Ok(along)
    }
}

fn standard(x: Array2<f64>) -> Array2<f64> {
    x.as_standard_layout().into_owned()
}

impl Piece {
    fn new(
        process: &GaussianProcess,
        inducing: ArrayView2<f64>,
        whiten: &Array2<f64>,
        (x, y): (ArrayView2<f64>, ArrayView1<f64>),
        piece: Range<usize>,
    ) -> Result<Self, Error> {
        let m = inducing.nrows();
        let (mut squares, mut products, mut sums) = (Array2::zeros((m, m)), vec![0.0; m], [0.0; 3]);
        for rows in blocks(piece) {
            let x = x.slice(s![rows.clone(), ..]);
            let gram = standard(process.kernel.gram(x, inducing)?);
            let diagonal = process.kernel.diagonal(x)?;
            let bad = gram.indexed_iter().find(|(_, k)| !k.is_finite());
            if let Some(((row, column), &got)) = bad {
                let row = rows.start + row;
                return Err(Error::Covariance { row, column, got });
            }
            let mut whitened = product(mat(&gram), mat(whiten));
            for (at, i) in rows.clone().enumerate() {
                let (beta, residual) = (weight(process, i), y[i] - process.mean);
                let mut a = whitened.row_mut(at);
                for (sum, a) in products.iter_mut().zip(&a) {
                    *sum += beta * residual * a;
                }
                let terms = [beta * residual * residual, -beta.ln(), beta * diagonal[at]];
                sums.iter_mut().zip(terms).for_each(|(sum, t)| *sum += t);
                a *= beta.sqrt();
            }
            add_product(1.0, mat(&whitened).t(), mat(&whitened), &mut squares);
        }
        Ok(Self {
            squares,
            products,
            sums,
        })
    }
}

/// Gradients of a piece of the observations.
struct Gradients {
    mean: f64,
    noise: f64,
    kernel: Vec<f64>,
    inducing: Array2<f64>,
}

impl Gradients {
    fn none(parameters: usize, inducing: (usize, usize)) -> Self {
        Self {
            mean: 0.0,
            noise: 0.0,
            kernel: vec![0.0; parameters],
            inducing: Array2::zeros(inducing),
        }
    }

    fn add(&mut self, other: Self) {
        self.mean += other.mean;
        self.noise += other.noise;
        self.kernel
            .iter_mut()
            .zip(other.kernel)
            .for_each(|(sum, g)| *sum += g);
        self.inducing += &other.inducing;
    }
}
