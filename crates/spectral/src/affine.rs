//! The layers that the networks are made of: $y = W x + b$ and LeakyReLU.

use crate::Error;
use bochner_numerics::{Real, argument};
use bochner_ops::{Activation, affine, affine_vjp, filled};
use ndarray::{Array1, Array2, ArrayView1, ArrayView2, CowArray, Ix1, Ix2};
use rand::{Rng, RngCore};

/// The parameters of one layer of a network, $y = W x + b$.
///
/// # Shapes
/// `weight` is `[outputs, inputs]`, `bias` is `[outputs]`.
#[derive(Clone, Copy, Debug)]
pub struct AffineLayer<'a, T> {
    /// The weights $W$.
    pub weight: ArrayView2<'a, T>,
    /// The biases $b$.
    pub bias: ArrayView1<'a, T>,
}

/// The gradients along the parameters of an [`AffineLayer`].
#[derive(Clone, Debug, PartialEq)]
pub struct AffineGradients<T> {
    /// The gradient along the weights.
    pub weight: Array2<T>,
    /// The gradient along the biases.
    pub bias: Array1<T>,
}

/// Initial weights and biases of an [`AffineLayer`].
///
/// $$W_{ij} \sim U(-1/\sqrt{n}, 1/\sqrt{n}), \qquad b = 0$$
///
/// *where* $n$ is `inputs`.
///
/// # Shapes
/// Weights `[outputs, inputs]`, biases `[outputs]`.
///
/// # Numerics
/// Drawn in double precision and rounded, so that `f32` and `f64` start alike.
///
/// # Example
/// ```
/// use bochner_numerics::Seed;
/// use bochner_spectral::affine_init;
///
/// let mut stream = Seed::new(1).stream("initial values");
/// let (weight, bias) = affine_init::<f32>(8, 4, &mut stream);
/// assert_eq!((weight.dim(), bias.len()), ((8, 4), 8));
/// assert!(weight.iter().all(|w| w.abs() <= 0.5));
/// ```
pub fn affine_init<T: Real>(
    outputs: usize,
    inputs: usize,
    rng: &mut (impl RngCore + ?Sized),
) -> (Array2<T>, Array1<T>) {
    let bound = 1.0 / (inputs as f64).sqrt();
    let weight = Array2::from_shape_simple_fn((outputs, inputs), || uniform(bound, rng));
    (weight, Array1::zeros(outputs))
}

/// One draw from the uniform distribution on `[-bound, bound)`.
///
/// This is not `bochner_numerics::uniform_within`, which makes other numbers of the same stream: published
/// results started from the numbers here.
pub(crate) fn uniform<T: Real>(bound: f64, rng: &mut (impl RngCore + ?Sized)) -> T {
    T::of(rng.gen_range(-bound..bound))
}

/// A layer whose shapes are checked, on rows of inputs.
pub(crate) struct Layer<'a, T> {
    weight: CowArray<'a, T, Ix2>,
    bias: CowArray<'a, T, Ix1>,
}

impl<T: Real> AffineLayer<'_, T> {
    /// The layer called `name`, if its parameters are `[outputs, inputs]` and `[outputs]`.
    pub(crate) fn checked<'b>(
        &'b self,
        name: &str,
        outputs: usize,
        inputs: usize,
    ) -> Result<Layer<'b, T>, Error> {
        let part = |part: &str| format!("{name}.{part}");
        argument::shape(part("weight"), &[outputs, inputs], self.weight.shape())?;
        argument::shape(part("bias"), &[outputs], self.bias.shape())?;
        Ok(Layer {
            weight: self.weight.as_standard_layout(),
            bias: self.bias.as_standard_layout(),
        })
    }
}

impl<T: Real> AffineGradients<T> {
    pub(crate) fn zeros(outputs: usize, inputs: usize) -> Self {
        Self {
            weight: Array2::zeros((outputs, inputs)),
            bias: Array1::zeros(outputs),
        }
    }

    pub(crate) fn add(&mut self, other: &Self) {
        self.weight += &other.weight;
        self.bias += &other.bias;
    }
}

impl<T: Real> Layer<'_, T> {
    pub(crate) fn apply(&self, x: &[T], rows: usize) -> Vec<T> {
        let bias = self.bias.as_slice().expect("brought to row-major order");
        let [y] = filled([rows * bias.len()], |[y]| {
            affine(x, self.weight(), bias, y, |_, _| ());
        });
        y
    }

    /// The gradients of [`apply`](Self::apply) at `x`: along `x`, and along the parameters.
    pub(crate) fn pull_back(&self, x: &[T], cotangent: &[T]) -> (Vec<T>, AffineGradients<T>) {
        let outputs = self.bias.len();
        let lengths = [x.len(), self.weight.len(), outputs];
        let [along_x, weight, bias] = filled(lengths, |all| {
            affine_vjp(x, self.weight(), cotangent, outputs, all.map(Some));
        });
        let weight = Array2::from_shape_vec(self.weight.raw_dim(), weight).expect("allocated so");
        let bias = bias.into();
        (along_x, AffineGradients { weight, bias })
    }

    fn weight(&self) -> &[T] {
        self.weight.as_slice().expect("brought to row-major order")
    }
}

/// LeakyReLU in place.
pub(crate) fn leaky_relu<T: Real>(slope: T, x: &mut [T]) {
    let slope = slope.as_f64();
    Activation::LeakyRelu { slope }.apply(x);
}

/// Multiplies a cotangent by LeakyReLU's derivative, which its output tells: the slope is not
/// negative, so the output is positive exactly where the input was.
pub(crate) fn leaky_relu_pull_back<T: Real>(slope: T, output: &[T], cotangent: &mut [T]) {
    for (c, &y) in cotangent.iter_mut().zip(output) {
        *c *= if y > T::zero() { T::one() } else { slope };
    }
}
