//! Layer normalisation.

use super::EndsWith;
use crate::parameters::{Parameter, ParameterMut, Parameters, join};
use crate::rows::{for_each_block, sum, sum_over};
use crate::{BoxError, Element, Error, Inputs, Operation, record_one};
use bochner_numerics::Real;
use dfdx::dtypes::Dtype;
use dfdx::nn::tensor_collection::{ModuleVisitor, ScalarOptions, TensorCollection, TensorOptions};
use dfdx::nn::{BuildModule, BuildOnDevice, Module, NonMutableModule};
use dfdx::shapes::{Const, ConstDim, Dim, HasShape};
use dfdx::tensor::{Cpu, CpuError, OnesTensor, Storage, Tape, Tensor, ZerosTensor};
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
            return Err(Error::Empty { what: "a layer" });
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
        if !(self.epsilon > 0.0 && self.epsilon.is_finite()) {
            return Err(Error::OutOfRange {
                what: "epsilon",
                got: self.epsilon,
                requirement: "positive",
            });
        }
        let shape = super::checked(*x.shape(), self.gamma.shape().0)?;
        let inputs = Inputs::<E, T>::new()
            .with(x)?
            .with(self.gamma.clone())?
            .with(self.beta.clone())?;
        record_one(Normalise(self.epsilon), inputs, shape)
    }
}

/// [`LayerNorm`] as an operation on `x`, `gamma`, `beta`.
struct Normalise(f64);

/// Mean and reciprocal standard deviation of one row.
type Moments<T> = [T; 2];

impl<T: Real> Operation<T> for Normalise {
    /// Of each row, one after the other.
    type Saved = Vec<T>;

    fn forward(
        &self,
        inputs: &[ArrayViewD<'_, T>],
    ) -> Result<(Vec<ArrayD<T>>, Self::Saved), BoxError> {
        let [x, gamma, beta] = super::slices(inputs);
        let n = gamma.len();
        let mut saved = vec![T::zero(); x.len() / n * 2];
        for_each_block(&mut saved, 2, x.len(), |range, piece| {
            for (row, saved) in rows(x, n, range).zip(piece.chunks_exact_mut(2)) {
                saved.copy_from_slice(&moments(row, T::of(self.0)));
            }
        });
        let mut y = vec![T::zero(); x.len()];
        for_each_block(&mut y, n, x.len(), |range, piece| {
            let saved = saved[2 * range.start..].chunks_exact(2);
            for ((row, m), y) in rows(x, n, range).zip(saved).zip(piece.chunks_exact_mut(n)) {
                for i in 0..n {
                    y[i] = (row[i] - m[0]) * m[1] * gamma[i] + beta[i];
                }
            }
        });
        Ok((vec![ArrayD::from_shape_vec(inputs[0].raw_dim(), y)?], saved))
    }

    fn backward(
        &self,
        inputs: &[ArrayViewD<'_, T>],
        saved: &Self::Saved,
        cotangents: &[ArrayViewD<'_, T>],
    ) -> Result<Vec<Option<ArrayD<T>>>, BoxError> {
        let [x, gamma, _] = super::slices(inputs);
        let [dy] = super::slices(cotangents);
        let n = gamma.len();
        let each = |range: Range<usize>| {
            let saved = saved[2 * range.start..].chunks_exact(2);
            rows(x, n, range.clone())
                .zip(rows(dy, n, range))
                .zip(saved.map(|m| [m[0], m[1]]))
        };
        let mut dx = vec![T::zero(); x.len()];
        for_each_block(&mut dx, n, x.len(), |range, piece| {
            for (((x, dy), m), dx) in each(range).zip(piece.chunks_exact_mut(n)) {
                row_vjp(x, dy, gamma, m, dx);
            }
        });
        let [dgamma, dbeta] = sum_over(x.len() / n, x.len(), |range| {
            let mut totals = [vec![T::zero(); n], vec![T::zero(); n]];
            let [dgamma, dbeta] = &mut totals;
            for ((x, dy), [mean, scale]) in each(range) {
                for i in 0..n {
                    dgamma[i] += dy[i] * (x[i] - mean) * scale;
                    dbeta[i] += dy[i];
                }
            }
            totals
        });
        super::gradients(inputs, [dx, dgamma, dbeta])
    }
}

fn rows<T>(x: &[T], n: usize, range: Range<usize>) -> std::slice::ChunksExact<'_, T> {
    x[range.start * n..range.end * n].chunks_exact(n)
}

fn moments<T: Real>(row: &[T], epsilon: T) -> Moments<T> {
    let n = T::of(row.len() as f64);
    let mean = sum(row.len(), |i| row[i]) / n;
    let variance = sum(row.len(), |i| (row[i] - mean) * (row[i] - mean)) / n;
    [mean, (variance + epsilon).sqrt().recip()]
}

/// With $\hat x$ the normalised row and $g = \gamma \odot dy$:
/// $dx = (g - \overline{g} - \hat x\, \overline{g \odot \hat x}) / \sqrt{\sigma^2 + \epsilon}$.
fn row_vjp<T: Real>(x: &[T], dy: &[T], gamma: &[T], [mean, scale]: Moments<T>, dx: &mut [T]) {
    let n = x.len();
    let (dy, gamma) = (&dy[..n], &gamma[..n]);
    let size = T::of(n as f64);
    let normal = |i: usize| (x[i] - mean) * scale;
    let mean_g = sum(n, |i| dy[i] * gamma[i]) / size;
    let mean_gx = sum(n, |i| dy[i] * gamma[i] * normal(i)) / size;
    for (i, dx) in dx.iter_mut().enumerate() {
        *dx = (dy[i] * gamma[i] - mean_g - normal(i) * mean_gx) * scale;
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
