//! The Matérn family at the three half-integer smoothnesses that have a short closed form.

use super::distance;
use crate::Error;
use crate::kernel::{Along, GramGradients, Kernel, Parameter, check_values};
use crate::lengthscale::Lengthscale;
use crate::written::written_as_config;
use bochner_numerics::Real;
use bochner_numerics::elementary::exp_in_place;
use ndarray::{Array1, Array2, ArrayView1, ArrayView2};
use serde::{Deserialize, Serialize};

/// A Matérn kernel.
///
/// $$k_{1/2} = e^{-r}, \qquad k_{3/2} = (1 + a) e^{-a},\ a = \sqrt3 r, \qquad
/// k_{5/2} = \bigl(1 + a + \tfrac{a^2}{3}\bigr) e^{-a},\ a = \sqrt5 r$$
///
/// *where* $r^2 = \sum_n (x_n - y_n)^2 / l_n^2$ and $l_n > 0$ is the [`Lengthscale`].
///
/// # Numerics
/// At coincident points the gradients are zero. For $\nu = 1/2$ this is a convention: the kernel
/// has a cusp there, and zero is the middle of its one-sided derivatives.
///
/// # Reference
/// Rasmussen, Williams, *Gaussian Processes for Machine Learning*, 2006, equations 4.16, 4.17.
///
/// # Example
/// ```
/// use bochner_kernels::{Kernel, Lengthscale, MaternConfig, Smoothness};
/// use bochner_kernels::ndarray::array;
///
/// let lengthscale = Lengthscale::Shared(2.0);
/// let kernel = MaternConfig { smoothness: Smoothness::Half, lengthscale }.build()?;
/// let k = kernel.value(array![0.0, 3.0].view(), array![4.0, 0.0].view())?;
/// assert!((k - (-2.5_f64).exp()).abs() < 1e-15);
/// # Ok::<(), bochner_kernels::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "MaternConfig<T>", into = "MaternConfig<T>")]
#[serde(bound(
    serialize = "T: Real + Serialize",
    deserialize = "T: Real + Deserialize<'de>"
))]
pub struct Matern<T: Real> {
    smoothness: Smoothness,
    lengthscale: Lengthscale<T>,
}

/// The settings of a [`Matern`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[serde(bound(
    serialize = "T: Real + Serialize",
    deserialize = "T: Real + Deserialize<'de>"
))]
pub struct MaternConfig<T> {
    /// The number of times that functions under the kernel can be differentiated.
    pub smoothness: Smoothness,
    /// The lengthscales, positive.
    pub lengthscale: Lengthscale<T>,
}

/// The smoothness $\nu$ of a [`Matern`]: functions under it are differentiable
/// $\lceil \nu \rceil - 1$ times.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Smoothness {
    /// $\nu = 1/2$, the exponential kernel: continuous, nowhere differentiable.
    Half,
    /// $\nu = 3/2$.
    ThreeHalves,
    /// $\nu = 5/2$.
    FiveHalves,
}

impl Smoothness {
    /// All smoothnesses, the roughest first.
    pub const ALL: [Self; 3] = [Self::Half, Self::ThreeHalves, Self::FiveHalves];

    /// $2 \nu$.
    pub fn doubled(self) -> usize {
        match self {
            Self::Half => 1,
            Self::ThreeHalves => 3,
            Self::FiveHalves => 5,
        }
    }

    /// The kernel for $a = \sqrt{2 \nu s}$ and $e^{-a}$, where $s$ is the squared distance.
    fn profile<T: Real>(self, a: T, decay: T) -> T {
        let polynomial = match self {
            Self::Half => T::one(),
            Self::ThreeHalves => T::one() + a,
            Self::FiveHalves => T::one() + a + a * a / T::of(3.0),
        };
        damped(polynomial, decay)
    }

    /// The kernel's derivative along $s$.
    fn slope<T: Real>(self, a: T, decay: T) -> T {
        match self {
            Self::Half if a == T::zero() => T::zero(),
            Self::Half => -decay / (T::of(2.0) * a),
            Self::ThreeHalves => -T::of(1.5) * decay,
            Self::FiveHalves => -T::of(5.0 / 6.0) * damped(T::one() + a, decay),
        }
    }

    /// Replaces squared distances $s$ by `f` of $a$ and $e^{-a}$.
    fn replace<T: Real>(self, s: &mut [T], f: impl Fn(Self, T, T) -> T) {
        let doubled = T::of(self.doubled() as f64);
        let a: Vec<T> = s.iter().map(|&s| (doubled * s).sqrt()).collect();
        s.iter_mut().zip(&a).for_each(|(s, &a)| *s = -a);
        exp_in_place(s);
        let pairs = s.iter_mut().zip(a);
        pairs.for_each(|(decay, a)| *decay = f(self, a, *decay));
    }
}

/// `polynomial * decay`, zero where the polynomial has overflowed.
fn damped<T: Real>(polynomial: T, decay: T) -> T {
    if decay == T::zero() {
        T::zero()
    } else {
        polynomial * decay
    }
}

written_as_config!(Matern, MaternConfig, smoothness, lengthscale);

impl<T: Real> MaternConfig<T> {
    /// The kernel of these settings.
    ///
    /// # Errors
    /// [`Error::Argument`] unless every lengthscale is finite and positive, or if
    /// there is none.
    pub fn build(self) -> Result<Matern<T>, Error> {
        self.lengthscale.check()?;
        Ok(Matern {
            smoothness: self.smoothness,
            lengthscale: self.lengthscale,
        })
    }
}

impl<T: Real> Matern<T> {
    /// The smoothness.
    pub fn smoothness(&self) -> Smoothness {
        self.smoothness
    }

    /// The lengthscales.
    pub fn lengthscale(&self) -> &Lengthscale<T> {
        &self.lengthscale
    }
}

impl<T: Real> Kernel<T> for Matern<T> {
    fn gram(&self, x: ArrayView2<T>, y: ArrayView2<T>) -> Result<Array2<T>, Error> {
        let profile = |s: &mut [T]| self.smoothness.replace(s, Smoothness::profile);
        distance::gram(x, y, &self.lengthscale, profile)
    }

    fn gram_vjp_along(
        &self,
        along: Along,
        x: ArrayView2<T>,
        y: ArrayView2<T>,
        cotangent: ArrayView2<T>,
    ) -> Result<GramGradients<T>, Error> {
        let slope = |s: &mut [T], _: &[T]| self.smoothness.replace(s, Smoothness::slope);
        distance::gram_vjp(along, x, y, &self.lengthscale, cotangent, slope)
    }

    fn diagonal(&self, x: ArrayView2<T>) -> Result<Array1<T>, Error> {
        distance::unit_diagonal(x, &self.lengthscale)
    }

    fn diagonal_vjp(&self, x: ArrayView2<T>, cotangent: ArrayView1<T>) -> Result<Vec<T>, Error> {
        distance::constant_diagonal_vjp(self, x, cotangent)
    }

    fn parameters(&self) -> Vec<Parameter<T>> {
        self.lengthscale.parameters()
    }

    fn set_parameters(&mut self, values: &[T]) -> Result<(), Error> {
        check_values(&self.parameters(), values)?;
        self.lengthscale.assign(values);
        Ok(())
    }
}
