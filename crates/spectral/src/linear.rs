//! The layers the networks are made of: $y = W x + b$ and LeakyReLU.

use crate::Error;
use crate::error::expect_shape;
use bochner_numerics::{Mat, MatMut, Real, matmul};
use ndarray::{Array1, Array2, ArrayView1, ArrayView2, CowArray, Ix1, Ix2};
use rand::{Rng, RngCore};

/// Initial weights and biases of a linear layer.
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
/// use bochner_spectral::linear_init;
///
/// let mut stream = Seed::new(1).stream("initial values");
/// let (weight, bias) = linear_init::<f32>(8, 4, &mut stream);
/// assert_eq!((weight.dim(), bias.len()), ((8, 4), 8));
/// assert!(weight.iter().all(|w| w.abs() <= 0.5));
/// ```
pub fn linear_init<T: Real>(
    outputs: usize,
    inputs: usize,
    rng: &mut dyn RngCore,
) -> (Array2<T>, Array1<T>) {
    let bound = 1.0 / (inputs as f64).sqrt();
    let weight = Array2::from_shape_simple_fn((outputs, inputs), || uniform(bound, rng));
    (weight, Array1::zeros(outputs))
}

/// One draw from the uniform distribution on `[-bound, bound)`.
pub(crate) fn uniform<T: Real>(bound: f64, rng: &mut dyn RngCore) -> T {
    T::of(rng.gen_range(-bound..bound))
}

/// A linear layer on rows of inputs.
pub(crate) struct Linear<'a, T> {
    weight: CowArray<'a, T, Ix2>,
    bias: CowArray<'a, T, Ix1>,
}

impl<'a, T: Real> Linear<'a, T> {
    /// The layer with these parameters, if they are `[outputs, inputs]` and `[outputs]`.
    pub(crate) fn new(
        (weight_name, weight): (&'static str, &'a ArrayView2<T>),
        (bias_name, bias): (&'static str, &'a ArrayView1<T>),
        outputs: usize,
        inputs: usize,
    ) -> Result<Self, Error> {
        expect_shape(weight_name, &[outputs, inputs], weight.shape())?;
        expect_shape(bias_name, &[outputs], bias.shape())?;
        Ok(Self {
            weight: weight.as_standard_layout(),
            bias: bias.as_standard_layout(),
        })
    }

    pub(crate) fn apply(&self, x: &[T], rows: usize) -> Vec<T> {
        let (outputs, inputs) = self.weight.dim();
        let mut y = self.bias().repeat(rows);
        let target = MatMut::new(&mut y, rows, outputs);
        let x = Mat::new(x, rows, inputs);
        matmul(T::one(), x, self.weight().t(), T::one(), target);
        y
    }

    /// The gradients of [`apply`](Self::apply) at `x`.
    pub(crate) fn pull_back(&self, x: &[T], cotangent: &[T], rows: usize) -> LinearGradients<T> {
        let (outputs, inputs) = self.weight.dim();
        let cotangents = Mat::new(cotangent, rows, outputs);
        let mut along_x = vec![T::zero(); rows * inputs];
        let target = MatMut::new(&mut along_x, rows, inputs);
        matmul(T::one(), cotangents, self.weight(), T::zero(), target);

        let mut weight = vec![T::zero(); outputs * inputs];
        let target = MatMut::new(&mut weight, outputs, inputs);
        let x = Mat::new(x, rows, inputs);
        matmul(T::one(), cotangents.t(), x, T::zero(), target);

        let mut bias = vec![T::zero(); outputs];
        for row in cotangent.chunks_exact(outputs) {
            add(&mut bias, row);
        }
        LinearGradients {
            x: along_x,
            weight: Array2::from_shape_vec((outputs, inputs), weight).expect("allocated so"),
            bias: bias.into(),
        }
    }

    fn weight(&self) -> Mat<'_, T> {
        let (outputs, inputs) = self.weight.dim();
        let weight = self.weight.as_slice().expect("brought to row-major order");
        Mat::new(weight, outputs, inputs)
    }

    fn bias(&self) -> &[T] {
        self.bias.as_slice().expect("brought to row-major order")
    }
}

/// The gradients of one application of a [`Linear`].
pub(crate) struct LinearGradients<T> {
    pub(crate) x: Vec<T>,
    pub(crate) weight: Array2<T>,
    pub(crate) bias: Array1<T>,
}

/// LeakyReLU in place.
pub(crate) fn leaky_relu<T: Real>(slope: T, x: &mut [T]) {
    for x in x.iter_mut().filter(|x| **x < T::zero()) {
        *x *= slope;
    }
}

/// Multiplies a cotangent by LeakyReLU's derivative, which its output tells: the slope is not
/// negative, so the output is positive exactly where the input was.
pub(crate) fn leaky_relu_pull_back<T: Real>(slope: T, output: &[T], cotangent: &mut [T]) {
    for (c, &y) in cotangent.iter_mut().zip(output) {
        *c *= if y > T::zero() { T::one() } else { slope };
    }
}

/// `sum += x`.
pub(crate) fn add<T: Real>(sum: &mut [T], x: &[T]) {
    for (sum, &x) in sum.iter_mut().zip(x) {
        *sum += x;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bochner_numerics::Seed;
    use ndarray::array;

    #[test]
    fn weights_are_out_by_in() {
        let (weight, bias) = (
            array![[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]],
            array![1.0, 0.0, 0.0],
        );
        let (weight, bias) = (weight.view(), bias.view());
        let layer = Linear::new(("w", &weight), ("b", &bias), 3, 2).unwrap();
        assert_eq!(
            layer.apply(&[1.0, 10.0, 0.0, 1.0], 2),
            [22.0, 43.0, 65.0, 3.0, 4.0, 6.0]
        );
        let transposed = Linear::new(("w", &weight), ("b", &bias), 2, 3).err();
        assert!(matches!(
            transposed,
            Some(Error::ShapeMismatch { what: "w", .. })
        ));
    }

    #[test]
    fn initial_weights_fill_their_range_and_round_alike() {
        let draw = || Seed::new(2).stream("initial values");
        let (double, _) = linear_init::<f64>(50, 16, &mut draw());
        let (single, bias) = linear_init::<f32>(50, 16, &mut draw());
        assert_eq!(single, double.mapv(|w| w as f32));
        assert_eq!(bias, Array1::<f32>::zeros(50));
        let largest = double.iter().fold(0.0_f64, |m, w| m.max(w.abs()));
        assert!(largest <= 0.25 && largest > 0.24);
        // A uniform variable in +-b has variance b^2 / 3.
        let variance = double.mapv(|w| w * w).mean().unwrap();
        assert!((variance - 0.25_f64.powi(2) / 3.0).abs() < 0.002);
    }

    #[test]
    fn leaky_relu_keeps_the_positive_part() {
        let mut x = [2.0, -2.0, 0.0];
        leaky_relu(0.1, &mut x);
        assert_eq!(x, [2.0, -0.2, 0.0]);
        let mut cotangent = [1.0; 3];
        leaky_relu_pull_back(0.1, &x, &mut cotangent);
        assert_eq!(cotangent, [1.0, 0.1, 0.1]);
    }
}
