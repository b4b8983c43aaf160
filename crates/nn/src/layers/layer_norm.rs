//! Layer normalisation.

use super::dropout::mask;
use super::{Dropout, EndsWith};
use crate::parameters::{Parameter, ParameterMut, Parameters, join};
use crate::rows::{add, by_blocks, sum, sum_over};
use crate::{BoxError, Element, Error, Inputs, Mode, Operation, record_one};
use bochner_numerics::instructions::{self, Arithmetic, Task};
use bochner_numerics::{Dropout as Mask, Real};
use dfdx::dtypes::Dtype;
use dfdx::nn::tensor_collection::{ModuleVisitor, ScalarOptions, TensorCollection, TensorOptions};
use dfdx::nn::{BuildModule, BuildOnDevice, Module, NonMutableModule};
use dfdx::shapes::{Const, ConstDim, Dim, HasShape};
use dfdx::tensor::{Cpu, CpuError, Merge, OnesTensor, Storage, Tape, Tensor, ZerosTensor};
use dfdx::tensor_ops::Device;
use ndarray::{ArrayD, ArrayViewD};
use std::ops::Range;

const EPSILON: f64 = 1e-5;

/// Normalises the last axis to mean 0 and variance 1, then scales and shifts it.
///
/// $$ y = \gamma \odot \frac{x - \mu}{\sqrt{\sigma^2 + \epsilon}} + \beta $$
///
/// * $\mu, \sigma^2$: mean and (biased) variance of $x$ over its last axis, `N`
/// * $\gamma$: `gamma`, `[N]`, starts at 1
/// * $\beta$: `beta`, `[N]`, starts at 0
/// * $\epsilon$: `epsilon`, `1e-5` by default
///
/// # Reference
/// Ba, Kiros, Hinton, *Layer Normalization*, 2016.
#[derive(Clone, Debug)]
pub struct LayerNorm<N: Dim, E: Dtype, D: Storage<E> = Cpu> {
    /// The scale $\gamma$.
    pub gamma: Tensor<(N,), E, D>,
    /// The shift $\beta$.
    pub beta: Tensor<(N,), E, D>,
    /// The number $\epsilon$, positive.
    pub epsilon: f64,
}

impl<N: Dim, E: Element> LayerNorm<N, E> {
    /// A layer that starts as the plain normalisation.
    ///
    /// # Errors
    /// [`Error::Empty`] if the size is zero.
    pub fn try_new(device: &Cpu, size: N) -> Result<Self, Error> {
        if size.size() == 0 {
            let what = "a layer".into();
            return Err(Error::Empty { what });
        }
        Ok(Self {
            gamma: device.try_ones_like(&(size,))?,
            beta: device.try_zeros_like(&(size,))?,
            epsilon: EPSILON,
        })
    }

    /// The output; one operation on the tape.
    ///
    /// # Errors
    /// [`Error::ShapeMismatch`] if the last axis of `x` is not the layer's, [`Error::OutOfRange`]
    /// unless `epsilon` is positive, [`Error::Empty`] if `x` has no elements.
    pub fn apply<S, T>(&self, x: Tensor<S, E, Cpu, T>) -> Result<Tensor<S, E, Cpu, T>, Error>
    where
        S: EndsWith<N>,
        T: Tape<E, Cpu>,
    {
        let operation = Normalise(self.checked_epsilon()?);
        let shape = super::checked(*x.shape(), self.gamma.shape().0)?;
        let inputs = self.add_to(Inputs::<E, T>::new().with(x)?)?;
        record_one(operation, inputs, shape)
    }

    /// The end of a residual branch, $\mathrm{LN}(x + \mathrm{dropout}(r))$; one operation on the
    /// tape.
    ///
    /// # Errors
    /// Those of [`apply`](Self::apply), and [`Error::OutOfRange`] unless `0 <= rate < 1`.
    pub fn apply_residual<S, T>(
        &self,
        x: Tensor<S, E, Cpu, T>,
        branch: Tensor<S, E, Cpu, T>,
        dropout: Dropout,
        mode: Mode,
    ) -> Result<Tensor<S, E, Cpu, T>, Error>
    where
        S: EndsWith<N>,
        T: Tape<E, Cpu> + Merge<T>,
    {
        let operation = self.residual(dropout, mode)?;
        let shape = super::checked(*x.shape(), self.gamma.shape().0)?;
        if *branch.shape() != shape {
            return Err(Error::ShapeMismatch {
                what: "the residual branch",
                expected: shape.concrete().into(),
                got: branch.shape().concrete().into(),
            });
        }
        let inputs = self.add_to(Inputs::<E, T>::new().with(x)?.with(branch)?)?;
        record_one(operation, inputs, shape)
    }

    /// [`apply_residual`](Self::apply_residual) as an operation on `x`, the branch, `gamma`,
    /// `beta`.
    ///
    /// # Errors
    /// [`Error::OutOfRange`] unless `epsilon` is positive and `0 <= rate < 1`.
    pub fn residual(&self, dropout: Dropout, mode: Mode) -> Result<ResidualNorm, Error> {
        Ok(ResidualNorm {
            epsilon: self.checked_epsilon()?,
            mask: mask(dropout.rate, mode)?,
        })
    }

    /// Adds `gamma` and `beta` to the inputs of an operation.
    ///
    /// # Errors
    /// [`Error::Empty`] if they have no elements.
    pub fn add_to<T: Tape<E, Cpu>>(&self, inputs: Inputs<E, T>) -> Result<Inputs<E, T>, Error> {
        inputs.with(self.gamma.clone())?.with(self.beta.clone())
    }

    fn checked_epsilon(&self) -> Result<f64, Error> {
        if self.epsilon > 0.0 && self.epsilon.is_finite() {
            return Ok(self.epsilon);
        }
        Err(Error::OutOfRange {
            what: "epsilon",
            got: self.epsilon,
            requirement: "positive",
        })
    }
}

/// [`LayerNorm`] as an operation on `x`, `gamma`, `beta`.
struct Normalise(f64);

/// [`LayerNorm::apply_residual`] as an operation on `x`, the branch, `gamma`, `beta`.
#[derive(Clone, Copy, Debug)]
pub struct ResidualNorm {
    epsilon: f64,
    mask: Option<Mask>,
}

/// What the backward pass of a normalisation needs.
#[derive(Clone, Debug)]
pub struct Normalised<T> {
    /// The rows with mean 0 and variance 1.
    rows: Vec<T>,
    /// The reciprocal standard deviation of each.
    scales: Vec<T>,
}

impl<T: Real> Operation<T> for Normalise {
    type Saved = Normalised<T>;

    fn forward(
        &self,
        inputs: &[ArrayViewD<'_, T>],
    ) -> Result<(Vec<ArrayD<T>>, Self::Saved), BoxError> {
        let [x, gamma, beta] = super::slices(inputs);
        let rows = |at: Range<usize>, rows: &mut [T]| rows.copy_from_slice(&x[at]);
        let (y, saved) = normalise(x.len(), gamma, beta, self.0, rows);
        Ok((vec![ArrayD::from_shape_vec(inputs[0].raw_dim(), y)?], saved))
    }

    fn backward(
        &self,
        inputs: &[ArrayViewD<'_, T>],
        saved: &Self::Saved,
        cotangents: &[ArrayViewD<'_, T>],
    ) -> Result<Vec<Option<ArrayD<T>>>, BoxError> {
        let [_, gamma, _] = super::slices(inputs);
        let [dy] = super::slices(cotangents);
        super::gradients(inputs, normalise_vjp(dy, gamma, saved))
    }
}

impl<T: Real> Operation<T> for ResidualNorm {
    type Saved = Normalised<T>;

    fn forward(
        &self,
        inputs: &[ArrayViewD<'_, T>],
    ) -> Result<(Vec<ArrayD<T>>, Self::Saved), BoxError> {
        let [x, branch, gamma, beta] = super::slices(inputs);
        let rows = |at: Range<usize>, rows: &mut [T]| {
            rows.copy_from_slice(&branch[at.clone()]);
            if let Some(mask) = &self.mask {
                mask.scale(at.start as u64, rows);
            }
            add(rows, &x[at]);
        };
        let (y, saved) = normalise(x.len(), gamma, beta, self.epsilon, rows);
        Ok((vec![ArrayD::from_shape_vec(inputs[0].raw_dim(), y)?], saved))
    }

    fn backward(
        &self,
        inputs: &[ArrayViewD<'_, T>],
        saved: &Self::Saved,
        cotangents: &[ArrayViewD<'_, T>],
    ) -> Result<Vec<Option<ArrayD<T>>>, BoxError> {
        let [_, _, gamma, _] = super::slices(inputs);
        let [dy] = super::slices(cotangents);
        let [dx, dgamma, dbeta] = normalise_vjp(dy, gamma, saved);
        let width = gamma.len();
        let rows = dx.len() / width;
        let [dbranch] = by_blocks(rows, [width], dx.len() * DRAW, |range, [piece]| {
            let start = range.start * width;
            piece.copy_from_slice(&dx[start..range.end * width]);
            if let Some(mask) = &self.mask {
                mask.scale(start as u64, piece);
            }
        });
        super::gradients(inputs, [dx, dbranch, dgamma, dbeta])
    }
}

/// Multiplications that take as long as one row's element here.
const WORK: usize = 8;
/// Multiplications that take as long as drawing one element of a mask.
const DRAW: usize = 8;

/// Normalises the `n` numbers that `fill(range, rows)` writes, block by block.
fn normalise<T: Real>(
    n: usize,
    gamma: &[T],
    beta: &[T],
    epsilon: f64,
    fill: impl Fn(Range<usize>, &mut [T]) + Send + Sync,
) -> (Vec<T>, Normalised<T>) {
    let width = gamma.len();
    let widths = [width, width, 1];
    let [y, rows, scales] = by_blocks(n / width, widths, n * WORK, |range, [y, rows, scales]| {
        fill(range.start * width..range.end * width, rows);
        instructions::run(Forward {
            y,
            rows,
            scales,
            gamma,
            beta,
            epsilon: T::of(epsilon),
        });
    });
    (y, Normalised { rows, scales })
}

/// Normalises rows in place, then scales and shifts them into `y`.
struct Forward<'a, T> {
    y: &'a mut [T],
    rows: &'a mut [T],
    scales: &'a mut [T],
    gamma: &'a [T],
    beta: &'a [T],
    epsilon: T,
}

impl<T: Real> Task for Forward<'_, T> {
    #[inline(always)]
    fn run<A: Arithmetic>(self) {
        let n = self.gamma.len();
        let rows = self.rows.chunks_exact_mut(n).zip(self.scales);
        for (y, (row, scale)) in self.y.chunks_exact_mut(n).zip(rows) {
            let mean;
            [mean, *scale] = moments(row, self.epsilon);
            let affine = self.gamma.iter().zip(self.beta);
            for ((y, x), (&gamma, &beta)) in y.iter_mut().zip(row).zip(affine) {
                *x = (*x - mean) * *scale;
                *y = *x * gamma + beta;
            }
        }
    }
}

/// Mean and reciprocal standard deviation of one row.
#[inline(always)]
fn moments<T: Real>(row: &[T], epsilon: T) -> [T; 2] {
    let n = T::of(row.len() as f64);
    let mean = sum(row.len(), |i| row[i]) / n;
    let variance = sum(row.len(), |i| (row[i] - mean) * (row[i] - mean)) / n;
    [mean, (variance + epsilon).sqrt().recip()]
}

/// The gradients with respect to the rows, `gamma` and `beta`.
fn normalise_vjp<T: Real>(dy: &[T], gamma: &[T], saved: &Normalised<T>) -> [Vec<T>; 3] {
    let n = gamma.len();
    let at = |range: &Range<usize>| range.start * n..range.end * n;
    let [dx] = by_blocks(dy.len() / n, [n], dy.len() * WORK, |range, [dx]| {
        instructions::run(Backward {
            dx,
            dy: &dy[at(&range)],
            rows: &saved.rows[at(&range)],
            scales: &saved.scales[range],
            gamma,
        });
    });
    let [dgamma, dbeta] = sum_over(dy.len() / n, dy.len() * WORK, |range| {
        let mut totals = [vec![T::zero(); n], vec![T::zero(); n]];
        instructions::run(ParameterSums {
            totals: &mut totals,
            dy: &dy[at(&range)],
            rows: &saved.rows[at(&range)],
        });
        totals
    });
    [dx, dgamma, dbeta]
}

struct Backward<'a, T> {
    dx: &'a mut [T],
    dy: &'a [T],
    rows: &'a [T],
    scales: &'a [T],
    gamma: &'a [T],
}

impl<T: Real> Task for Backward<'_, T> {
    #[inline(always)]
    fn run<A: Arithmetic>(self) {
        let n = self.gamma.len();
        let rows = self.rows.chunks_exact(n).zip(self.scales);
        let rows = self.dy.chunks_exact(n).zip(rows);
        for (dx, (dy, (row, &scale))) in self.dx.chunks_exact_mut(n).zip(rows) {
            row_vjp(row, dy, self.gamma, scale, dx);
        }
    }
}

/// Adds up the gradients of `gamma` and `beta`.
struct ParameterSums<'a, T> {
    totals: &'a mut [Vec<T>; 2],
    dy: &'a [T],
    rows: &'a [T],
}

impl<T: Real> Task for ParameterSums<'_, T> {
    #[inline(always)]
    fn run<A: Arithmetic>(self) {
        let [dgamma, dbeta] = self.totals;
        let n = dgamma.len();
        for (row, dy) in self.rows.chunks_exact(n).zip(self.dy.chunks_exact(n)) {
            let totals = dgamma.iter_mut().zip(dbeta.iter_mut());
            for ((dgamma, dbeta), (&x, &dy)) in totals.zip(row.iter().zip(dy)) {
                *dgamma += dy * x;
                *dbeta += dy;
            }
        }
    }
}

/// With $\hat x$ the normalised row and $g = \gamma \odot dy$:
/// $dx = (g - \overline{g} - \hat x\, \overline{g \odot \hat x}) / \sqrt{\sigma^2 + \epsilon}$.
#[inline(always)]
fn row_vjp<T: Real>(row: &[T], dy: &[T], gamma: &[T], scale: T, dx: &mut [T]) {
    let n = row.len();
    let (dy, gamma, dx) = (&dy[..n], &gamma[..n], &mut dx[..n]);
    let size = T::of(n as f64);
    let mean_g = sum(n, |i| dy[i] * gamma[i]) / size;
    let mean_gx = sum(n, |i| dy[i] * gamma[i] * row[i]) / size;
    for i in 0..n {
        dx[i] = (dy[i] * gamma[i] - mean_g - row[i] * mean_gx) * scale;
    }
}

impl<N: Dim, E: Element> Parameters<E> for LayerNorm<N, E> {
    fn for_each(&self, prefix: &str, f: &mut dyn FnMut(&str, &dyn Parameter<E>)) {
        self.gamma.for_each(&join(prefix, "gamma"), f);
        self.beta.for_each(&join(prefix, "beta"), f);
    }

    fn for_each_mut(&mut self, prefix: &str, f: &mut dyn FnMut(&str, &mut dyn ParameterMut<E>)) {
        self.gamma.for_each_mut(&join(prefix, "gamma"), f);
        self.beta.for_each_mut(&join(prefix, "beta"), f);
    }
}

impl<N: Dim, E: Dtype, D: Storage<E>> NonMutableModule for LayerNorm<N, E, D> {}

impl<N, E, S, T> Module<Tensor<S, E, Cpu, T>> for LayerNorm<N, E>
where
    N: Dim,
    E: Element,
    S: EndsWith<N>,
    T: Tape<E, Cpu>,
{
    type Output = Tensor<S, E, Cpu, T>;
    type Error = CpuError;

    fn try_forward(&self, x: Tensor<S, E, Cpu, T>) -> Result<Self::Output, CpuError> {
        self.apply(x).map_err(Error::into_device_error)
    }
}

impl<N: ConstDim, E: Element, D: Device<E>> TensorCollection<E, D> for LayerNorm<N, E, D> {
    type To<E2: Dtype, D2: Device<E2>> = LayerNorm<N, E2, D2>;

    fn iter_tensors<V: ModuleVisitor<Self, E, D>>(
        visitor: &mut V,
    ) -> Result<Option<Self::To<V::E2, V::D2>>, V::Err> {
        let epsilon = ScalarOptions::from_default(EPSILON);
        visitor.visit_fields(
            (
                Self::tensor(
                    "gamma",
                    |s| &s.gamma,
                    |s| &mut s.gamma,
                    TensorOptions::reset_to_ones(),
                ),
                Self::tensor(
                    "beta",
                    |s| &s.beta,
                    |s| &mut s.beta,
                    TensorOptions::reset_to_zeros(),
                ),
                Self::scalar("epsilon", |s| &s.epsilon, |s| &mut s.epsilon, epsilon),
            ),
            |(gamma, beta, epsilon)| LayerNorm {
                gamma,
                beta,
                epsilon,
            },
        )
    }
}

pub(super) mod builder {
    //! The layer's name without its element type and device.

    /// Builds a [`LayerNorm`](crate::LayerNorm) of compile-time size.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct LayerNorm<const N: usize>;
}

impl<const N: usize, E: Element, D: Device<E>> BuildOnDevice<D, E> for builder::LayerNorm<N>
where
    LayerNorm<Const<N>, E, D>: BuildModule<D, E>,
{
    type Built = LayerNorm<Const<N>, E, D>;
}
