//! The trait of all kernels.

use crate::Error;
use bochner_numerics::Real;
use bochner_numerics::argument::{self, ArgumentError};
use ndarray::{Array1, Array2, ArrayView1, ArrayView2, Axis};
use std::fmt::Debug;

/// A covariance function $k(x, y)$ of two points of $\mathbb{R}^d$, with its gradients.
///
/// [`AnyKernel`](crate::AnyKernel) holds any kernel as data. The hyper-parameters are a flat,
/// named list, in the same order wherever they appear, so that an optimiser needs to know nothing
/// about the kernel it trains.
///
/// # Shapes
/// Points are the rows of `x: [N, d]` and `y: [N', d]`; either may have no rows.
///
/// # Numerics
/// Every kernel in closed form runs on the calling thread, in a fixed order. A row that is not finite
/// spoils its own row or column of the Gram matrix only.
pub trait Kernel<T: Real>: CloneKernel<T> + Debug + Send + Sync {
    /// The Gram matrix $K_{ij} = k(x_i, y_j)$, `[N, N']`.
    ///
    /// # Errors
    /// [`Error::Argument`] unless `x`, `y` and the parameters have the same width,
    /// or if it is zero.
    fn gram(&self, x: ArrayView2<T>, y: ArrayView2<T>) -> Result<Array2<T>, Error>;

    /// The vector-Jacobian product of [`gram`](Self::gram) along the parameters, and along the points if they
    /// are asked for.
    ///
    /// $$\dot x_i = \sum_j \dot K_{ij} \frac{\partial k(x_i, y_j)}{\partial x_i}, \qquad
    /// \dot y_j = \sum_i \dot K_{ij} \frac{\partial k(x_i, y_j)}{\partial y_j}, \qquad
    /// \dot \theta = \sum_{ij} \dot K_{ij} \frac{\partial k(x_i, y_j)}{\partial \theta}$$
    ///
    /// # Shapes
    /// `cotangent: [N, N']`. With `y = x` the whole gradient along `x` is the sum of the two. Gradients along
    /// points that are not asked for have no rows.
    ///
    /// # Errors
    /// The errors of [`gram`](Self::gram), and [`Error::Argument`] if `cotangent` does not fit.
    fn gram_vjp_along(
        &self,
        along: Along,
        x: ArrayView2<T>,
        y: ArrayView2<T>,
        cotangent: ArrayView2<T>,
    ) -> Result<GramGradients<T>, Error>;

    /// All gradients of [`gram_vjp_along`](Self::gram_vjp_along).
    ///
    /// # Errors
    /// The errors of [`gram_vjp_along`](Self::gram_vjp_along).
    fn gram_vjp(
        &self,
        x: ArrayView2<T>,
        y: ArrayView2<T>,
        cotangent: ArrayView2<T>,
    ) -> Result<GramGradients<T>, Error> {
        self.gram_vjp_along(Along::Everything, x, y, cotangent)
    }

    /// The hyper-parameters, with their names and where they may lie.
    fn parameters(&self) -> Vec<Parameter<T>>;

    /// Replaces the values of all hyper-parameters, in the order of
    /// [`parameters`](Self::parameters); where one is refused, none is replaced.
    ///
    /// # Errors
    /// [`Error::Argument`] if there are too few or too many, or if one
    /// lies outside its [`Domain`].
    fn set_parameters(&mut self, values: &[T]) -> Result<(), Error>;

    /// Checks that no Gram matrix of points of this width with themselves has a negative eigenvalue, as
    /// a covariance needs; as a mere similarity every kernel is good on every width.
    ///
    /// # Errors
    /// [`Error::Indefinite`] unless the kernel is positive semi-definite on points of `width` columns.
    fn check_positive_semi_definite(&self, _width: usize) -> Result<(), Error> {
        Ok(())
    }

    /// The kernel of one pair of points, $k(x, y)$.
    ///
    /// # Errors
    /// The errors of [`gram`](Self::gram).
    fn value(&self, x: ArrayView1<T>, y: ArrayView1<T>) -> Result<T, Error> {
        let (x, y) = (x.insert_axis(Axis(0)), y.insert_axis(Axis(0)));
        Ok(self.gram(x, y)?[[0, 0]])
    }

    /// The diagonal of the Gram matrix of points with themselves, $k(x_i, x_i)$, `[N]`.
    ///
    /// # Errors
    /// The errors of [`gram`](Self::gram).
    fn diagonal(&self, x: ArrayView2<T>) -> Result<Array1<T>, Error> {
        // An input without rows still has to have a width that the kernel takes.
        if x.nrows() == 0 {
            return Ok(self.gram(x, x)?.diag().to_owned());
        }
        x.rows().into_iter().map(|x| self.value(x, x)).collect()
    }

    /// The vector-Jacobian product of [`diagonal`](Self::diagonal) along the hyper-parameters.
    ///
    /// # Shapes
    /// `cotangent: [N]`.
    ///
    /// # Errors
    /// The errors of [`gram_vjp_along`](Self::gram_vjp_along).
    fn diagonal_vjp(&self, x: ArrayView2<T>, cotangent: ArrayView1<T>) -> Result<Vec<T>, Error> {
        argument::shape("cotangent", &[x.nrows()], cotangent.shape())?;
        let mut sums = vec![T::zero(); self.parameters().len()];
        for (x, &g) in x.rows().into_iter().zip(&cotangent) {
            let x = x.insert_axis(Axis(0));
            let g = Array2::from_elem((1, 1), g);
            let row = self.gram_vjp_along(Along::Parameters, x, x, g.view())?;
            for (sum, along) in sums.iter_mut().zip(row.parameters) {
                *sum += along;
            }
        }
        Ok(sums)
    }
}

/// A kernel that can be copied without knowing its type; every [`Kernel`] that is `Clone` is one.
///
/// It makes `Box<dyn Kernel<T>>` `Clone`.
pub trait CloneKernel<T: Real> {
    /// A copy in a box of its own.
    fn clone_box(&self) -> Box<dyn Kernel<T>>;
}

impl<T: Real, K: Kernel<T> + Clone + 'static> CloneKernel<T> for K {
    fn clone_box(&self) -> Box<dyn Kernel<T>> {
        Box::new(self.clone())
    }
}

impl<T: Real> Clone for Box<dyn Kernel<T>> {
    fn clone(&self) -> Self {
        self.as_ref().clone_box()
    }
}

/// A hyper-parameter of a kernel.
#[derive(Clone, Debug, PartialEq)]
pub struct Parameter<T> {
    /// The name; for a part of a sum or product with the part's place in front.
    pub name: String,
    /// The present value.
    pub value: T,
    /// The range of the value.
    pub domain: Domain,
}

/// The range of a hyper-parameter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Domain {
    /// Finite and greater than zero: train its logarithm, or clip.
    Positive,
    /// Any finite number.
    Finite,
    /// Any finite number, in cycles per unit of an input. One over the spread of that input is a typical step.
    Frequency {
        /// The column of the input.
        column: usize,
    },
}

impl<T: Real> Parameter<T> {
    pub(crate) fn positive(name: impl Into<String>, value: T) -> Self {
        let (name, domain) = (name.into(), Domain::Positive);
        Self {
            name,
            value,
            domain,
        }
    }

    pub(crate) fn frequency(name: impl Into<String>, value: T, column: usize) -> Self {
        let (name, domain) = (name.into(), Domain::Frequency { column });
        Self {
            name,
            value,
            domain,
        }
    }

    fn check(&self, value: T) -> Result<(), ArgumentError> {
        match self.domain {
            Domain::Positive => argument::positive(self.name.clone(), value),
            Domain::Finite | Domain::Frequency { .. } => {
                argument::in_range(value.is_finite(), self.name.clone(), value, "finite")
            }
        }
    }
}

/// The arguments along which gradients of a Gram matrix are asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Along {
    /// The points of both sides and the hyper-parameters.
    Everything,
    /// The hyper-parameters alone.
    Parameters,
}

impl Along {
    /// Zeros for the gradient along points, without rows if it is not asked for.
    pub(crate) fn zeros<T: Real>(self, points: &ArrayView2<T>) -> Array2<T> {
        let rows = match self {
            Self::Everything => points.nrows(),
            Self::Parameters => 0,
        };
        Array2::zeros((rows, points.ncols()))
    }
}

/// The gradients of a Gram matrix.
#[derive(Clone, Debug, PartialEq)]
pub struct GramGradients<T> {
    /// Along the left points, `[N, d]`.
    pub x: Array2<T>,
    /// Along the right points, `[N', d]`.
    pub y: Array2<T>,
    /// Along the hyper-parameters, in the order of [`Kernel::parameters`].
    pub parameters: Vec<T>,
}

/// Refuses values that cannot replace those of the parameters.
pub(crate) fn check_values<T: Real>(
    parameters: &[Parameter<T>],
    values: &[T],
) -> Result<(), ArgumentError> {
    argument::shape("values", &[parameters.len()], &[values.len()])?;
    let mut pairs = parameters.iter().zip(values);
    pairs.try_for_each(|(parameter, &value)| parameter.check(value))
}

/// The width that the points of both sides share.
pub(crate) fn common_width<T>(
    x: &ArrayView2<T>,
    y: &ArrayView2<T>,
) -> Result<usize, ArgumentError> {
    let width = x.ncols();
    argument::shape("y", &[y.nrows(), width], y.shape())?;
    match width {
        0 => Err(ArgumentError::Empty {
            name: "x".into(),
            shape: x.shape().to_vec(),
        }),
        _ => Ok(width),
    }
}

pub(crate) fn check_cotangent<T>(
    x: &ArrayView2<T>,
    y: &ArrayView2<T>,
    cotangent: &ArrayView2<T>,
) -> Result<(), ArgumentError> {
    argument::shape("cotangent", &[x.nrows(), y.nrows()], cotangent.shape())
}
