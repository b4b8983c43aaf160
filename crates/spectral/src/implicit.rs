//! The implicit spectral density: a sampler of spectral points without a formula for its density.

use crate::Error;
use crate::affine::{AffineGradients, AffineLayer, Layer, leaky_relu, leaky_relu_pull_back};
use bochner_numerics::{Real, argument, parallel};
use ndarray::{Array2, ArrayView2};

/// Draws taken at a time: a unit of parallel work, and of the fixed order of summation.
const BLOCK: usize = 512;

/// The network that turns noise into spectral points.
///
/// $$w = \operatorname{sign}(z) \odot \mathrm{NN}(|z|), \qquad
/// \mathrm{NN}(x) = W_3 \lambda(W_2 \lambda(W_1 x + b_1) + b_2) + b_3$$
///
/// *where* $\lambda$ is LeakyReLU with the given slope and everything outside the layers is
/// elementwise, with $\operatorname{sign}(0) = 0$.
///
/// The function is odd, so noise with a symmetric density gives points with a symmetric density,
/// which is what makes the kernel real-valued. A network that saw $z$ itself would not be odd.
/// Where a number of $z$ changes its sign, its point jumps by $2 \mathrm{NN}(|z|)$: gradients are those
/// of the side on which $z$ lies, and finite differences across a zero are not.
///
/// # Shapes
/// Weights `[d, d]`, biases `[d]`.
///
/// # Reference
/// Song, Jung, Kim, Moon, *Implicit kernel attention*, 2021, section on implicit spectral
/// density.
///
/// # Example
/// ```
/// use bochner_spectral::{AffineLayer, ImplicitDensity};
/// use bochner_spectral::ndarray::{Array1, Array2, array};
///
/// let (eye, zero) = (Array2::eye(2), Array1::zeros(2));
/// let identity = AffineLayer { weight: eye.view(), bias: zero.view() };
/// let density = ImplicitDensity { layers: [identity; 3], slope: 0.2 };
/// let z = array![[1.5, -0.5], [0.0, 2.0]];
/// assert_eq!(density.points(z.view())?, z); // NN is the identity on |z|
/// # Ok::<(), bochner_spectral::Error>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct ImplicitDensity<'a, T> {
    /// The three layers, from the noise to the points.
    pub layers: [AffineLayer<'a, T>; 3],
    /// Slope of LeakyReLU on the negative side.
    pub slope: T,
}

/// The gradients of [`ImplicitDensity::points`], along noise and parameters.
#[derive(Clone, Debug, PartialEq)]
pub struct ImplicitGradients<T> {
    /// Along the noise, `[n, d]`.
    pub z: Array2<T>,
    /// Along the parameters of the layers.
    pub layers: [AffineGradients<T>; 3],
}

impl<T: Real> ImplicitDensity<'_, T> {
    /// The spectral points of the noise `z`, one row each.
    ///
    /// # Shapes
    /// `z` and the result are `[n, d]`; batch, heads and points are all rows here.
    ///
    /// # Errors
    /// [`Error::Argument`] if a weight or a bias does not fit `z`, if $d = 0$, or if the slope is
    /// negative or not finite.
    ///
    /// # Numerics
    /// $O(n d^2)$ time, on rayon's current pool; the result does not depend on its size.
    pub fn points(&self, z: ArrayView2<T>) -> Result<Array2<T>, Error> {
        let network = self.network(z.ncols())?;
        let z = z.as_standard_layout();
        let mut w = z.to_owned();
        let target = w.as_slice_mut().expect("copied from row-major order");
        parallel::for_each_chunk(target, BLOCK * z.ncols(), |_, block| {
            let signs: Vec<T> = block.iter().map(|&z| sign(z)).collect();
            block.copy_from_slice(&network.trace(block).output);
            multiply(block, &signs);
        });
        Ok(w)
    }

    /// The vector-Jacobian product of [`points`](Self::points).
    ///
    /// With $\dot w$ the cotangent, the network's output has the cotangent
    /// $\operatorname{sign}(z) \odot \dot w$, and what comes back to $|z|$ is again multiplied by
    /// $\operatorname{sign}(z)$. The jump at $z = 0$ has no derivative; 0 is taken there, and for
    /// LeakyReLU at 0 the slope of its negative side.
    ///
    /// # Shapes
    /// `z` and `cotangent` are `[n, d]`.
    ///
    /// # Errors
    /// The errors of [`points`](Self::points), and [`Error::Argument`] if `cotangent` does not fit.
    ///
    /// # Numerics
    /// Gradients along the parameters are summed over blocks of rows in their order, whatever the
    /// number of threads.
    pub fn points_vjp(
        &self,
        z: ArrayView2<T>,
        cotangent: ArrayView2<T>,
    ) -> Result<ImplicitGradients<T>, Error> {
        let network = self.network(z.ncols())?;
        argument::shape("cotangent", z.shape(), cotangent.shape())?;
        let (rows, width) = z.dim();
        let (z, cotangent) = (z.as_standard_layout(), cotangent.as_standard_layout());
        let z = z.as_slice().expect("brought to row-major order");
        let cotangent = cotangent.as_slice().expect("brought to row-major order");

        let parts = parallel::map(rows.div_ceil(BLOCK), |i| {
            let range = i * BLOCK * width..((i + 1) * BLOCK).min(rows) * width;
            network.pull_back(&z[range.clone()], &cotangent[range])
        });
        let mut total = ImplicitGradients::zeros(rows, width);
        let along_z = total.z.as_slice_mut().expect("a new array is row-major");
        let blocks = along_z.chunks_mut(BLOCK * width);
        for (block, (z, layers)) in blocks.zip(parts) {
            block.copy_from_slice(&z);
            for (total, part) in total.layers.iter_mut().zip(&layers) {
                total.add(part);
            }
        }
        Ok(total)
    }

    fn network(&self, width: usize) -> Result<Network<'_, T>, Error> {
        argument::at_least_one("width", width)?;
        argument::non_negative("slope", self.slope)?;
        let [first, second, third] = &self.layers;
        Ok(Network {
            layers: [
                first.checked("layers[0]", width, width)?,
                second.checked("layers[1]", width, width)?,
                third.checked("layers[2]", width, width)?,
            ],
            slope: self.slope,
            width,
        })
    }
}

impl<T: Real> ImplicitGradients<T> {
    fn zeros(rows: usize, width: usize) -> Self {
        Self {
            z: Array2::zeros((rows, width)),
            layers: [(); 3].map(|()| AffineGradients::zeros(width, width)),
        }
    }
}

/// The network with its shapes checked.
struct Network<'a, T> {
    layers: [Layer<'a, T>; 3],
    slope: T,
    width: usize,
}

/// The inputs and outputs of the layers.
struct Trace<T> {
    magnitudes: Vec<T>,
    first: Vec<T>,
    second: Vec<T>,
    output: Vec<T>,
}

impl<T: Real> Network<'_, T> {
    fn trace(&self, z: &[T]) -> Trace<T> {
        let rows = z.len() / self.width;
        let magnitudes: Vec<T> = z.iter().map(|z| z.abs()).collect();
        let mut first = self.layers[0].apply(&magnitudes, rows);
        leaky_relu(self.slope, &mut first);
        let mut second = self.layers[1].apply(&first, rows);
        leaky_relu(self.slope, &mut second);
        let output = self.layers[2].apply(&second, rows);
        Trace {
            magnitudes,
            first,
            second,
            output,
        }
    }

    /// The gradients along `z` and along the parameters of each layer.
    fn pull_back(&self, z: &[T], cotangent: &[T]) -> (Vec<T>, [AffineGradients<T>; 3]) {
        let trace = self.trace(z);
        let signs: Vec<T> = z.iter().map(|&z| sign(z)).collect();
        let mut along_output = cotangent.to_vec();
        multiply(&mut along_output, &signs);
        let [first, second, third] = &self.layers;
        let (mut x, third) = third.pull_back(&trace.second, &along_output);
        leaky_relu_pull_back(self.slope, &trace.second, &mut x);
        let (mut x, second) = second.pull_back(&trace.first, &x);
        leaky_relu_pull_back(self.slope, &trace.first, &mut x);
        let (mut x, first) = first.pull_back(&trace.magnitudes, &x);
        multiply(&mut x, &signs);
        (x, [first, second, third])
    }
}

/// -1, 0 or 1; NaN stays NaN.
fn sign<T: Real>(x: T) -> T {
    if x > T::zero() {
        T::one()
    } else if x < T::zero() {
        -T::one()
    } else {
        x
    }
}

fn multiply<T: Real>(x: &mut [T], factors: &[T]) {
    for (x, &factor) in x.iter_mut().zip(factors) {
        *x *= factor;
    }
}
